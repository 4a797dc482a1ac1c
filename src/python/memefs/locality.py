"""Tasks near their data: which nodes hold a file, and which workers of Dask and executors of Parsl are at these nodes.

A path is, here, ``memefs://NAME/path``, a path in a mount of this machine (``/mnt/memefs/path``), or, with
``client=``, a path of that client's deployment.

::

    future = dask_client.submit(count, path, workers=locality.dask_workers(dask_client, path), allow_other_workers=True)

Small files, and those of directories with the hint ``place=local``, are at one node; large ones are spread over all, so
that every worker is equally near, and nothing is gained by asking.
"""

from __future__ import annotations

import functools
import ipaddress
import os
import socket
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple, Optional, TypeVar, Union

from .client import Client
from .naming import PROTOCOL, parse

__all__ = ["Share", "dask_workers", "near", "nodes_of", "parsl_app", "shares"]

Paths = Union[str, os.PathLike[str], Iterable[Union[str, os.PathLike[str]]]]
T = TypeVar("T")


class Share(NamedTuple):
    """So many bytes of some files are at the node with this id, name and address."""

    node: int
    name: str
    host: str
    bytes: int


def _mounts() -> list[tuple[str, str]]:
    """Mount points of MemEFS on this machine, with the deployment's name; those further down first."""
    found = []
    with open("/proc/self/mountinfo", encoding="utf-8", errors="surrogateescape") as file:
        for line in file:
            fields, _, rest = line.partition(" - ")
            kind, source = rest.split(" ")[:2]
            if kind == "fuse.memefs":
                found.append((_unescape(fields.split(" ")[4]), _unescape(source)))
    return sorted(found, reverse=True)


def _unescape(text: str) -> str:
    for code in ("\\040", "\\011", "\\012", "\\134"):
        text = text.replace(code, chr(int(code[1:], 8)))
    return text


def _find(path: str) -> tuple[Client, str]:
    """The client of the deployment that has the path, and the path there."""
    if path.startswith(f"{PROTOCOL}:"):
        place = parse(path)
        return Client.shared(place.name), place.path
    real = os.path.realpath(path)
    for mount, name in _mounts():
        if real == mount or real.startswith(mount.rstrip("/") + "/"):
            return Client.shared(name), "/" + real[len(mount) :].lstrip("/")
    raise ValueError(f"{path!r} is neither a memefs:// URL nor in a mount of MemEFS on this machine: name a client=")


def shares(paths: Paths, *, client: Optional[Client] = None) -> list[Share]:
    """How much of these files is at each node, most first; nodes that have nothing are left out.

    Files that are not there (yet) count nothing.
    """
    if isinstance(paths, (str, os.PathLike)):
        paths = [paths]
    bytes_at: dict[tuple[Client, int], int] = {}
    for path in paths:
        text = os.fspath(path) if not hasattr(path, "storage_options") else str(path)
        at, inside = (client, text) if client is not None else _find(text)
        try:
            pieces = at.layout(inside)
        except FileNotFoundError:
            continue
        for piece in pieces:
            bytes_at[at, piece.node] = bytes_at.get((at, piece.node), 0) + piece.length
    found = []
    for at in {at for at, _ in bytes_at}:
        for node in at.nodes():
            if (at, node.id) in bytes_at:
                found.append(Share(node.id, f"node-{node.id}", node.host, bytes_at[at, node.id]))
    return sorted(found, key=lambda share: (-share.bytes, share.node))


def nodes_of(paths: Paths, *, client: Optional[Client] = None) -> list[str]:
    """The names of the nodes that hold data of these files (``node-3``, as ``cm status`` shows), most data first."""
    return [share.name for share in shares(paths, client=client)]


@functools.lru_cache(maxsize=4096)
def _address(host: str) -> str:
    """The address of a host, by which nodes and workers are compared; the name itself where it has none."""
    host = host.strip("[]")
    try:
        return str(ipaddress.ip_address(host))
    except ValueError:
        pass
    try:
        return socket.gethostbyname(host)
    except OSError:
        return host


def near(
    paths: Paths,
    workers: Mapping[T, Sequence[str]],
    *,
    client: Optional[Client] = None,
) -> list[T]:
    """Those of some workers that are where most of the data is; an empty list if none is at any node that has some.

    Args:
        workers: for each, by what it is known: names of nodes, which come first, names of hosts, addresses
    """
    for share in shares(paths, client=client):
        by_name = [worker for worker, known in workers.items() if share.name in known]
        host = _address(share.host)
        found = by_name or [worker for worker, known in workers.items() if host in map(_address, known)]
        if found:
            return found
    return []


def dask_workers(dask_client: Any, paths: Paths, *, client: Optional[Client] = None) -> Optional[list[str]]:
    """The addresses of the Dask workers that are where most of these files' data is, for ``workers=``.

    A worker is at a node if it is named like it (``dask worker --name node-3``), or else if it runs at its address.
    None, which Dask takes for any worker, when there is none. Together with ``allow_other_workers=True`` it is a hint
    and no order; for collections::

        with dask.annotate(workers=locality.dask_workers(dask_client, path), allow_other_workers=True):
    """
    workers = dask_client.scheduler_info(n_workers=-1)["workers"]
    known = {address: [str(worker["name"]), worker["host"]] for address, worker in workers.items()}
    return near(paths, known, client=client) or None


def parsl_app(
    executors: Union[Sequence[str], Mapping[str, Sequence[str]]],
    *,
    paths: Callable[..., Paths] = lambda *args, **kwargs: args[0],
    app: Optional[Callable[..., Any]] = None,
    client: Optional[Client] = None,
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """A decorator: a Parsl app that runs on the executor that is where most of its input is, else on any of them.

    ::

        @locality.parsl_app(["node-0", "node-1"])
        def count(path):
            ...

    Args:
        executors: their labels, named after nodes; or, for each label, names of nodes, hosts or addresses that it is at
        paths: of the files, from the arguments of a call; default: the first argument
        app: Parsl's decorator; default: ``parsl.python_app``
    """
    known = executors if isinstance(executors, Mapping) else {label: [label] for label in executors}

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        make = app
        if make is None:
            import parsl

            make = parsl.python_app
        apps = {label: make(function, executors=[label]) for label in known}
        anywhere = make(function, executors=list(known))

        @functools.wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            labels = near(paths(*args, **kwargs), known, client=client)
            return (apps[labels[0]] if labels else anywhere)(*args, **kwargs)

        return call

    return decorate

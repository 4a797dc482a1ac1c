"""Starting, changing and stopping a deployment: the ``cm`` program, called."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, Optional, Union

from .naming import default_name, state_dir_of

if TYPE_CHECKING:
    from .client import Client

__all__ = ["CommandError", "Deployment"]


def find_program(name: str) -> str:
    """The path of ``cm`` or ``memefs``.

    It is looked for in the directory ``$MEMEFS_BIN``, in ``$PATH``, and beside the Python interpreter, where the
    wheel that scripts/bundle makes puts it. FileNotFoundError says so when it is in none of them.
    """
    places = [os.environ.get("MEMEFS_BIN", ""), os.environ.get("PATH", os.defpath), os.path.dirname(sys.executable)]
    found = shutil.which(name, path=os.pathsep.join(place for place in places if place))
    if found is None:
        raise FileNotFoundError(2, "this program of MemEFS is neither in $PATH nor in $MEMEFS_BIN", name)
    return found


class CommandError(RuntimeError):
    """A command of ``cm`` or ``memefs`` failed.

    Attributes:
        command: its arguments, a list of strings
        status: its exit status: 1 it failed, 2 it was called wrongly; below 0: killed by that signal
        message: what it wrote to its standard error, which says why
    """

    def __init__(self, command: Sequence[str], status: int, message: str) -> None:
        super().__init__(message or f"{command[0]}: exit status {status}")
        self.command = list(command)
        self.status = status
        self.message = message

    def __reduce__(self) -> tuple[type[CommandError], tuple[list[str], int, str]]:
        return CommandError, (self.command, self.status, self.message)


def run_program(command: Sequence[str]) -> str:
    """What the program prints; CommandError when it fails. An interrupted wait ends the program, too."""
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="surrogateescape")
    if done.returncode != 0:
        raise CommandError(command, done.returncode, done.stderr.strip())
    return done.stdout


class Deployment:
    """One MemEFS deployment, by its name.

    As a context manager it starts the deployment, and stops it at the end, whatever happens in between; what is in
    its files is lost then, unless ``checkpoint`` has saved it::

        with memefs.Deployment(nodes=4, memory="512M") as deployment:
            with deployment.client() as client:
                client.put("/greeting", b"hello")
            deployment.scale(+2)

    Without ``with`` (or ``start``) nothing is started: ``Deployment("memefs")`` is one that runs already, to be asked
    and changed.

    Args:
        name: the deployment's name; default ``$MEMEFS_NAME``, else ``memefs``
        state_dir: where it keeps its state; default as of ``cm --state-dir``
        nodes, memory, mount, policy, replicas: as the options of ``cm start``; only ``start`` looks at them
        options: further options of ``cm start``, with ``_`` for ``-``: ``max_nodes=8``. True gives an option that
            has no value; None and False are left out. ``cm start --help`` lists them

    All methods block until ``cm`` has done what it was asked for. They raise CommandError when it failed, with its
    reason, and FileNotFoundError when there is no program ``cm``. Any thread may call them at any time.
    """

    def __init__(
        self,
        name: Optional[str] = None,
        *,
        state_dir: Union[str, os.PathLike[str], None] = None,
        nodes: Optional[int] = None,
        memory: Union[str, int, None] = None,
        mount: Union[str, os.PathLike[str], None] = None,
        policy: Optional[str] = None,
        replicas: Optional[int] = None,
        **options: Union[str, int, float, bool, os.PathLike[str], None],
    ) -> None:
        self.name = name or default_name()
        self.state_dir = state_dir_of(self.name, state_dir)
        self._options: dict[str, Union[str, int, float, bool, os.PathLike[str], None]] = {
            "nodes": nodes,
            "memory": memory,
            "mount": mount,
            "policy": policy,
            "replicas": replicas,
            **options,
        }

    def __repr__(self) -> str:
        return f"<memefs.Deployment {self.name!r}>"

    def __enter__(self) -> Deployment:
        self.start()
        return self

    def __exit__(
        self,
        kind: Optional[type[BaseException]],
        error: Optional[BaseException],
        where: Optional[TracebackType],
    ) -> None:
        self.stop()

    def _command(self, verb: str, *arguments: str) -> list[str]:
        command = [find_program("cm"), verb, "--name", self.name]
        if self.state_dir is not None:
            command += ["--state-dir", self.state_dir]
        return command + list(arguments)

    def _run(self, verb: str, *arguments: str) -> str:
        return run_program(self._command(verb, *arguments))

    def _ask(self, verb: str, *arguments: str) -> dict[str, Any]:
        answer: dict[str, Any] = json.loads(self._run(verb, *arguments, "--json"))
        return answer

    def start(self) -> None:
        """Starts it: returns when every node is up and every mount answers. One that runs already goes on."""
        arguments = []
        for key, value in self._options.items():
            if value is None or value is False:
                continue
            arguments.append("--" + key.replace("_", "-"))
            if value is not True:
                arguments.append(os.fspath(value) if isinstance(value, os.PathLike) else str(value))
        self._run("start", *arguments)

    def stop(self) -> None:
        """Unmounts it, ends its processes and removes its state. The files are gone. Does nothing where none runs."""
        self._run("stop")

    def client(self, **options: Any) -> Client:
        """A connection to it: ``memefs.Client`` with this name and state directory; the caller closes it."""
        from .client import Client  # the rest of this module works where libmemefs is not

        return Client(self.name, state_dir=self.state_dir, **options)

    def status(self) -> dict[str, Any]:
        """All that ``cm status --json`` tells: state, epoch, utilization, nodes, placement, mounts, …

        docs/reference/json.md lists the fields; memory is in bytes, bandwidth in bytes per second.
        """
        return self._ask("status")

    def nodes(self) -> list[dict[str, Any]]:
        """The nodes, as in ``status()["nodes"]``: id, name, address, state, partitions, memory_used, mount, …"""
        nodes: list[dict[str, Any]] = self.status()["nodes"]
        return nodes

    def clients(self) -> list[dict[str, Any]]:
        """The mounts and other clients of all nodes, and what they have done, as ``cm clients --json`` tells."""
        clients: list[dict[str, Any]] = self._ask("clients")["clients"]
        return clients

    def scale(self, nodes: Optional[int] = None, *, by: Optional[int] = None) -> dict[str, Any]:
        """Changes the number of nodes while files are in use: to ``nodes``, or ``by`` so many more or fewer.

        Returns when data and tables are in place, what it moved: from, to, partitions_moved, bytes_moved,
        duration_ms, blocked_ms_max, …
        """
        if (nodes is None) == (by is None):
            raise TypeError("scale() takes the number of nodes, or by=, and not both")
        return self._ask("scale", str(nodes) if by is None else f"{by:+d}")

    def rebalance(self) -> dict[str, Any]:
        """Moves partitions until every node has its share; returns what ``scale`` does."""
        return self._ask("rebalance")

    def drain(self, *nodes: str) -> dict[str, Any]:
        """Takes nodes out, by name, address or host; what they have goes to the others. Returns what ``scale`` does."""
        return self._ask("drain", *nodes)

    def policy(self, name: Optional[str] = None) -> str:
        """How it grows and shrinks by itself (``none``, ``cso``, ``nso+csi``, …); with a name, from now on."""
        if name is not None:
            self._run("policy", name)
        policy: str = self.status()["policy"]
        return policy

    def checkpoint(self, directory: Union[str, os.PathLike[str]]) -> dict[str, Any]:
        """Writes all files, as they are at one moment, to a directory that all nodes see at the same path.

        ``Deployment(restore=directory)`` begins with them. Returns dir, number, partitions, bytes, halted_ms,
        duration_ms, …
        """
        return self._ask("checkpoint", os.fspath(directory))

    def events(
        self,
        *,
        since: Optional[str] = None,
        until: Optional[str] = None,
        types: Sequence[str] = (),
        tail: Optional[int] = None,
        follow: bool = False,
    ) -> Iterator[dict[str, str]]:
        """What has happened, oldest first: time (RFC 3339, UTC), who, what, text.

        Args:
            since, until: a time as in RFC 3339, or how long ago (``90s``, ``10m``, ``2h``)
            types: only these (docs/reference/events.md lists them)
            tail: only the last so many
            follow: go on with those to come, until the deployment stops, or the iterator is closed
        """
        arguments = ["--json"]
        for option, value in (("--since", since), ("--until", until), ("--type", ",".join(types)), ("--tail", tail)):
            if value not in (None, ""):
                arguments += [option, str(value)]
        if not follow:
            return (json.loads(line) for line in self._run("events", *arguments).splitlines())
        return self._follow(self._command("events", *arguments, "--follow"))

    @staticmethod
    def _follow(command: list[str]) -> Iterator[dict[str, str]]:
        with subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        ) as process:
            assert process.stdout is not None and process.stderr is not None
            try:
                for line in process.stdout:
                    yield json.loads(line)
                message = process.stderr.read().strip()
                if process.wait() != 0:
                    raise CommandError(command, process.returncode, message)
            finally:
                process.kill()

"""The connection that a client is made of: options, closing, sharing, forks."""

from __future__ import annotations

import atexit
import os
import sys
import threading
import weakref
from collections.abc import Sequence
from contextlib import suppress
from types import TracebackType
from typing import TYPE_CHECKING, Any, Optional, Union, cast

from ._native import ffi, lib
from .completions import Completions
from .file import RawFile, flags_of
from .handle import Handle, PathType, check, encode
from .naming import default_name, state_dir_of

if TYPE_CHECKING:
    from typing_extensions import Self

__all__ = ["Connection"]

_TEXTS = ("state_dir", "lm", "cm", "secret", "label")
_TIMEOUTS = {"connect_timeout": "connect_ms", "io_timeout": "io_ms", "full_timeout": "full_ms"}
_NUMBERS = ("threads", "write_window", "read_window", "contents", "files", "names")
_KNOWN = {*_TEXTS, *_TIMEOUTS, "uid", "gid", "groups", "umask", "atime"}

_connections: weakref.WeakSet[Connection] = weakref.WeakSet()
_shared: dict[tuple[type, str, Optional[str]], Any] = {}
_shared_lock = threading.Lock()
_after_fork = threading.Lock()


class Connection:
    """What ``Client`` has of it; see there for the arguments."""

    def __init__(
        self,
        name: Optional[str] = None,
        *,
        state_dir: Union[str, os.PathLike[str], None] = None,
        cm: Optional[str] = None,
        lm: Union[str, os.PathLike[str], None] = None,
        secret: Union[str, os.PathLike[str], None] = None,
        label: Optional[str] = None,
        uid: Optional[int] = None,
        gid: Optional[int] = None,
        groups: Optional[Sequence[int]] = None,
        umask: Optional[int] = None,
        atime: bool = True,
        connect_timeout: Optional[float] = None,
        io_timeout: Optional[float] = None,
        full_timeout: Optional[float] = None,
        **options: int,
    ) -> None:
        self.name = name or default_name()
        self._options: dict[str, Any] = {
            "state_dir": state_dir_of(self.name, state_dir),
            "cm": cm,
            "lm": lm,
            "secret": secret,
            "label": label,
            "uid": uid,
            "gid": gid,
            "groups": groups,
            "umask": umask,
            "atime": atime,
            "connect_timeout": connect_timeout,
            "io_timeout": io_timeout,
            "full_timeout": full_timeout,
            **options,
        }
        if (uid is None) != (gid is None):
            raise TypeError("give uid and gid both, or none of them")
        self._closed = False
        self._files: weakref.WeakSet[RawFile] = weakref.WeakSet()
        self._layers: weakref.WeakSet[Any] = weakref.WeakSet()  # buffered and text files on top of these
        self._queues: weakref.WeakSet[Completions] = weakref.WeakSet()  # of event loops
        self._handle = self._connect()
        _connections.add(self)

    def _connect(self) -> Handle:
        texts = {
            key: ffi.new("char[]", os.fsencode(value))
            for key, value in (("deployment", self.name), *((k, self._options[k]) for k in _TEXTS))
            if value is not None
        }
        o = ffi.new("struct memefs_options *", texts)
        o.size = ffi.sizeof("struct memefs_options")
        o.umask = lib.MEMEFS_UMASK_OF_PROCESS if self._options["umask"] is None else self._options["umask"]
        o.flags = 0 if self._options["atime"] else lib.MEMEFS_NO_ATIME
        if self._options["uid"] is not None:
            groups = ffi.new("uint32_t[]", list(self._options["groups"] or ()))
            ids = ffi.new("struct memefs_ids *", (self._options["uid"], self._options["gid"], groups, len(groups)))
            o.ids = ids
        for key, value in self._options.items():
            if key in _TIMEOUTS and value is not None:
                setattr(o, _TIMEOUTS[key], max(1, round(value * 1000)))
            elif key not in _KNOWN:
                if key not in _NUMBERS:
                    raise TypeError(f"memefs.Client has no option {key!r}; further ones are {', '.join(_NUMBERS)}")
                setattr(o, key, value)
        fs = ffi.new("struct memefs **")
        rc = lib.memefs_connect(o, fs)
        if rc < 0:
            raise OSError(-rc, ffi.string(lib.memefs_error()).decode(errors="replace"))
        _watch_multiprocessing()
        return Handle(fs[0], lib.memefs_disconnect, f"the connection to {self.name!r}")

    @classmethod
    def shared(cls, name: Optional[str] = None, *, state_dir: Union[str, os.PathLike[str], None] = None) -> Self:
        """The connection that all of this process share who ask for it like this. It is made when it is not there.

        It stays until the process ends, or ``close`` is called for it; then the next call makes another one.
        """
        name = name or default_name()
        key = (cls, name, state_dir_of(name, state_dir))
        with _shared_lock:
            client: Optional[Self] = _shared.get(key)
            if client is None or client._closed:
                client = _shared[key] = cls(name, state_dir=key[2])
            return client

    def __reduce__(self) -> tuple[Any, ...]:
        return _again, (type(self), self.name, self._options)

    def __repr__(self) -> str:
        return f"<memefs.Client of {self.name!r}{' closed' if self._closed else ''}>"

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: Optional[type[BaseException]],
        error: Optional[BaseException],
        where: Optional[TracebackType],
    ) -> None:
        self.close()

    def close(self) -> None:
        """Closes the files that are open still, sends what was written, gives locks back and disconnects.

        The first error of what could not be written is raised. Waits for calls that other threads are within.
        """
        self._closed = True
        if not self._handle.shut():
            return
        for queue in list(self._queues):
            queue.destroy()
        first: Optional[BaseException] = None
        for file in [*self._layers, *self._files]:
            try:
                file.close()
            except (OSError, ValueError) as error:
                first = first or error
        rc = self._handle.free()
        if first is not None:
            raise first
        check(rc)

    @property
    def closed(self) -> bool:
        return self._closed

    @property
    def state_dir(self) -> Optional[str]:
        return cast(Optional[str], self._options["state_dir"])

    @property
    def _fs(self) -> Handle:
        """The connection, for one call: with self._fs as fs. A child process makes its own."""
        handle = self._handle
        if handle.foreign:
            handle = self._reconnect()
        return handle

    def _reconnect(self) -> Handle:
        if self._closed:
            return self._handle  # which says so
        with _after_fork:
            if self._handle.foreign:
                self._files = weakref.WeakSet()
                self._layers = weakref.WeakSet()
                self._queues = weakref.WeakSet()
                self._handle = self._connect()
            return self._handle

    def open_raw(self, path: PathType, mode: str = "r", *, flags: int = 0, permissions: int = 0o666) -> RawFile:
        """Opens a file without a buffer in Python: r, w, x or a, with + for both directions.

        flags: further ones of os.O_…, as O_SYNC, O_NOFOLLOW, O_TMPFILE. permissions: of a new file, without umask.
        """
        file = ffi.new("struct memefs_file **")
        with self._fs as fs:
            check(lib.memefs_open(fs, encode(path), flags_of(mode) | flags, permissions, file), path)
            raw = RawFile(Handle(file[0], lib.memefs_close, f"the file {os.fsdecode(path)!r}"), path, mode)
            self._files.add(raw)
        return raw


def _renew_locks() -> None:
    """In a child process: threads of the parent may have held them."""
    global _shared_lock, _after_fork
    _shared_lock = threading.Lock()
    _after_fork = threading.Lock()


os.register_at_fork(after_in_child=_renew_locks)


def _watch_multiprocessing() -> None:
    """Children of multiprocessing do not run what atexit has, but this."""
    util = sys.modules.get("multiprocessing.util")
    if util is not None:
        util.Finalize(None, _close_all, exitpriority=0)


@atexit.register
def _close_all() -> None:
    for client in list(_connections):
        with suppress(OSError, ValueError):
            client.close()


def _again(cls: type[Connection], name: str, options: dict[str, Any]) -> Connection:
    return cls(name, **options)

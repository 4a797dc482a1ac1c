"""What is freed by hand in C, guarded: nothing is under way when it is freed, and it is not used after that."""

from __future__ import annotations

import errno
import os
import threading
from typing import Any, Optional, Union

from ._native import ffi, lib

__all__ = ["Handle", "PathType", "check", "encode"]

PathType = Union[str, bytes, os.PathLike[str], os.PathLike[bytes]]

_forks = 0


def _forked() -> None:
    global _forks
    _forks += 1


os.register_at_fork(after_in_child=_forked)


def encode(path: PathType) -> bytes:
    """The path for C, as the os module makes it."""
    name = os.fsencode(path)
    if b"\0" in name:
        raise ValueError("embedded null byte")
    return name


def check(rc: int, path: Any = None, path2: Any = None) -> int:
    """The result of a call, or an OSError that knows of which file."""
    if rc >= 0:
        return rc
    if path2 is not None:
        raise OSError(-rc, os.strerror(-rc), path, None, path2)
    if path is not None:
        raise OSError(-rc, os.strerror(-rc), path)
    raise OSError(-rc, os.strerror(-rc))


class Handle:
    """A pointer that libmemefs gave, with the call that frees it.

    ``with handle as pointer:`` around each use. ``close`` waits until no other thread is within one. In a process
    that was forked from the one that made it the pointer is never used, not even to free it.
    """

    __slots__ = ("_active", "_closed", "_forks", "_free", "_idle", "_lock", "_pointer", "_what")

    def __init__(self, pointer: Any, free: Any, what: str) -> None:
        self._pointer = pointer
        self._free = free
        self._what = what
        self._lock = threading.Lock()
        self._idle: Optional[threading.Event] = None  # of the thread that closes
        self._active = 0
        self._closed = False
        self._forks = _forks

    def __enter__(self) -> Any:
        if self._forks != _forks:
            raise OSError(
                errno.EBADF, f"{self._what} belongs to the process that this one was forked from: open it here anew"
            )
        with self._lock:
            if self._closed:
                raise ValueError(f"{self._what} is closed")
            self._active += 1
        return self._pointer

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._active -= 1
            if self._idle is not None and self._active == 0:
                self._idle.set()

    @property
    def foreign(self) -> bool:
        """It was made before a fork, by the parent."""
        return self._forks != _forks

    @property
    def closed(self) -> bool:
        return self._closed

    def shut(self) -> bool:
        """Lets nobody in any more, and waits until the last one is out; False: somebody has done that before."""
        if self.foreign:
            self._closed = True
            return False
        with self._lock:
            if self._closed:
                return False
            self._closed = True
            if self._active > 0:
                self._idle = threading.Event()
        if self._idle is not None:
            self._idle.wait()
        return True

    def free(self) -> int:
        """After ``shut``: what the call that frees says."""
        pointer, self._pointer = self._pointer, ffi.NULL
        return int(self._free(pointer))

    def close(self) -> int:
        """Both; 0 where it was closed before, or belongs to the parent."""
        return self.free() if self.shut() else 0


def library_version() -> str:
    """The version of the libmemefs that is loaded."""
    return str(ffi.string(lib.memefs_version()).decode())

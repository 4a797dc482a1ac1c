"""Open files: what io.BufferedReader, io.BufferedWriter and io.TextIOWrapper stand on."""

from __future__ import annotations

import errno
import fcntl
import io
import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Optional

from ._native import ffi, lib
from .handle import Handle, PathType, check, encode

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer, WriteableBuffer

__all__ = ["RawFile"]

# A lock is waited for in pieces, so that the program can be interrupted.
LOCK_WAIT_MS = 250

MODES = {"r": os.O_RDONLY, "w": os.O_WRONLY | os.O_CREAT | os.O_TRUNC, "x": os.O_WRONLY | os.O_CREAT | os.O_EXCL}
MODES["a"] = os.O_WRONLY | os.O_CREAT | os.O_APPEND


def flags_of(mode: str) -> int:
    """The flags of open(2) for the mode of a raw file: one of r, w, x and a, perhaps with + and b."""
    if not isinstance(mode, str):
        raise TypeError(f"mode must be a str, not {type(mode).__name__}")
    letters = mode.replace("b", "", 1)
    plus = "+" in letters
    letters = letters.replace("+", "", 1)
    if letters not in MODES:
        raise ValueError(f"invalid mode: {mode!r}")
    return MODES[letters] & ~os.O_ACCMODE | os.O_RDWR if plus else MODES[letters]


def stat_result(st: Any) -> os.stat_result:
    """A struct stat as the os module has it."""
    times = [(t.tv_sec, t.tv_nsec) for t in (st.st_atim, st.st_mtim, st.st_ctim)]
    whole = [s for s, _ in times]
    named: dict[str, float] = {"st_blksize": st.st_blksize, "st_blocks": st.st_blocks, "st_rdev": st.st_rdev}
    for name, (s, ns) in zip(("st_atime", "st_mtime", "st_ctime"), times):
        named[name] = s + ns * 1e-9
        named[name + "_ns"] = s * 1_000_000_000 + ns
    first = (st.st_mode, st.st_ino, st.st_dev, st.st_nlink, st.st_uid, st.st_gid, st.st_size)
    return os.stat_result((*first, *whole), named)


def wait_for_lock(attempt: Callable[[int], int], timeout: Optional[float], path: Any) -> bool:
    """Whether attempt(wait_ms) has had the lock before the time was over (s; None: never is)."""
    deadline = None if timeout is None else time.monotonic() + timeout
    while True:
        left = LOCK_WAIT_MS if deadline is None else int(max(0.0, deadline - time.monotonic()) * 1000)
        rc = attempt(min(left, LOCK_WAIT_MS))
        if rc != -errno.EAGAIN:
            check(rc, path)
            return True
        if deadline is not None and time.monotonic() >= deadline:
            return False


class RawFile(io.RawIOBase):
    """An open file without a buffer in this process' Python: each call is one of libmemefs.

    What ``Client.open`` returns is a buffered or text file on top of one (its ``.raw``, or ``.buffer.raw``).
    Buffers (bytearray, memoryview, numpy arrays, …; contiguous) are read into and written from as they are, without
    a copy. Other threads run meanwhile. The library reads ahead and writes behind: other clients see what was written
    once ``close``, ``sync`` or, of a buffered file, its ``close`` has returned.
    """

    def __init__(self, handle: Handle, path: PathType, mode: str) -> None:
        super().__init__()
        self._handle = handle
        self.name = path
        self.mode = mode.replace("b", "") + "b"
        flags = flags_of(mode)
        self._readable = flags & os.O_ACCMODE in (os.O_RDONLY, os.O_RDWR)
        self._writable = flags & os.O_ACCMODE in (os.O_WRONLY, os.O_RDWR)

    def __repr__(self) -> str:
        return f"<memefs.RawFile name={self.name!r} mode={self.mode!r}{' closed' if self.closed else ''}>"

    def readable(self) -> bool:
        self._check_open()
        return self._readable

    def writable(self) -> bool:
        self._check_open()
        return self._writable

    def seekable(self) -> bool:
        self._check_open()
        return True

    def _check_open(self) -> None:
        if self.closed:
            raise ValueError("I/O operation on closed file")

    def _need(self, able: bool, what: str) -> None:
        self._check_open()
        if not able:
            raise io.UnsupportedOperation(f"not {what}")

    def close(self) -> None:
        """Sends what was written and gives locks back. The error of a write that failed, if no call told it before."""
        if self.closed:
            return
        try:
            check(self._handle.close(), self.name)
        finally:
            super().close()

    # --- contents ---

    def readinto(self, buffer: WriteableBuffer) -> int:
        """Fills the buffer from the position on; how many bytes, less than it has only at the end of the file."""
        self._need(self._readable, "readable")
        with self._handle as file, ffi.from_buffer(buffer, require_writable=True) as room:
            return check(lib.memefs_read(file, room, len(room)), self.name)

    def readall(self) -> bytes:
        """All from the position on."""
        self._need(self._readable, "readable")
        data = self.pread(max(0, self.stat().st_size - self.tell()), self.tell())
        self.seek(len(data), os.SEEK_CUR)
        rest = []  # what was appended meanwhile
        while more := self.read(io.DEFAULT_BUFFER_SIZE):
            rest.append(more)
        return data + b"".join(rest) if rest else data

    def pread(self, length: int, offset: int) -> bytes:
        """Up to so many bytes from there on; the position stays."""
        room = io.BytesIO(bytes(length))  # its own buffer is filled: no copy
        with room.getbuffer() as view:
            count = self.pread_into(view, offset)
        room.truncate(count)
        return room.getvalue()

    def pread_into(self, buffer: WriteableBuffer, offset: int) -> int:
        """Fills the buffer from there on; how many bytes it got. The position stays."""
        self._need(self._readable, "readable")
        with self._handle as file, ffi.from_buffer(buffer, require_writable=True) as room:
            return check(lib.memefs_pread(file, room, len(room), offset), self.name)

    def write(self, data: ReadableBuffer) -> int:
        """Writes at the position, or, in mode ``a``, at the end; how many bytes (all, unless memory is full)."""
        self._need(self._writable, "writable")
        with self._handle as file, ffi.from_buffer(data) as bytes_:
            return check(lib.memefs_write(file, bytes_, len(bytes_)), self.name)

    def pwrite(self, data: ReadableBuffer, offset: int) -> int:
        """Writes there; the position stays."""
        self._need(self._writable, "writable")
        with self._handle as file, ffi.from_buffer(data) as bytes_:
            return check(lib.memefs_pwrite(file, bytes_, len(bytes_), offset), self.name)

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        """Moves the position: SEEK_SET, SEEK_CUR, SEEK_END, and os.SEEK_DATA, os.SEEK_HOLE. Where it is then."""
        self._check_open()
        with self._handle as file:
            return check(lib.memefs_lseek(file, offset, whence), self.name)

    def tell(self) -> int:
        return self.seek(0, os.SEEK_CUR)

    def truncate(self, size: Optional[int] = None) -> int:
        """Makes the file that long, with zeros where it grows; None: up to the position. The position stays."""
        self._need(self._writable, "writable")
        size = self.tell() if size is None else size
        with self._handle as file:
            check(lib.memefs_ftruncate(file, size), self.name)
        return size

    def allocate(self, offset: int, length: int, mode: int = 0) -> None:
        """As fallocate(2); mode: FALLOC_FL_KEEP_SIZE 1, FALLOC_FL_PUNCH_HOLE 2, …"""
        self._need(self._writable, "writable")
        with self._handle as file:
            check(lib.memefs_fallocate(file, mode, offset, length), self.name)

    def sync(self) -> None:
        """Other clients see what was written when it returns. (First flush a buffered file on top.)"""
        self._check_open()
        with self._handle as file:
            check(lib.memefs_fsync(file), self.name)

    def stat(self) -> os.stat_result:
        """As os.fstat: of this file, also when it has no name any more."""
        self._check_open()
        st = ffi.new("struct stat *")
        with self._handle as file:
            check(lib.memefs_fstat(file, st), self.name)
        return stat_result(st)

    # --- locks ---

    @contextmanager
    def lock(self, *, shared: bool = False, timeout: Optional[float] = None) -> Iterator[None]:
        """Holds a lock on the file (flock(2)) within ``with``; it counts on all clients and mounts.

        Every open file is an owner of its own. TimeoutError when it is not to be had within so many seconds. Other
        clients see what was written under the lock as soon as they have it: flush a buffered file before its end.
        """
        if not self.acquire(shared=shared, timeout=timeout):
            raise TimeoutError(errno.ETIMEDOUT, "the lock is held by others", self.name)
        try:
            yield
        finally:
            self.release()

    def acquire(self, *, shared: bool = False, timeout: Optional[float] = None) -> bool:
        """Takes the lock; False when it is not to be had within so many seconds (0: at once, None: waits for ever)."""
        operation = fcntl.LOCK_SH if shared else fcntl.LOCK_EX
        return wait_for_lock(self._flock(operation), timeout, self.name)

    def release(self) -> None:
        """Gives the lock back; what was written goes out before."""
        check(self._flock(fcntl.LOCK_UN)(0), self.name)

    def _flock(self, operation: int) -> Callable[[int], int]:
        def attempt(wait_ms: int) -> int:
            with self._handle as file:
                return int(lib.memefs_flock(file, operation, wait_ms))

        return attempt

    def acquire_range(
        self, start: int, length: int = 0, *, shared: bool = False, timeout: Optional[float] = None
    ) -> bool:
        """The same for a part of the file (as fcntl(2)'s F_OFD_SETLK); length 0: to its end, wherever that is."""
        return wait_for_lock(self._range(start, length, fcntl.F_RDLCK if shared else fcntl.F_WRLCK), timeout, self.name)

    def release_range(self, start: int, length: int = 0) -> None:
        """Gives the lock on that part back."""
        check(self._range(start, length, fcntl.F_UNLCK)(0), self.name)

    def _range(self, start: int, length: int, kind: int) -> Callable[[int], int]:
        lock = ffi.new("struct memefs_lock *", {"type": kind, "start": start, "len": length})

        def attempt(wait_ms: int) -> int:
            with self._handle as file:
                return int(lib.memefs_lock(file, lock, wait_ms))

        return attempt


_scratch = threading.local()


def scratch() -> Any:
    """This thread's buffer for small objects."""
    room = getattr(_scratch, "room", None)
    if room is None:
        room = _scratch.room = ffi.new("char[]", lib.MEMEFS_PUT_SMALL)
    return room


def get_object(fs: Any, path: PathType) -> bytes:
    """The content of a file. Of a small one it costs one round trip and a copy; a large one is received in place."""
    name = encode(path)
    room = scratch()
    size = check(lib.memefs_get(fs, name, room, len(room)), path)
    if size <= len(room):
        return bytes(ffi.buffer(room, size))
    while True:
        whole = io.BytesIO(bytes(size))
        with whole.getbuffer() as view, ffi.from_buffer(view, require_writable=True) as large:
            now = check(lib.memefs_get(fs, name, large, size), path)
        if now <= size:
            whole.truncate(now)
            return whole.getvalue()
        size = now  # it has grown meanwhile

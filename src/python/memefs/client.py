"""A connection to a deployment: its files, without a mount."""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO, Any, BinaryIO, Literal, Optional, overload

from ._native import ffi, lib
from .handle import PathType, check
from .names import Names
from .objects import Objects
from .places import Places

__all__ = ["Client"]

# Of a file that is opened without another size: what is read ahead and written behind is in the library.
BUFFER_SIZE = 128 << 10
COPY_SIZE = 64 << 20


class Client(Objects, Names, Places):
    """One connection to a deployment: reads and writes its files without a mount.

    ::

        with memefs.Client() as client:
            client.put("/results/one", b"...")
            data = client.get("/results/one")
            with client.open("/results/log", "a") as log:
                print("done", file=log)

    It promises what a mount does: what is closed (or put, renamed, removed, …) is seen by every other client and mount
    at once, locks hold across all. Paths begin at the root of the file system: ``/a`` is what a mount at
    ``/mnt/memefs`` shows as ``/mnt/memefs/a``. Methods are named, and behave, as those of ``os`` and ``shutil``, and
    raise OSError (its subclass for the errno, with the file's name).

    Args:
        name: the deployment's; default ``$MEMEFS_NAME``, else ``memefs``
        state_dir: where it keeps its state on this machine; default as of ``cm --state-dir``
        cm: ``HOST:PORT`` of the Central Manager, with ``secret`` from a machine that has no node
        lm: the socket of another Local Manager than the first one of this machine
        secret: path of a file with the deployment's secret; default: that in the state directory
        label: what ``cm clients`` calls this connection; default: the program's name
        uid, gid, groups: on whose behalf; default: of the process, as they are now. Give all or none
        umask: default: of the process, as it is now
        atime: whether reading changes times of access
        connect_timeout, io_timeout: seconds to wait for the deployment, and for a partition's answer
        full_timeout: seconds that a writer waits for memory while nodes may come
        options: further fields of ``struct memefs_options``: threads, write_window, read_window, contents, files, names

    Any thread may call any method at any time; other threads run while one waits. After a fork (multiprocessing) the
    child connects anew by itself; files that were opened before are of no use there (EBADF). It can be pickled: the
    copy is a new connection.
    """

    @overload
    def open(
        self,
        path: PathType,
        mode: Literal["r", "w", "x", "a", "r+", "w+", "x+", "a+", "rt", "wt", "xt", "at"] = "r",
        buffering: int = -1,
        encoding: Optional[str] = None,
        errors: Optional[str] = None,
        newline: Optional[str] = None,
    ) -> io.TextIOWrapper: ...

    @overload
    def open(
        self,
        path: PathType,
        mode: Literal["rb", "wb", "xb", "ab", "r+b", "w+b", "x+b", "a+b", "rb+", "wb+", "xb+", "ab+"],
        buffering: int = -1,
    ) -> BinaryIO: ...

    @overload
    def open(
        self,
        path: PathType,
        mode: str,
        buffering: int = -1,
        encoding: Optional[str] = None,
        errors: Optional[str] = None,
        newline: Optional[str] = None,
    ) -> IO[Any]: ...

    def open(
        self,
        path: PathType,
        mode: str = "r",
        buffering: int = -1,
        encoding: Optional[str] = None,
        errors: Optional[str] = None,
        newline: Optional[str] = None,
    ) -> Any:
        """Opens a file as the built-in ``open`` does: text or (``b``) bytes, buffered unless buffering=0.

        What it returns is io's own BufferedReader, BufferedWriter, BufferedRandom or TextIOWrapper, on a RawFile:
        ``readinto`` into a large buffer is one call of the library, without a copy. It has no file descriptor.
        """
        if not isinstance(mode, str):
            raise TypeError(f"mode must be a str, not {type(mode).__name__}")
        binary, text = "b" in mode, "t" in mode
        if binary and text:
            raise ValueError("can't have text and binary mode at once")
        if binary and (encoding, errors, newline) != (None, None, None):
            raise ValueError("binary mode doesn't take encoding, errors or newline")
        if not binary and buffering == 0:
            raise ValueError("can't have unbuffered text I/O")
        raw = self.open_raw(path, mode.replace("b", "", 1).replace("t", "", 1))
        if buffering == 0:
            return raw
        line_buffering = buffering == 1 and not binary
        size = BUFFER_SIZE if buffering in (-1, 1) else buffering
        try:
            if "+" in mode:
                file: Any = io.BufferedRandom(raw, size)
            elif raw.writable():
                file = io.BufferedWriter(raw, size)
            else:
                file = io.BufferedReader(raw, size)
            if not binary:
                file = io.TextIOWrapper(file, io.text_encoding(encoding), errors, newline, line_buffering)
                file.mode = mode
        except BaseException:
            raw.close()
            raise
        self._layers.add(file)
        return file

    @contextmanager
    def lock(self, path: PathType, *, shared: bool = False, timeout: Optional[float] = None) -> Iterator[None]:
        """Holds a lock on a file (flock(2)) within ``with``, across all clients and mounts; makes the file if need be.

        TimeoutError when it is not to be had within so many seconds.
        """
        with self.open_raw(path, "a+") as file, file.lock(shared=shared, timeout=timeout):
            yield

    def copy_file(self, source: PathType, target: PathType) -> int:
        """Copies the content of a file into another one, made or overwritten; how many bytes."""
        copied = 0
        with self.open_raw(source, "r") as from_, self.open_raw(target, "w") as to:
            while True:
                with from_._handle as one, to._handle as other:
                    rc = lib.memefs_copy_file_range(one, ffi.NULL, other, ffi.NULL, COPY_SIZE, 0)
                if check(rc, source, target) == 0:
                    return copied
                copied += rc

"""Whole objects: put, get, and many of them at once."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, Literal, Optional, Union, overload

from ._native import ffi, lib
from .connection import Connection
from .file import get_object
from .handle import PathType, check, encode

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer, WriteableBuffer

__all__ = ["Objects", "check_errors", "items_of", "put_flags", "raise_first"]

HEADS = 1024  # files whose first bytes are got at once: of 64 KiB each they need room of 64 MiB


class Objects(Connection):
    def get(self, path: PathType) -> bytes:
        """The content of a file. One round trip if it is small; a large one is received into the result, uncopied."""
        with self._fs as fs:
            return get_object(fs, path)

    def get_into(self, path: PathType, buffer: WriteableBuffer) -> int:
        """Fills a buffer (bytearray, memoryview, numpy array, …) from the begin of a file, without a copy.

        The file's size, which may be more than the buffer has.
        """
        with self._fs as fs, ffi.from_buffer(buffer, require_writable=True) as room:
            return check(lib.memefs_get(fs, encode(path), room, len(room)), path)

    def put(self, path: PathType, data: ReadableBuffer, *, exclusive: bool = False, parents: bool = False) -> None:
        """Makes a file of these bytes, in place of what was there; a reader sees the old or the new one, whole.

        One round trip when they are few (64 KiB). exclusive: FileExistsError if the name is there. parents: makes
        directories that are not there.
        """
        flags = put_flags(exclusive, parents)
        with self._fs as fs, ffi.from_buffer(data) as bytes_:
            check(lib.memefs_put(fs, encode(path), bytes_, len(bytes_), flags), path)

    @overload
    def mget(self, paths: Iterable[PathType], *, errors: Literal["raise"] = "raise") -> list[bytes]: ...

    @overload
    def mget(self, paths: Iterable[PathType], *, errors: Literal["return"]) -> list[Union[bytes, OSError]]: ...

    def mget(self, paths: Iterable[PathType], *, errors: str = "raise") -> Any:
        """The contents of many files, in this order; small ones travel together, a pipeline for each partition.

        errors: ``raise`` the first one, or ``return`` them in the places of contents.
        """
        paths = list(paths)
        check_errors(errors)
        items, _names = items_of([encode(path) for path in paths])
        results: list[Union[bytes, OSError]] = []
        try:
            with self._fs as fs:
                check(lib.memefs_mget(fs, items, len(paths)))
            for path, item in zip(paths, items):
                if item.result < 0:
                    results.append(OSError(-item.result, os.strerror(-item.result), path))
                else:
                    results.append(bytes(ffi.buffer(item.buf, item.result)) if item.result else b"")
        finally:
            for item in items:
                lib.memefs_free(item.buf)
        if errors == "raise":
            raise_first(results)
        return results

    def _mget_heads(self, paths: Sequence[PathType], lengths: Sequence[int]) -> list[Union[bytes, OSError]]:
        """The first bytes of many files, or why not; what a file does not have is not there."""
        results: list[Union[bytes, OSError]] = []
        for at in range(0, len(paths), HEADS):  # the room for all, which is as long as was asked for, may be too much
            results += self._mget_some_heads(paths[at : at + HEADS], lengths[at : at + HEADS])
        return results

    def _mget_some_heads(self, paths: Sequence[PathType], lengths: Sequence[int]) -> list[Union[bytes, OSError]]:
        items, _names = items_of([encode(path) for path in paths])
        room = ffi.new("char[]", sum(lengths) + 1)
        offset = 0
        for item, length in zip(items, lengths):
            item.buf, item.len = room + offset, length
            offset += length
        with self._fs as fs:
            check(lib.memefs_mget(fs, items, len(paths)))
        return [
            OSError(-item.result, os.strerror(-item.result), path)
            if item.result < 0
            else bytes(ffi.buffer(item.buf, min(item.result, length)))
            for path, length, item in zip(paths, lengths, items)
        ]

    def mput(
        self,
        items: Union[Mapping[Any, ReadableBuffer], Iterable[tuple[PathType, ReadableBuffer]]],
        *,
        exclusive: bool = False,
        parents: bool = False,
        errors: Literal["raise", "return"] = "raise",
    ) -> list[Optional[OSError]]:
        """Makes many files, each as ``put`` does, in no order, all at once: a dict, or pairs of path and content.

        With errors="return" the result has, in the order of the items, None or why one failed.
        """
        check_errors(errors)
        pairs = list(items.items() if isinstance(items, Mapping) else items)
        paths = [path for path, _ in pairs]
        array, _names = items_of([encode(path) for path in paths])
        flags = put_flags(exclusive, parents)
        with ExitStack() as lent:
            for item, (_, data) in zip(array, pairs):
                item.buf = buffer = lent.enter_context(ffi.from_buffer(data))
                item.len = len(buffer)
            with self._fs as fs:
                check(lib.memefs_mput(fs, array, len(pairs), flags))
        results = [
            None if item.result >= 0 else OSError(-item.result, os.strerror(-item.result), path)
            for path, item in zip(paths, array)
        ]
        if errors == "raise":
            raise_first(results)
        return results


def put_flags(exclusive: bool, parents: bool) -> int:
    return (lib.MEMEFS_PUT_EXCL if exclusive else 0) | (lib.MEMEFS_PUT_PARENTS if parents else 0)


def items_of(names: Sequence[bytes]) -> tuple[Any, Any]:
    """An array of struct memefs_item with these paths, and what has to live as long as it."""
    text = ffi.from_buffer(b"\0".join(names) + b"\0")
    items = ffi.new("struct memefs_item[]", len(names))
    offset = 0
    for item, name in zip(items, names):
        item.path = text + offset
        offset += len(name) + 1
    return items, text


def check_errors(errors: str) -> None:
    if errors not in ("raise", "return"):
        raise ValueError(f"errors must be 'raise' or 'return', not {errors!r}")


def raise_first(results: Iterable[Any]) -> None:
    for result in results:
        if isinstance(result, OSError):
            raise result

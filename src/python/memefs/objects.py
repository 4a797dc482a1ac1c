"""Whole objects: put, get, and many of them at once."""

from __future__ import annotations

import os
import posixpath
import uuid
from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Literal, Optional, Union, overload

from .handle import PathType
from .names import Names

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer, WriteableBuffer

__all__ = ["Objects"]

_RENAME_NOREPLACE = 1


class Objects(Names):
    def get(self, path: PathType) -> bytes:
        """The content of a file, received into the result, uncopied."""
        with self.open_raw(path) as file:
            return file.readall()

    def get_into(self, path: PathType, buffer: WriteableBuffer) -> int:
        """Fills a buffer (bytearray, memoryview, numpy array, …) from the begin of a file, without a copy.

        The file's size, which may be more than the buffer has.
        """
        with self.open_raw(path) as file:
            file.readinto(buffer)
            return file.stat().st_size

    def put(self, path: PathType, data: ReadableBuffer, *, exclusive: bool = False, parents: bool = False) -> None:
        """Makes a file of these bytes, in place of what was there; a reader sees the old or the new one, whole.

        exclusive: FileExistsError if the name is there. parents: makes directories that are not there.
        """
        folder = posixpath.dirname(os.fsdecode(path))
        if parents:
            self.makedirs(folder or "/", exist_ok=True)
        temporary = posixpath.join(folder, f".{uuid.uuid4().hex}.part")
        try:
            with self.open_raw(temporary, "x") as file:
                file.write(data)
            self.rename(temporary, path, flags=_RENAME_NOREPLACE if exclusive else 0)
        except OSError as error:
            with suppress(OSError):
                self.remove(temporary)
            raise OSError(error.errno, os.strerror(error.errno or 0), path) from None

    @overload
    def mget(self, paths: Iterable[PathType], *, errors: Literal["raise"] = "raise") -> list[bytes]: ...

    @overload
    def mget(self, paths: Iterable[PathType], *, errors: Literal["return"]) -> list[Union[bytes, OSError]]: ...

    def mget(self, paths: Iterable[PathType], *, errors: str = "raise") -> Any:
        """The contents of many files, in this order; each one by itself.

        errors: ``raise`` the first one, or ``return`` them in the places of contents.
        """
        paths = list(paths)
        _check_errors(errors)
        results: list[Union[bytes, OSError]] = []
        for path in paths:
            try:
                results.append(self.get(path))
            except OSError as error:
                results.append(error)
        if errors == "raise":
            _raise_first(results)
        return results

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
        _check_errors(errors)
        pairs = list(items.items() if isinstance(items, Mapping) else items)
        results: list[Optional[OSError]] = []
        for path, data in pairs:
            try:
                self.put(path, data, exclusive=exclusive, parents=parents)
                results.append(None)
            except OSError as error:
                results.append(error)
        if errors == "raise":
            _raise_first(results)
        return results


def _check_errors(errors: str) -> None:
    if errors not in ("raise", "return"):
        raise ValueError(f"errors must be 'raise' or 'return', not {errors!r}")


def _raise_first(results: Iterable[Any]) -> None:
    for result in results:
        if isinstance(result, OSError):
            raise result

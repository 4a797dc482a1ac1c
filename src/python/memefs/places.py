"""Where things are: nodes, the pieces of files, and what was lost."""

from __future__ import annotations

import errno
import os
from typing import Any, NamedTuple

from ._native import ffi, lib
from .connection import Connection
from .handle import PathType, check, encode

__all__ = ["LostFile", "Node", "Piece", "Places"]


class Node(NamedTuple):
    """A node that holds partitions. ``is_here``: the one whose Local Manager serves this connection."""

    id: int
    host: str
    partitions: int
    is_here: bool


class Piece(NamedTuple):
    """A piece of a file (bytes) that is in one partition; ``node`` is an id of ``Client.nodes``."""

    offset: int
    length: int
    partition: int
    node: int


class LostFile(NamedTuple):
    """A file of which so many stripes and bytes died with the process that held them; path "": it has no name."""

    path: str
    ino: int
    stripes: int
    bytes: int


class Places(Connection):
    def nodes(self) -> list[Node]:
        """The nodes that hold partitions, by id."""
        room = 64
        while True:
            nodes = ffi.new("struct memefs_node[]", room)
            with self._fs as fs:
                count = check(lib.memefs_nodes(fs, nodes, ffi.sizeof("struct memefs_node"), room))
            if count <= room:
                return [
                    Node(int(n.id), ffi.string(n.host).decode(), int(n.partitions), bool(n.is_here))
                    for n in nodes[0:count]
                ]
            room = count

    def layout(self, path: PathType, offset: int = 0, length: int = 0) -> list[Piece]:
        """Where the pieces of a file, or of a part of it (length 0: to its end), are, in their order.

        ``memefs.locality`` sums that up, and tells engines where to run a task.
        """
        room = 64
        while True:
            pieces = ffi.new("struct memefs_piece[]", room)
            size = ffi.sizeof("struct memefs_piece")
            with self._fs as fs:
                count = check(lib.memefs_layout(fs, encode(path), offset, length, pieces, size, room), path)
            if count <= room:
                return [Piece(int(p.offset), int(p.length), int(p.partition), int(p.node)) for p in pieces[0:count]]
            room = count

    def lost(self) -> list[LostFile]:
        """The files of which data died with the process that held them, by path; looks through all partitions.

        For the deployment's user and root only.
        """
        found: list[LostFile] = []
        handle = ffi.new_handle(found)
        with self._fs as fs:
            check(lib.memefs_lost(fs, lib.memefs_python_lost, handle))
        return found


@ffi.def_extern(error=-errno.ENOMEM)  # type: ignore[untyped-decorator]
def memefs_python_lost(arg: Any, file: Any) -> int:
    ffi.from_handle(arg).append(
        LostFile(os.fsdecode(bytes(ffi.string(file.path))), int(file.ino), int(file.stripes), int(file.bytes))
    )
    return 0

"""The fsspec file system of ``memefs://`` URLs: what pandas, Dask, Zarr, xarray and pyarrow read and write through."""

from __future__ import annotations

import datetime
import io
import os
import stat
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Optional, Union
from uuid import uuid4

from fsspec.callbacks import DEFAULT_CALLBACK
from fsspec.core import has_magic
from fsspec.spec import AbstractFileSystem
from fsspec.utils import isfilelike, stringify_path

from .client import Client
from .file import RawFile
from .naming import PROTOCOL, parse

__all__ = ["MemEFSFileSystem"]

# What of many files is wanted up to here is asked for together.
HEAD = 64 << 10

# How much is read and written at a time when a file is copied.
COPY_SIZE = 8 << 20


def _buffer(size: int) -> memoryview:
    """To copy a file of so many bytes through."""
    return memoryview(bytearray(min(size, COPY_SIZE) or 1))


class ReadFile(io.BufferedReader):
    """A file that is read: an io.BufferedReader that knows what fsspec's users ask of it."""

    def __init__(self, fs: MemEFSFileSystem, path: str, raw: RawFile, buffer_size: int) -> None:
        super().__init__(raw, buffer_size)
        self.fs = fs
        self.path = path

    @property
    def size(self) -> int:
        """Bytes, now."""
        return os.stat_result(self.raw.stat()).st_size  # type: ignore[attr-defined]

    @property
    def full_name(self) -> str:
        return self.fs.unstrip_protocol(self.path)


class WriteFile(io.BufferedWriter):
    """A file that is written. Within a transaction it has another name until it is committed."""

    def __init__(self, fs: MemEFSFileSystem, path: str, raw: RawFile, buffer_size: int, temporary: Optional[str]):
        super().__init__(raw, buffer_size)
        self.fs = fs
        self.path = path
        self._temporary = temporary

    @property
    def full_name(self) -> str:
        return self.fs.unstrip_protocol(self.path)

    def commit(self) -> None:
        """Gives the file its name, in the place of what was there."""
        self.close()
        if self._temporary is not None:
            self.fs.client.replace(self._temporary, self.path)
            self._temporary = None

    def discard(self) -> None:
        """Removes the file that was to be committed."""
        self.close()
        if self._temporary is not None:
            self.fs.client.remove(self._temporary)
            self._temporary = None


class MemEFSFileSystem(AbstractFileSystem):  # type: ignore[misc]
    """Files of a MemEFS deployment, for fsspec.

    ``memefs://NAME/dir/file`` is the file ``/dir/file`` of the deployment NAME; ``memefs:///dir/file`` of that
    which ``$MEMEFS_NAME`` names, else of ``memefs``.

    Args:
        name: the deployment's name, where no URL tells it
        state_dir: where it keeps its state, if it is not the default place
        auto_mkdir: make the directory of a file that is written, where there is none. Object stores have no
            directories, so much of what uses fsspec makes none; False gives FileNotFoundError instead

    Instances of all threads use one connection (``Client.shared``); they can be pickled, and used after a fork.
    Nothing is cached here: names, sizes and contents are as every mount sees them at that moment.
    """

    protocol = PROTOCOL
    root_marker = "/"

    def __init__(
        self,
        name: Optional[str] = None,
        *,
        state_dir: Union[str, os.PathLike[str], None] = None,
        auto_mkdir: bool = True,
        **kwargs: Any,
    ) -> None:
        super().__init__(name=name, state_dir=state_dir, auto_mkdir=auto_mkdir, **kwargs)
        self.name = name
        self.state_dir = state_dir
        self.auto_mkdir = auto_mkdir

    @property
    def client(self) -> Client:
        """The connection; made when it is used for the first time."""
        return Client.shared(self.name, state_dir=self.state_dir)

    @property
    def fsid(self) -> str:
        return f"{PROTOCOL}_{self.client.name}"

    # --- paths ---

    @classmethod
    def _strip_protocol(cls, path: Any) -> Any:
        if isinstance(path, list):
            return [cls._strip_protocol(one) for one in path]
        return parse(stringify_path(path)).path

    @staticmethod
    def _get_kwargs_from_urls(path: str) -> dict[str, Any]:
        name = parse(stringify_path(path)).name
        return {} if name is None else {"name": name}

    def unstrip_protocol(self, name: str) -> str:
        if name.startswith(f"{PROTOCOL}://"):
            return name
        return f"{PROTOCOL}://{self.name or ''}{self._strip_protocol(name)}"

    @classmethod
    def _parent(cls, path: str) -> str:
        return str(cls._strip_protocol(path)).rpartition("/")[0] or cls.root_marker

    # --- what is there ---

    @staticmethod
    def _describe(path: str, is_link: bool, st: os.stat_result) -> dict[str, Any]:
        kinds = {stat.S_IFDIR: "directory", stat.S_IFREG: "file"}
        return {
            "name": path,
            "size": st.st_size if stat.S_ISREG(st.st_mode) else 0,
            "type": kinds.get(stat.S_IFMT(st.st_mode), "other"),
            "created": st.st_ctime,
            "islink": is_link,
            "mode": st.st_mode,
            "uid": st.st_uid,
            "gid": st.st_gid,
            "mtime": st.st_mtime,
            "ino": st.st_ino,
            "nlink": st.st_nlink,
        }

    def _info(self, path: str, st: os.stat_result) -> dict[str, Any]:
        if not stat.S_ISLNK(st.st_mode):
            return self._describe(path, False, st)
        destination = self.client.readlink(path)
        try:
            st = self.client.stat(path)
        except OSError:
            pass  # it leads nowhere: the link itself is described
        return {**self._describe(path, True, st), "destination": destination}

    def info(self, path: str, **kwargs: Any) -> dict[str, Any]:
        path = self._strip_protocol(path)
        return self._info(path, self.client.lstat(path))

    def ls(self, path: str, detail: bool = True, **kwargs: Any) -> list[Any]:
        path = self._strip_protocol(path)
        try:
            entries = list(self.client.scandir(path))
        except NotADirectoryError:
            info = self.info(path)
            return [info if detail else info["name"]]
        if not detail:
            return sorted(entry.path for entry in entries)
        infos = []
        for entry in entries:
            try:
                infos.append(self._info(entry.path, entry.stat(follow_symlinks=False)))
            except FileNotFoundError:
                pass  # gone meanwhile
        return sorted(infos, key=lambda info: str(info["name"]))

    def exists(self, path: str, **kwargs: Any) -> bool:
        return self.client.exists(self._strip_protocol(path))

    def lexists(self, path: str, **kwargs: Any) -> bool:
        return self.client.lexists(self._strip_protocol(path))

    def isdir(self, path: str) -> bool:
        return self.client.isdir(self._strip_protocol(path))

    def isfile(self, path: str) -> bool:
        return self.client.isfile(self._strip_protocol(path))

    def islink(self, path: str) -> bool:
        return self.client.islink(self._strip_protocol(path))

    def created(self, path: str) -> datetime.datetime:
        """When the inode was changed last: when a file was made is not kept."""
        return datetime.datetime.fromtimestamp(self.info(path)["created"], tz=datetime.timezone.utc)

    def modified(self, path: str) -> datetime.datetime:
        return datetime.datetime.fromtimestamp(self.info(path)["mtime"], tz=datetime.timezone.utc)

    # --- directories and names ---

    def mkdir(self, path: str, create_parents: bool = True, **kwargs: Any) -> None:
        path = self._strip_protocol(path)
        if create_parents:
            self.client.makedirs(self._parent(path), exist_ok=True)
        self.client.mkdir(path, **kwargs)

    def makedirs(self, path: str, exist_ok: bool = False) -> None:
        self.client.makedirs(self._strip_protocol(path), exist_ok=exist_ok)

    def rmdir(self, path: str) -> None:
        self.client.rmdir(self._strip_protocol(path))

    def rm_file(self, path: str) -> None:
        self.client.remove(self._strip_protocol(path))

    def _rm(self, path: str) -> None:
        path = self._strip_protocol(path)
        if self.client.isdir(path) and not self.client.islink(path):
            self.client.rmdir(path)
        else:
            self.client.remove(path)

    def rm(self, path: Any, recursive: bool = False, maxdepth: Optional[int] = None) -> None:
        """Removes files, and with ``recursive`` directories with all that is in them; globs are expanded."""
        if maxdepth is not None:
            for one in reversed(self.expand_path(path, recursive=recursive, maxdepth=maxdepth)):
                self._rm(one)
            return
        for one in reversed(self.expand_path(path)):
            if not self.client.isdir(one) or self.client.islink(one):
                self.client.remove(one)
            elif recursive:
                self.client.rmtree(one)
            else:
                raise IsADirectoryError(21, "is a directory: it takes recursive=True", one)

    def mv(
        self, path1: Any, path2: Any, recursive: bool = False, maxdepth: Optional[int] = None, **kwargs: Any
    ) -> None:
        """Renames: atomic, and no data are copied. Into ``path2`` where that is a directory that exists."""
        if isinstance(path1, list) or isinstance(path2, list) or maxdepth is not None or any(c in path1 for c in "*?["):
            super().mv(path1, path2, recursive=recursive, maxdepth=maxdepth, **kwargs)
            return
        source, target = self._strip_protocol(path1), self._strip_protocol(path2)
        if source == target:
            return
        if self.client.isdir(target):
            target = f"{target.rstrip('/')}/{source.rpartition('/')[2]}"
        self.client.lstat(source)  # nothing is made for a move that can't be
        self._with_directory(target, lambda: self.client.replace(source, target))

    def link(self, src: str, dst: str, **kwargs: Any) -> None:
        self.client.link(self._strip_protocol(src), self._strip_protocol(dst))

    def symlink(self, src: str, dst: str, **kwargs: Any) -> None:
        self.client.symlink(stringify_path(src), self._strip_protocol(dst))

    def chmod(self, path: str, mode: int) -> None:
        self.client.chmod(self._strip_protocol(path), mode)

    def touch(self, path: str, truncate: bool = True, **kwargs: Any) -> None:
        path = self._strip_protocol(path)
        self.open(path, "wb" if truncate else "ab").close()
        if not truncate:
            self.client.utime(path)

    def _with_directory(self, path: str, act: Callable[[], Any]) -> Any:
        """What ``act`` returns; where it finds no directory for ``path`` that is made, and it is tried again."""
        try:
            return act()
        except FileNotFoundError:
            if not self.auto_mkdir:
                raise
        self.client.makedirs(self._parent(path), exist_ok=True)
        return act()

    # --- contents ---

    def _open(
        self,
        path: str,
        mode: str = "rb",
        block_size: Optional[int] = None,
        autocommit: bool = True,
        cache_options: Optional[dict[str, Any]] = None,
        **kwargs: Any,
    ) -> Any:
        path = self._strip_protocol(path)
        size = block_size if block_size and block_size > 0 else io.DEFAULT_BUFFER_SIZE * 16
        if mode == "rb":
            return ReadFile(self, path, self.client.open_raw(path, "r"), size)
        if mode not in ("wb", "xb", "ab"):
            return self._with_directory(path, lambda: self.client.open(path, mode, buffering=size))
        if autocommit or mode == "ab":
            raw = self._with_directory(path, lambda: self.client.open_raw(path, mode.replace("b", "")))
            return WriteFile(self, path, raw, size, None)
        if mode == "xb" and self.client.lexists(path):
            raise FileExistsError(17, os.strerror(17), path)
        temporary = f"{self._parent(path).rstrip('/')}/.{uuid4().hex}.part"
        raw = self._with_directory(path, lambda: self.client.open_raw(temporary, "x"))
        return WriteFile(self, path, raw, size, temporary)

    @staticmethod
    def _range(size: int, start: Optional[int], end: Optional[int]) -> tuple[int, int]:
        """Offset and length of what a slice with these ends has."""
        first, last, _ = slice(start, end).indices(size)
        return first, max(0, last - first)

    def cat_file(self, path: str, start: Optional[int] = None, end: Optional[int] = None, **kwargs: Any) -> bytes:
        path = self._strip_protocol(path)
        if start is None and end is None:
            return self.client.get(path)
        with self.client.open_raw(path, "r") as raw:
            size = raw.stat().st_size
            offset, length = self._range(size, start, end)
            return raw.pread(length, offset)

    def cat_ranges(
        self,
        paths: list[str],
        starts: Any,
        ends: Any,
        max_gap: Optional[int] = None,
        on_error: str = "return",
        **kwargs: Any,
    ) -> list[Any]:
        """Parts of files. Whole ones and what is in the first 64 KiB come together; else each file is opened once."""
        if max_gap is not None:
            raise NotImplementedError("max_gap")
        if not isinstance(paths, list):
            raise TypeError("cat_ranges: the paths must be a list")
        starts = starts if isinstance(starts, list) else [starts] * len(paths)
        ends = ends if isinstance(ends, list) else [ends] * len(paths)
        if not len(paths) == len(starts) == len(ends):
            raise ValueError("cat_ranges: so many paths, starts and ends must be equal")
        results: list[Any] = [None] * len(paths)
        names = [str(self._strip_protocol(path)) for path in paths]
        whole = [i for i in range(len(paths)) if starts[i] in (None, 0) and ends[i] is None]
        for i, got in zip(whole, self.client.mget([names[i] for i in whole], errors="return")):
            results[i] = got
        heads: dict[str, int] = {}  # so much of a file is wanted, from its begin; -1: something else, too
        for i in sorted(set(range(len(paths))) - set(whole)):
            end = ends[i] if (starts[i] or 0) >= 0 and ends[i] is not None and 0 <= ends[i] <= HEAD else -1
            heads[names[i]] = -1 if end < 0 else max(end, heads.get(names[i], 0)) if heads.get(names[i], 0) >= 0 else -1
        wanted = [name for name, length in heads.items() if length >= 0]
        got_heads = dict(zip(wanted, self.client._mget_heads(wanted, [heads[name] for name in wanted])))
        parts: dict[str, list[int]] = {}
        for i in sorted(set(range(len(paths))) - set(whole)):
            head = got_heads.get(names[i])
            if head is None:
                parts.setdefault(names[i], []).append(i)
            else:
                results[i] = head if isinstance(head, OSError) else head[starts[i] or 0 : ends[i]]
        for path, indices in parts.items():
            try:
                with self.client.open_raw(path, "r") as raw:
                    size = raw.stat().st_size
                    for i in indices:
                        offset, length = self._range(size, starts[i], ends[i])
                        results[i] = raw.pread(length, offset)
            except OSError as error:
                for i in indices:
                    results[i] = error
        if on_error != "return":
            for result in results:
                if isinstance(result, Exception):
                    raise result
        return results

    def cat(self, path: Any, recursive: bool = False, on_error: str = "raise", **kwargs: Any) -> Any:
        """The content of a file, or, of several, a dict of them, which are asked for all at once."""
        if isinstance(path, list) and not recursive and not any(map(has_magic, path)):
            paths = sorted({str(self._strip_protocol(one)) for one in path})
        else:
            paths = self.expand_path(path, recursive=recursive, **kwargs)
        if len(paths) == 1 and not isinstance(path, list) and paths[0] == self._strip_protocol(path):
            return self.cat_file(paths[0])
        if recursive:
            paths = [one for one in paths if not self.client.isdir(one)]
        contents: dict[str, Any] = {}
        for one, got in zip(paths, self.client.mget(paths, errors="return")):
            if isinstance(got, Exception) and on_error == "raise":
                raise got
            if not isinstance(got, Exception) or on_error == "return":
                contents[one] = got
        return contents

    def pipe_file(self, path: str, value: Any, mode: str = "overwrite", **kwargs: Any) -> None:
        """Makes the file with this content; what was there is replaced at once."""
        path = self._strip_protocol(path)
        if self._intrans:
            with self.open(path, "xb" if mode == "create" else "wb") as file:
                file.write(value)
            return
        self.client.put(path, value, exclusive=mode == "create", parents=self.auto_mkdir)

    def pipe(self, path: Any, value: Any = None, **kwargs: Any) -> None:
        """Makes a file, or all of a dict ``{path: content}`` at once."""
        mode = kwargs.get("mode", "overwrite")
        if not isinstance(path, dict) or self._intrans or mode not in ("overwrite", "create"):
            super().pipe(path, value, **kwargs)
            return
        items = [(str(self._strip_protocol(one)), content) for one, content in path.items()]
        self.client.mput(items, parents=self.auto_mkdir, exclusive=mode == "create")

    def _pieces(self, path: str) -> Iterator[memoryview]:
        with self.client.open_raw(path, "r") as raw:
            buffer = _buffer(raw.stat().st_size)
            while count := raw.readinto(buffer):
                yield buffer[:count]

    def _write(self, path: str, pieces: Iterable[Any], callback: Any) -> None:
        with self._open(path, "wb", autocommit=not self._intrans) as file:
            if self._intrans:
                self.transaction.files.append(file)
            for piece in pieces:
                file.write(piece)
                callback.relative_update(len(piece))

    def cp_file(self, path1: str, path2: str, **kwargs: Any) -> None:
        source, target = self._strip_protocol(path1), self._strip_protocol(path2)
        if self.client.isdir(source):
            self.client.makedirs(target, exist_ok=True)
        else:
            self._write(target, self._pieces(source), DEFAULT_CALLBACK)

    def get_file(
        self, rpath: str, lpath: Any = None, callback: Any = DEFAULT_CALLBACK, outfile: Any = None, **kwargs: Any
    ) -> None:
        rpath = self._strip_protocol(rpath)
        if outfile is None and isfilelike(lpath):
            outfile = lpath
        if outfile is None and self.client.isdir(rpath):
            os.makedirs(lpath, exist_ok=True)
            return
        callback.set_size(self.client.stat(rpath).st_size)
        if outfile is None:
            os.makedirs(os.path.dirname(os.path.abspath(lpath)), exist_ok=True)
            with open(lpath, "wb", buffering=0) as file:
                self._read(rpath, file, callback)
        else:
            self._read(rpath, outfile, callback)

    def _read(self, path: str, file: Any, callback: Any) -> None:
        for piece in self._pieces(path):
            while len(piece) > 0:
                count = file.write(piece)
                count = len(piece) if count is None else count
                callback.relative_update(count)
                piece = piece[count:]

    def put_file(
        self, lpath: Any, rpath: str, callback: Any = DEFAULT_CALLBACK, mode: str = "overwrite", **kwargs: Any
    ) -> None:
        rpath = self._strip_protocol(rpath)
        if mode == "create" and self.client.lexists(rpath):
            raise FileExistsError(17, os.strerror(17), rpath)
        if os.path.isdir(lpath):
            self.client.makedirs(rpath, exist_ok=True)
            return
        with open(lpath, "rb", buffering=0) as file:
            callback.set_size(os.fstat(file.fileno()).st_size)

            def pieces() -> Iterator[memoryview]:
                buffer = _buffer(os.fstat(file.fileno()).st_size)
                while count := file.readinto(buffer):
                    yield buffer[:count]

            self._write(rpath, pieces(), callback)

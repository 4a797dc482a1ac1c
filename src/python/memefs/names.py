"""Names, directories and attributes, as ``os`` and ``shutil`` have them."""

from __future__ import annotations

import errno
import numbers
import os
import posixpath
import stat as stat_module
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Optional

from ._native import ffi, lib
from .connection import Connection
from .file import stat_result
from .handle import PathType, check, encode

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

__all__ = ["DirEntry", "Names"]

AT_SYMLINK_NOFOLLOW = 0x100


class DirEntry(os.PathLike[str]):
    """An entry of a directory, as os.DirEntry; its attributes came with the listing."""

    __slots__ = ("_client", "_stat", "_type", "_why", "name", "path", "_ino")

    def __init__(self, client: Names, folder: str, name: str, entry: Any) -> None:
        self.name = name
        self.path = posixpath.join(folder, name)
        self._client = client
        self._ino = int(entry.ino)
        self._type = int(entry.type)
        self._why = int(entry.stat_rc)
        self._stat: Optional[os.stat_result] = stat_result(entry.st) if self._why == 0 else None

    def __fspath__(self) -> str:
        return self.path

    def __repr__(self) -> str:
        return f"<memefs.DirEntry {self.name!r}>"

    def inode(self) -> int:
        return self._ino

    def is_symlink(self) -> bool:
        return stat_module.S_ISLNK(self._type)

    def is_dir(self, *, follow_symlinks: bool = True) -> bool:
        return self._is(stat_module.S_IFDIR, follow_symlinks)

    def is_file(self, *, follow_symlinks: bool = True) -> bool:
        return self._is(stat_module.S_IFREG, follow_symlinks)

    def _is(self, kind: int, follow: bool) -> bool:
        if not (follow and self.is_symlink()):
            return self._type == kind
        try:
            return stat_module.S_IFMT(self._client.stat(self.path).st_mode) == kind
        except FileNotFoundError:
            return False

    def stat(self, *, follow_symlinks: bool = True) -> os.stat_result:
        if follow_symlinks and self.is_symlink():
            return self._client.stat(self.path)
        if self._stat is None:
            check(self._why, self.path)
            self._stat = self._client.lstat(self.path)
        return self._stat


class Names(Connection):
    # --- attributes ---

    def stat(self, path: PathType, *, follow_symlinks: bool = True) -> os.stat_result:
        """As os.stat: size, times, mode, owner, inode."""
        st = ffi.new("struct stat *")
        look = lib.memefs_stat if follow_symlinks else lib.memefs_lstat
        with self._fs as fs:
            check(look(fs, encode(path), st), path)
        return stat_result(st)

    def lstat(self, path: PathType) -> os.stat_result:
        """As os.lstat: of a symbolic link itself."""
        return self.stat(path, follow_symlinks=False)

    def _mode(self, path: PathType, follow: bool = True) -> int:
        """The st_mode of what is there, 0 if nothing is."""
        try:
            return self.stat(path, follow_symlinks=follow).st_mode
        except (FileNotFoundError, NotADirectoryError):
            return 0
        except OSError as error:
            if error.errno == errno.ELOOP:
                return 0
            raise

    def exists(self, path: PathType) -> bool:
        """Whether something is there; False for a symbolic link that leads nowhere."""
        return self._mode(path) != 0

    def lexists(self, path: PathType) -> bool:
        """Whether the name is there."""
        return self._mode(path, follow=False) != 0

    def isdir(self, path: PathType) -> bool:
        """Whether it is a directory, or a symbolic link to one."""
        return stat_module.S_ISDIR(self._mode(path))

    def isfile(self, path: PathType) -> bool:
        """Whether it is a regular file, or a symbolic link to one."""
        return stat_module.S_ISREG(self._mode(path))

    def islink(self, path: PathType) -> bool:
        """Whether it is a symbolic link."""
        return stat_module.S_ISLNK(self._mode(path, follow=False))

    def access(self, path: PathType, mode: int) -> bool:
        """As os.access: F_OK, R_OK, W_OK, X_OK, for the ids of the connection."""
        with self._fs as fs:
            rc = lib.memefs_access(fs, encode(path), mode)
        if rc in (-errno.EACCES, -errno.ENOENT, -errno.ENOTDIR, -errno.ELOOP, -errno.EROFS):
            return False
        return check(rc, path) == 0

    def chmod(self, path: PathType, mode: int) -> None:
        with self._fs as fs:
            check(lib.memefs_chmod(fs, encode(path), mode), path)

    def chown(self, path: PathType, uid: int, gid: int, *, follow_symlinks: bool = True) -> None:
        """Changes owner and group; −1 leaves one as it is."""
        call = lib.memefs_chown if follow_symlinks else lib.memefs_lchown
        with self._fs as fs:
            check(call(fs, encode(path), uid & 0xFFFFFFFF, gid & 0xFFFFFFFF), path)

    def utime(
        self,
        path: PathType,
        times: Optional[tuple[float, float]] = None,
        *,
        ns: Optional[tuple[int, int]] = None,
        follow_symlinks: bool = True,
    ) -> None:
        """As os.utime: sets the times of access and modification, in seconds or ns; None: both now."""
        if times is not None and ns is not None:
            raise ValueError("utime: you may specify either 'times' or 'ns' but not both")
        for pair in (times, ns):
            # A string or a tuple could be multiplied, too, and would take for ever.
            if pair is not None and (len(pair) != 2 or not all(isinstance(t, numbers.Real) for t in pair)):
                raise TypeError("utime: 'times' and 'ns' must be tuples of two numbers")
        if times is not None:
            ns = (round(times[0] * 1_000_000_000), round(times[1] * 1_000_000_000))
        spec = ffi.NULL if ns is None else ffi.new("struct timespec[2]", [divmod(t, 1_000_000_000) for t in ns])
        with self._fs as fs:
            flags = 0 if follow_symlinks else AT_SYMLINK_NOFOLLOW
            check(lib.memefs_utimensat(fs, ffi.NULL, encode(path), spec, flags), path)

    def truncate(self, path: PathType, length: int) -> None:
        with self._fs as fs:
            check(lib.memefs_truncate(fs, encode(path), length), path)

    def statvfs(self) -> os.statvfs_result:
        """Room and files of the whole file system, as os.statvfs; at most a second old."""
        st = ffi.new("struct statvfs *")
        with self._fs as fs:
            check(lib.memefs_statfs(fs, st))
        names = ("bsize", "frsize", "blocks", "bfree", "bavail", "files", "ffree", "favail", "flag", "namemax")
        return os.statvfs_result([getattr(st, "f_" + name) for name in names])

    # --- directories and names ---

    def mkdir(self, path: PathType, mode: int = 0o777) -> None:
        with self._fs as fs:
            check(lib.memefs_mkdir(fs, encode(path), mode), path)

    def makedirs(self, path: PathType, mode: int = 0o777, exist_ok: bool = False) -> None:
        """Makes a directory with those above it that are not there."""
        name = encode(path)
        with self._fs as fs:
            if not exist_ok:
                rc = lib.memefs_mkdir(fs, name, mode)
                if rc != -errno.ENOENT:
                    check(rc, path)
                    return
            check(lib.memefs_makedirs(fs, name, mode), path)

    def rmdir(self, path: PathType) -> None:
        with self._fs as fs:
            check(lib.memefs_rmdir(fs, encode(path)), path)

    def remove(self, path: PathType) -> None:
        """Removes a name that is no directory's."""
        with self._fs as fs:
            check(lib.memefs_unlink(fs, encode(path)), path)

    unlink = remove

    def rmtree(self, path: PathType, ignore_errors: bool = False) -> None:
        """Removes a directory and all that is in it, as shutil.rmtree."""
        try:
            self._rmtree(os.fsdecode(path))
        except OSError:
            if not ignore_errors:
                raise

    def _rmtree(self, path: str) -> None:
        for entry in list(self.scandir(path)):
            try:
                if entry.is_dir(follow_symlinks=False):
                    self._rmtree(entry.path)
                else:
                    self.remove(entry.path)
            except FileNotFoundError:
                pass  # somebody else was faster
        self.rmdir(path)

    def rename(self, source: PathType, target: PathType, *, flags: int = 0) -> None:
        """Renames, in place of a target that is there; atomic on all clients.

        flags: RENAME_NOREPLACE 1, RENAME_EXCHANGE 2 of renameat2(2).
        """
        with self._fs as fs:
            check(lib.memefs_rename(fs, encode(source), encode(target), flags), source, target)

    replace = rename

    def link(self, source: PathType, target: PathType) -> None:
        """Gives a file one more name; a symbolic link is not followed."""
        with self._fs as fs:
            check(lib.memefs_link(fs, encode(source), encode(target)), source, target)

    def symlink(self, source: PathType, target: PathType) -> None:
        """Makes the symbolic link ``target``, which leads to ``source``."""
        with self._fs as fs:
            check(lib.memefs_symlink(fs, encode(source), encode(target)), source, target)

    def readlink(self, path: PathType) -> str:
        room = ffi.new("char[]", 4096)
        with self._fs as fs:
            size = check(lib.memefs_readlink(fs, encode(path), room, len(room)), path)
        return os.fsdecode(bytes(ffi.buffer(room, min(size, len(room)))))

    def mknod(self, path: PathType, mode: int = 0o600 | stat_module.S_IFREG, device: int = 0) -> None:
        with self._fs as fs:
            check(lib.memefs_mknod(fs, encode(path), mode, device), path)

    def _entries(self, path: PathType, flags: int) -> Iterator[Any]:
        """The entries of a directory, each good until the next one is taken."""
        found = ffi.new("struct memefs_dir **")
        entry = ffi.new("const struct memefs_dirent **")
        with self._fs as fs:
            check(lib.memefs_opendir(fs, encode(path), flags, found), path)
            try:
                while check(lib.memefs_readdir(found[0], entry), path) == 1:
                    yield entry[0]
            finally:
                lib.memefs_closedir(found[0])

    def listdir(self, path: PathType = "/") -> list[str]:
        """The names in a directory, in no order."""
        names = [os.fsdecode(bytes(ffi.string(entry.name))) for entry in self._entries(path, 0)]
        return [name for name in names if name not in (".", "..")]

    def scandir(self, path: PathType = "/") -> Iterator[DirEntry]:
        """The entries of a directory, with their attributes, which take a few round trips for all together."""
        folder = os.fsdecode(path)
        found = []
        for entry in self._entries(path, lib.MEMEFS_DIR_STAT):
            name = os.fsdecode(bytes(ffi.string(entry.name)))
            if name not in (".", ".."):
                found.append(DirEntry(self, folder, name, entry))
        return iter(found)

    def walk(
        self, top: PathType = "/", topdown: bool = True, followlinks: bool = False
    ) -> Iterator[tuple[str, list[str], list[str]]]:
        """As os.walk: folder, names of its folders, names of its files. Those that are gone meanwhile are left out."""
        folder = os.fsdecode(top)
        try:
            entries = list(self.scandir(folder))
        except OSError as error:
            if isinstance(error, (FileNotFoundError, NotADirectoryError, PermissionError)):
                return
            raise
        folders = [entry.name for entry in entries if entry.is_dir()]
        links = {entry.name for entry in entries if entry.is_symlink()}
        known = set(folders)
        files = [entry.name for entry in entries if entry.name not in known]
        if topdown:
            yield folder, folders, files
        for name in folders:
            if followlinks or name not in links:
                yield from self.walk(posixpath.join(folder, name), topdown, followlinks)
        if not topdown:
            yield folder, folders, files

    # --- extended attributes ---

    def getxattr(self, path: PathType, name: str, *, follow_symlinks: bool = True) -> bytes:
        """As os.getxattr."""
        at = 0 if follow_symlinks else AT_SYMLINK_NOFOLLOW
        room = ffi.new("char[]", 65536)
        with self._fs as fs:
            size = lib.memefs_getxattrat(fs, ffi.NULL, encode(path), encode(name), room, len(room), at)
        return bytes(ffi.buffer(room, check(size, path)))

    def setxattr(
        self, path: PathType, name: str, value: ReadableBuffer, flags: int = 0, *, follow_symlinks: bool = True
    ) -> None:
        """As os.setxattr; flags: os.XATTR_CREATE, os.XATTR_REPLACE."""
        at = 0 if follow_symlinks else AT_SYMLINK_NOFOLLOW
        with self._fs as fs, ffi.from_buffer(value) as data:
            rc = lib.memefs_setxattrat(fs, ffi.NULL, encode(path), encode(name), data, len(data), flags, at)
        check(rc, path)

    def listxattr(self, path: PathType, *, follow_symlinks: bool = True) -> list[str]:
        """As os.listxattr."""
        at = 0 if follow_symlinks else AT_SYMLINK_NOFOLLOW
        room = ffi.new("char[]", 65536)
        with self._fs as fs:
            size = check(lib.memefs_listxattrat(fs, ffi.NULL, encode(path), room, len(room), at), path)
        return [os.fsdecode(name) for name in bytes(ffi.buffer(room, size)).split(b"\0")[:-1]]

    def removexattr(self, path: PathType, name: str, *, follow_symlinks: bool = True) -> None:
        """As os.removexattr."""
        at = 0 if follow_symlinks else AT_SYMLINK_NOFOLLOW
        with self._fs as fs:
            check(lib.memefs_removexattrat(fs, ffi.NULL, encode(path), encode(name), at), path)

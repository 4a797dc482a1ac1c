"""``UPath("memefs://NAME/path")``: pathlib's manners for files of a deployment, by universal_pathlib."""

from __future__ import annotations

import fsspec
from upath import UPath

from .fs import MemEFSFileSystem
from .naming import PROTOCOL

__all__ = ["MemEFSPath"]

# UPath asks the class how to read a URL, and does not import it for that.
fsspec.register_implementation(PROTOCOL, MemEFSFileSystem, clobber=True)


class MemEFSPath(UPath):
    """A path of a MemEFS deployment. Of pathlib's methods those that UPath has; ``rename`` is atomic."""

    __slots__ = ()

    def __str__(self) -> str:
        """With the deployment's name, as the URL had it."""
        text, name = super().__str__(), self.storage_options.get("name")
        nobody = f"{PROTOCOL}:///"
        return f"{PROTOCOL}://{name}/{text[len(nobody) :]}" if name and text.startswith(nobody) else text

    def mkdir(self, mode: int = 0o777, parents: bool = False, exist_ok: bool = False) -> None:
        """As pathlib's: without ``parents`` the directory above must be there."""
        try:
            self.fs.mkdir(self.path, create_parents=parents, mode=mode)
        except FileExistsError:
            if not exist_ok or not self.is_dir():
                raise

"""Which deployment is meant, and ``memefs://NAME/path``: where a file is, for fsspec, UPath and engines."""

from __future__ import annotations

import os
import posixpath
from typing import NamedTuple, Optional, Union

__all__ = ["PROTOCOL", "Place", "default_name", "parse", "state_dir_of"]

PROTOCOL = "memefs"


def default_name() -> str:
    """The deployment that is meant where none is named: ``$MEMEFS_NAME``, else ``memefs``."""
    return os.environ.get("MEMEFS_NAME") or "memefs"


def state_dir_of(name: str, state_dir: Union[str, os.PathLike[str], None]) -> Optional[str]:
    """Where the deployment keeps its state: as told, else, for the default one, ``$MEMEFS_STATE_DIR``.

    None: in the place that ``cm`` takes by itself.
    """
    if state_dir is not None:
        return os.fspath(state_dir)
    return os.environ.get("MEMEFS_STATE_DIR") or None if name == default_name() else None


class Place(NamedTuple):
    """A deployment's name, None for the default one, and an absolute path in its file system."""

    name: Optional[str]
    path: str

    @property
    def url(self) -> str:
        return f"{PROTOCOL}://{self.name or ''}{self.path}"


def parse(url: str) -> Place:
    """Reads ``memefs://NAME/path``, ``memefs:///path`` (the default deployment) or a path.

    A path without a slash in front begins at the root, too. ``.`` and doubled slashes go; ``..`` stays, as what it
    means depends on symbolic links.
    """
    name: Optional[str] = None
    for prefix in (f"{PROTOCOL}://", f"{PROTOCOL}::"):
        if url.startswith(prefix):
            name, _, url = url[len(prefix) :].partition("/")
            break
    if name is None and url[:1] == "/" and "//" not in url and "/." not in url and url[-1] != "/":
        return Place(None, url)
    parts = [part for part in url.split("/") if part not in ("", ".")]
    return Place(name or None, posixpath.join("/", *parts))

"""MemEFS from Python: an elastic file system in the memory of a cluster's nodes.

::

    import memefs

    with memefs.Deployment(nodes=4, memory="512M") as deployment, deployment.client() as client:
        client.put("/a", b"hello")
        print(client.get("/a"))

``Client`` is a connection to a running deployment; ``Deployment`` starts, changes and stops one. With fsspec,
``memefs://NAME/path`` works wherever it is understood: pandas, Dask, Zarr, xarray, pyarrow; and by universal_pathlib
``UPath("memefs://NAME/path")``. ``memefs.locality`` tells Dask and Parsl which workers are near a file.

Errors are OSError, of the subclass for their errno (FileNotFoundError, …), with the file's name.
"""

from .client import Client
from .deployment import CommandError, Deployment
from .file import RawFile
from .handle import library_version
from .names import DirEntry
from .places import LostFile, Node, Piece

__all__ = [
    "Client",
    "CommandError",
    "Deployment",
    "DirEntry",
    "LostFile",
    "Node",
    "Piece",
    "RawFile",
    "library_version",
]

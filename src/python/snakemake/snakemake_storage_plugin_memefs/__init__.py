"""Snakemake's inputs and outputs in a MemEFS deployment: ``storage.memefs("memefs://NAME/path")``.

For workflows of which not every task runs where the deployment is mounted. Where it is mounted, a rule's files in the
mount need no plug-in; with it, what a rule reads on demand is a symbolic link into the mount (``mount`` in the
settings), and all else a copy.
"""

import os
import shutil
import stat
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Optional

from snakemake_interface_common.exceptions import WorkflowError
from snakemake_interface_storage_plugins.io import IOCacheStorageInterface, Mtime, get_constant_prefix
from snakemake_interface_storage_plugins.settings import StorageProviderSettingsBase
from snakemake_interface_storage_plugins.storage_object import (
    StorageObjectGlob,
    StorageObjectRead,
    StorageObjectTouch,
    StorageObjectWrite,
)
from snakemake_interface_storage_plugins.storage_provider import (
    ExampleQuery,
    Operation,
    QueryType,
    StorageProviderBase,
    StorageQueryValidationResult,
)

from memefs import Client
from memefs.naming import PROTOCOL, parse

COPY_SIZE = 8 << 20
TIMESTAMP = ".snakemake_timestamp"  # Snakemake's own file in a directory that is an output


@dataclass
class StorageProviderSettings(StorageProviderSettingsBase):
    name: Optional[str] = field(
        default=None,
        metadata={"help": "The deployment of URLs that name none (memefs:///path); default: memefs", "env_var": False},
    )
    state_dir: Optional[str] = field(
        default=None,
        metadata={"help": "Where the deployment keeps its state, if not in the default place", "env_var": False},
    )
    mount: Optional[str] = field(
        default=None,
        metadata={
            "help": "Where the deployment is mounted on every machine that runs tasks: what a rule reads on demand "
            "(access.random, access.sequential) is a symbolic link into it and not a copy",
            "env_var": False,
        },
    )


class StorageProvider(StorageProviderBase):
    settings: Optional[StorageProviderSettings]

    @classmethod
    def example_queries(cls) -> list[ExampleQuery]:
        return [
            ExampleQuery("memefs:///run/sorted.txt", "a file of the deployment in the settings", QueryType.ANY),
            ExampleQuery("memefs://other/run/sorted.txt", "a file of the deployment `other`", QueryType.ANY),
        ]

    def rate_limiter_key(self, query: str, operation: Operation) -> Any:
        return None

    def default_max_requests_per_second(self) -> float:
        return 1e6

    def use_rate_limiter(self) -> bool:
        return False

    @classmethod
    def is_valid_query(cls, query: str) -> StorageQueryValidationResult:
        if not query.startswith(f"{PROTOCOL}://"):
            return StorageQueryValidationResult(
                query, False, f"it must begin with {PROTOCOL}://, as in memefs:///dir/file"
            )
        path = parse(query).path
        if path == "/" or ".." in path.split("/"):
            return StorageQueryValidationResult(query, False, "it must name a file, without ..")
        return StorageQueryValidationResult(query, True)

    def client(self, name: Optional[str]) -> Client:
        settings = self.settings or StorageProviderSettings()
        own = name is None or name == settings.name
        return Client.shared(name or settings.name, state_dir=settings.state_dir if own else None)

    def list_objects(self, query: Any) -> Iterable[str]:
        place = parse(str(query))
        return [place._replace(path=path).url for path in _files_below(self.client(place.name), place.path)]


def _files_below(client: Client, path: str) -> Iterable[str]:
    if not client.isdir(path):
        return [path] if client.exists(path) else []
    return [f"{folder.rstrip('/')}/{name}" for folder, _, names in client.walk(path) for name in names]


class StorageObject(StorageObjectRead, StorageObjectWrite, StorageObjectGlob, StorageObjectTouch):
    provider: StorageProvider

    def __post_init__(self) -> None:
        self.name, self.path = parse(self.query)

    @property
    def client(self) -> Client:
        return self.provider.client(self.name)

    # --- what is there ---

    async def inventory(self, cache: IOCacheStorageInterface) -> None:
        key = self.cache_key()
        if key in cache.exists_in_storage:
            return
        try:
            st = self.client.stat(self.path)
        except (FileNotFoundError, NotADirectoryError):
            cache.exists_in_storage[key] = False
            return
        cache.exists_in_storage[key] = True
        cache.mtime[key] = Mtime(storage=self._mtime(st))
        cache.size[key] = _size(st)

    def get_inventory_parent(self) -> Optional[str]:
        return None  # a look at one file is one round trip, no listing is worth it

    def local_suffix(self) -> str:
        return f"{self.name or 'default'}{self.path}"

    def cleanup(self) -> None:
        pass

    def exists(self) -> bool:
        return self.client.exists(self.path)

    def _mtime(self, st: os.stat_result) -> float:
        if stat.S_ISDIR(st.st_mode):
            try:
                return self.client.stat(f"{self.path}/{TIMESTAMP}").st_mtime
            except FileNotFoundError:
                pass
        return st.st_mtime

    def mtime(self) -> float:
        return self._mtime(self.client.stat(self.path))

    def size(self) -> int:
        return _size(self.client.stat(self.path))

    def local_footprint(self) -> int:
        if self._in_mount() is not None:
            return 0
        return sum(self.client.stat(path).st_size for path in _files_below(self.client, self.path))

    # --- from and to this machine ---

    def _in_mount(self) -> Optional[Path]:
        """The path in the mount that may stand for a copy; None: there is none."""
        settings = self.provider.settings
        if (
            not self.is_ondemand_eligible
            or settings is None
            or not settings.mount
            or self.name not in (None, settings.name)
        ):
            return None
        return Path(settings.mount) / self.path.lstrip("/")

    def retrieve_object(self) -> None:
        local = self.local_path()
        mounted = self._in_mount()
        if mounted is not None:
            if not mounted.exists():
                raise WorkflowError(f"{mounted} is not there: is {self.query}'s deployment mounted on this machine?")
            local.symlink_to(mounted)
        elif self.client.isdir(self.path):
            for path in _files_below(self.client, self.path):
                self._retrieve(path, local / path[len(self.path) :].lstrip("/"))
            local.mkdir(parents=True, exist_ok=True)  # an empty one
        else:
            self._retrieve(self.path, local)

    def _retrieve(self, path: str, local: Path) -> None:
        local.parent.mkdir(parents=True, exist_ok=True)
        with self.client.open(path, "rb", buffering=0) as source, open(local, "wb") as target:
            shutil.copyfileobj(source, target, COPY_SIZE)
        st = self.client.stat(path)
        os.chmod(local, stat.S_IMODE(st.st_mode) | stat.S_IRUSR | stat.S_IWUSR)
        os.utime(local, ns=(st.st_atime_ns, st.st_mtime_ns))

    def store_object(self) -> None:
        local = self.local_path()
        if not local.is_dir():
            self._store(local, self.path)
            return
        if self.client.lexists(self.path):
            self.remove()
        self.client.makedirs(self.path)
        for folder, folders, names in os.walk(local):
            below = f"{self.path}/{os.path.relpath(folder, local)}".removesuffix("/.")
            for name in folders:
                self.client.mkdir(f"{below}/{name}")
            for name in names:
                self._store(Path(folder) / name, f"{below}/{name}")

    def _store(self, local: Path, path: str) -> None:
        """Under another name first: nobody sees half of an output."""
        temporary = f"{path}.part"
        self.client.makedirs(path.rpartition("/")[0] or "/", exist_ok=True)
        with open(local, "rb", buffering=0) as source, self.client.open(temporary, "wb") as target:
            shutil.copyfileobj(source, target, COPY_SIZE)
        self.client.chmod(temporary, stat.S_IMODE(local.stat().st_mode))
        self.client.replace(temporary, path)

    def remove(self) -> None:
        if self.client.isdir(self.path) and not self.client.islink(self.path):
            self.client.rmtree(self.path)
        else:
            self.client.remove(self.path)

    def touch(self) -> None:
        if self.client.isdir(self.path):
            self.client.put(f"{self.path}/{TIMESTAMP}", b"")
        else:
            self.client.utime(self.path)

    def list_candidate_matches(self) -> Iterable[str]:
        prefix = get_constant_prefix(self.query, strip_incomplete_parts=True)
        return self.provider.list_objects(prefix)


def _size(st: os.stat_result) -> int:
    return 0 if stat.S_ISDIR(st.st_mode) else st.st_size

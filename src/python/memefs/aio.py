"""MemEFS for asyncio: thousands of operations at once, awaited.

::

    from memefs.aio import AsyncClient

    async with AsyncClient() as client:
        await client.put("/results/one", b"...", parents=True)
        parts = await asyncio.gather(*(client.get(path) for path in await client.listdir("/results")))

Objects and attributes go by the library's queue of asynchronous requests, whose eventfd the loop polls; no thread of
Python is held by them. What the tasks of a loop ask for in one go travels together, as by ``mget`` and ``mput``. Other
calls are made by a few threads.
"""

from __future__ import annotations

import asyncio
import functools
import io
import os
import time
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from types import TracebackType
from typing import TYPE_CHECKING, Any, Concatenate, Literal, Optional, ParamSpec, TypeVar, Union, overload

from ._native import ffi, lib
from .client import Client
from .completions import Completions, Request
from .file import RawFile, stat_result
from .handle import PathType, check, encode
from .names import AT_SYMLINK_NOFOLLOW
from .objects import check_errors, items_of, put_flags, raise_first

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer, WriteableBuffer
    from typing_extensions import Self

__all__ = ["AsyncClient", "AsyncFile"]

P = ParamSpec("P")
R = TypeVar("R")

DEPTH = 1024  # requests that are sent at once; further ones wait in Python
TOGETHER = 512  # small objects in one request, at most
NOT_CONNECTED = "the client is not connected: async with, or await client.connect()"
LOCK_POLL = (0.001, 0.05)  # s, first and last


def _release(buffer: Any) -> None:
    """Gives back what ffi.from_buffer has lent: CPython crashes where it collects a memoryview that is lent still."""
    if buffer is not None:
        ffi.release(buffer)


class _Call(Request):
    """One call of the library, with a future for its result. ``buffer`` is lent meanwhile, and ``file`` open."""

    __slots__ = ("buffer", "call", "file", "future")

    def __init__(
        self, future: asyncio.Future[int], call: Callable[[Any, Any], int], buffer: Any, file: Optional[RawFile]
    ) -> None:
        self.future = future
        self.call = call
        self.buffer = buffer
        self.file = file  # one that nobody has any more is closed by its end, which would wait for this request

    def wanted(self) -> bool:
        return not self.future.done()

    def send(self, queue: Any, data: Any) -> int:
        return self.call(queue, data)

    def finish(self, result: int) -> None:
        self.drop()
        if not self.future.done():
            self.future.set_result(result)

    def fail(self, error: Exception) -> None:
        self.drop()
        if not self.future.done():
            self.future.set_exception(error)

    def drop(self) -> None:
        buffer, self.buffer = self.buffer, None
        _release(buffer)
        file, self.file = self.file, None
        if file is not None:
            file._handle.__exit__()


class _One:
    """An object to get or put; ``name``: the path for C."""

    __slots__ = ("data", "future", "name", "path")

    def __init__(self, path: PathType, name: bytes, data: Any, future: asyncio.Future[Any]) -> None:
        self.path = path
        self.name = name
        self.data = data
        self.future = future

    def drop(self) -> None:
        data, self.data = self.data, None
        _release(data)


class _Batch(Request):
    """Objects that travel together: those that are put (flags), or got (None)."""

    __slots__ = ("flags", "items", "names", "ones")

    def __init__(self, ones: list[_One], flags: Optional[int]) -> None:
        self.ones = ones
        self.flags = flags
        self.items, self.names = items_of([one.name for one in ones])
        if flags is not None:
            for one, item in zip(ones, self.items):
                item.buf = one.data
                item.len = len(one.data)

    def wanted(self) -> bool:
        return not all(one.future.done() for one in self.ones)

    def send(self, queue: Any, data: Any) -> int:
        if self.flags is None:
            return int(lib.memefs_queue_mget(queue, self.items, len(self.ones), data))
        return int(lib.memefs_queue_mput(queue, self.items, len(self.ones), self.flags, data))

    def finish(self, result: int) -> None:
        try:
            for one, item in zip(self.ones, self.items):
                if one.future.done():
                    continue
                rc = result if result < 0 else item.result
                try:
                    if rc < 0:
                        one.future.set_exception(OSError(-rc, os.strerror(-rc), one.path))
                    elif self.flags is not None:
                        one.future.set_result(None)
                    else:
                        one.future.set_result(bytes(ffi.buffer(item.buf, rc)) if rc > 0 else b"")
                except Exception as error:  # no memory for this one's bytes; the next one may be smaller
                    one.future.set_exception(error)
        finally:
            self.drop()

    def fail(self, error: Exception) -> None:
        for one in self.ones:
            if not one.future.done():
                one.future.set_exception(error)
        self.drop()

    def drop(self) -> None:
        if self.flags is None:
            for item in self.items:
                lib.memefs_free(item.buf)
                item.buf = ffi.NULL
        for one in self.ones:
            one.drop()


def _threaded(
    method: Callable[Concatenate[Client, P], R],
) -> Callable[Concatenate[AsyncClient, P], Coroutine[Any, Any, R]]:
    """The method of ``Client``, called by a thread."""

    @functools.wraps(method)
    async def call(self: AsyncClient, /, *args: P.args, **kwargs: P.kwargs) -> R:
        return await self._run(functools.partial(method, self._connected, *args, **kwargs))

    return call


class AsyncClient:
    """A connection to a deployment, for the tasks of one event loop; methods and errors are those of ``Client``.

    ::

        async with AsyncClient("NAME") as client:
            data = await client.get("/a")

    Args:
        name, options: as of ``Client``
        client: use this connection, and leave it open, instead of a new one
        workers: threads of the library that serve requests, and of Python, as many, for other calls

    A task that is cancelled (or waits no longer: ``asyncio.timeout``) gets its CancelledError at once. What it asked
    for is not done if it was not sent yet; else it is, as nothing calls back what is under way: a put that was
    cancelled may or may not be there, whole. Buffers belong to the library until then.

    Loop and tasks are of one thread; other threads and loops use a client of their own, perhaps on the same connection.
    """

    def __init__(
        self, name: Optional[str] = None, *, client: Optional[Client] = None, workers: int = 16, **options: Any
    ) -> None:
        if client is not None and (name is not None or options):
            raise TypeError("give a client, or what a new one is to have, not both")
        self._make = functools.partial(Client, name, **options)
        self._client = client
        self._own = client is None
        self._workers = workers
        self._pool = ThreadPoolExecutor(workers, "memefs-aio")
        self._completions: Optional[Completions] = None
        self._loop: Optional[asyncio.AbstractEventLoop] = None
        self._closed = False
        self._closing: Optional[asyncio.Task[None]] = None
        self._gets: list[_One] = []
        self._puts: dict[int, list[_One]] = {}

    def __repr__(self) -> str:
        state = "closed" if self._closed else "not connected" if self._completions is None else repr(self._client)
        return f"<memefs.aio.AsyncClient: {state}>"

    async def connect(self) -> Self:
        """Connects, and belongs to this loop from now on. ``async with`` does it."""
        if self._loop is not None or self._closed:
            raise ValueError("the client is connected, or was closed")
        self._loop = asyncio.get_running_loop()
        try:
            if self._client is None:
                self._client = await self._run(self._make)
            self._completions = Completions(self._client, self._loop, self._workers, DEPTH)
        except BaseException:
            self._loop = None
            raise
        return self

    async def close(self) -> None:
        """Waits for what was asked for, and disconnects. Tasks that ask for something meanwhile get a ValueError.

        Where it is cancelled (``asyncio.timeout``) the closing goes on; a further ``close`` waits for it, too.
        """
        if self._closing is None:
            self._closed = True
            self._closing = asyncio.create_task(self._close())
        await asyncio.shield(self._closing)

    async def _close(self) -> None:
        try:
            if self._completions is not None:
                try:
                    self._send_puts()
                    self._send_gets()
                    with suppress(asyncio.CancelledError):  # the loop ends: what is not being served yet is not done
                        await self._completions.drain()
                    self._completions.detach()
                finally:
                    await self._run(self._completions.destroy)
        finally:
            try:
                if self._own and self._client is not None:
                    await self._run(self._client.close)
            finally:
                self._pool.shutdown(wait=False)

    async def __aenter__(self) -> Self:
        return await self.connect()

    async def __aexit__(
        self, kind: Optional[type[BaseException]], error: Optional[BaseException], where: Optional[TracebackType]
    ) -> None:
        await self.close()

    @property
    def closed(self) -> bool:
        return self._closed

    @property
    def _connected(self) -> Client:
        if self._closed:
            raise ValueError("the client is closed")
        if self._client is None or self._completions is None:
            raise ValueError(NOT_CONNECTED)
        return self._client

    def _check(self) -> Completions:
        completions = self._completions
        if completions is None or self._closed:
            raise ValueError("the client is closed" if self._closed else NOT_CONNECTED)
        if asyncio.get_running_loop() is not self._loop:
            raise RuntimeError("the client belongs to another event loop: make one for each")
        return completions

    async def _run(self, call: Callable[[], R]) -> R:
        return await asyncio.get_running_loop().run_in_executor(self._pool, call)

    async def _ask(self, call: Callable[[Any, Any], int], buffer: Any = None, file: Optional[RawFile] = None) -> int:
        future: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        request = _Call(future, call, buffer, file)
        try:
            self._check().submit(request)
        except BaseException:
            request.drop()
            raise
        return await future

    # --- objects ---

    def _get(self, path: PathType, name: bytes) -> asyncio.Future[bytes]:
        """What is asked for is sent when all tasks that can run now have asked for theirs."""
        future: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        if not self._gets:
            asyncio.get_running_loop().call_soon(self._send_gets)
        self._gets.append(_One(path, name, None, future))
        return future

    def _put(self, path: PathType, name: bytes, data: Any, flags: int) -> asyncio.Future[None]:
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        if not self._puts:
            asyncio.get_running_loop().call_soon(self._send_puts)
        self._puts.setdefault(flags, []).append(_One(path, name, data, future))
        return future

    def _send_gets(self) -> None:
        ones, self._gets = self._gets, []
        self._send_together(ones, None)

    def _send_puts(self) -> None:
        puts, self._puts = self._puts, {}
        for flags, ones in puts.items():
            large = [one for one in ones if len(one.data) > lib.MEMEFS_PUT_SMALL]
            self._send_together([one for one in ones if len(one.data) <= lib.MEMEFS_PUT_SMALL], flags)
            for one in large:
                self._send_together([one], flags)

    def _send_together(self, ones: list[_One], flags: Optional[int]) -> None:
        """In so many requests that all processors have one: each worker connects to the partitions by itself."""
        assert self._completions is not None
        for one in ones:
            if one.future.done():
                one.drop()
        ones = [one for one in ones if not one.future.done()]
        size = max(1, min(TOGETHER, -(-len(ones) // min(self._workers, os.cpu_count() or 1))))
        for at in range(0, len(ones), size):
            together = ones[at : at + size]
            try:
                batch = _Batch(together, flags)
            except Exception as error:  # no memory for it: those that wait must know
                for one in together:
                    one.future.set_exception(error)
                    one.drop()
            else:
                self._completions.submit(batch)

    async def get(self, path: PathType) -> bytes:
        """The content of a file. A very large one is better got by ``get_into``, which does not copy it."""
        self._check()
        return await self._get(path, encode(path))

    async def get_into(self, path: PathType, buffer: WriteableBuffer) -> int:
        """Fills a buffer from the begin of a file, without a copy; the file's size, which may be more."""
        name, room = encode(path), ffi.from_buffer(buffer, require_writable=True)
        return check(await self._ask(lambda q, d: lib.memefs_queue_get(q, name, room, len(room), d), room), path)

    async def put(
        self, path: PathType, data: ReadableBuffer, *, exclusive: bool = False, parents: bool = False
    ) -> None:
        """Makes a file of these bytes, in place of what was there, at once."""
        self._check()
        name, flags = encode(path), put_flags(exclusive, parents)
        await self._put(path, name, ffi.from_buffer(data), flags)

    @overload
    async def mget(self, paths: Iterable[PathType], *, errors: Literal["raise"] = "raise") -> list[bytes]: ...

    @overload
    async def mget(self, paths: Iterable[PathType], *, errors: Literal["return"]) -> list[Union[bytes, OSError]]: ...

    async def mget(self, paths: Iterable[PathType], *, errors: str = "raise") -> Any:
        """The contents of many files, in this order."""
        self._check()
        check_errors(errors)
        named = [(path, encode(path)) for path in paths]
        return await _all([self._get(path, name) for path, name in named], errors)

    async def mput(
        self,
        items: Union[Mapping[Any, ReadableBuffer], Iterable[tuple[PathType, ReadableBuffer]]],
        *,
        exclusive: bool = False,
        parents: bool = False,
        errors: Literal["raise", "return"] = "raise",
    ) -> list[Optional[OSError]]:
        """Makes many files, each as ``put`` does, in no order."""
        self._check()
        check_errors(errors)
        flags = put_flags(exclusive, parents)
        pairs = list(items.items() if isinstance(items, Mapping) else items)
        named = [(path, encode(path), data) for path, data in pairs]
        buffers: list[Any] = []
        try:
            buffers.extend(ffi.from_buffer(data) for _, _, data in named)
        except BaseException:
            for buffer in buffers:
                _release(buffer)
            raise
        futures = [self._put(path, name, buffer, flags) for (path, name, _), buffer in zip(named, buffers)]
        results: list[Optional[OSError]] = await _all(futures, errors)
        return results

    # --- attributes and names ---

    async def stat(self, path: PathType, *, follow_symlinks: bool = True) -> os.stat_result:
        """As os.stat."""
        name, st = encode(path), ffi.new("struct stat *")
        flags = 0 if follow_symlinks else AT_SYMLINK_NOFOLLOW
        check(await self._ask(lambda q, d: lib.memefs_queue_stat(q, name, st, flags, d)), path)
        return stat_result(st)

    async def lstat(self, path: PathType) -> os.stat_result:
        """As os.lstat: of a symbolic link itself."""
        return await self.stat(path, follow_symlinks=False)

    exists = _threaded(Client.exists)
    lexists = _threaded(Client.lexists)
    isdir = _threaded(Client.isdir)
    isfile = _threaded(Client.isfile)
    islink = _threaded(Client.islink)
    access = _threaded(Client.access)
    chmod = _threaded(Client.chmod)
    chown = _threaded(Client.chown)
    utime = _threaded(Client.utime)
    truncate = _threaded(Client.truncate)
    statvfs = _threaded(Client.statvfs)
    mkdir = _threaded(Client.mkdir)
    makedirs = _threaded(Client.makedirs)
    rmdir = _threaded(Client.rmdir)
    remove = unlink = _threaded(Client.remove)
    rmtree = _threaded(Client.rmtree)
    rename = replace = _threaded(Client.rename)
    link = _threaded(Client.link)
    symlink = _threaded(Client.symlink)
    readlink = _threaded(Client.readlink)
    listdir = _threaded(Client.listdir)
    scandir = _threaded(Client.scandir)
    getxattr = _threaded(Client.getxattr)
    setxattr = _threaded(Client.setxattr)
    listxattr = _threaded(Client.listxattr)
    removexattr = _threaded(Client.removexattr)
    copy_file = _threaded(Client.copy_file)
    nodes = _threaded(Client.nodes)
    layout = _threaded(Client.layout)
    lost = _threaded(Client.lost)

    # --- files ---

    async def open_raw(self, path: PathType, mode: str = "r", *, flags: int = 0, permissions: int = 0o666) -> AsyncFile:
        """Opens a file: as ``Client.open_raw``."""
        call = functools.partial(self._connected.open_raw, path, mode, flags=flags, permissions=permissions)
        return AsyncFile(self, await self._run(call))


class AsyncFile:
    """An open file: what is read and written says where; there is no position. ``async with`` closes it."""

    def __init__(self, client: AsyncClient, raw: RawFile) -> None:
        self._client = client
        self._raw = raw
        self.name = raw.name
        self.mode = raw.mode

    def __repr__(self) -> str:
        return f"<memefs.aio.AsyncFile name={self.name!r} mode={self.mode!r}{' closed' if self.closed else ''}>"

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: Optional[type[BaseException]], error: Optional[BaseException], where: Optional[TracebackType]
    ) -> None:
        await self.close()

    @property
    def closed(self) -> bool:
        return self._raw.closed

    async def close(self) -> None:
        """Sends what was written, waits for what is under way, and gives locks back."""
        await self._client._run(self._raw.close)

    async def _ask(self, call: Callable[[Any, Any, Any], int], buffer: Any = None) -> int:
        try:
            self._client._check()
            file = self._raw._handle.__enter__()
        except BaseException:
            _release(buffer)
            raise
        return check(await self._client._ask(lambda q, d: call(q, file, d), buffer, self._raw), self.name)

    async def pread(self, length: int, offset: int) -> bytes:
        """Up to so many bytes from there on."""
        room = io.BytesIO(bytes(length))  # its own buffer is filled: no copy
        count = await self.pread_into(room.getbuffer(), offset)
        return room.getvalue() if count == length else room.getvalue()[:count]

    async def pread_into(self, buffer: WriteableBuffer, offset: int) -> int:
        """Fills the buffer from there on; how many bytes it got."""
        self._raw._need(self._raw._readable, "readable")
        room = ffi.from_buffer(buffer, require_writable=True)
        return await self._ask(lambda q, f, d: lib.memefs_queue_pread(q, f, room, len(room), offset, d), room)

    async def pwrite(self, data: ReadableBuffer, offset: int) -> int:
        """Writes there; how many bytes (all, unless memory is full)."""
        self._raw._need(self._raw._writable, "writable")
        part = ffi.from_buffer(data)
        return await self._ask(lambda q, f, d: lib.memefs_queue_pwrite(q, f, part, len(part), offset, d), part)

    async def sync(self) -> None:
        """Other clients see what was written when it returns."""
        self._raw._check_open()
        await self._ask(lambda q, f, d: lib.memefs_queue_fsync(q, f, d))

    async def stat(self) -> os.stat_result:
        """As os.fstat."""
        return await self._client._run(self._raw.stat)

    async def truncate(self, size: int) -> int:
        """Makes the file that long, with zeros where it grows."""
        return await self._client._run(functools.partial(self._raw.truncate, size))

    async def acquire(self, *, shared: bool = False, timeout: Optional[float] = None) -> bool:
        """Takes the lock (flock(2)); False when it is not to be had within so many seconds (None: waits for ever)."""
        end = None if timeout is None else time.monotonic() + timeout
        pause, longest = LOCK_POLL
        while not await self._client._run(functools.partial(self._raw.acquire, shared=shared, timeout=0)):
            left = longest if end is None else end - time.monotonic()
            if left <= 0:
                return False
            await asyncio.sleep(min(pause, left))
            pause = min(2 * pause, longest)
        return True

    async def release(self) -> None:
        """Gives the lock back; what was written goes out before."""
        await self._client._run(self._raw.release)


async def _all(futures: Sequence[asyncio.Future[Any]], errors: str) -> Any:
    results = await asyncio.gather(*futures, return_exceptions=True)
    for result in results:
        if isinstance(result, BaseException) and not isinstance(result, OSError):
            raise result  # closed meanwhile
    if errors == "raise":
        raise_first(results)
    return results

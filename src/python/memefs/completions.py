"""The library's queue of asynchronous requests, served by an event loop of asyncio."""

from __future__ import annotations

import asyncio
from collections import deque
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Optional

from ._native import ffi, lib
from .handle import Handle, check

if TYPE_CHECKING:
    from .connection import Connection

__all__ = ["Completions", "Request"]

REAP = 256  # completions that are taken at once


class Request:
    """What is asked of the library, and for whom. It holds what must live until the library has done with it."""

    __slots__ = ()

    def wanted(self) -> bool:
        """Whether somebody waits for it still: else it is not sent."""
        raise NotImplementedError

    def send(self, queue: Any, data: Any) -> int:
        """Calls the library: 0, or a negative errno, with which it ends."""
        raise NotImplementedError

    def finish(self, result: int) -> None:
        """What the library's call returned; called also where nobody waits any more."""
        raise NotImplementedError

    def fail(self, error: Exception) -> None:
        """It was not sent, or how it ended will not be known."""
        raise NotImplementedError

    def drop(self) -> None:
        """Frees what the library may have given, and gives back what was lent to it. Any thread, and more than once."""


def _destroy(queue: Any) -> int:
    lib.memefs_queue_destroy(queue)
    return 0


class Completions:
    """A queue of one connection and one loop; all but ``destroy`` is called on the loop's thread.

    What is more than the queue takes waits here, and is not sent when nobody wants it any more. What was sent is done
    by the library in any case.
    """

    def __init__(self, connection: Connection, loop: asyncio.AbstractEventLoop, threads: int, depth: int) -> None:
        queue = ffi.new("struct memefs_queue **")
        with connection._fs as fs:
            check(lib.memefs_queue_create(fs, depth, threads, queue))
            self._handle = Handle(queue[0], _destroy, "the client")
        self._fd = int(lib.memefs_queue_fd(queue[0]))
        self._done = ffi.new("struct memefs_completion[]", REAP)
        self._loop = loop
        self._depth = depth
        self._waiting: deque[Request] = deque()
        self._sent: dict[int, Request] = {}
        self._number = 0
        self._idle: Optional[asyncio.Future[None]] = None  # of those who drain
        connection._queues.add(self)
        loop.add_reader(self._fd, self._reap)

    def submit(self, request: Request) -> None:
        """Sends it, now or when there is room."""
        if len(self._sent) < self._depth:
            self._send(request)
        else:
            self._waiting.append(request)

    def _send(self, request: Request) -> None:
        self._number += 1
        self._sent[self._number] = request
        try:
            with self._handle as queue:
                rc = request.send(queue, ffi.cast("void *", self._number))
        except Exception as error:  # wrong arguments; of a parent's, or closed
            del self._sent[self._number]
            request.fail(error)
            return
        if rc < 0:
            del self._sent[self._number]
            self._finish(request, rc)

    def _finish(self, request: Request, result: int) -> None:
        """An error is that request's own: the library does not tell of the others, which were reaped with it, again."""
        try:
            request.finish(result)
        except Exception as error:  # no memory for what was got
            request.fail(error)

    def _reap(self) -> None:
        with suppress(OSError, ValueError), self._handle as queue:  # of a parent's, or closed
            count = lib.memefs_queue_reap(queue, self._done, REAP, 0, 0)
            for done in self._done[0 : max(0, count)]:
                self._finish(self._sent.pop(int(ffi.cast("uintptr_t", done.data))), int(done.result))
        while self._waiting and len(self._sent) < self._depth:
            request = self._waiting.popleft()
            if request.wanted():
                self._send(request)
            else:
                request.drop()
        if self._idle is not None and not self._sent:
            self._idle.set_result(None)
            self._idle = None

    async def drain(self) -> None:
        """Waits until nothing is sent or waits."""
        while self._sent:
            if self._idle is None:
                self._idle = self._loop.create_future()
            await asyncio.shield(self._idle)

    def detach(self) -> None:
        """The loop does not look any more."""
        self._loop.remove_reader(self._fd)

    def destroy(self) -> None:
        """Waits for what is being served; what is not yet is not done. Any thread; the first call counts."""
        if not self._handle.shut():
            return
        left = [*self._sent.values(), *self._waiting]
        self._handle.free()
        for request in left:
            request.drop()
        with suppress(RuntimeError):  # the loop may be closed
            self._loop.call_soon_threadsafe(self._abandon, left)

    def _abandon(self, left: list[Request]) -> None:
        self.detach()
        self._sent.clear()
        self._waiting.clear()
        for request in left:
            request.fail(ValueError("the client was closed meanwhile"))
        if self._idle is not None:
            self._idle.set_result(None)
            self._idle = None

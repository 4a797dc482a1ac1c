"""Arguments of all kinds to all calls: errors of Python, and never a crash. ARGUMENTS_SEED: other ones."""

import array
import asyncio
import inspect
import os
import random
import threading

import pytest

import memefs
from memefs.aio import AsyncClient
from memefs.file import RawFile

CALLS = 600
# As of os and io: OverflowError for numbers that C does not have, BufferError for what can't be lent to it.
GOOD_ERRORS = (OSError, TypeError, ValueError, OverflowError, BufferError, MemoryError)
LEFT_OUT = {"readline", "readlines", "writelines"}  # io's own, byte by byte
SHORT_FILES = {"copy_file"}  # of a file as long as numbers go it takes as long
LEFT_OUT |= {"close", "shared", "lock", "fileno", "isatty", "detach", "connect"}


class Unhelpful:
    def __fspath__(self):
        return 5

    def __len__(self):
        raise ValueError("no length")

    def __index__(self):
        raise TypeError("no index")


@pytest.fixture
def draw(root):
    """draw(name of a parameter): something for it, that fits or not."""
    seed = int(os.environ.get("ARGUMENTS_SEED") or 1)
    print(f"ARGUMENTS_SEED={seed}")
    rng = random.Random(seed)
    paths = [f"{root}/x{i}" for i in range(6)] + [f"{root}/x0/x{i}" for i in range(3)] + [f"{root}/x1".encode()]
    strange = [
        *(None, True, -1, 0, 1, 7, 4096, 70_000, -(2**31), -(2**63), 2**63 - 1, 2**63, 2**64, 2**100, 1.5),
        *(float("nan"), float("inf"), "", "x\0y", "\ud800", "\udcff", b"\xff\xfe", b"x\0", f"{root}/{'n' * 300}"),
        *(f"{root}/" + "d/" * 3000, f"{root}/loop", f"{root}/x0/../x1/.", [], {}, (), [1, None], {"a": 1}, object()),
        *(Unhelpful(), Unhelpful, bytearray(100), memoryview(b"read only"), memoryview(bytearray(64))[::2]),
        *(memoryview(bytearray(64))[::-1], array.array("d", [1.0] * 9)),
        *([(f"{root}/x2", b"1"), ("a", None)], [(b"\xff", b"1", 2)], {f"{root}/x3": b"1"}, ("x",), "rw", "b", "r+"),
    ]
    fitting = {
        "mode": [0o755, "r", "w+", "rb", "a"],
        "name": ["user.a", "user.b", b"user.c"],
        "times": [None, (1, 2), (1.5, -2)],
        "ns": [(1, 2)],
        "size": [0, 10, 70_000],
        "items": [{f"{root}/x{i}": bytes(i * 100) for i in range(5)}],
        "paths": [paths],
        "timeout": [0],
        "buffering": [-1, 0, 1, 5000],
    }

    def one(name):
        if name == "timeout":
            return rng.choice([0, 0, "x", -1, float("nan"), b""])  # nothing that waits for ever
        if rng.random() < 0.45:
            return rng.choice(strange)
        if name in fitting:
            return rng.choice(fitting[name])
        if name in ("path", "source", "target", "top"):
            return rng.choice(paths)
        if name in ("data", "value", "buffer"):
            return rng.choice([b"some", bytearray(5000), bytes(100_000)])
        return rng.choice([0, 1, 100, 5000, False, True])

    one.rng = rng
    return one


def arguments(draw, method):
    """Positional and keyword arguments for it; at times one too many, or too few."""
    given, named = [], {}
    for parameter in list(inspect.signature(method).parameters.values()):
        if parameter.kind in (parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD):
            if parameter.default is not parameter.empty and draw.rng.random() < 0.5:
                break
            given.append(draw(parameter.name))
        elif parameter.kind == parameter.KEYWORD_ONLY and (parameter.name == "timeout" or draw.rng.random() < 0.3):
            named[parameter.name] = draw(parameter.name)
    if draw.rng.random() < 0.03:
        given = given[:-1]
    return given, named


def methods(kind):
    left_out = LEFT_OUT | SHORT_FILES
    names = [n for n in dir(kind) if not n.startswith("_") and n not in left_out and callable(getattr(kind, n))]
    assert len(names) > 15
    return names


def call(draw, thing, name):
    """What it returned, used a little, or the error that it may raise."""
    method = getattr(thing, name)
    given, named = arguments(draw, method)
    try:
        result = method(*given, **named)
        if inspect.isgenerator(result) or name == "scandir":
            result = list(zip(range(50), result))
        return result
    except GOOD_ERRORS as error:
        return error
    except BaseException as error:
        raise AssertionError(f"{name}(*{given!r:.300}, **{named!r:.300})") from error


def test_clients(client, root, draw):
    client.symlink("loop", f"{root}/loop")
    names, ended, raised, files = methods(memefs.Client), 0, 0, []
    for _ in range(CALLS):
        result = call(draw, client, draw.rng.choice(names))
        raised += isinstance(result, Exception)
        ended += not isinstance(result, Exception)
        if hasattr(result, "close"):
            files.append(result)
    assert ended > CALLS // 10 and raised > CALLS // 10
    for file in files:
        try:
            file.close()
        except OSError:
            pass
    client.put(f"{root}/after", b"all is well")
    assert client.get(f"{root}/after") == b"all is well"


def test_files(client, root, draw):
    names = methods(RawFile)
    for turn in range(CALLS // 50):
        with client.open_raw(f"{root}/f", draw.rng.choice(["r", "r+", "a+", "w"]) if turn else "w+") as file:
            for _ in range(50):
                call(draw, file, draw.rng.choice(names))
        for name in names:
            call(draw, file, name)  # closed
    closed = memefs.Client()
    closed.close()
    for name in methods(memefs.Client):
        call(draw, closed, name)


def test_copies(client, root, draw):
    """Of files that no other call has made long, and of what is no file."""
    client.mkdir(f"{root}/x3")
    client.symlink("loop", f"{root}/loop")
    ended = 0
    for turn in range(CALLS // 4):
        client.put(f"{root}/x{turn % 3}", bytes(turn * 1000))
        ended += not isinstance(call(draw, client, "copy_file"), Exception)
    assert ended > CALLS // 200


def test_clients_of_loops(client, root, draw):
    names = methods(AsyncClient)

    async def one(aio, name):
        given, named = arguments(draw, getattr(aio, name))
        try:
            result = await getattr(aio, name)(*given, **named)
            if name == "open_raw":
                await asyncio.gather(
                    *(result.pread(draw("size"), draw("offset")) for _ in range(3)),
                    *(result.pwrite(draw("data"), draw("offset")) for _ in range(3)),
                    *(result.pread_into(draw("buffer"), draw("offset")) for _ in range(3)),
                    return_exceptions=True,
                )
                await result.close()
        except GOOD_ERRORS:
            pass

    async def main():
        async with AsyncClient(client=client, workers=4) as aio:
            for _ in range(CALLS // 100):
                tasks = [asyncio.ensure_future(one(aio, draw.rng.choice(names))) for _ in range(100)]
                await asyncio.sleep(0)
                for task in draw.rng.sample(tasks, 10):
                    task.cancel()
                for result in await asyncio.gather(*tasks, return_exceptions=True):
                    assert result is None or isinstance(result, asyncio.CancelledError), result

    asyncio.run(asyncio.wait_for(main(), 60))


def test_files_closed_by_others(client, root):
    """Threads that read and write while another one closes their file."""
    client.put(f"{root}/f", bytes(300_000))
    for _ in range(20):
        file, ends = client.open_raw(f"{root}/f", "r+"), []

        def work(file=file, ends=ends):
            room = bytearray(100_000)
            try:
                while True:
                    file.pread_into(room, 1000)
                    file.pwrite(room[:1000], 5)
                    file.readinto(room)
                    file.seek(0)
            except ValueError as error:
                ends.append(error)

        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        file.close()
        for thread in threads:
            thread.join(30)
        assert len(ends) == 4

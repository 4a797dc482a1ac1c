"""memefs.aio: operations of many tasks at once."""

import asyncio
import errno
import os
import stat
import threading

import pytest

import memefs
import memefs.aio
from memefs.aio import AsyncClient


def run(work, **options):
    """Runs work(client) in a loop of its own."""

    async def main():
        async with AsyncClient(**options) as client:
            return await work(client)

    return asyncio.run(asyncio.wait_for(main(), 90))


def test_a_thousand_at_once(root, mounted, other):
    contents = {f"{root}/{i}": os.urandom(i * 13 % 3000) for i in range(1000)}
    contents[f"{root}/large"] = os.urandom(5_000_000)

    async def work(client):
        await asyncio.gather(*(client.put(path, data) for path, data in contents.items()))
        assert sorted(await client.listdir(root)) == sorted(os.listdir(mounted))
        got = await asyncio.gather(*(client.get(path) for path in contents))
        assert got == list(contents.values())
        sizes = await asyncio.gather(*(client.stat(path) for path in contents))
        assert [st.st_size for st in sizes] == [len(data) for data in contents.values()]
        mixed = await asyncio.gather(
            *(client.rename(path, f"{path}.new") for path in list(contents)[:100]),
            *(client.get(path) for path in list(contents)[100:]),
            *(client.put(f"{root}/more-{i}", b"x") for i in range(100)),
            *(client.stat(f"{root}/none-{i}") for i in range(100)),
            *(client.lexists(f"{root}/{i}") for i in range(500, 550)),
            return_exceptions=True,
        )
        assert mixed[:100] == [None] * 100 and mixed[100:1001] == list(contents.values())[100:]
        assert mixed[1001:1101] == [None] * 100 and mixed[-50:] == [True] * 50
        assert all(isinstance(one, FileNotFoundError) for one in mixed[1101:1201])
        return len(mixed)

    assert run(work) == 1251
    assert other.joinpath("5.new").read_bytes() == contents[f"{root}/5"] and mounted.joinpath("more-99").exists()


def test_batches_and_errors(root):
    async def work(client):
        assert await client.mput({f"{root}/a": b"1", f"{root}/b": bytearray(b"22")}) == [None, None]
        assert await client.mget([f"{root}/a", f"{root}/b"]) == [b"1", b"22"]
        got = await client.mget([f"{root}/a", f"{root}/none"], errors="return")
        assert got[0] == b"1" and isinstance(got[1], FileNotFoundError) and got[1].filename == f"{root}/none"
        with pytest.raises(FileNotFoundError):
            await client.mget([f"{root}/none", f"{root}/a"])
        failed = await client.mput([(f"{root}/new/a", b""), (f"{root}/c", b"")], errors="return")
        assert isinstance(failed[0], FileNotFoundError) and failed[1] is None
        await client.put(f"{root}/new/a", b"made", parents=True)
        with pytest.raises(FileExistsError) as caught:
            await client.put(f"{root}/a", b"", exclusive=True)
        assert caught.value.errno == errno.EEXIST and caught.value.filename == f"{root}/a"
        with pytest.raises(IsADirectoryError):
            await client.get(root)
        with pytest.raises(ValueError, match="null byte"):
            await client.get("a\0b")
        with pytest.raises(TypeError):
            await client.put(f"{root}/a", "text")
        with pytest.raises(ValueError, match="errors"):
            await client.mget([], errors="ignore")
        assert await client.mget([]) == [] == await client.mput({})
        room = bytearray(5)
        assert await client.get_into(f"{root}/b", room) == 2 and room[:2] == b"22"
        with pytest.raises(BufferError):
            await client.get_into(f"{root}/b", b"12345")

    run(work)


def test_names(root, mounted):
    async def work(client):
        await client.makedirs(f"{root}/d/e")
        await client.symlink("d", f"{root}/l")
        assert stat.S_ISLNK((await client.lstat(f"{root}/l")).st_mode) and await client.isdir(f"{root}/l")
        assert await client.readlink(f"{root}/l") == "d"
        await client.setxattr(f"{root}/d", "user.one", b"1")
        assert await client.getxattr(f"{root}/d", "user.one") == b"1"
        assert [entry.name for entry in await client.scandir(f"{root}/d")] == ["e"]
        await client.chmod(f"{root}/d", 0o700)
        await client.rmtree(f"{root}/d")
        await client.remove(f"{root}/l")
        assert len(await client.nodes()) == 2 and await client.listdir(root) == []

    run(work)
    assert "As os" in AsyncClient.listxattr.__doc__ and AsyncClient.listdir.__name__ == "listdir"


def test_files(root, mounted):
    data = os.urandom(3_000_000)

    async def work(client):
        async with await client.open_raw(f"{root}/f", "w+") as file:
            offsets = range(0, len(data), 10_000)
            assert sum(await asyncio.gather(*(file.pwrite(data[o : o + 10_000], o) for o in offsets))) == len(data)
            await file.sync()
            assert mounted.joinpath("f").read_bytes() == data
            got = await asyncio.gather(*(file.pread(10_000, o) for o in offsets))
            assert b"".join(got) == data and await file.pread(10, len(data) - 3) == data[-3:]
            room = bytearray(20)
            assert await file.pread_into(memoryview(room)[5:15], 7) == 10 and room[5:15] == data[7:17]
            assert await file.truncate(5) == 5 and (await file.stat()).st_size == 5
            assert await file.acquire()
            async with await client.open_raw(f"{root}/f") as second:
                assert not await second.acquire(timeout=0.05)
                waits = [asyncio.ensure_future(second.acquire()) for _ in range(30)]  # more than there are threads
                await asyncio.sleep(0.05)
                await file.release()
                assert all(await asyncio.gather(*waits))
                with pytest.raises(OSError, match="writable"):
                    await second.pwrite(b"", 0)
        assert file.closed
        with pytest.raises(ValueError, match="closed"):
            await file.pread(1, 0)

    run(work)


def test_cancelling(root, mounted):
    """A task that is cancelled ends at once; what it needed lives until the library has done with it."""

    async def work(client):
        await client.mput({f"{root}/{i}": bytes(4000) for i in range(300)})
        tasks = [asyncio.ensure_future(client.get(f"{root}/{i}")) for i in range(300)]
        for task in tasks[::3]:
            task.cancel()  # some before they have begun
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        for task in tasks[1::3]:
            task.cancel()  # when they were sent
        got = await asyncio.gather(*tasks, return_exceptions=True)
        assert got[2::3] == [bytes(4000)] * 100
        assert all(isinstance(one, asyncio.CancelledError) or one == bytes(4000) for one in got)
        assert all(isinstance(one, asyncio.CancelledError) for one in got[::3])
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(client.put(f"{root}/large", bytes(50_000_000)), 0.0001)
        file = await client.open_raw(f"{root}/f", "w")
        write = asyncio.ensure_future(file.pwrite(bytes(8_000_000), 0))
        await asyncio.sleep(0)
        write.cancel()
        await asyncio.gather(write, return_exceptions=True)
        await file.close()  # waits for the write
        assert mounted.joinpath("f").stat().st_size == 8_000_000
        never = await client.open_raw(f"{root}/f", "w")
        assert await never.acquire()
        second = await client.open_raw(f"{root}/f", "w")
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(second.acquire(), 0.05)
        await never.close()
        assert await second.acquire()
        await second.close()

    run(work)
    if mounted.joinpath("large").exists():
        assert mounted.joinpath("large").stat().st_size == 50_000_000


def test_more_than_the_queue_takes(client, root):
    """The rest waits in Python, and is not sent when it is cancelled."""

    async def work(aio):
        some = [asyncio.ensure_future(aio.stat(root)) for _ in range(3000)]
        await asyncio.sleep(0)
        some[2999].cancel()
        got = await asyncio.gather(*some, return_exceptions=True)
        assert all(stat.S_ISDIR(one.st_mode) for one in got[:2999])
        assert isinstance(got[2999], asyncio.CancelledError)

    run(work, client=client, workers=4)
    assert client.stat(root)  # stays open


def test_what_nobody_wants_any_more(client, root, monkeypatch):
    """A put that was not sent gives its buffer back."""
    given, release = [], memefs.aio._release

    def released(buffer):
        given.extend([len(buffer)] if buffer is not None else [])
        release(buffer)

    monkeypatch.setattr(memefs.aio, "_release", released)

    async def work(aio):
        before = [asyncio.ensure_future(aio.stat(root)) for _ in range(3000)]
        await asyncio.sleep(0)
        puts = [asyncio.ensure_future(aio.put(f"{root}/{i}", bytearray(100))) for i in range(10)]
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        for put in puts:
            put.cancel()
        await asyncio.gather(*before)

    run(work, client=client, workers=4)
    assert given == [100] * 10


def test_results_that_fail(root, monkeypatch):
    """An error where one result is made is that one's own."""
    real, unlucky = memefs.aio._Call.finish, []

    def scarce(source):
        if len(source) in (13, 14):
            raise MemoryError if len(source) == 13 else ValueError
        return bytes(source)

    def finish(call, result):
        if not unlucky:
            unlucky.append(call)
            raise OSError("no luck")
        real(call, result)

    async def work(client):
        await client.mput({f"{root}/{i}": bytes(i) for i in range(300)})
        monkeypatch.setattr(memefs.aio, "bytes", scarce, raising=False)
        gets = (client.get(f"{root}/{i}") for i in range(300))
        got = await asyncio.wait_for(asyncio.gather(*gets, return_exceptions=True), 20)
        assert isinstance(got[13], MemoryError) and isinstance(got[14], ValueError)
        assert got[:13] + got[15:] == [bytes(i) for i in range(300) if i not in (13, 14)]
        monkeypatch.setattr(memefs.aio._Call, "finish", finish)
        stats = (client.stat(f"{root}/{i}") for i in range(300))
        got = await asyncio.wait_for(asyncio.gather(*stats, return_exceptions=True), 20)
        assert [str(one) for one in got if isinstance(one, OSError)] == ["no luck"]

        def none(_):
            raise MemoryError

        monkeypatch.setattr(memefs.aio, "items_of", none)
        with pytest.raises(MemoryError):
            await asyncio.wait_for(client.put(f"{root}/a", bytearray(5)), 20)

    run(work)


def test_close_that_is_cancelled(root):
    """It goes on, and can be waited for again; it is over when the loop ends."""
    clients = []

    async def main(again):
        aio = await AsyncClient().connect()
        clients.append(aio)
        puts = [asyncio.ensure_future(aio.put(f"{root}/{i}", bytes(1_000_000))) for i in range(50)]
        await asyncio.sleep(0)
        closes = [asyncio.ensure_future(aio.close()) for _ in range(2)]
        await asyncio.sleep(0)
        closes[0].cancel()
        with pytest.raises(asyncio.CancelledError):
            await closes[0]
        assert not aio._client.closed and aio.closed
        if again:
            await aio.close()
            assert aio._client.closed
            await asyncio.gather(*puts, closes[1], aio.close())

    for again in (True, False):
        asyncio.run(asyncio.wait_for(main(again), 60))
        assert clients[-1]._client.closed and clients[-1]._completions._handle.closed


def test_ends(client, root):
    async def main():
        aio = AsyncClient()
        with pytest.raises(ValueError, match="not connected"):
            await aio.get("/a")
        with pytest.raises(ValueError, match="not connected"):
            await aio.listdir("/")
        await aio.connect()
        with pytest.raises(ValueError, match="is connected"):
            await aio.connect()
        puts = [asyncio.ensure_future(aio.put(f"{root}/{i}", b"x")) for i in range(200)]
        await asyncio.sleep(0)
        await aio.close()  # waits for them
        await asyncio.gather(*puts)
        await aio.close()
        for late in (aio.get("/a"), aio.stat("/a"), aio.listdir("/"), aio.open_raw("/a")):
            with pytest.raises(ValueError, match="closed"):
                await late

        own = memefs.Client()
        second = await AsyncClient(client=own).connect()
        own.put(f"{root}/big", bytes(8_000_000))
        gets = [asyncio.ensure_future(second.get(f"{root}/big")) for _ in range(40)]
        await asyncio.sleep(0.01)
        await asyncio.get_running_loop().run_in_executor(None, own.close)  # under its feet
        for got in await asyncio.gather(*gets, return_exceptions=True):
            assert got == bytes(8_000_000) or (isinstance(got, ValueError) and "closed" in str(got))
        await second.close()

    asyncio.run(asyncio.wait_for(main(), 90))
    assert len(client.listdir(root)) == 201
    with pytest.raises(TypeError, match="not both"):
        AsyncClient("name", client=client)
    with pytest.raises(OSError):
        run(lambda _: None, name="nobody-has-this", state_dir="/nowhere", connect_timeout=0.2)


def test_loops_and_threads(client, root):
    """Each thread its loop and its client, all on one connection."""
    ends = []

    def work(number):
        async def main():
            async with AsyncClient(client=client, workers=2) as aio:
                for _ in range(5):
                    paths = [f"{root}/{number}-{i}" for i in range(50)]
                    await asyncio.gather(*(aio.put(path, path.encode()) for path in paths))
                    assert await aio.mget(paths) == [path.encode() for path in paths]
            ends.append(aio)

        asyncio.run(main())

    threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(ends) == 4

    async def elsewhere(aio):
        return await aio.get(f"{root}/0-0")

    async def main():
        async with AsyncClient(client=client) as aio:
            with pytest.raises(RuntimeError, match="another event loop"):
                await asyncio.to_thread(asyncio.run, elsewhere(aio))

    asyncio.run(main())

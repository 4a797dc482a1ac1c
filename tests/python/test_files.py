"""Open files: io's layers on memefs.RawFile, buffers without copies, locks."""

import array
import errno
import io
import os
import threading
import time

import pytest

import memefs

DATA = bytes(range(256)) * 10_000


def test_modes(client, root, mounted):
    with client.open(f"{root}/f", "w", encoding="utf-8") as file:
        assert file.write("erste Zeile\nzweite: ä\n") == 22
        assert file.mode == "w"
    assert mounted.joinpath("f").read_text("utf-8") == "erste Zeile\nzweite: ä\n"
    with client.open(f"{root}/f", encoding="utf-8") as file:
        assert file.readline() == "erste Zeile\n" and list(file) == ["zweite: ä\n"]
    with client.open(f"{root}/f", "a") as file:
        print("dritte", file=file)
    with client.open(f"{root}/f", "r+b") as file:
        file.seek(-7, os.SEEK_END)
        assert file.read() == b"dritte\n"
        file.seek(0)
        file.write(b"ERSTE")
    assert mounted.joinpath("f").read_bytes().startswith(b"ERSTE Zeile\n")
    with pytest.raises(FileExistsError):
        client.open(f"{root}/f", "x")
    with client.open(f"{root}/g", "x+b") as file:
        assert file.write(DATA) == len(DATA) and file.tell() == len(DATA)
        file.seek(1000)
        assert file.read(24) == DATA[1000:1024]
    for bad in ("", "rw", "b", "z", "rbt", "r++"):
        with pytest.raises(ValueError):
            client.open(f"{root}/g", bad)
    with pytest.raises(ValueError):
        client.open(f"{root}/g", "r", 0)
    with pytest.raises(ValueError):
        client.open(f"{root}/g", "rb", encoding="utf-8")


def test_directions(client, root):
    with client.open(f"{root}/f", "wb") as file:
        assert file.writable() and not file.readable() and file.seekable()
        with pytest.raises(io.UnsupportedOperation):
            file.read()
        with pytest.raises(io.UnsupportedOperation):
            file.fileno()
    with client.open_raw(f"{root}/f") as raw:
        with pytest.raises(io.UnsupportedOperation):
            raw.write(b"x")
        with pytest.raises(io.UnsupportedOperation):
            raw.truncate(0)
    with pytest.raises(ValueError, match="closed"):
        raw.read(1)
    with pytest.raises(ValueError, match="closed"):
        file.write(b"")
    assert "closed" in repr(raw)


def test_buffers_of_all_kinds(client, root):
    numpy = pytest.importorskip("numpy")
    client.put(f"{root}/f", DATA)
    with client.open(f"{root}/f", "rb") as file:
        room = bytearray(1000)
        assert file.readinto(room) == 1000 and room == DATA[:1000]
        assert file.readinto(memoryview(room)[10:20]) == 10 and room[10:20] == DATA[1000:1010]
        numbers = numpy.empty(50_000, dtype="<u4")
        file.seek(0)
        assert file.readinto(numbers) == 200_000 and numbers.tobytes() == DATA[:200_000]
        small = array.array("H", [0] * 4)
        assert file.raw.pread_into(small, 256) == 8 and small.tobytes() == bytes(range(8))
        with pytest.raises(BufferError):
            file.raw.readinto(b"not writable")
        with pytest.raises((BufferError, ValueError)):
            file.raw.readinto(numbers[::2])
    matrix = numpy.arange(1_000_000, dtype=float).reshape(1000, 1000)
    client.put(f"{root}/m", matrix)
    again = numpy.empty_like(matrix)
    assert client.get_into(f"{root}/m", again) == matrix.nbytes and (again == matrix).all()
    with client.open(f"{root}/n", "wb") as file:
        numpy.save(file, matrix)
    with client.open(f"{root}/n", "rb") as file:
        assert (numpy.load(file) == matrix).all()


def test_reading_to_the_end(client, root, mounted):
    client.put(f"{root}/f", DATA)
    with client.open(f"{root}/f", "rb") as file:
        assert file.read(5) + file.read() == DATA and file.read() == b""
        file.seek(len(DATA) + 5)
        assert file.read() == b""
    with client.open(f"{root}/f", "rb", buffering=0) as raw:
        assert isinstance(raw, memefs.RawFile) and raw.readall() == DATA and raw.readall() == b""
        assert raw.pread(10, len(DATA) - 4) == DATA[-4:] and raw.pread(1, len(DATA)) == b""
        with mounted.joinpath("f").open("ab") as file:
            file.write(b"more")
        assert raw.read() == b"more"


def test_writing(client, root, mounted):
    with client.open_raw(f"{root}/f", "w+") as raw:
        assert raw.write(b"0123456789") == 10 and raw.pwrite(b"ab", 3) == 2 and raw.tell() == 10
        assert raw.truncate(4) == 4 and raw.stat().st_size == 4
        raw.seek(8)
        raw.write(b"z")
        raw.sync()
        assert mounted.joinpath("f").read_bytes() == b"012a\0\0\0\0z"
        assert raw.seek(0, os.SEEK_END) == 9
        raw.allocate(0, 5000)
        assert raw.stat().st_size == 5000
    with client.open(f"{root}/f", "wb") as file:
        file.write(b"not yet")
        assert client.stat(f"{root}/f").st_size == 0
        file.flush()
        file.raw.sync()
        assert client.stat(f"{root}/f").st_size == 7


def test_unlinked_files_stay_open(client, root):
    with client.open(f"{root}/f", "w+b") as file:
        file.write(DATA)
        client.remove(f"{root}/f")
        file.seek(0)
        assert file.read() == DATA and file.raw.stat().st_nlink == 0


def test_closing_a_client_closes_its_files(root, client):
    one = memefs.Client()
    text = one.open(f"{root}/text", "w")
    text.write("flushed by close")
    raw = one.open_raw(f"{root}/raw", "w")
    one.close()
    assert text.closed and raw.closed and client.get(f"{root}/text") == b"flushed by close"
    with pytest.raises(ValueError, match="closed"):
        one.open(f"{root}/text")


def test_errors_of_writing(client, root):
    """Memory is full: the writer is told, by write, flush or close; what was closed without an error is there."""
    # More than nodes of 256 MiB can hold. What statvfs tells is no bound: it grows where freed memory is used again.
    pieces = [number.to_bytes(8, "big") * (1 << 20) for number in range(10)]
    stored = []
    with pytest.raises(OSError) as caught:
        for number, piece in enumerate(pieces):
            with client.open(f"{root}/f{number}", "wb") as file:
                for _ in range(8):
                    file.write(piece)
            stored.append(number)
    assert caught.value.errno == errno.ENOSPC
    with memefs.Client() as other:
        for number in stored:
            assert other.get(f"{root}/f{number}") == pieces[number] * 8, number
    assert stored


def test_locks(client, root, mounted):
    import fcntl

    client.put(f"{root}/f", b"")
    with mounted.joinpath("f").open("r+b") as other, client.open_raw(f"{root}/f", "r+") as mine:
        fcntl.flock(other, fcntl.LOCK_EX)
        assert not mine.acquire(timeout=0) and not mine.acquire(shared=True, timeout=0.3)
        with pytest.raises(TimeoutError), mine.lock(timeout=0):
            pass
        fcntl.flock(other, fcntl.LOCK_UN)
        with mine.lock():
            with pytest.raises(BlockingIOError):
                fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)
        fcntl.flock(other, fcntl.LOCK_EX)
        threading.Timer(0.4, fcntl.flock, (other, fcntl.LOCK_UN)).start()
        with client.lock(f"{root}/f", timeout=20):
            pass
        assert mine.acquire_range(0, 10, timeout=0)
        with pytest.raises(OSError):
            fcntl.lockf(other, fcntl.LOCK_EX | fcntl.LOCK_NB, 5, 5)
        fcntl.lockf(other, fcntl.LOCK_EX | fcntl.LOCK_NB, 5, 10)
        assert not mine.acquire_range(12, timeout=0)
        mine.release_range(0, 10)
        fcntl.lockf(other, fcntl.LOCK_EX | fcntl.LOCK_NB, 5, 0)


def test_a_counter_under_a_lock(client, root):
    """Four clients count in a file, 25 times each."""
    client.put(f"{root}/n", b"0")

    def work():
        with memefs.Client() as one:
            for _ in range(25):
                with one.lock(f"{root}/lock"):
                    one.put(f"{root}/n", str(int(one.get(f"{root}/n")) + 1).encode())

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert client.get(f"{root}/n") == b"100"


def test_other_threads_run_meanwhile(client, root):
    """One thread waits for a lock in the library; this one goes on."""
    client.put(f"{root}/f", b"")
    with client.open_raw(f"{root}/f", "r+") as first, client.open_raw(f"{root}/f", "r+") as second, first.lock():
        waiter = threading.Thread(target=second.acquire, kwargs={"timeout": 20})
        waiter.start()
        rounds, end = 0, time.monotonic() + 0.5
        while time.monotonic() < end:
            rounds += 1
            client.stat(f"{root}/f")
        assert rounds > 3 and waiter.is_alive()
        first.release()
        waiter.join(20)
        assert not waiter.is_alive()
        second.release()
        assert first.acquire(timeout=5)

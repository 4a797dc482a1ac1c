"""Processes: a child connects anew, and leaves what its parent has alone."""

import errno
import multiprocessing
import os

import pytest

import memefs

CLIENT = None


def get(path):
    return CLIENT.get(path)


def get_shared(path):
    return memefs.Client.shared().get(path)


def test_children_connect_anew(client, root):
    global CLIENT
    CLIENT = client
    memefs.Client.shared().put(f"{root}/f", b"content")
    with multiprocessing.get_context("fork").Pool(3) as pool:
        assert pool.map(get, [f"{root}/f"] * 12) == [b"content"] * 12
        assert pool.map(get_shared, [f"{root}/f"] * 12) == [b"content"] * 12
        pool.close()  # the end of `with` would kill them, and others wait for what they have cached
        pool.join()
    assert client.get(f"{root}/f") == b"content"


def test_a_client_goes_to_a_child_as_an_argument(client, root):
    client.put(f"{root}/f", b"content")
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        assert pool.apply(client.get, (f"{root}/f",)) == b"content"
        pool.close()
        pool.join()


def test_files_are_their_opener_s(client, root):
    """The parent's file says EBADF in the child, which writes nothing of what the parent had in its buffer."""
    file = client.open(f"{root}/f", "wb")
    file.write(b"once")
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            file.flush()
            os.write(write, b"flushed")
        except OSError as error:
            os.write(write, str(error.errno).encode())
        finally:
            os._exit(0)
    os.waitpid(child, 0)
    assert int(os.read(read, 100)) == errno.EBADF
    file.close()
    assert client.get(f"{root}/f") == b"once"
    os.close(read)
    os.close(write)


def test_a_fork_while_threads_are_at_work(client, root):
    import threading

    client.put(f"{root}/f", bytes(500_000))
    stop = threading.Event()

    def work():
        while not stop.is_set():
            client.get(f"{root}/f")

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    try:
        for _ in range(10):
            child = os.fork()
            if child == 0:
                os._exit(0 if client.get(f"{root}/f") == bytes(500_000) else 1)
            assert os.waitpid(child, 0)[1] == 0
    finally:
        stop.set()
        for thread in threads:
            thread.join()


@pytest.mark.parametrize("how", ["normal", "unclosed"])
def test_the_end_of_a_process(client, root, how):
    """What is open at the end of a process is flushed and closed, with or without close()."""
    import subprocess
    import sys

    code = f"""
import memefs
client = memefs.Client()
file = client.open({root + "/f"!r}, "w")
file.write("content")
if {how!r} == "normal":
    file.close()
    client.close()
"""
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)
    assert client.get(f"{root}/f") == b"content"

"""A Python program that is killed: what it had locked is free within the life of its session, 20 s."""

import os
import signal
import subprocess
import sys
import time

PROGRAM = """
import sys, memefs
client = memefs.Client(label="killed")
whole, part = client.open_raw(sys.argv[1], "r+"), client.open_raw(sys.argv[1], "r+")
assert whole.acquire(timeout=0) and part.acquire_range(10, 5, timeout=0)
part.pwrite(b"not synced", 0)
print("locked", flush=True)
sys.stdin.read()
"""


def test_locks_of_a_killed_program(client, root, mounted):
    client.put(f"{root}/f", bytes(100))
    with subprocess.Popen(
        [sys.executable, "-c", PROGRAM, f"{root}/f"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as program:
        assert program.stdout.readline() == b"locked\n"
        with client.open_raw(f"{root}/f", "r+") as file:
            assert not file.acquire(timeout=0) and not file.acquire_range(12, 1, timeout=0)
            assert file.acquire_range(20, 1, timeout=0)
            os.kill(program.pid, signal.SIGKILL)
            program.wait()
            begin = time.monotonic()
            assert file.acquire(timeout=60) and file.acquire_range(12, 1, timeout=60)
            print(f"free after {time.monotonic() - begin:.1f} s")
    mounted.joinpath("f").write_bytes(b"others go on")
    assert client.get(f"{root}/f") == b"others go on"

"""What clients of HTTP do that mean no good, at HOST PORT: `idle N` holds N connections that say nothing or half a
request, `half N` N that send half a request line or half its headers, `deaf PATH` asks once and `slow` for page after page, and both read nothing, `greedy PATH` always waits for answers, `take` listens there itself, `oversize` and `garbage` send what no server takes.
With a second address as FROM, or several (A,B,…), the connections come from there, by turns."""
import itertools
import socket
import sys
import time

what, host, port = sys.argv[1], sys.argv[2], int(sys.argv[3])
sources = itertools.cycle(sys.argv[5].split(",") if len(sys.argv) > 5 else [None])


def connect():
    s = socket.socket(socket.AF_INET)
    s.settimeout(5)
    source = next(sources)
    if source:
        s.bind((source, 0))
    s.connect((host, port))
    return s


def answer(s):
    """All that comes until the other end hangs up."""
    got = b""
    try:
        while True:
            more = s.recv(65536)
            if not more:
                return got
            got += more
    except (ConnectionError, socket.timeout):
        return got


def idle(n):
    held = []
    for i in range(n):
        try:
            s = connect()
            if i % 2:
                s.send(b"GET /metrics HTTP/1.1\r\nHost: local")
            held.append(s)
        except OSError:
            pass
    print("held", len(held), flush=True)
    time.sleep(60)


def half(n):
    """Says that all are under way: where the server takes no more they may not have begun."""
    held = []
    for i in range(n):
        s = socket.socket(socket.AF_INET)
        s.bind((next(sources), 0))
        s.setblocking(False)
        s.connect_ex((host, port))
        held.append(s)
    left, until = dict(enumerate(held)), time.monotonic() + 3
    while left and time.monotonic() < until:
        for i, s in list(left.items()):
            try:
                s.send(b"GET /metr" if i % 2 else b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nAccept: te")
                del left[i]
            except BlockingIOError:
                pass
            except OSError:
                del left[i]
        time.sleep(0.05)
    print("held", n - len(left), "of", n, flush=True)
    time.sleep(60)


def slow():
    """Asks until nothing more can be sent, reads nothing; then waits for the end."""
    s = connect()
    s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    s.settimeout(0.5)
    try:
        while True:
            s.send(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n" * 100)
    except OSError:
        pass
    print("full", flush=True)
    time.sleep(60)


def deaf(path):
    """Asks once, and reads nothing."""
    s = socket.socket(socket.AF_INET)
    s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    s.connect((host, port))
    s.sendall(b"GET " + path.encode() + b" HTTP/1.1\r\nHost: localhost\r\n\r\n")
    print("asked", flush=True)
    time.sleep(60)


def greedy(path):
    """Always has asked for more than it has got, until the other end hangs up."""
    request = b"GET " + path.encode() + b" HTTP/1.1\r\nHost: localhost\r\n\r\n"
    s = connect()
    asked, got = 0, 0
    try:
        while True:
            while asked - got < 20:
                s.sendall(request)
                asked += 1
            more = s.recv(1 << 20)
            if not more:
                return
            got += more.count(b"HTTP/1.1 200")
            print(got, flush=True)
    except OSError:
        pass


if what == "idle":
    idle(int(sys.argv[4]))
elif what == "half":
    half(int(sys.argv[4]))
elif what == "slow":
    slow()
elif what == "deaf":
    deaf(sys.argv[4])
elif what == "greedy":
    greedy(sys.argv[4])
elif what == "take":
    server = socket.create_server((host, port))
    print("taken", flush=True)
    time.sleep(60)
elif what == "oversize":
    s = connect()
    try:
        s.sendall(b"GET /metrics HTTP/1.1\r\nX: " + b"a" * 100000 + b"\r\n\r\n")
    except OSError:
        pass
    print(answer(s)[:12].decode() or "hung up")
elif what == "garbage":
    for text in (b"\x00\xff\x80" * 3000, b"SSH-2.0-x\r\n", b"GET\r\n\r\n", b"GET /metrics HTTP/9.9\r\n\r\n",
                 b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nContent-Length: -1\r\n\r\n",
                 b"POST /metrics HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000000000\r\n\r\nabc"):
        s = connect()
        try:
            s.sendall(text)
            s.shutdown(socket.SHUT_WR)
        except OSError:
            pass
        first = answer(s)[:12].decode(errors="replace")
        assert first == "" or first.startswith("HTTP/1.1 4") or first.startswith("HTTP/1.1 5"), (text[:40], first)
    print("well")

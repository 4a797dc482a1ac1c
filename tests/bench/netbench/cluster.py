"""Nodes as network namespaces (scripts/netns-cluster), and a deployment on them (the exec provider)."""

import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parents[3]
NET = "t"
SUBNET = "10.213.0"
# Packets are scaled down, too, or queues of as many packets as connections need would be full for half a second.
MTU = 600
# What TCP carries of a rate that counts whole frames.
PAYLOAD = (MTU - 52) / (MTU + 14)


def isolate():
    """Goes on in network, mount and process namespaces of its own, which take all with them that is left."""
    if not os.environ.pop("NETBENCH_INSIDE", None):
        os.environ["NETBENCH_INSIDE"] = "1"
        os.execvp("unshare", ["unshare", "--net", "--mount", "--propagation", "private", "--pid", "--fork",
                              "--mount-proc", "--kill-child", sys.executable, *sys.argv])
    os.makedirs("/run/netns", exist_ok=True)
    subprocess.run(["mount", "-t", "tmpfs", "none", "/run/netns"], check=True)
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)


def busy():
    """Processor seconds of the machine so far: used, and in all."""
    with open("/proc/stat") as f:
        ticks = [int(x) for x in f.readline().split()[1:9]]
    return (sum(ticks) - ticks[3] - ticks[4]) / 100, sum(ticks) / 100


def spent():
    """Processor seconds of all processes here, and of those that have ended and were waited for."""
    total = sum(os.times()[2:4])
    for stat in pathlib.Path("/proc").glob("[0-9]*/stat"):
        try:
            words = stat.read_text().rpartition(")")[2].split()
            total += (int(words[11]) + int(words[12])) / 100
        except OSError:
            pass  # gone meanwhile
    return total


class Links:
    """Shaped links, and TCP's congestion control on all nodes ("" leaves the machine's); used as a context."""

    def __init__(self, mbit, congestion=""):
        self.mbit, self.congestion = mbit, congestion

    def call(self, *words):
        subprocess.run([ROOT / "scripts" / "netns-cluster", "--name", NET, "--mtu", str(MTU), *map(str, words)],
                       check=True, timeout=60)

    def __enter__(self):
        with tempfile.NamedTemporaryFile("w", prefix="rates-") as profile:
            profile.write("".join("%dkbit\n" % round(1000 * r) for r in self.mbit))
            profile.flush()
            self.call("up", len(self.mbit), "--profile", profile.name)
        for node in range(len(self.mbit) if self.congestion else 0):
            # By the route, as a namespace's own default can only be what the whole machine allows to everybody.
            self.call("exec", node, "--", "ip", "route", "change", SUBNET + ".0/24", "dev", "eth0", "proto", "kernel",
                      "scope", "link", "src", "%s.%d" % (SUBNET, node + 1), "congctl", self.congestion)
        return self

    def __exit__(self, *_):
        self.call("down")

    def rate(self, node, mbit):
        self.call("rate", node, "%dkbit" % round(1000 * mbit))

    @staticmethod
    def counts():
        """Per node the bytes that it has sent and received, as the bridge sees it."""
        seen = {}
        with open("/proc/net/dev") as f:
            for line in f:
                name, _, rest = line.partition(":")
                if name.strip()[:1] == NET and name.strip()[1:].isdigit():
                    words = rest.split()
                    seen[int(name.strip()[1:])] = (int(words[0]), int(words[8]))
        return [seen[node] for node in sorted(seen)]


def usual_congestion():
    """What TCP does on most machines, if it can here, so that a machine of another default does not decide."""
    known = pathlib.Path("/proc/sys/net/ipv4/tcp_available_congestion_control").read_text().split()
    return "cubic" if "cubic" in known else ""


def segments(nodes):
    """TCP segments that all nodes have sent so far, and how many of them again."""
    sent = again = 0
    for node in range(nodes):
        lines = subprocess.run(["ip", "netns", "exec", "%s-%d" % (NET, node), "cat", "/proc/net/snmp"], check=True,
                               stdout=subprocess.PIPE, text=True, timeout=60).stdout.splitlines()
        names, values = [line.split()[1:] for line in lines if line.startswith("Tcp:")]
        tcp = dict(zip(names, map(int, values)))
        sent, again = sent + tcp["OutSegs"], again + tcp["RetransSegs"]
    return sent, again


class Sampler(threading.Thread):
    """What crosses each link, several times a second: rows of (second, [(out, in) bytes/s of each node])."""

    def __init__(self, every=0.5):
        super().__init__(daemon=True)
        self.every, self.rows, self.over = every, [], threading.Event()
        self.began = time.monotonic()

    def run(self):
        before, at = Links.counts(), time.monotonic()
        while not self.over.wait(self.every):
            now, counts = time.monotonic(), Links.counts()
            self.rows.append((now - self.began, [tuple((b - a) / (now - at) for a, b in zip(*pair))
                                                 for pair in zip(before, counts)]))
            before, at = counts, now

    def stop(self):
        self.over.set()
        self.join()
        return self.rows


class Deployment:
    """A mount on each node; used as a context."""

    def __init__(self, bin_dir, nodes, options, keep=None):
        self.bin, self.nodes, self.options, self.keep = pathlib.Path(bin_dir).resolve(), nodes, options, keep
        self.top = pathlib.Path(tempfile.mkdtemp(prefix="netbench-", dir="/tmp"))
        self.mounts = [self.top / ("mnt%d" % i) for i in range(nodes)]
        for mount in self.mounts:
            mount.mkdir()

    def call(self, verb, *more):
        done = subprocess.run([self.bin / "cm", verb, "--name", self.top.name, "--state-dir", self.top / "state",
                               *map(str, more)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=180, text=True)
        if done.returncode:
            raise RuntimeError("cm %s: %s" % (verb, done.stderr.strip()))
        return done.stdout

    def __enter__(self):
        try:
            self.call("start", "--nodes", self.nodes, "--mount", self.top / "mnt%n", "--provider", "exec",
                      "--listen", SUBNET + ".254:0", "--first-address", SUBNET + ".1",
                      "--exec-start", "nsenter --net=/run/netns/%s-{node} {lm}" % NET, *self.options)
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        if self.keep and (self.top / "state").exists():
            shutil.copytree(self.top / "state", self.keep, dirs_exist_ok=True, ignore=no_data)
        try:
            self.call("stop")
        finally:
            shutil.rmtree(self.top, ignore_errors=True)

    def status(self):
        return json.loads(self.call("status", "--json"))

    def events(self):
        return [json.loads(line) for line in self.call("events", "--json").splitlines()]

    def used(self):
        """Bytes that each node's partitions take; cm knows them a second late."""
        time.sleep(2.5)
        return [node["memory_used"] for node in self.status()["nodes"]]

    def counts(self):
        """Partitions of each node."""
        return [node["partitions"] for node in self.status()["nodes"]]


def no_data(where, names):
    return [n for n in names
            if not n.endswith((".log", ".jsonl", ".json")) and not os.path.isdir(os.path.join(where, n))]

"""The file systems that are compared: how each is started, where it is mounted, how it is ended.

A target holds one or two mounts of the same files. Everything of it lives below one directory that is
removed at the end; storage is always memory."""

import os
import pathlib
import shutil
import subprocess
import time


class Missing(Exception):
    """The target's program is not on this machine."""


def call(*words, timeout=120):
    done = subprocess.run([str(w) for w in words], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, errors="replace", timeout=timeout)
    if done.returncode:
        raise RuntimeError("%s: exit %d: %s" % (words[0], done.returncode, done.stdout.strip()[-500:]))
    return done.stdout


def needed(program, given=None):
    path = given or shutil.which(program)
    if not path or not os.access(path, os.X_OK):
        raise Missing(program)
    return path


def answers(path):
    try:
        return os.path.ismount(path) and os.statvfs(path).f_blocks > 0
    except OSError:
        return False


def wait_mounted(path, seconds=20):
    end = time.monotonic() + seconds
    while not answers(path):
        if time.monotonic() > end:
            raise RuntimeError("%s: not mounted after %d s" % (path, seconds))
        time.sleep(0.02)


class Target:
    """start() mounts, stop() leaves nothing behind, also after half a start."""

    name = ""

    def __init__(self, args, base):
        self.args = args
        self.base = pathlib.Path(base) / self.name
        self.mounts = []
        self.clients = []  # end when they are unmounted
        self.servers = []

    def start(self):
        self.base.mkdir(parents=True)
        self.mount_all()

    def mount_all(self):
        raise NotImplementedError

    def place(self, name):
        path = self.base / name
        path.mkdir()
        return path

    def run(self, *words):
        """A process of the target's own that stays in the foreground."""
        with open(self.base / "log", "a", encoding="utf-8") as log:
            return subprocess.Popen([str(w) for w in words], stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                    start_new_session=True)

    def serve(self, path, *words):
        self.clients.append(self.run(*words))
        self.mounts.append(path)
        wait_mounted(path)

    def stop(self):
        for path in self.mounts:
            subprocess.run(["umount", "-l", path], stderr=subprocess.DEVNULL, check=False)
        for process in self.clients:
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                self.servers.append(process)
        for process in self.servers:
            process.terminate()
            process.wait(10)
        shutil.rmtree(self.base, ignore_errors=True)


class MemEFS(Target):
    """A deployment of several nodes on this machine, with two mounts by the first."""

    name = "memefs"
    cache = "strict"

    def cm(self, verb, *more):
        return call(self.args.bin / "cm", verb, *self.which(), *more)

    def which(self):
        return "--name", "bench-" + self.cache, "--state-dir", self.base / "state"

    def mount_all(self):
        first, second = self.place("a"), self.place("b")
        self.mounts = [first, second]
        self.cm("start", "--nodes", self.args.nodes, "--memory", self.args.memory, "--mount", first,
                "--mount-options", "cache=" + self.cache)
        call(self.args.bin / "memefs", "mount", *self.which(), "-o", "cache=" + self.cache, second)

    def stop(self):
        if self.mounts:
            self.cm("stop")
        shutil.rmtree(self.base, ignore_errors=True)


class Relaxed(MemEFS):
    name = "memefs-relaxed"
    cache = "relaxed"


class Tmpfs(Target):
    name = "tmpfs"

    def mount_all(self):
        path = self.place("a")
        call("mount", "-t", "tmpfs", "-o", "size=8g", "bench", path)
        self.mounts.append(path)


class Null(Target):
    name = "null-fuse"

    def mount_all(self):
        path = self.place("a")
        self.serve(path, needed("null_fuse", self.args.tests / "null_fuse"), path)


class Passthrough(Target):
    name = "passthrough"

    def mount_all(self):
        program = needed("passthrough_ll", self.args.passthrough)
        source, path = self.place("source"), self.place("a")
        call("mount", "-t", "tmpfs", "-o", "size=8g", "bench", source)
        self.serve(path, program, "-f", "-o", "source=%s,allow_other,clone_fd" % source, path)
        self.mounts.append(source)


class JuiceFS(Target):
    name = "juicefs-redis"
    bucket = None

    def mount_all(self):
        program, redis = needed("juicefs", self.args.juicefs), needed("redis-server")
        socket = self.base / "redis.sock"
        self.servers.append(self.run(redis, "--port", 0, "--unixsocket", socket, "--save", "", "--appendonly", "no",
                                     "--dir", self.base))
        end = time.monotonic() + 10
        while not socket.exists() and time.monotonic() < end:
            time.sleep(0.02)
        meta = "unix://%s?db=1" % socket
        call(program, "format", "--storage", *self.storage(socket), "--trash-days", 0, meta, "bench")
        for name in ("a", "b"):
            path = self.place(name)
            self.serve(path, program, "mount", "--no-usage-report", "--cache-dir", "memory", "--cache-size", 1024,
                       "--log", self.base / ("log-" + name), meta, path)

    def storage(self, socket):
        return "redis", "--bucket", "unix://%s?db=2" % socket


class JuiceFSDir(JuiceFS):
    name = "juicefs-tmpfs"

    def storage(self, socket):
        bucket = self.place("bucket")
        call("mount", "-t", "tmpfs", "-o", "size=8g", "bench", bucket)
        self.bucket = bucket
        return "file", "--bucket", "%s/" % bucket

    def stop(self):
        if self.bucket:
            self.mounts.append(self.bucket)
        super().stop()


class GlusterFS(Target):
    """Files spread over bricks in tmpfs. The volume files are written here, with what a new volume has that matters for
    speed: glusterd would keep its state in the system's directories."""

    name = "glusterfs"
    first_port = 24900
    cached = ("write-behind", "open-behind", "quick-read", "md-cache")

    def volume(self, name, kind, below=(), **options):
        lines = ["volume " + name, "  type " + kind]
        lines += ["  option %s %s" % (key.replace("__", ".").replace("_", "-"), value) for key, value in options.items()]
        lines += ["  subvolumes " + " ".join(below)] if below else []
        return "\n".join([*lines, "end-volume", ""])

    def brick(self, n):
        directory = self.place("brick-%d" % n)
        call("mount", "-t", "tmpfs", "-o", "size=4g", "bench", directory)
        self.mounts.append(directory)
        port = {"transport__socket__listen_port": self.first_port + n, "transport__socket__bind_address": "127.0.0.1"}
        return "".join([self.volume("posix", "storage/posix", directory=directory),
                        self.volume("acl", "features/access-control", ["posix"]),
                        self.volume("locks", "features/locks", ["acl"]),
                        self.volume("brick", "performance/io-threads", ["locks"]),
                        self.volume("server", "protocol/server", ["brick"], transport_type="tcp",
                                    auth__addr__brick__allow="127.0.0.1", **port)])

    def client(self, bricks):
        parts = [self.volume("client-%d" % n, "protocol/client", transport_type="tcp", remote_host="127.0.0.1",
                             remote_port=self.first_port + n, remote_subvolume="brick") for n in range(bricks)]
        parts.append(self.volume("distribute", "cluster/distribute", ["client-%d" % n for n in range(bricks)]))
        for above, below in zip(self.cached, ("distribute", *self.cached)):
            parts.append(self.volume(above, "performance/" + above, [below]))
        return "".join(parts)

    def mount_all(self):
        daemon, client = needed("glusterfsd"), needed("glusterfs")
        for n in range(self.args.nodes):
            (self.base / ("brick-%d.vol" % n)).write_text(self.brick(n), encoding="ascii")
            self.servers.append(self.run(daemon, "-N", "-f", self.base / ("brick-%d.vol" % n),
                                         "-l", self.base / ("brick-%d.log" % n)))
        (self.base / "client.vol").write_text(self.client(self.args.nodes), encoding="ascii")
        for name in ("a", "b"):
            path = self.place(name)
            self.serve(path, client, "-N", "-f", self.base / "client.vol", "-l", self.base / ("client-%s.log" % name), path)


ALL = {t.name: t for t in (MemEFS, Relaxed, Tmpfs, Null, Passthrough, JuiceFS, JuiceFSDir, GlusterFS)}

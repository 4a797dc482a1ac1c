"""Two mounts and two Python clients do random operations in turn; a local directory is the model.

Each operation is done by one of them and in the model: results and errnos must be the same. Others then look at what it
has left. $MODEL_ROUNDS operations; $MODEL_SEED repeats a run. In a directory whose files go when they have been read so
often, the model is how often that was.
"""

import os
import random
import shutil
import time

import pytest

import memefs

NAMES = ["a", "b", "c", "ä" * 40]


class Local:
    """A directory of this machine: the model, or a mount."""

    def __init__(self, top):
        self.top = str(top)

    def at(self, path):
        return self.top + path

    def put(self, path, data):
        with open(self.at(path) + ".new", "wb") as file:
            file.write(data)
        os.replace(self.at(path) + ".new", self.at(path))

    def write(self, path, mode, offset, data):
        with open(self.at(path), mode) as file:
            if offset is not None:
                file.seek(offset)
            file.write(data)

    def get(self, path):
        with open(self.at(path), "rb") as file:
            return file.read()

    def part(self, path, offset, length):
        with open(self.at(path), "rb") as file:
            file.seek(offset)
            return file.read(length)

    def listing(self, path):
        return sorted((e.name, e.is_dir(), e.is_dir() or e.stat().st_size) for e in os.scandir(self.at(path)))

    def names(self, path):
        return os.listdir(self.at(path))

    def size(self, path):
        return os.stat(self.at(path)).st_size

    def look(self, path):
        st = os.stat(self.at(path))
        return st.st_mode, st.st_nlink, st.st_mtime_ns if st.st_mtime_ns < 10**15 else 0

    def utime(self, path, ns):
        os.utime(self.at(path), ns=(ns, ns))

    def mkdir(self, path):
        os.mkdir(self.at(path))

    def rmdir(self, path):
        os.rmdir(self.at(path))

    def remove(self, path):
        os.remove(self.at(path))

    def rename(self, path, other):
        os.rename(self.at(path), self.at(other))

    def link(self, path, other):
        os.link(self.at(path), self.at(other))

    def truncate(self, path, size):
        os.truncate(self.at(path), size)

    def chmod(self, path, mode):
        os.chmod(self.at(path), mode)


class ByClient(Local):
    """The same by memefs.Client."""

    def __init__(self, client, top):
        super().__init__(top)
        self.client = client

    def put(self, path, data):
        self.client.put(self.at(path), data)

    def write(self, path, mode, offset, data):
        with self.client.open(self.at(path), mode) as file:
            if offset is not None:
                file.seek(offset)
            file.write(data)

    def get(self, path):
        return self.client.get(self.at(path))

    def part(self, path, offset, length):
        with self.client.open_raw(self.at(path)) as file:
            return file.pread(length, offset)

    def listing(self, path):
        entries = self.client.scandir(self.at(path))
        return sorted((e.name, e.is_dir(), e.is_dir() or e.stat().st_size) for e in entries)

    def names(self, path):
        return self.client.listdir(self.at(path))

    def size(self, path):
        return self.client.stat(self.at(path)).st_size

    def look(self, path):
        st = self.client.stat(self.at(path))
        return st.st_mode, st.st_nlink, st.st_mtime_ns if st.st_mtime_ns < 10**15 else 0

    def utime(self, path, ns):
        self.client.utime(self.at(path), ns=(ns, ns))

    def mkdir(self, path):
        self.client.mkdir(self.at(path))

    def rmdir(self, path):
        self.client.rmdir(self.at(path))

    def remove(self, path):
        self.client.remove(self.at(path))

    def rename(self, path, other):
        self.client.rename(self.at(path), self.at(other))

    def link(self, path, other):
        self.client.link(self.at(path), self.at(other))

    def truncate(self, path, size):
        self.client.truncate(self.at(path), size)

    def chmod(self, path, mode):
        self.client.chmod(self.at(path), mode)


def result(act, *arguments):
    """What it returns, or its errno."""
    try:
        return act(*arguments)
    except OSError as error:
        return f"errno {error.errno}"


class Game:
    def __init__(self, seed, model, actors):
        self.random, self.model, self.actors, self.done = random.Random(seed), model, actors, []

    def path(self):
        return "/" + "/".join(self.random.choices(NAMES, k=self.random.choice((1, 1, 1, 2, 2, 3))))

    def data(self):
        return self.random.randbytes(self.random.choice((0, 1, 100, 5000, 70_000, 1_100_000)))

    def offset(self):
        return self.random.choice((0, 1, 4095, 4096, 65_536, 1_044_480, 1_500_000))

    def change(self):
        kind = self.random.choice(
            ("put", "put", "write", "write", "mkdir", "mkdir", "rmdir", "remove", "rename", "link", "truncate")
            + ("chmod", "utime")
        )
        if kind == "put":
            path = self.path()
            # In the model a directory in the way is found by rename, which says so otherwise than put.
            return (kind, path, self.data()) if not os.path.isdir(self.model.at(path)) else None
        if kind == "write":
            mode = self.random.choice(("wb", "ab", "r+b", "xb"))
            return kind, self.path(), mode, self.offset() if mode == "r+b" else None, self.data()
        if kind in ("rename", "link"):
            path, target = self.path(), self.path()
            # A kernel says ENOTEMPTY of a target above the source, whatever it would say of it otherwise.
            return (kind, path, target) if not path.startswith(target + "/") else None
        if kind == "truncate":
            return kind, self.path(), self.offset()
        if kind == "chmod":
            return kind, self.path(), self.random.choice((0o600, 0o644, 0o755))
        if kind == "utime":
            return kind, self.path(), self.random.randrange(10**12)
        return kind, self.path()

    def same(self, actor, kind, *arguments):
        want = result(getattr(self.model, kind), *arguments)
        got = result(getattr(actor, kind), *arguments)
        self.done.append(f"{self.actors.index(actor)} {kind} {str(arguments)[:100]}")
        assert got == want, f"{str(want)[:200]} expected, got {str(got)[:200]}; last: " + "\n".join(self.done[-12:])

    def turn(self):
        change = self.change()
        if change is not None:
            self.same(self.random.choice(self.actors), *change)
        for actor in self.random.sample(self.actors, 2):
            path = self.path()
            self.same(actor, "get", path)
            self.same(actor, "part", path, self.offset(), 5000)
            self.same(actor, "listing", self.random.choice(("", path)))
            if not os.path.isdir(self.model.at(path)):  # links of directories count otherwise elsewhere
                self.same(actor, "look", path)
        if self.random.random() < 0.02:  # not everything full of what is deep below
            victim = self.path()
            if os.path.isdir(self.model.at(victim)):
                shutil.rmtree(self.model.at(victim))
                shutil.rmtree(self.actors[0].at(victim))


def test_mixed_clients(client, root, mounted, other, tmp_path):
    rounds = int(os.environ.get("MODEL_ROUNDS", "400"))
    seed = int(os.environ.get("MODEL_SEED") or random.randrange(10**6))
    print(f"MODEL_SEED={seed} MODEL_ROUNDS={rounds}")
    tmp_path.joinpath("model").mkdir()
    os.umask(0o022)
    with memefs.Client() as one, memefs.Client() as two:
        actors = [Local(mounted), Local(other), ByClient(one, root), ByClient(two, root)]
        game = Game(seed, Local(tmp_path / "model"), actors)
        for _ in range(rounds):
            game.turn()
        for actor in actors:
            for folder, _, files in os.walk(tmp_path / "model"):
                below = folder[len(str(tmp_path / "model")) :]
                game.same(actor, "listing", below)
                for name in files:
                    game.same(actor, "get", f"{below}/{name}")
        assert len({kind.split()[1] for kind in game.done}) >= 14


READINGS = 3


class Counted:
    """Files of a directory that go after READINGS readings of their content as it is, by whomever."""

    def __init__(self, seed, actors):
        self.random, self.actors = random.Random(seed), actors
        self.there, self.going, self.made = {}, set(), 0  # path → [content, readings]; that have been read

    def turn(self):
        kind = self.random.choice(("put", "read", "read", "read", "read", "write", "rename", "look"))
        actor = self.random.choice(self.actors)
        if kind == "put" or not self.there:
            path = self.random.choice([*self.there, self.new(), self.new()])
            self.there[path] = [self.data(), 0]
            actor.put(path, self.there[path][0])
            return
        path = self.random.choice(list(self.there))
        if kind == "read":
            self.read(actor, path)
        elif kind == "write":
            self.there[path] = [self.data() + self.there[path][0], 0]
            actor.write(path, "r+b", 0, self.there[path][0])
        elif kind == "rename" and self.there[path][1] == 0:
            # A name that its last reader does not know is found by housekeeping only, half a minute later.
            target = self.new()
            actor.rename(path, target)
            self.there[target] = self.there.pop(path)
        else:
            actor.look(path)
            self.compare(actor)

    def new(self):
        self.made += 1
        return f"/counted/f{self.made}"

    def data(self):
        return self.random.randbytes(self.random.choice((1, 100, 5000, 70_000, 1_100_000)))

    def read(self, actor, path):
        content, readings = self.there[path]
        if self.random.randrange(2):
            assert actor.get(path) == content, path
        else:
            assert actor.part(path, 50, 5000) == content[50:5050], path
        self.there[path][1] += 1
        if readings + 1 == READINGS:
            del self.there[path]
            self.going.add(path)

    def compare(self, actor):
        """Are those that have been read gone? All others must be there, as they were written."""
        found = {"/counted/" + name for name in actor.names("/counted")}
        gone = found.isdisjoint(self.going)
        assert found - self.going == set(self.there)
        for path, (content, _) in self.there.items():
            assert actor.size(path) == len(content), path
        return gone

    def await_gone(self):
        end = time.monotonic() + 90
        while not all([self.compare(actor) for actor in self.actors]):
            assert time.monotonic() < end, f"still there: {self.going}"
            time.sleep(0.2)


def test_files_that_go_when_they_are_read(client, root, mounted, other):
    rounds = int(os.environ.get("MODEL_ROUNDS", "400"))
    seed = int(os.environ.get("MODEL_SEED") or random.randrange(10**6))
    print(f"MODEL_SEED={seed} MODEL_ROUNDS={rounds}")
    os.mkdir(f"{mounted}/counted")
    os.setxattr(f"{mounted}/counted", "user.memefs.delete-after-reads", b"%d" % READINGS)
    with memefs.Client() as one, memefs.Client() as two:
        game = Counted(seed, [Local(mounted), Local(other), ByClient(one, root), ByClient(two, root)])
        for _ in range(rounds):
            game.turn()
        game.await_gone()
        assert len(game.going) > rounds / 20
        time.sleep(1)  # nothing else goes
        game.await_gone()
        for path in list(game.there):
            while path in game.there:
                game.read(game.random.choice(game.actors), path)
        game.await_gone()
        assert not game.there


if __name__ == "__main__":
    raise SystemExit(pytest.main([__file__, "-q", "-s"]))

"""The fsspec file system: fsspec's own suite, and what it promises beyond."""

import io
import os
import pickle
import threading

import fsspec
import pytest
from fsspec.tests.abstract import (
    AbstractCopyTests,
    AbstractFixtures,
    AbstractGetTests,
    AbstractOpenTests,
    AbstractPipeTests,
    AbstractPutTests,
)

import memefs
from memefs.fs import MemEFSFileSystem


class MemEFSFixtures(AbstractFixtures):
    @pytest.fixture(scope="class")
    def fs(self):
        return fsspec.filesystem("memefs")

    @pytest.fixture
    def fs_path(self, root):
        return root


class TestCopy(AbstractCopyTests, MemEFSFixtures):
    pass


class TestGet(AbstractGetTests, MemEFSFixtures):
    pass


class TestOpen(AbstractOpenTests, MemEFSFixtures):
    pass


class TestPipe(AbstractPipeTests, MemEFSFixtures):
    pass


class TestPut(AbstractPutTests, MemEFSFixtures):
    pass


@pytest.fixture
def fs():
    return fsspec.filesystem("memefs")


def test_it_is_registered(client):
    assert fsspec.get_filesystem_class("memefs") is MemEFSFileSystem
    fs, path = fsspec.core.url_to_fs(f"memefs://{client.name}/a//b/./c")
    assert isinstance(fs, MemEFSFileSystem) and fs.name == client.name and path == "/a/b/c"
    assert fsspec.core.url_to_fs("memefs:///a")[0].name is None
    assert fs.unstrip_protocol("/a") == f"memefs://{client.name}/a"
    assert fs._parent("/a/b") == "/a" and fs._parent("/a") == "/" == fs._parent("/")
    assert fs.fsid == f"memefs_{client.name}"
    assert pickle.loads(pickle.dumps(fs)) == fs
    assert fsspec.AbstractFileSystem.from_json(fs.to_json()) == fs


def test_urls(client, root, mounted):
    url = f"memefs://{client.name}{root}/f.txt"
    with fsspec.open(url, "w", encoding="utf-8") as file:
        file.write("ä\n")
    assert mounted.joinpath("f.txt").read_bytes() == "ä\n".encode()
    with fsspec.open(url) as file:
        assert file.read() == "ä\n".encode() and file.size == 3 and file.full_name == url
    with fsspec.open(url + ".gz", "wt", compression="infer") as file:
        file.write("compressed")
    with fsspec.open(url + ".gz", "rt", compression="infer") as file:
        assert file.read() == "compressed"
    assert mounted.joinpath("f.txt.gz").read_bytes()[:2] == b"\x1f\x8b"


def test_modes(fs, root):
    with fs.open(f"{root}/new/dir/f", "wb") as file:  # makes the directories
        file.write(b"0123456789")
    with fs.open(f"{root}/new/dir/f", "ab") as file:
        file.write(b"ab")
    with fs.open(f"{root}/new/dir/f", "r+b") as file:
        file.seek(2)
        file.write(b"--")
    assert fs.cat_file(f"{root}/new/dir/f") == b"01--456789ab"
    with pytest.raises(FileNotFoundError):
        MemEFSFileSystem(auto_mkdir=False).open(f"{root}/other/f", "wb")
    with pytest.raises(FileNotFoundError):
        fs.open(f"{root}/none", "rb")
    assert fs.read_block(f"{root}/new/dir/f", 2, 3) == b"--4"
    assert fs.head(f"{root}/new/dir/f", 3) == b"01-" and fs.tail(f"{root}/new/dir/f", 3) == b"9ab"
    fs.write_text(f"{root}/t", "a\nb\n")
    assert fs.read_text(f"{root}/t") == "a\nb\n"


def test_what_is_there(fs, root, mounted):
    fs.pipe({f"{root}/a": b"1", f"{root}/d/b": b"22", f"{root}/d/e/c": b"333"})
    os.symlink("d/b", mounted / "soft")
    os.symlink("nowhere", mounted / "broken")
    info = fs.info(f"{root}/d/b")
    assert info["size"] == 2 and info["type"] == "file" and info["ino"] == os.stat(mounted / "d/b").st_ino
    assert fs.info(f"{root}/soft")["size"] == 2 and fs.info(f"{root}/soft")["destination"] == "d/b"
    assert fs.islink(f"{root}/broken") and fs.lexists(f"{root}/broken") and not fs.exists(f"{root}/broken")
    assert fs.ls(root, detail=False) == [f"{root}/{name}" for name in ("a", "broken", "d", "soft")]
    assert [one["type"] for one in fs.ls(root)] == ["file", "other", "directory", "file"]
    assert fs.ls(f"{root}/a", detail=False) == [f"{root}/a"]
    with pytest.raises(FileNotFoundError):
        fs.ls(f"{root}/none")
    assert fs.find(f"{root}/d") == [f"{root}/d/b", f"{root}/d/e/c"]
    assert fs.glob(f"{root}/**/c") == [f"{root}/d/e/c"] and fs.glob(f"{root}/d/[a-c]") == [f"{root}/d/b"]
    assert fs.du(f"{root}/d") == 5 and fs.isdir(f"{root}/d") and fs.isfile(f"{root}/a")
    assert fs.modified(f"{root}/a").timestamp() == pytest.approx(os.stat(mounted / "a").st_mtime)
    before = fs.ukey(f"{root}/a")
    fs.pipe_file(f"{root}/a", b"2")
    assert fs.ukey(f"{root}/a") != before
    with pytest.raises(FileExistsError):
        fs.mkdir(f"{root}/d")
    fs.mkdir(f"{root}/x/y")
    assert mounted.joinpath("x/y").is_dir()
    with pytest.raises(FileExistsError):
        fs.makedirs(f"{root}/x/y")
    fs.rmdir(f"{root}/x/y")
    os.utime(mounted / "a", (1, 1))
    fs.touch(f"{root}/a", truncate=False)
    assert fs.cat(f"{root}/a") == b"2" and os.stat(mounted / "a").st_mtime > 1
    fs.touch(f"{root}/a")
    assert fs.cat(f"{root}/a") == b""


def test_ranges(fs, root, monkeypatch):
    data = os.urandom(3_000_000)
    fs.pipe({f"{root}/large": data, f"{root}/small": b"0123456789"})
    assert fs.cat_file(f"{root}/large", 1_000_000, 1_000_100) == data[1_000_000:1_000_100]
    assert fs.cat_file(f"{root}/large", -100) == data[-100:] and fs.cat_file(f"{root}/small", 2, -2) == b"234567"
    assert fs.cat_file(f"{root}/small", 8, 20) == b"89" and fs.cat_file(f"{root}/small", 20) == b""
    paths = [f"{root}/{name}" for name in ("large", "small", "small", "none", "large", "small", "none")]
    starts, ends = [0, 1, -3, None, 5, None, 1], [10, 3, None, None, 50, None, 2]
    got = fs.cat_ranges(paths, starts, ends)
    assert got[:3] == [data[:10], b"12", b"789"] and got[4:6] == [data[5:50], b"0123456789"]
    assert isinstance(got[3], FileNotFoundError) and isinstance(got[6], FileNotFoundError)
    with pytest.raises(FileNotFoundError):
        fs.cat_ranges(paths, starts, ends, on_error="raise")
    assert fs.cat_ranges(paths[:2], 0, 3) == [data[:3], b"012"]
    assert fs.cat([f"{root}/small"]) == {f"{root}/small": b"0123456789"}
    assert fs.cat(root, recursive=True) == {f"{root}/large": data, f"{root}/small": b"0123456789"}
    assert fs.cat([f"{root}/small", f"{root}/none"], on_error="omit") == {f"{root}/small": b"0123456789"}
    with pytest.raises(FileNotFoundError):
        fs.cat([f"{root}/small", f"{root}/none"])
    assert fs.cat([f"{root}/sm*", f"{root}/large"]) == {f"{root}/large": data, f"{root}/small": b"0123456789"}
    many = {f"{root}/many/{i:03}": bytes([i % 256]) * i for i in range(300)}
    fs.pipe(many, mode="create")
    with pytest.raises(FileExistsError):
        fs.pipe(many, mode="create")
    assert fs.cat(list(many)) == many == fs.cat([f"memefs://{fs.name or ''}{path}" for path in many])
    heads = fs.cat_ranges([*many, f"{root}/many/none"], [3] * 301, [70] * 301)
    assert heads[:300] == [content[3:70] for content in many.values()]
    assert isinstance(heads[300], FileNotFoundError)
    far = [
        *(f"{root}/many/none-{i}" for i in range(2000)),
        *many,
        *(f"{root}/many/none-{i}" for i in range(2000, 4000)),
    ]
    at_once, items_of = [], memefs.objects.items_of
    monkeypatch.setattr(memefs.objects, "items_of", lambda names: at_once.append(len(names)) or items_of(names))
    heads = fs.cat_ranges(far, [3] * 4300, [65_536] * 4300)
    assert sum(at_once) == 4300 and max(at_once) <= 1024  # for more, room for all would be taken at once
    assert heads[2000:2300] == [content[3:] for content in many.values()]
    assert all(isinstance(head, FileNotFoundError) for head in heads[:2000] + heads[2300:])
    assert fs.cat_ranges([f"{root}/large"] * 3, [0, 5, 70_000], [9, 65_536, 70_010]) == [
        *(data[:9], data[5:65_536]),
        data[70_000:70_010],
    ]
    assert fs.cat(f"{root}/sm*") == {f"{root}/small": b"0123456789"}


def test_moving_is_renaming(fs, root, mounted):
    fs.pipe({f"{root}/a": b"1", f"{root}/d/b": b"22"})
    inode = os.stat(mounted / "a").st_ino
    fs.mv(f"{root}/a", f"{root}/new/a2")
    assert os.stat(mounted / "new/a2").st_ino == inode
    fs.mv(f"{root}/d", f"{root}/new", recursive=True)
    assert mounted.joinpath("new/d/b").read_bytes() == b"22" and not fs.exists(f"{root}/d")
    with pytest.raises(FileNotFoundError):
        fs.mv(f"{root}/none", f"{root}/x")
    fs.mv(f"{root}/new/*2", f"{root}/")
    assert mounted.joinpath("a2").read_bytes() == b"1"
    fs.cp(f"{root}/new", f"{root}/copy", recursive=True)
    assert mounted.joinpath("copy/d/b").read_bytes() == b"22"
    with pytest.raises(IsADirectoryError):
        fs.rm(f"{root}/copy")
    fs.rm([f"{root}/copy", f"{root}/a2"], recursive=True)
    assert sorted(os.listdir(mounted)) == ["new"]
    fs.rm(f"{root}/n*", recursive=True)
    assert os.listdir(mounted) == []


def test_transactions(fs, root, mounted):
    with fs.transaction:
        with fs.open(f"{root}/a", "wb") as file:
            file.write(b"1")
        fs.pipe_file(f"{root}/b", b"2")
        assert not mounted.joinpath("a").exists() and not mounted.joinpath("b").exists()
    assert mounted.joinpath("a").read_bytes() == b"1" and mounted.joinpath("b").read_bytes() == b"2"
    with pytest.raises(ZeroDivisionError), fs.transaction:
        fs.pipe_file(f"{root}/c", b"3")
        raise ZeroDivisionError
    assert sorted(os.listdir(mounted)) == ["a", "b"]


def test_callbacks_and_file_objects(fs, root, tmp_path):
    data = os.urandom(20_000_000)
    tmp_path.joinpath("f").write_bytes(data)
    callback = fsspec.Callback()
    fs.put_file(tmp_path / "f", f"{root}/f", callback=callback)
    assert callback.size == callback.value == len(data)
    callback, room = fsspec.Callback(), io.BytesIO()
    fs.get_file(f"{root}/f", room, callback=callback)
    assert room.getvalue() == data and callback.size == callback.value == len(data)
    with pytest.raises(FileExistsError):
        fs.put_file(tmp_path / "f", f"{root}/f", mode="create")
    local = fsspec.open_local(f"simplecache::memefs://{root}/f", simplecache={"cache_storage": str(tmp_path / "cache")})
    assert open(local, "rb").read() == data


def test_all_threads_share_a_connection(fs, root):
    clients = set()

    def work():
        clients.add(fsspec.filesystem("memefs").client)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert clients == {fs.client} == {memefs.Client.shared()}


def test_mapper(fs, root):
    mapper = fs.get_mapper(f"{root}/map", create=True)
    mapper["a/b"] = b"1"
    mapper.setitems({"c": b"2", "d/e": b"3"})
    assert sorted(mapper) == ["a/b", "c", "d/e"] and mapper.getitems(["c", "d/e"]) == {"c": b"2", "d/e": b"3"}
    del mapper["c"]
    assert "c" not in mapper
    with pytest.raises(KeyError):
        mapper["c"]

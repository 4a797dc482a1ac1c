"""memefs.Client: names, attributes and objects, as another client, a mount, sees them."""

import errno
import os
import pickle
import stat
import threading
import time

import pytest

import memefs


def test_names_are_those_of_a_mount(client, root, mounted, other):
    client.mkdir(f"{root}/d", 0o750)
    assert stat.S_IMODE(mounted.joinpath("d").stat().st_mode) == 0o750
    client.put(f"{root}/d/f", b"content")
    assert mounted.joinpath("d/f").read_bytes() == b"content"
    assert client.listdir(f"{root}/d") == ["f"] == os.listdir(other / "d")
    client.link(f"{root}/d/f", f"{root}/d/second")
    client.symlink("f", f"{root}/d/soft")
    assert mounted.joinpath("d/soft").read_bytes() == b"content"
    assert client.readlink(f"{root}/d/soft") == "f"
    assert client.stat(f"{root}/d/soft").st_nlink == 2
    assert stat.S_ISLNK(client.lstat(f"{root}/d/soft").st_mode)
    client.rename(f"{root}/d/second", f"{root}/third")
    assert sorted(os.listdir(mounted)) == ["d", "third"]
    mounted.joinpath("d/f").write_bytes(b"by the mount")
    assert client.get(f"{root}/third") == b"by the mount"
    client.remove(f"{root}/d/soft")
    client.unlink(f"{root}/d/f")
    client.rmdir(f"{root}/d")
    assert os.listdir(other) == ["third"]


def test_attributes(client, root, mounted):
    client.put(f"{root}/f", b"12345")
    client.chmod(f"{root}/f", 0o604)
    client.chown(f"{root}/f", 1234, -1)
    client.utime(f"{root}/f", ns=(1_000_000_001, 2_000_000_002))
    ours, theirs = client.stat(f"{root}/f"), os.stat(mounted / "f")
    for field in (
        "st_mode",
        "st_ino",
        "st_nlink",
        "st_uid",
        "st_gid",
        "st_size",
        "st_atime_ns",
        "st_mtime_ns",
        "st_ctime_ns",
    ):
        assert getattr(ours, field) == getattr(theirs, field), field
    assert ours.st_mtime == theirs.st_mtime and ours.st_mtime_ns == 2_000_000_002 and ours.st_uid == 1234
    client.utime(f"{root}/f", (5.5, 6.25))
    assert os.stat(mounted / "f").st_mtime == 6.25
    before = time.time() - 1
    client.utime(f"{root}/f")
    assert client.stat(f"{root}/f").st_mtime >= before
    client.truncate(f"{root}/f", 3)
    assert client.get(f"{root}/f") == b"123"
    assert client.access(f"{root}/f", os.R_OK) and not client.access(f"{root}/g", os.F_OK)
    assert client.exists(f"{root}/f") and client.isfile(f"{root}/f") and not client.isdir(f"{root}/f")
    assert client.isdir(root) and not client.exists(f"{root}/g") and not client.exists(f"{root}/f/g")
    client.symlink("nowhere", f"{root}/l")
    assert client.lexists(f"{root}/l") and client.islink(f"{root}/l") and not client.exists(f"{root}/l")
    room = client.statvfs()
    assert room.f_blocks * room.f_frsize > 0 and room.f_namemax == 255


def test_xattrs(client, root, mounted):
    client.put(f"{root}/f", b"")
    client.setxattr(f"{root}/f", "user.one", b"1")
    client.setxattr(f"{root}/f", "user.two", bytearray(b"zwei"))
    assert sorted(os.listxattr(mounted / "f")) == ["user.one", "user.two"] == sorted(client.listxattr(f"{root}/f"))
    assert os.getxattr(mounted / "f", "user.two") == b"zwei" == client.getxattr(f"{root}/f", "user.two")
    with pytest.raises(FileExistsError):
        client.setxattr(f"{root}/f", "user.one", b"2", os.XATTR_CREATE)
    client.removexattr(f"{root}/f", "user.one")
    with pytest.raises(OSError) as caught:
        client.getxattr(f"{root}/f", "user.one")
    assert caught.value.errno == errno.ENODATA


@pytest.mark.parametrize(
    ("call", "kind", "number"),
    [
        (lambda c, p: c.get(f"{p}/none"), FileNotFoundError, errno.ENOENT),
        (lambda c, p: c.open(f"{p}/none"), FileNotFoundError, errno.ENOENT),
        (lambda c, p: c.mkdir(p), FileExistsError, errno.EEXIST),
        (lambda c, p: c.put(p, b""), IsADirectoryError, errno.EISDIR),
        (lambda c, p: c.rmdir(f"{p}/f"), NotADirectoryError, errno.ENOTDIR),
        (lambda c, p: c.listdir(f"{p}/f"), NotADirectoryError, errno.ENOTDIR),
        (lambda c, p: c.remove(f"{p}/d"), IsADirectoryError, errno.EISDIR),
        (lambda c, p: c.stat(f"{p}/{'x' * 256}"), OSError, errno.ENAMETOOLONG),
        (lambda c, p: c.put(f"{p}/f", b"", exclusive=True), FileExistsError, errno.EEXIST),
    ],
)
def test_errors_are_those_of_os(client, root, call, kind, number):
    client.put(f"{root}/f", b"x")
    client.mkdir(f"{root}/d")
    client.put(f"{root}/d/f", b"x")
    with pytest.raises(kind) as caught:
        call(client, root)
    assert caught.value.errno == number and caught.value.filename.startswith(root)


def test_errors_of_two_names(client, root):
    with pytest.raises(FileNotFoundError) as caught:
        client.rename(f"{root}/from", f"{root}/to")
    assert caught.value.filename == f"{root}/from" and caught.value.filename2 == f"{root}/to"
    with pytest.raises(ValueError, match="null byte"):
        client.stat("a\0b")


def test_rights_are_checked(client, root):
    client.put(f"{root}/f", b"secret")
    client.chmod(f"{root}/f", 0o600)
    with memefs.Client(uid=65534, gid=65534) as nobody:
        with pytest.raises(PermissionError):
            nobody.open(f"{root}/f")
        assert not nobody.access(f"{root}/f", os.R_OK)
        nobody.put(f"{root}/mine", b"")
        assert client.stat(f"{root}/mine").st_uid == 65534
    with pytest.raises(TypeError, match="both"):
        memefs.Client(uid=0)
    with memefs.Client(umask=0o077) as private:
        private.put(f"{root}/private", b"")
        assert stat.S_IMODE(client.stat(f"{root}/private").st_mode) == 0o600


def test_no_deployment_says_why(tmp_path):
    with pytest.raises(OSError, match="."):
        memefs.Client("nobody-has-this", state_dir=tmp_path / "none", connect_timeout=1)
    with pytest.raises(TypeError, match="read_window"):
        memefs.Client(windows=3)


def test_scandir_and_walk(client, root, mounted):
    names = ["a", "ä", "b" * 255, "with space", os.fsdecode(b"\xff\xfe")]
    for name in names:
        client.put(f"{root}/{name}", name.encode(errors="surrogateescape"))
    client.makedirs(f"{root}/d/e/f")
    client.makedirs(f"{root}/d/e/f", exist_ok=True)
    with pytest.raises(FileExistsError):
        client.makedirs(f"{root}/d/e/f")
    client.symlink("d", f"{root}/l")
    client.put(f"{root}/d/e/g", b"1234")
    entries = {entry.name: entry for entry in client.scandir(root)}
    assert set(entries) == set(os.listdir(mounted)) == {*names, "d", "l"}
    for entry in os.scandir(mounted):
        mine = entries[entry.name]
        assert mine.is_dir() == entry.is_dir() and mine.is_file() == entry.is_file()
        assert mine.is_symlink() == entry.is_symlink() and mine.inode() == entry.inode()
        assert mine.stat(follow_symlinks=False).st_size == entry.stat(follow_symlinks=False).st_size
    ours = sorted((path, sorted(folders), sorted(files)) for path, folders, files in client.walk(root))
    theirs = os.walk(mounted)
    top = os.environ["MNT0"]
    assert ours == sorted((path[len(top) :], sorted(folders), sorted(files)) for path, folders, files in theirs)
    client.rmtree(f"{root}/d")
    assert not mounted.joinpath("d").exists()


@pytest.mark.parametrize("size", [0, 1, 65_535, 65_536, 65_537, 1_044_480, 5_000_000])
def test_objects_of_all_sizes(client, root, mounted, size):
    data = os.urandom(size)
    client.put(f"{root}/f", data)
    assert client.get(f"{root}/f") == data == mounted.joinpath("f").read_bytes()
    room = bytearray(size + 10)
    assert client.get_into(f"{root}/f", room) == size and room[:size] == data
    if size > 10:
        part = bytearray(10)
        assert client.get_into(f"{root}/f", part) == size and part == data[:10]
    client.put(f"{root}/f", memoryview(b"new"))
    assert client.get(f"{root}/f") == b"new"


def test_put_replaces_at_once(client, root, mounted):
    """A reader sees one of the objects, whole; who has the old one open goes on to read it."""
    objects = {bytes([i]) * size for i, size in enumerate((10, 70_000, 3_000_000))}
    client.put(f"{root}/f", min(objects))
    seen, stop = set(), threading.Event()

    def read():
        while not stop.is_set():
            seen.add(mounted.joinpath("f").read_bytes())

    with mounted.joinpath("f").open("rb") as old:
        reader = threading.Thread(target=read)
        reader.start()
        for _ in range(10):
            for content in objects:
                client.put(f"{root}/f", content)
        stop.set()
        reader.join()
        assert old.read() == min(objects)
    assert seen <= objects


def test_many_objects(client, root, mounted):
    contents = {f"{root}/{i}": os.urandom(i * 37 % 5000) for i in range(300)}
    contents[f"{root}/large"] = os.urandom(3_000_000)
    assert client.mput(contents) == [None] * len(contents)
    assert client.mget(contents) == list(contents.values())
    assert mounted.joinpath("7").read_bytes() == contents[f"{root}/7"]
    got = client.mget([f"{root}/1", f"{root}/none", f"{root}/2"], errors="return")
    assert got[0] == contents[f"{root}/1"] and got[2] == contents[f"{root}/2"]
    assert isinstance(got[1], FileNotFoundError) and got[1].filename == f"{root}/none"
    with pytest.raises(FileNotFoundError):
        client.mget([f"{root}/none", f"{root}/1"])
    assert client.mget([]) == [] and client.mput({}) == []
    failed = client.mput([(f"{root}/new/1", b"1"), (f"{root}/2", b"2")], errors="return")
    assert isinstance(failed[0], FileNotFoundError) and failed[1] is None
    assert client.mput([(f"{root}/new/1", b"1")], parents=True) == [None]
    with pytest.raises(FileExistsError):
        client.mput([(f"{root}/2", b"")], exclusive=True)
    with pytest.raises(ValueError, match="errors"):
        client.mget([], errors="ignore")


def test_copies(client, root):
    data = os.urandom(2_500_000)
    client.put(f"{root}/a", data)
    assert client.copy_file(f"{root}/a", f"{root}/b") == len(data)
    assert client.get(f"{root}/b") == data


def test_many_threads(client, root):
    failures = []

    def work(number):
        try:
            for i in range(50):
                path, data = f"{root}/{number}-{i}", os.urandom(i * 100)
                client.put(path, data)
                assert client.get(path) == data
                client.remove(path)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []


def test_where_things_are(client, root):
    client.put(f"{root}/f", bytes(5_000_000))
    nodes, pieces = client.nodes(), client.layout(f"{root}/f")
    assert len(nodes) == 2 and sum(node.is_here for node in nodes) == 1
    assert sum(node.partitions for node in nodes) >= 2 and {node.host for node in nodes} == {"127.0.0.1", "127.0.0.2"}
    assert sum(piece.length for piece in pieces) == 5_000_000
    assert [piece.offset for piece in pieces] == sorted(piece.offset for piece in pieces)
    assert {piece.node for piece in pieces} <= {node.id for node in nodes}
    assert client.layout(f"{root}/f", 4_999_999)[0].offset <= 4_999_999
    assert client.lost() == []


def test_stripes_of_another_size(client, root, mounted, other):
    """Both ways: by the library, and by a mount."""
    client.makedirs(f"{root}/small")
    client.setxattr(f"{root}/small", "user.memefs.stripe", b"128K")
    assert os.getxattr(other / "small", "user.memefs.stripe") == b"124K"
    content = os.urandom(3_000_000)
    client.put(f"{root}/small/f", content)
    (mounted / "small" / "g").write_bytes(content)
    for name in "fg":
        assert client.get(f"{root}/small/{name}") == content
        assert (other / "small" / name).read_bytes() == content
        pieces = client.layout(f"{root}/small/{name}")
        assert sum(piece.length for piece in pieces) == len(content)
        assert all(piece.offset % (124 << 10) == 0 for piece in pieces)
        assert min(piece.length for piece in pieces[:-1]) < 1020 << 10
    with client.open(f"{root}/small/f", "r+b") as f:
        f.seek((124 << 10) - 2)
        f.write(b"edge")
    assert (other / "small" / "f").read_bytes()[(124 << 10) - 2 :][:4] == b"edge"


def test_objects_that_go_when_they_are_read(client, root, mounted):
    client.mkdir(f"{root}/d")
    client.setxattr(f"{root}/d", "user.memefs.delete-after-reads", b"2")
    client.put(f"{root}/d/got", b"got")
    client.put(f"{root}/d/opened", b"opened")
    for _ in range(2):
        assert client.get(f"{root}/d/got") == b"got"
        with client.open(f"{root}/d/opened", "rb") as file:
            assert file.read() == b"opened"
    patience = time.monotonic() + 60
    while os.listdir(mounted / "d") and time.monotonic() < patience:
        time.sleep(0.1)
    assert os.listdir(mounted / "d") == []


def test_copies_of_a_client(client, root):
    client.put(f"{root}/f", b"x")
    with pickle.loads(pickle.dumps(client)) as copy:
        assert copy.get(f"{root}/f") == b"x"
    with pytest.raises(ValueError, match="closed"):
        copy.get(f"{root}/f")
    assert memefs.Client.shared() is memefs.Client.shared()
    assert memefs.Client.shared() is not client
    shared = memefs.Client.shared()
    shared.close()
    shared.close()
    assert memefs.Client.shared().get(f"{root}/f") == b"x"


def test_closing_waits_for_calls(root):
    """A thread that is within a call, or begins one, while another closes the connection."""
    for _ in range(5):
        one = memefs.Client()
        one.put(f"{root}/f", bytes(2_000_000))
        ends = []

        def work(one=one, ends=ends):
            try:
                while True:
                    assert one.get(f"{root}/f") == bytes(2_000_000)
            except ValueError as error:
                ends.append(str(error))

        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        one.close()
        for thread in threads:
            thread.join(20)
        assert len(ends) == 4 and all("closed" in end for end in ends)

"""universal_pathlib: UPath("memefs://…")."""

import os
import pickle

import pytest
from upath import UPath

from memefs.upath import MemEFSPath


def test_upath(client, root, mounted):
    top = UPath(f"memefs://{client.name}{root}")
    assert isinstance(top, MemEFSPath) and str(top) == f"memefs://{client.name}{root}" and top.path == root
    one = top / "d" / "one.txt"
    assert one.name == "one.txt" and one.stem == "one" and one.suffix == ".txt" and one.parent == top / "d"
    with pytest.raises(FileNotFoundError):
        one.parent.joinpath("x").mkdir()
    one.parent.mkdir()
    with pytest.raises(FileExistsError):
        one.parent.mkdir()
    one.parent.mkdir(exist_ok=True)
    top.joinpath("p/q").mkdir(parents=True)
    assert one.write_text("Wörter\n", encoding="utf-8") == 7
    assert mounted.joinpath("d/one.txt").read_text("utf-8") == "Wörter\n" == one.read_text("utf-8")
    with one.open("ab") as file:
        file.write(b"more")
    assert one.read_bytes() == "Wörter\nmore".encode() and one.stat().st_size == 12
    assert one.exists() and one.is_file() and one.parent.is_dir() and not (top / "none").exists()
    assert sorted(path.name for path in top.iterdir()) == ["d", "p"]
    assert [path.path for path in top.rglob("*.txt")] == [one.path] == [path.path for path in top.glob("*/*.txt")]
    two = one.rename(top / "two.txt")
    assert two.path == f"{root}/two.txt" and not one.exists() and mounted.joinpath("two.txt").exists()
    two.touch()
    assert two.read_bytes().endswith(b"more")
    assert pickle.loads(pickle.dumps(two)) == two
    assert sorted(name for _, folders, _ in top.walk() for name in folders) == ["d", "p", "q"]
    two.unlink()
    top.joinpath("p/q").rmdir()
    assert sorted(os.listdir(mounted)) == ["d", "p"]
    default = UPath(f"memefs://{root}/d")  # three slashes: the default deployment
    assert default.is_dir() and default.path == f"{root}/d"

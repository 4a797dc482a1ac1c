"""Tasks near their data: real workers of Dask and executors of Parsl, named after the nodes."""

import os
import pickle
import subprocess

import pytest

from memefs import locality


@pytest.fixture
def files(client, root):
    """Small files, each whole at one node: by the node's name, two at each."""
    found = {"node-0": [], "node-1": []}
    for i in range(100):
        client.put(f"{root}/{i}", b"some words")
        [name] = locality.nodes_of(f"{root}/{i}", client=client)
        found[name].append(f"memefs://{client.name}{root}/{i}")
        if all(len(paths) > 1 for paths in found.values()):
            return {name: paths[:2] for name, paths in found.items()}
    raise AssertionError(f"all files at one node: {found}")


def test_shares(client, root, mounted, files):
    for name, paths in files.items():
        [share] = locality.shares(paths)
        assert share.name == name and share.bytes == 20 and share.host == f"127.0.0.{1 + share.node}"
    assert {share.bytes for share in locality.shares(files["node-0"] + files["node-1"])} == {20}
    one = files["node-1"][0].rpartition("/")[2]
    layout = subprocess.check_output([os.environ["MEMEFS_BIN"] + "/memefs", "layout", mounted / one], text=True)
    assert "127.0.0.2" in layout and locality.nodes_of(mounted / one) == ["node-1"]
    client.put(f"{root}/large", bytes(30_000_000))
    shares = locality.shares(f"memefs://{client.name}{root}/large")
    assert len(shares) == 2 and sum(share.bytes for share in shares) == 30_000_000
    assert shares[0].bytes >= shares[1].bytes
    assert locality.nodes_of(f"memefs://{client.name}{root}/none") == []
    with pytest.raises(ValueError, match="neither"):
        locality.nodes_of("/etc/passwd")


def test_near(client, files):
    path = files["node-1"][0]
    assert locality.near(path, {"a": ["node-0"], "b": ["node-1"]}) == ["b"]
    assert locality.near(path, {"a": ["127.0.0.1"], "b": ["127.0.0.2"], "c": ["127.0.0.2"]}) == ["b", "c"]
    assert locality.near(path, {"a": ["elsewhere.invalid"]}) == []


def test_dask(files):
    distributed = pytest.importorskip("distributed")
    import dask

    def where():
        return distributed.get_worker().name

    workers = {
        name: {"cls": distributed.Nanny, "options": {"nthreads": 1, "dashboard_address": None}} for name in files
    }
    scheduler = {"cls": distributed.Scheduler, "options": {"dashboard_address": None, "host": "127.0.0.1"}}
    with (
        dask.config.set({"distributed.scheduler.work-stealing": False}),  # which would be right, too, at times
        distributed.SpecCluster(workers=workers, scheduler=scheduler) as cluster,
        distributed.Client(cluster) as dask_client,
    ):
        dask_client.wait_for_workers(2, timeout=60)
        for name, paths in files.items():
            near = locality.dask_workers(dask_client, paths)
            tasks = [dask_client.submit(where, workers=near, allow_other_workers=True, pure=False) for _ in range(3)]
            assert dask_client.gather(tasks) == [name] * 3
            with dask.annotate(workers=near):
                assert dask.delayed(where, pure=False)().compute() == name
        assert locality.dask_workers(dask_client, "memefs:///none") is None


def test_shares_are_plain(client, files):
    assert pickle.loads(pickle.dumps(locality.shares(files["node-0"]))) == locality.shares(files["node-0"])

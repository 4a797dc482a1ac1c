"""memefs.Deployment: started, asked, changed and stopped by Python."""

import inspect
import os
import pickle
import threading
import time

import pytest

import memefs


@pytest.fixture(scope="module")
def deployment(tmp_path_factory):
    state = tmp_path_factory.mktemp("s") / "s"
    with memefs.Deployment("by-python", state_dir=state, nodes=2, memory="64M", max_nodes=4) as deployment:
        yield deployment
    assert not state.exists() or not list(state.glob("*.sock"))


def test_it_is_asked(deployment):
    status = deployment.status()
    assert status["name"] == "by-python" and status["state"] == "running" and len(status["nodes"]) == 2
    assert [node["name"] for node in deployment.nodes()] == ["node-0", "node-1"]
    assert any(event["what"] == "running" for event in deployment.events())
    assert [event["what"] for event in deployment.events(types=["running"], tail=1)] == ["running"]


def test_it_is_changed(deployment, tmp_path):
    with deployment.client(label="test of python") as client:
        client.put("/f", bytes(3_000_000))
        deadline = time.monotonic() + 20  # cm is told of it now and then
        while not any(one["path"] == "test of python" for one in deployment.clients()):
            assert time.monotonic() < deadline
        report = deployment.scale(by=+1)
        assert report["from"] == 2 and report["to"] == 3
        assert len(deployment.nodes()) == 3 and client.get("/f") == bytes(3_000_000)
        assert deployment.scale(2)["to"] == 2
        assert client.get("/f") == bytes(3_000_000)
        assert deployment.rebalance()["to"] == 2
        assert (
            deployment.policy() == "none" and deployment.policy("nso") == "nso" and deployment.policy("none") == "none"
        )
        report = deployment.checkpoint(tmp_path)
        assert report["partitions"] >= 2 and report["bytes"] > 0
    again = memefs.Deployment("again", state_dir=tmp_path / "s", nodes=1, memory="128M", restore=tmp_path)
    with again, again.client() as client:
        assert client.get("/f") == bytes(3_000_000)


def test_events_to_come(deployment):
    following = deployment.events(follow=True, tail=1)
    next(following)
    threading.Thread(target=deployment.scale, args=(3,)).start()
    assert any(event["what"] == "scaled" for event in following)
    following.close()
    deployment.scale(2)


def test_what_fails_says_why(deployment, tmp_path):
    with pytest.raises(memefs.CommandError, match="how many nodes") as caught:
        deployment._run("scale", "many")
    assert caught.value.status == 2
    assert pickle.loads(pickle.dumps(caught.value)).message == caught.value.message
    with pytest.raises(TypeError):
        deployment.scale()
    with pytest.raises(memefs.CommandError):
        memefs.Deployment("none", state_dir=tmp_path).status()
    with pytest.raises(memefs.CommandError, match="unknown"):
        memefs.Deployment("none", state_dir=tmp_path, no_such_option=True).start()


def test_no_program(monkeypatch):
    monkeypatch.setenv("PATH", "/nonexistent")
    monkeypatch.delenv("MEMEFS_BIN")
    with pytest.raises(FileNotFoundError, match="MEMEFS_BIN"):
        memefs.Deployment().status()


def test_it_stops_after_an_exception(tmp_path):
    with pytest.raises(ZeroDivisionError), memefs.Deployment("failing", state_dir=tmp_path / "s", memory="64M"):
        raise ZeroDivisionError
    with pytest.raises(memefs.CommandError):
        memefs.Deployment("failing", state_dir=tmp_path / "s").status()


def test_help_is_enough():
    for thing in (memefs.Client, memefs.Deployment, memefs.RawFile):
        for name in dir(thing):
            if not name.startswith("_") and callable(getattr(thing, name)):
                assert inspect.getdoc(getattr(thing, name)) or hasattr(os, name), (
                    f"{thing.__name__}.{name} has no docstring"
                )
    assert memefs.__doc__ and "Deployment" in memefs.__doc__

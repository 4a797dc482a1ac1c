"""The deployment that tests/support/python.sh has started: a client of it, and its mounts."""

import os
import pathlib
import uuid

import pytest

import memefs


@pytest.fixture(scope="session")
def client():
    with memefs.Client() as client:
        yield client


@pytest.fixture
def root(client):
    """A directory for one test."""
    path = f"/{uuid.uuid4().hex}"
    client.mkdir(path)
    client.chmod(path, 0o777)
    yield path
    client.rmtree(path)


@pytest.fixture
def mounted(root):
    """The same directory, as the mount of node 0 shows it."""
    return pathlib.Path(os.environ["MNT0"] + root)


@pytest.fixture
def other(root):
    """As the mount of node 1 shows it."""
    return pathlib.Path(os.environ["MNT1"] + root)

"""Parsl: tasks at the executor that is named after the node with their input."""

import os

import pytest

from memefs import locality
from test_locality import files  # noqa: F401


def count(path):
    """At a worker: where it is, and how many words it has read."""
    import os

    import memefs

    return os.environ["WHERE"], len(memefs.Client.shared().get(memefs.naming.parse(path).path).split())


def test_parsl(files, tmp_path):  # noqa: F811
    parsl = pytest.importorskip("parsl")
    from parsl.executors import HighThroughputExecutor
    from parsl.providers import LocalProvider

    executors = [
        HighThroughputExecutor(
            label=name,
            address="127.0.0.1",
            max_workers_per_node=1,
            encrypted=False,
            provider=LocalProvider(
                init_blocks=1,
                max_blocks=1,
                worker_init=f"export WHERE={name} PYTHONPATH=$PYTHONPATH:{os.path.dirname(__file__)}",
            ),
        )
        for name in files
    ]
    config = parsl.Config(executors=executors, run_dir=str(tmp_path / "runinfo"), usage_tracking=0)
    with parsl.load(config):
        app = locality.parsl_app(list(files))(count)
        assert "how many words" in app.__doc__
        tasks = [(name, app(path)) for name, paths in files.items() for path in paths]
        assert [task.result(timeout=200) for _, task in tasks] == [(name, 2) for name, _ in tasks]

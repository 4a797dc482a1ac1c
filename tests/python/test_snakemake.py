"""The storage plug-in for Snakemake: the test base of Snakemake's interface, and workflows that it runs."""

import os
import subprocess
import sys

import pytest
from snakemake_interface_common.exceptions import WorkflowError
from snakemake_interface_storage_plugins.tests import TestStorageBase
from snakemake_storage_plugin_memefs import StorageProvider, StorageProviderSettings

WORKFLOW = """
from pathlib import Path

storage memefs:
    provider="memefs"

rule all:
    input:
        storage.memefs("memefs://{root}/total"),

rule split:
    input:
        storage.memefs("memefs://{root}/text"),
    output:
        storage.memefs("memefs://{root}/parts/a"),
        storage.memefs("memefs://{root}/parts/b"),
        storage.memefs("memefs://{root}/folder"),
    shell:
        "head -n 50 {{input}} >{{output[0]}}; tail -n 50 {{input}} >{{output[1]}}; "
        "mkdir -p {{output[2]}}/sub && cp {{input}} {{output[2]}}/sub/copy"

rule count:
    input:
        storage.memefs("memefs://{root}/parts/{{part}}"),
    output:
        storage.memefs("memefs://{root}/counts/{{part}}"),
    shell:
        "wc -w <{{input}} >{{output}}"

rule total:
    input:
        storage.memefs(expand("memefs://{root}/counts/{{part}}", part=["a", "b"])),
        storage.memefs("memefs://{root}/folder"),
    output:
        storage.memefs("memefs://{root}/total"),
    shell:
        "(cat {{input[0]}} {{input[1]}}; wc -w <{{input[2]}}/sub/copy) >{{output}}"
"""


class TestPlugin(TestStorageBase):
    __test__ = True
    touch = True
    files_only = False

    def get_query(self, tmp_path):
        return f"memefs:///{tmp_path.name}/dir/test.txt"

    def get_query_not_existing(self, tmp_path):
        return f"memefs:///{tmp_path.name}/not/there"

    def get_storage_provider_cls(self):
        return StorageProvider

    def get_storage_provider_settings(self):
        return StorageProviderSettings()

    def test_what_is_no_query(self):
        for query in ("/a/file", "s3://b/c", "memefs://", "memefs:///", "memefs:///a/../b"):
            assert not StorageProvider.is_valid_query(query)
        assert StorageProvider.is_valid_query("memefs://other/{sample}.txt")

    def test_listing(self, client, root, tmp_path):
        client.mput({f"{root}/a/x.txt": b"", f"{root}/b/y.txt": b""}, parents=True)
        obj = self._get_obj(tmp_path, f"memefs://{root}/{{sample}}/{{name}}.txt")
        assert sorted(obj.list_candidate_matches()) == [f"memefs://{root}/a/x.txt", f"memefs://{root}/b/y.txt"]

    def test_on_demand(self, client, root, mounted, tmp_path):
        """What is read on demand is a link into the mount."""
        client.put(f"{root}/f", b"content")
        provider = StorageProvider(
            local_prefix=tmp_path, logger=None, settings=StorageProviderSettings(mount=os.environ["MNT0"])
        )
        obj = provider.object(f"memefs://{root}/f")
        obj.is_ondemand_eligible = True
        obj.local_path().parent.mkdir(parents=True)
        obj.retrieve_object()
        assert obj.local_path().is_symlink() and obj.local_path().read_bytes() == b"content"
        provider.settings.mount = str(tmp_path / "nowhere")
        obj = provider.object(f"memefs://{root}/f")
        obj.is_ondemand_eligible = True
        with pytest.raises(WorkflowError, match="mounted"):
            obj.retrieve_object()


def snakemake(folder, *arguments):
    done = subprocess.run(
        [sys.executable, "-m", "snakemake", "--cores", "2", "--directory", folder, *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=90,
        env={**os.environ, "XDG_CACHE_HOME": str(folder / "cache")},
    )
    assert done.returncode == 0, done.stdout
    return done.stdout


def test_a_workflow(client, root, mounted, tmp_path):
    mounted.joinpath("text").write_text("one two three\n" * 100)
    tmp_path.joinpath("Snakefile").write_text(WORKFLOW.format(root=root))
    said = snakemake(tmp_path, "--snakefile", tmp_path / "Snakefile")
    assert "5 of 5 steps" in said
    assert mounted.joinpath("total").read_text().split() == ["150", "150", "300"]
    assert mounted.joinpath("folder/sub/copy").exists()
    assert "Nothing to be done" in snakemake(tmp_path, "--snakefile", tmp_path / "Snakefile")


def test_all_files_of_a_workflow(client, root, mounted, tmp_path):
    """--default-storage-provider: an ordinary workflow, whose files are all in the deployment."""
    tmp_path.joinpath("Snakefile").write_text(
        "rule all:\n    input: 'out/b'\n"
        "rule a:\n    output: 'out/a'\n    shell: 'echo 1 >{output}'\n"
        "rule b:\n    input: 'out/a'\n    output: 'out/b'\n    shell: 'cat {input} {input} >{output}'\n"
    )
    snakemake(
        tmp_path,
        *("--snakefile", tmp_path / "Snakefile"),
        *("--default-storage-provider", "memefs", "--default-storage-prefix", f"memefs://{root}"),
    )
    assert mounted.joinpath("out/b").read_text() == "1\n1\n"

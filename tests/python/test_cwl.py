"""A CWL workflow by cwltool in a mount: its work directories, and its result, are there."""

import json
import os
import subprocess
import sys

import pytest

WORKFLOW = """
cwlVersion: v1.2
class: Workflow
requirements: {ScatterFeatureRequirement: {}}
inputs: {texts: "File[]"}
outputs:
  total: {type: File, outputSource: sum/total}
steps:
  count:
    scatter: text
    in: {text: texts}
    out: [words]
    run:
      class: CommandLineTool
      baseCommand: [wc, -w]
      stdin: $(inputs.text.path)
      inputs: {text: File}
      outputs: {words: stdout}
  sum:
    in: {words: count/words}
    out: [total]
    run:
      class: CommandLineTool
      baseCommand: [awk, "{ sum += $1 } END { print sum }"]
      inputs: {words: {type: "File[]", inputBinding: {position: 1}}}
      outputs: {total: stdout}
      stdout: total
"""


def test_cwltool(mounted):
    pytest.importorskip("cwltool")
    mounted.joinpath("words.cwl").write_text(WORKFLOW)
    for i in range(4):
        mounted.joinpath(f"text{i}").write_text("one two three\n" * (i + 1))
    texts = [{"class": "File", "path": f"text{i}"} for i in range(4)]
    mounted.joinpath("job.json").write_text(json.dumps({"texts": texts}))
    done = subprocess.run(
        [
            *(sys.executable, "-m", "cwltool", "--parallel", "--no-container"),
            *("--tmpdir-prefix", f"{mounted}/tmp/", "--tmp-outdir-prefix", f"{mounted}/out/"),
            *("--outdir", f"{mounted}/result", "words.cwl", "job.json"),
        ],
        cwd=mounted,
        capture_output=True,
        text=True,
        timeout=200,
        env={**os.environ, "HOME": str(mounted)},
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["total"]["basename"] == "total"
    assert mounted.joinpath("result/total").read_text() == "30\n"

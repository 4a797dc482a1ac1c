#!/usr/bin/env bash
# Workflow engines on a deployment, without a cluster: Snakemake by its plug-in, Parsl near the data, cwltool and Nextflow
# in a mount. Those that are not installed are left out (scripts/setup --tests, --workflows).
# ctest: slow release timeout=600
# shellcheck source=tests/support/harness.sh
. "$(dirname "${BASH_SOURCE[0]}")/../support/harness.sh"
# shellcheck source=tests/support/python.sh
. "$HARNESS_DIR/python.sh"
python_needs pytest snakemake parsl cwltool

TOOLS=$HARNESS_DIR/../../build/workflows
MEMORY=256M
PYTEST_SECONDS=400
deployment_start 2
python_tests test_snakemake.py test_parsl.py test_cwl.py

if [ -d "$TOOLS/nextflow" ] && command -v java >/dev/null; then
    say "Nextflow"
    mkdir "$MNT0/nextflow"
    seq 2000 | sed 's/.*/one two two three three three/' >"$MNT0/nextflow/text"
    LAUNCH="env" timeout 200 "$HARNESS_DIR/workflows/run" nextflow "$TOOLS" "$MNT0/nextflow" >"$T/nextflow.out" 2>&1 ||
        fail "Nextflow: $(tail -n 20 "$T/nextflow.out")"
    grep -qw 6000 "$MNT1/nextflow/counts" || fail "Nextflow's counts: $(head "$MNT1/nextflow/counts")"
    LAUNCH="env" timeout 200 "$HARNESS_DIR/workflows/run" nextflow "$TOOLS" "$MNT0/nextflow" >"$T/nextflow.out" 2>&1 ||
        fail "Nextflow -resume: $(tail -n 20 "$T/nextflow.out")"
    grep -qx 'nothing to do' "$T/nextflow.out" || fail "Nextflow -resume ran tasks again"
else
    say "Nextflow is not installed (scripts/setup --workflows)"
fi
fsck_silent
deployment_stop

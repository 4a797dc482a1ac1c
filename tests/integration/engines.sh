#!/usr/bin/env bash
# Workflow engines on a deployment, without a cluster: Snakemake by its plug-in, Dask and Parsl near the data, cwltool and
# Nextflow in a mount. Those that are not installed are left out, and named (scripts/setup --libraries, --workflows).
# ctest: slow release timeout=1200
# shellcheck source=tests/support/harness.sh
. "$(dirname "${BASH_SOURCE[0]}")/../support/harness.sh"
# shellcheck source=tests/support/python.sh
. "$HARNESS_DIR/python.sh"
python_needs pytest

TOOLS=$HARNESS_DIR/../../build/workflows
MEMORY=256M
PYTEST_SECONDS=800
missing=() found=() tests=()

# engine MODULE NAME FILE: one that Python runs, with its test.
engine()
{
    if "$PYTHON" -c "import $1" 2>"$T/import.out"; then
        found+=("$2 $("$PYTHON" -c "import importlib.metadata as m; print(m.version('$2'))")")
        tests+=("$3")
    else
        missing+=("$2: $(tail -n 1 "$T/import.out")")
    fi
}

engine snakemake snakemake test_snakemake.py
engine distributed dask test_locality.py
engine parsl parsl test_parsl.py
engine cwltool cwltool test_cwl.py
if [ ! -d "$TOOLS/nextflow" ]; then
    missing+=("nextflow: no $TOOLS/nextflow")
elif ! command -v java >/dev/null; then
    missing+=("nextflow: no java")
else
    nextflow=$(cd "$TOOLS/nextflow" && echo nextflow-[0-9]*.jar)
    found+=("${nextflow%.jar}")
fi
[ ${#found[@]} -gt 0 ] || skip "no engine is installed (${missing[*]})"
say "engines: $(IFS=, && echo "${found[*]}")"
[ ${#missing[@]} -eq 0 ] || printf '# left out: %s\n' "${missing[@]}"

deployment_start 2
[ ${#tests[@]} -eq 0 ] || python_tests "${tests[@]}" -rs

run_nextflow() # WHAT
{
    LAUNCH="env" timeout 400 "$HARNESS_DIR/workflows/run" nextflow "$TOOLS" "$MNT0/nextflow" >"$T/nextflow.out" 2>&1 ||
        fail "Nextflow$1: $(tail -n 20 "$T/nextflow.out")"
}

if [ -n "${nextflow:-}" ]; then
    say "Nextflow"
    mkdir "$MNT0/nextflow"
    seq 2000 | sed 's/.*/one two two three three three/' >"$MNT0/nextflow/text"
    run_nextflow ""
    grep -qw 6000 "$MNT1/nextflow/counts" || fail "Nextflow's counts: $(head "$MNT1/nextflow/counts")"
    run_nextflow " -resume"
    grep -qx 'nothing to do' "$T/nextflow.out" || fail "Nextflow -resume ran tasks again"
fi
fsck_silent
deployment_stop

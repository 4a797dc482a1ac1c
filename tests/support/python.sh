# For tests of src/python: an interpreter that has the package, as the build has made it, and pytest on a deployment.
# Sourced behind harness.sh; the caller has a deployment.
# shellcheck shell=bash

PYTHON=${PYTHON:-$HARNESS_DIR/../../build/venv/bin/python3}
PYTHON_SITE=${PYTHON_SITE:-$MEMEFS_BIN/../python/site}
export PYTHONPATH=$PYTHON_SITE PYTHONDONTWRITEBYTECODE=1 MEMEFS_BIN

# python_needs MODULE…: skips the test where one can't be imported.
python_needs()
{
    local module
    [ -d "$PYTHON_SITE/memefs" ] || skip "the Python package is not built (scripts/setup --tests, then configure anew)"
    for module in memefs "$@"; do
        "$PYTHON" -c "import $module" 2>"$T/import.out" ||
            skip "Python has no module $module (scripts/setup --tests --libraries): $(tail -n 1 "$T/import.out")"
    done
}

# python_tests FILE…: of tests/python, on this test's deployment and its mounts.
python_tests()
{
    local files=("${@/#test_/$HARNESS_DIR/../python/test_}")
    (
        cd "$T" # nothing of the source tree is imported
        env PATH="$PATH:${PYTHON%/*}" HOME="$T" MEMEFS_NAME="$NAME" MEMEFS_STATE_DIR="$STATE" MNT0="${MNT0:-}" MNT1="${MNT1:-}" \
            timeout "${PYTEST_SECONDS:-100}" "$PYTHON" -m pytest -q -o faulthandler_timeout=60 -p no:cacheprovider \
            -W error::pytest.PytestUnraisableExceptionWarning --rootdir "$HARNESS_DIR/../python" --basetemp "$T/pytest" \
            --durations 5 "${files[@]}"
    ) || fail "pytest: $*"
}

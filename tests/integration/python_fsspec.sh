#!/usr/bin/env bash
# memefs:// by fsspec: fsspec's own test suite, and universal_pathlib.
# ctest: release timeout=120 long=10
# shellcheck source=tests/support/harness.sh
. "$(dirname "${BASH_SOURCE[0]}")/../support/harness.sh"
# shellcheck source=tests/support/python.sh
. "$HARNESS_DIR/python.sh"
python_needs pytest fsspec upath

MEMORY=256M
deployment_start 2
python_tests test_fsspec.py test_upath.py
fsck_silent
deployment_stop

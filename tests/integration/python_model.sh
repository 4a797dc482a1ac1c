#!/usr/bin/env bash
# Two mounts and two Python clients do random operations in turn, and all of them see what a local directory has.
# ctest: release timeout=120
# shellcheck source=tests/support/harness.sh
. "$(dirname "${BASH_SOURCE[0]}")/../support/harness.sh"
# shellcheck source=tests/support/python.sh
. "$HARNESS_DIR/python.sh"
python_needs pytest

MEMORY=256M
deployment_start 2
python_tests test_model.py -s
fsck_silent
deployment_stop

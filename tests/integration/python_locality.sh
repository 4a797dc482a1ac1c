#!/usr/bin/env bash
# Where data are, for engines: tasks of Dask and Parsl run at workers that are named after the nodes with their input.
# ctest: slow release timeout=120 long=20
# shellcheck source=tests/support/harness.sh
. "$(dirname "${BASH_SOURCE[0]}")/../support/harness.sh"
# shellcheck source=tests/support/python.sh
. "$HARNESS_DIR/python.sh"
python_needs pytest distributed parsl

MEMORY=256M
deployment_start 2
python_tests test_locality.py
fsck_silent
deployment_stop

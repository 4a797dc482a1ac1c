#!/usr/bin/env bash
# The storage plug-in for Snakemake, in Snakemake: the test base of its interface, and workflows with files in a deployment.
# ctest: release timeout=120 long=20
# shellcheck source=tests/support/harness.sh
. "$(dirname "${BASH_SOURCE[0]}")/../support/harness.sh"
# shellcheck source=tests/support/python.sh
. "$HARNESS_DIR/python.sh"
python_needs pytest snakemake_interface_storage_plugins.tests

MEMORY=256M
deployment_start 2
python_tests test_snakemake.py
fsck_silent
deployment_stop

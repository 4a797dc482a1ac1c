#!/usr/bin/env bash
# The storage plug-in for Snakemake: the test base of its interface, and a workflow whose files are all in a deployment
# (integration.engines has more).
# ctest: slow release timeout=120 long=20
# shellcheck source=tests/support/harness.sh
. "$(dirname "${BASH_SOURCE[0]}")/../support/harness.sh"
# shellcheck source=tests/support/python.sh
. "$HARNESS_DIR/python.sh"
python_needs pytest snakemake_interface_storage_plugins.tests

MEMORY=256M
deployment_start 2
python_tests test_snakemake.py -k "TestPlugin or all_files"
fsck_silent
deployment_stop

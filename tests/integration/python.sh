#!/usr/bin/env bash
# The Python package on a deployment: clients, files, objects, locks, forks; deployments that are started by it; its types.
# ctest: release timeout=120 long=15
# shellcheck source=tests/support/harness.sh
. "$(dirname "${BASH_SOURCE[0]}")/../support/harness.sh"
# shellcheck source=tests/support/python.sh
. "$HARNESS_DIR/python.sh"
python_needs pytest

MEMORY=256M
deployment_start 2
python_tests test_client.py test_files.py test_aio.py test_arguments.py test_forks.py
fsck_silent
python_tests test_deployment.py
deployment_stop

#!/usr/bin/env bash
# pandas, pyarrow, Zarr, xarray and Dask read and write memefs:// URLs; and locks of a Python program that is killed go.
# ctest: slow release timeout=180 long=40
# shellcheck source=tests/support/harness.sh
. "$(dirname "${BASH_SOURCE[0]}")/../support/harness.sh"
# shellcheck source=tests/support/python.sh
. "$HARNESS_DIR/python.sh"
python_needs pytest fsspec pandas pyarrow zarr xarray dask.dataframe

MEMORY=256M
deployment_start 2
python_tests test_libraries.py
python_tests test_killed.py -s
fsck_silent
deployment_stop

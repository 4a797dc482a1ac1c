#!/usr/bin/env bash
# One wheel for all Pythons from 3.10 on: it is installed by pip for each that is here (python3.X in $PATH, or of pyenv),
# and the package's quick tests pass with it. Skipped where there is but one.
# ctest: slow release timeout=1200
# shellcheck source=tests/support/harness.sh
. "$(dirname "${BASH_SOURCE[0]}")/../support/harness.sh"
# shellcheck source=tests/support/python.sh
. "$HARNESS_DIR/python.sh"

wheel=$(cd "$PYTHON_SITE/.." 2>/dev/null && echo "$PWD"/memefs_python-*.whl)
[ -f "$wheel" ] || skip "the Python package is not built (scripts/setup --tests, then configure anew)"

# One of each minor version that can make environments.
declare -A pythons=()
for python in /usr/bin/python3.[0-9]* /usr/local/bin/python3.[0-9]* "${PYENV_ROOT:-$HOME/.pyenv}"/versions/*/bin/python3; do
    version=$("$python" -c 'import ctypes, ensurepip, ssl, sys, venv
if sys.version_info >= (3, 10): print("%d.%d" % sys.version_info[:2])' 2>/dev/null) || continue
    [ -z "$version" ] || pythons[$version]=${pythons[$version]:-$python}
done
[ ${#pythons[@]} -gt 1 ] || skip "there is but one Python from 3.10 on here (${pythons[*]:-none}), which integration.python has"

MEMORY=256M
PYTEST_SECONDS=300
tests=(pytest numpy fsspec universal_pathlib)
deployment_start 2
passed=()
for version in $(printf '%s\n' "${!pythons[@]}" | sort -V); do
    environment=$T/python$version
    "${pythons[$version]}" -m venv "$environment"
    if ! PYTHONPATH='' "$environment/bin/pip" -q --disable-pip-version-check install --no-compile "$wheel" "${tests[@]}" \
        >"$T/pip.out" 2>&1; then
        say "Python $version is left out: pip: $(tail -n 1 "$T/pip.out")"
        continue
    fi
    PYTHON=$environment/bin/python3
    PYTHONPATH=$("$PYTHON" -c 'import sysconfig; print(sysconfig.get_path("platlib"))')
    say "$("$PYTHON" --version)"
    python_tests test_client.py test_files.py test_aio.py test_forks.py test_fsspec.py test_upath.py
    passed+=("$version")
    rm -rf "$environment"
done
[ ${#passed[@]} -gt 0 ] || skip "pip could install nothing: $(tail -n 1 "$T/pip.out")"
say "passed with Python ${passed[*]}"
fsck_silent
deployment_stop

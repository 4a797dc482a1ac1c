#!/usr/bin/env bash
# What scripts/quickstart builds, the programs alone, is all that a deployment needs.
# ctest: slow timeout=400 release
# shellcheck source=tests/support/harness.sh
. "$(dirname "${BASH_SOURCE[0]}")/../support/harness.sh"
need cmake
need ninja

mkdir "$T/source"
tar -C "$HARNESS_DIR/../.." --exclude=./build --exclude=./.git -c . | tar -C "$T/source" -x
"$T/source/scripts/build" --programs debug >"$T/build.out" 2>&1 || {
    tail -20 "$T/build.out"
    fail "scripts/build --programs"
}
MEMEFS_BIN=$T/source/build/debug/bin
PATH=$MEMEFS_BIN:$PATH
deployment_start 1
printf 'x' >"$MNT0/f"
equal x "$(cat "$MNT0/f")" "written and read"
deployment_stop

#!/usr/bin/env bash
# The project builds inside its own mount, and its quick unit tests pass there.
# ctest: slow timeout=900
# shellcheck source=tests/support/fs_script.sh
. "$(dirname "${BASH_SOURCE[0]}")/../support/fs_script.sh"
need cmake ninja

tar -C "$source_top" --exclude=./build --exclude=./.git -cf - . | tar -xf -
cmake -S . -B build -G Ninja -DCMAKE_BUILD_TYPE=Debug >"$scratch/log" || {
    tail -20 "$scratch/log"
    fail "cmake"
}
cmake --build build >"$scratch/log" 2>&1 || {
    tail -40 "$scratch/log"
    fail "build"
}
for program in cm lm memefs; do
    "build/bin/$program" --help >/dev/null || fail "$program --help"
done
ctest --test-dir build -R 'unit.test_(base|cluster|conf|text|geometry|wire_.*)$' --output-on-failure | tail -30
[ "${PIPESTATUS[0]}" -eq 0 ] || fail "unit tests"

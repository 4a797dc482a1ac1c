#!/usr/bin/env bash
# The installation is complete and works from its own place: programs, pages, units, completion, and
# mount -t memefs by the installed helper, and the examples, compiled as a user does.
# ctest: timeout=120
# shellcheck source=tests/support/harness.sh
. "$(dirname "${BASH_SOURCE[0]}")/../support/harness.sh"
need cmake
docs=$(cd "$(dirname "${BASH_SOURCE[0]}")/../../docs" && pwd)
build=$(basename "$(dirname "$MEMEFS_BIN")")

cmake --install "$MEMEFS_BIN/.." --prefix "$T/usr" >/dev/null || fail "cmake --install"
cd "$T/usr"
for file in bin/cm bin/lm bin/memefs sbin/mount.memefs share/man/man1/cm.1 share/man/man1/memefs.1 \
    share/man/man8/lm.8 share/man/man8/mount.memefs.8 lib/systemd/system/memefs-cm@.service \
    lib/systemd/system/memefs-lm@.service share/bash-completion/completions/cm \
    share/bash-completion/completions/memefs share/memefs/logrotate share/man/man3/libmemefs.3; do
    [ -s "$file" ] || fail "$file is not installed"
done
for program in cm lm; do
    grep -q "^ExecStart=$T/usr/bin/$program " "lib/systemd/system/memefs-$program@.service" ||
        fail "the unit starts another $program: $(grep ExecStart "lib/systemd/system/memefs-$program@.service")"
done
case $MEMEFS_BIN in
*/release/bin) # what users run is hardened
    for file in bin/cm bin/lm bin/memefs lib*/memefs/memefs-partition.so lib/*/memefs/memefs-partition.so; do
        [ ! -f "$file" ] || grep -q 'FLAGS.*NOW' <<<"$(readelf -d "$file")" || fail "$file: bound lazily"
        [ ! -f "$file" ] || grep -q '__[a-z]*_chk' <<<"$(readelf -W --dyn-syms "$file")" || fail "$file: not fortified"
        [ ! -f "$file" ] || grep -q '__stack_chk_fail' <<<"$(readelf -W --dyn-syms "$file")" || fail "$file: no stack protector"
    done
    ;;
esac
[ -n "$(find . -name 'libmemefs.so.0')" ] || fail "libmemefs is not installed"
pc=$(find . -name memefs.pc)
need pkg-config cc
[ "$(PKG_CONFIG_PATH=$(dirname "$pc") pkg-config --variable=includedir memefs)" = "$T/usr/include" ] || fail "memefs.pc: $(cat "$pc")"
[ -n "$(find include/memefs -name '*.h')" ] || fail "no header is installed"
cd /
MEMEFS_BIN=$T/usr/bin
PATH=$MEMEFS_BIN:$PATH

say "completion"
completions_of() # WORD…
{
    bash -c '. "$0/share/bash-completion/completions/cm"
        COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))
        _memefs "$1"
        printf "%s\n" "${COMPREPLY[@]}"' "$T/usr" "$@"
}
grep -qx status <<<"$(completions_of cm st)" || fail "cm st<Tab> does not offer status"
grep -qx -- --nodes <<<"$(completions_of cm start --no)" || fail "cm start --no<Tab> does not offer --nodes"
grep -qx mount <<<"$(completions_of memefs m)" || fail "memefs m<Tab> does not offer mount"

say "mount -t memefs"
deployment_start 2
mkdir "$T/extra"
"$T/usr/sbin/mount.memefs" "$NAME" "$T/extra" -o "rw,state-dir=$STATE,noauto" || fail "mount.memefs"
printf 'x' >"$MNT0/f"
equal x "$(cat "$T/extra/f")" "seen by the extra mount"
umount "$T/extra"

say "programs of docs/examples"
pcdir=$T/usr/${pc#./}
pcdir=${pcdir%/*}
case $build in
*san) ;; # the library needs a sanitizer's program
*)
    for source in "$docs"/examples/*.c; do
        program=$T/$(basename "$source" .c)
        # shellcheck disable=SC2046 # several words
        cc -Wall -Wextra -Werror "$source" $(PKG_CONFIG_PATH=$pcdir pkg-config --cflags --libs memefs) -o "$program" || fail "cc $source"
        LD_LIBRARY_PATH=$(dirname "$pcdir") "$program" "$NAME" "$STATE" >"$T/out" || fail "$source"
        [ -s "$T/out" ] || fail "$source: says nothing"
    done
    grep -q 'shows, too' "$MNT0/examples/file" || fail "the mount does not show what the example wrote"
    ;;
esac
deployment_stop

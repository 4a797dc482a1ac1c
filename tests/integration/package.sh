#!/usr/bin/env bash
# The Debian package: it has the programs, pages and units, each with the right paths; it depends on what it runs;
# and it starts nothing.
# ctest: release timeout=100
# shellcheck source=tests/support/harness.sh
. "$(dirname "${BASH_SOURCE[0]}")/../support/harness.sh"
need cpack dpkg-deb dpkg-shlibdeps

(cd "$MEMEFS_BIN/.." && cpack -G DEB -B "$T/deb") >"$T/cpack.out" 2>&1 || fail "cpack: $(cat "$T/cpack.out")"
deb=$(echo "$T"/deb/memefs_*.deb)
[ -s "$deb" ] || fail "no package: $(ls -l "$T/deb")"
dpkg-deb -R "$deb" "$T/root"
cd "$T/root"

say "what is in it"
for file in usr/bin/{cm,lm,memefs} usr/sbin/mount.memefs usr/lib/memefs/memefs-partition.so usr/share/man/man1/{cm,memefs}.1 usr/share/man/man3/libmemefs.3 \
    usr/share/man/man8/{lm,mount.memefs}.8 usr/lib/systemd/system/memefs-{cm,lm}@.service etc/logrotate.d/memefs \
    usr/share/bash-completion/completions/{cm,memefs} usr/share/doc/memefs/copyright; do
    [ -s "$file" ] || fail "$file is not in the package"
done
equal etc/logrotate.d/memefs "$(find etc -type f)" "files below /etc"
equal "" "$(find . -perm /022 ! -type l)" "files that others may write"
for program in cm lm; do
    grep -q "^ExecStart=/usr/bin/$program " "usr/lib/systemd/system/memefs-$program@.service" || fail "the unit of $program"
    grep -qx Type=notify "usr/lib/systemd/system/memefs-$program@.service" || fail "the unit of $program waits for nothing"
done

say "what it depends on"
depends=$(dpkg-deb -f "$deb" Depends)
for package in redis-server fuse3 libfuse3 libhiredis libcjson1 libc6; do
    [[ $depends == *"$package"* ]] || fail "it does not depend on $package: $depends"
done

say "it starts nothing"
! grep -rE 'systemctl .*(start|enable)|deb-systemd' DEBIAN || fail "a script of the package starts something"
for script in DEBIAN/{postinst,prerm,postrm}; do
    sh -n "$script" || fail "$script"
done
sh DEBIAN/prerm remove || fail "prerm refuses, and nothing runs"

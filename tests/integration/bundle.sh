#!/usr/bin/env bash
# The bundle, unpacked in a directory of its own: its programs run with its libraries and its redis-server, by a user
# that is not root, too, and through a symbolic link; and a wheel for pip has the same in it.
# ctest: release timeout=240 long=50
# shellcheck source=tests/support/harness.sh
. "$(dirname "${BASH_SOURCE[0]}")/../support/harness.sh"
need patchelf xz python3 runuser

XZ_OPT=-0 "$HARNESS_DIR/../../scripts/bundle" --build "$MEMEFS_BIN/.." --out "$T/out" >"$T/bundle.out" 2>&1 ||
    fail "scripts/bundle: $(cat "$T/bundle.out")"
mkdir "$T/any where" "$T/link"
tar -xJf "$T"/out/memefs-*.tar.xz -C "$T/any where"
bundle=$(echo "$T/any where"/memefs-*)
ln -s "$bundle"/bin/{cm,lm,memefs} "$T/link"

say "libraries"
for program in "$bundle"/libexec/memefs/{cm,lm,memefs,redis-server}; do
    while read -r library; do
        [[ $library == "$bundle"/* || $library =~ /(libc|libm|libresolv|ld-linux[^/]*)\.so ]] ||
            fail "${program##*/} loads $library"
    done < <(ldd "$program" | awk -F' => ' '$2 ~ "^/" { sub(/ \(0x.*/, "", $2); print $2 }')
done

say "licences"
for file in "$bundle"/lib/memefs/* "$bundle/libexec/memefs/redis-server"; do
    package=$(awk -v file="${file##*/}" '$1 == file { print $2 }' "$bundle/share/doc/memefs/licences/index")
    grep -qi copyright "$bundle/share/doc/memefs/licences/$package" || fail "${file##*/} has no licence"
done

say "the same as a wheel"
"$HARNESS_DIR/../../scripts/bundle" --wheel --build "$MEMEFS_BIN/.." --out "$T/out" >"$T/bundle.out" 2>&1 ||
    fail "scripts/bundle --wheel: $(cat "$T/bundle.out")"
python3 -m venv "$T/venv"
"$T/venv/bin/pip" install --quiet --no-index --no-deps "$T"/out/memefs-*.whl || fail "pip install"
(cd "$T/venv/libexec/memefs" && sha256sum ./*) >"$T/sums"
(cd "$bundle/libexec/memefs" && sha256sum --quiet -c "$T/sums") || fail "the wheel has other programs"
[[ $("$T/venv/bin/cm" --version) == *MemEFS* ]] || fail "the wheel's cm does not run"

say "a deployment by root"
PATH=$T/link:/usr/bin:/bin:/usr/sbin:/sbin
MEMEFS_BIN=$T/link
MEMORY=128M
deployment_start 2
printf x >"$MNT0/f"
equal x "$(cat "$MNT1/f")" "what the other mount has"
for pid in $(pids_of redis-server) $(pids_of lm) $(pids_of memefs); do
    [[ $(readlink "/proc/$pid/exe") == "$bundle"/* ]] || fail "process $pid is $(readlink "/proc/$pid/exe")"
done
deployment_stop

say "a deployment by a user"
{ mount -t tmpfs none /mnt && mknod -m 666 /mnt/fuse c 10 229 && mount --bind /mnt/fuse /dev/fuse && umount -l /mnt; } ||
    fail "no /dev/fuse for a user"
mkdir "$T/user"
chown nobody "$T/user"
as_user()
{
    runuser -u nobody -- env HOME="$T/user" "$@"
}
as_user cm start --name "$NAME" --state-dir "$T/user/s" --nodes 1 --memory 64M --mount "$T/user/m" >"$T/start.out" 2>&1 ||
    fail "cm start: $(cat "$T/start.out")"
# shellcheck disable=SC2016
equal x "$(as_user sh -c 'printf x >"$HOME/m/f" && cat "$HOME/m/f"')" "what the user wrote"
as_user cm stop --name "$NAME" --state-dir "$T/user/s" || fail "cm stop"
umount /dev/fuse


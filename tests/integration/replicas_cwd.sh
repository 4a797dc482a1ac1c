#!/usr/bin/env bash
# --replicas 1: a process that works in a directory of the mount can find out where it is (getcwd(2)) while nobody
# may rely on names, as cm does not answer, and after that; what is mounted on a directory stays. A directory that
# another mount has renamed meanwhile is seen where it is.
# shellcheck source=tests/support/harness.sh
. "$(dirname "${BASH_SOURCE[0]}")/../support/harness.sh"
# shellcheck source=tests/support/replicas.sh
. "$HARNESS_DIR/replicas.sh"

ALLOW_LOG='session|cannot|did not take|client-behind|cm is gone'

deployment_start 2 --replicas 1
await_protected

mkdir -p "$MNT0/here/below" "$MNT0/bears" "$MNT0/old"
ls "$MNT0/old" "$MNT1/old" >/dev/null
mount -t tmpfs none "$MNT0/bears"
trap 'umount "$MNT0/bears" 2>/dev/null || true; harness_finish' EXIT
cd "$MNT0/here/below"

# where_am_i WHEN: what getcwd(2) would say; pwd(1) climbs to the root when that fails.
where_am_i()
{
    [ "$(readlink /proc/self/cwd)" = "$MNT0/here/below" ] || fail "$1: nobody knows where a process works: $(readlink /proc/self/cwd)"
    mountpoint -q "$MNT0/bears" || fail "$1: what was mounted is gone"
}

where_am_i "at the start"
cm=$(cut -d ' ' -f 1 "$STATE/cm.pid")
kill -STOP "$cm"
sleep 3
where_am_i "without cm"
mv "$MNT1/old" "$MNT1/new"
if [ ! -d "$MNT0/new" ] || [ -e "$MNT0/old" ]; then
    fail "a renamed directory is not where it is"
fi
kill -CONT "$cm"
sleep 2
where_am_i "with cm again"
cd /
umount "$MNT0/bears"

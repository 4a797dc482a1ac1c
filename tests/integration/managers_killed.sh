#!/usr/bin/env bash
# Data traffic needs no manager: with cm and every lm killed -9 the mounts go on working; a new
# cm start or cm stop finds its way from there.
# ctest: timeout=240
# shellcheck source=tests/support/harness.sh
. "$(dirname "${BASH_SOURCE[0]}")/../support/harness.sh"

# The survivors may say that they lost their managers.
ALLOW_LOG='cm|lm|manager|connect'

deployment_start 4
printf 'before' >"$MNT0/before"

say "kill -9 cm and every lm"
for pid in $(pids_of cm) $(pids_of lm); do
    kill -KILL "$pid"
done
must_happen 10 none_of cm
must_happen 10 none_of lm
sleep 2 # whatever would notice and take the clients down has the time to do it

say "the mounts go on"
equal 4 "$(pids_of memefs | wc -l)" "clients"
for mount in "$MNT0" "$MNT1" "$MNT2" "$MNT3"; do
    equal before "$(cat "$mount/before")" "content on $mount"
    head -c 5000000 /dev/urandom >"$T/data"
    cp "$T/data" "$mount/new"
    cmp "$T/data" "$MNT0/new" || fail "written on $mount, read on $MNT0"
    mkdir "$mount/d" && mv "$mount/new" "$mount/d/n" && ls -l "$mount/d" >/dev/null
    rm -r "$mount/d"
done

say "cm stop clears all of it up"
deployment_stop

#!/usr/bin/env bash
# --replicas 1: a node is cut off, and its mount knows many files and directories under leases. Others change them
# without waiting until its session is dead; what it had open is not lost for it; and when it is back it shows nothing old
# (decisions/0024).
# ctest: slow timeout=300
# shellcheck source=tests/support/own_net.sh
. "$(dirname "${BASH_SOURCE[0]}")/../support/own_net.sh"
# shellcheck source=tests/support/replicas.sh
. "$HARNESS_DIR/replicas.sh"

ALLOW_LOG='partition|did not take|client-behind|session|written data are lost|cannot|can.t|lm-gone|joining'
NET=v
FILES=24
MOST_MS=9000 # of one operation; a session lives 20 s

net up 3
MEMORY=512M deployment_start 3 --replicas 1 --partitions 12 --provider exec --listen "$SUBNET.254:0" \
    --first-address "$SUBNET.1" --exec-start "nsenter --net=/run/netns/$NET-{node} {lm}" \
    --mount-options "io_timeout=5"
await_protected

there=$MNT2 here=$MNT0
mkdir "$here/d"
for ((f = 0; f < FILES; f++)); do
    mkdir "$here/d/sub$f"
    echo old >"$here/d/$f"
done

learn()
{
    ls -l "$there/d" "$there/d/"sub* >/dev/null
    cat "$there/d/"[0-9]* >/dev/null
}

# Every kind of change that holders of leases are told of. $T/times has what each took.
change()
{
    local start
    start=$(epoch_ms)
    case $(($1 % 4)) in
    0) chmod 600 "$here/d/$1" ;;
    1) echo new >"$here/d/$1" ;;
    2) mv "$here/d/$1" "$here/d/renamed.$1" ;;
    3) mv "$here/d/sub$1" "$here/d/moved$1" && rm "$here/d/$1" ;;
    esac || echo "$1" >>"$T/failed"
    echo "$(($(epoch_ms) - start)) $1" >>"$T/times"
}

say "node 2 knows $FILES files under leases, has two of them open, and is cut off"
exec {kept}<"$there/d/3" {other}<"$there/d/1"
learn
before=$(events_of failed-over) count=$(primaries 2 | wc -l)
net cut 2
must_happen 60 more_events failed-over $((before + count - 1))

touch "$T/failed" "$T/times"
for ((f = 0; f < FILES; f++)); do
    change "$f" &
done
wait
longest=$(sort -n "$T/times" | tail -1)
say "longest: $longest (ms, which)"
equal '' "$(cat "$T/failed")" "what failed"
[ "${longest%% *}" -lt "$MOST_MS" ] || fail "an operation took ${longest%% *} ms"

say "it comes back"
net heal 2
await_protected
is_new()
{
    [ "$(stat -c %a "$there/d/0")" = 600 ] && [ "$(cat "$there/d/1")" = new ] &&
        [ -e "$there/d/renamed.2" ] && [ ! -e "$there/d/2" ] && [ -d "$there/d/moved3" ] && [ ! -e "$there/d/sub3" ]
}
must_happen 60 is_new
must_happen 60 cmp -s "$here/d/1" "/proc/self/fd/$other"
exec {kept}<&- {other}<&-
fsck_clean
deployment_stop
net down

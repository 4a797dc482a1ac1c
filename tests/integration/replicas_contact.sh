#!/usr/bin/env bash
# --replicas 1: a mount whose node is cut off shows nothing that others have changed since, also not of what it
# was told by a process beside it that was about to be replaced (decisions/0022).
# ctest: slow timeout=300
# shellcheck source=tests/support/own_net.sh
. "$(dirname "${BASH_SOURCE[0]}")/../support/own_net.sh"
# shellcheck source=tests/support/replicas.sh
. "$HARNESS_DIR/replicas.sh"

ALLOW_LOG='partition|did not take|client-behind|session|written data are lost|cannot|can.t|lm-gone|joining'
NET=o
DIRS=12 FILES=40

net up 3
MEMORY=512M deployment_start 3 --replicas 1 --partitions 12 --provider exec --listen "$SUBNET.254:0" \
    --first-address "$SUBNET.1" --exec-start "nsenter --net=/run/netns/$NET-{node} {lm}" \
    --mount-options "io_timeout=5"
await_protected

# The node that has the root directory, so that paths lead somewhere when it is alone.
mapfile -t node_of < <(jq '.parts[].node' "$STATE/cm.json")
node=${node_of[0]}
cut_mount="MNT$node" mount="MNT$(((node + 1) % 3))"
cut_mount=${!cut_mount} mount=${!mount}

# lies_there PATH: its home is on that node.
lies_there()
{
    [ "${node_of[$(home_of "$1")]}" = "$node" ]
}

files=()
for ((d = 0; d < DIRS; d++)); do
    mkdir "$mount/d$d"
    lies_there "$mount/d$d" || continue
    for ((f = 0; f < FILES; f++)); do
        echo old >"$mount/d$d/$f"
        ! lies_there "$mount/d$d/$f" || files+=("d$d/$f")
    done
done
ls -d "$cut_mount"/d* >/dev/null

# Opens them all and reads them; what could be read is in `learned`: descriptor → file.
declare -A learned
learn()
{
    local file fd
    for file in "${files[@]}"; do
        { exec {fd}<"$cut_mount/$file"; } 2>/dev/null || return 0
        read -r <&"$fd" && learned[$fd]=$file
    done
}

# Its own partitions answer for another second, and their replicas don't hear of it.
say "node $node is cut off, and its mount learns of ${#files[@]} files after that"
count=$(primaries "$node" | wc -l)
before=$(events_of failed-over)
net cut "$node"
learn
must_happen 60 more_events failed-over $((before + count - 1))
[ "${#learned[@]}" -gt 0 ] || fail "the mount has learned of no file"

# A path leads nowhere there, but what is open is open.
look() # DESCRIPTOR
{
    timeout -k 1 10 cat "/proc/self/fd/$1" 2>/dev/null
}

change() # DESCRIPTOR
{
    echo new >"$mount/${learned[$1]}" || return
    [ "$(look "$1")" != old ] || echo "${learned[$1]}" >>"$T/stale"
}

say "others change ${#learned[@]} of them"
touch "$T/stale"
for fd in "${!learned[@]}"; do
    change "$fd" &
done
wait
[ ! -s "$T/stale" ] || fail "the mount shows as they were: $(tr '\n' ' ' <"$T/stale")"

say "it comes back"
net heal "$node"
await_protected
is_new()
{
    [ "$(look "$1")" = new ]
}
for fd in "${!learned[@]}"; do
    must_happen 60 is_new "$fd"
    exec {fd}<&-
done
deployment_stop
net down

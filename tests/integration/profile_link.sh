#!/usr/bin/env bash
# memefs profile tells which node is behind a slow link: one that is far away, 20 ms each way.
# ctest: release timeout=120 waits
# shellcheck source=tests/support/own_net.sh
. "$(dirname "${BASH_SOURCE[0]}")/../support/own_net.sh"
need python3

MEMORY=160M
[ -c /dev/net/tun ] || skip "no /dev/net/tun"
for node in 0 1; do
    ip netns add "$NET-$node"
    ip -n "$NET-$node" link set lo up
done
"$MEMEFS_BIN/../tests/far_switch" 0 20 "$NET-0" "$NET-1" - >"$T/switch" &
switch=$!
must_happen 10 grep -q ready "$T/switch"
for node in 0 1; do
    ip -n "$NET-$node" address add "$SUBNET.$((node + 1))/24" dev eth0
    ip -n "$NET-$node" link set eth0 up
done
ip address add "$SUBNET.254/24" dev eth0
ip link set eth0 up
deployment_start 2 --provider exec --listen "$SUBNET.254:0" --first-address "$SUBNET.1" --partitions 8 \
    --exec-start "nsenter --net=/run/netns/$NET-{node} {lm}"

mkdir "$MNT0/dir"
python3 - "$MNT0" "$T" <<'PYTHON' &
import os, sys
i = 0
while not os.path.exists(sys.argv[2] + "/enough"):
    i += 1
    os.close(os.open(f"{sys.argv[1]}/dir/{i}", os.O_CREAT | os.O_WRONLY))
    os.setxattr(f"{sys.argv[1]}/dir/{i}", "user.x", b"y" * 200)
PYTHON
sleep 0.5
timeout 60 memefs profile "$MNT0/dir" --for 3s >"$T/profile" || fail "memefs profile"
: >"$T/enough"
wait %2
tail -n 1 "$T/profile"
tail -n 1 "$T/profile" |
    says -E '^[0-9]+ %: waiting for node 1 \(slow link: [4-9][0-9]?\.[0-9] ms per round trip at least, where others take 0\.[0-9]+\)$' ||
    fail "$(cat "$T/profile")"
deployment_stop
kill "$switch"

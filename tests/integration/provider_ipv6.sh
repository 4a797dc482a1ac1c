#!/usr/bin/env bash
# Machines that have IPv6 addresses alone, by name and as literals: cm start by ssh and by a command, mounts, files, the
# user's tools, nodes that come, move and go, a new cm; nothing of it takes an address of IPv4.
# ctest: release timeout=120
# shellcheck source=tests/support/own_net.sh
. "$(dirname "${BASH_SOURCE[0]}")/../support/own_net.sh"
# shellcheck source=tests/support/ssh_hosts.sh
. "$HARNESS_DIR/ssh_hosts.sh"

ALLOW_LOG='disconnected|lm-gone'
MNT=$T/mnt
OWN=/run/memefs-test
NET6=fd98:a::
export MEMEFS_STATE_DIR=$OWN

nodes()
{
    cm_ status --json | jq -r '[.nodes[] | .address] | join(" ")'
}

ipv6_alone() # MACHINES
{
    local i
    [ ! -e /proc/sys/net/ipv6/conf/all/disable_ipv6 ] || echo 0 >/proc/sys/net/ipv6/conf/all/disable_ipv6
    ip address add "${NET6}254/64" dev "$NET" nodad || skip "no IPv6 here"
    ip -4 address flush dev "$NET"
    {
        echo "::1 localhost"
        for ((i = 1; i <= $1; i++)); do
            echo "$NET6$i tux$i"
        done
    } >"$T/hosts.new"
    cat "$T/hosts.new" >"$T/hosts.d/hosts" # the same file, which each machine has as its own
    for ((i = 1; i <= $1; i++)); do
        on "tux$i" ip address add "$NET6$i/64" dev eth0 nodad
        on "tux$i" ip -4 address flush dev eth0
        on "tux$i" ip -4 address flush dev lo
    done
    sed -i "s/^tux/$NET6*,tux/" "$T/hosts.d/ssh.known"
    mount --bind "$T/hosts.d/hosts" /etc/hosts
}

mkdir "$MNT"
mkfifo "$T/pipe"
expect_fail 2 cm_ start --hosts "$T/pipe" --memory 64M &
waits=$!
say "machines with IPv6 alone"
ssh_hosts up 3
ipv6_alone 3

say "by ssh: a literal, a name, a literal with an address of its own"
printf '%s1\ntux2\n%s3 address=%s3\n' "$NET6" "$NET6" "$NET6" >"$T/hosts"
cm_ start --hosts "$T/hosts" --nodes 2 --memory 64M --mount "$MNT" --node-state-dir "$OWN" \
    --ssh-command "ssh -F $T/hosts.d/ssh.conf"
equal "${NET6}1 ${NET6}2" "$(nodes)" "nodes"
cm_ status >"$T/status"
grep -qF "${NET6}1" "$T/status" || fail "$(cat "$T/status")"
cm_ doctor >"$T/doctor" || fail "cm doctor: $(cat "$T/doctor")"
on tux1 bash -c "echo hello >$MNT/a && head -c 12M /dev/urandom >$MNT/b"
equal hello "$(on tux2 cat "$MNT/a")" "what tux2 reads"
sum=$(on tux1 sha256sum "$MNT/b")

say "nodes come and go"
cm_ scale +1
equal "$sum" "$(on tux3 sha256sum "$MNT/b")" "what tux3 reads"
cm_ drain "${NET6^^}1" # as an address, whatever its letters
equal "${NET6}2 ${NET6}3" "$(nodes)" "nodes"
must_happen 10 nothing_on tux1
cm_ replace "${NET6}3" "${NET6}1"
equal "${NET6}2 ${NET6}1" "$(nodes)" "nodes"
equal "$sum" "$(on tux1 sha256sum "$MNT/b")" "what tux1 reads"

say "tools on a node, which find the deployment through its lm"
on tux2 memefs layout "$MNT/b" | says -F "$NET6" || fail "$(on tux2 memefs layout "$MNT/b")"
for tool in "lost" "fsck" "stats $MNT" ; do
    # shellcheck disable=SC2086 # words
    on tux2 memefs $tool --name "$NAME" --state-dir "$OWN" >"$T/tool" 2>&1 || fail "memefs $tool: $(cat "$T/tool")"
done
on tux2 redis-cli -h "${NET6}2" -p "$(on tux2 ss -ltnpH | sed -n 's/.*\]:\([0-9]*\) .*redis.*/\1/p' | sed -n 1p)" ping 2>&1 |
    says NOAUTH || fail "redis does not listen at ${NET6}2"

say "a new cm"
kill -KILL "$(cut -d' ' -f1 "$STATE/cm.pid")"
must_happen 10 none_of cm
cm_ start
equal "$sum" "$(on tux2 sha256sum "$MNT/b")" "data at the end"
cm_ stop
must_happen 10 nothing_on tux1 tux2 tux3

say "by a command, in a network"
# shellcheck disable=SC2016 # for cm's shell
cm_ start --provider exec --exec-start "$HARNESS_DIR/../../scripts/ssh-hosts --name $NET --dir $T/hosts.d exec tux\$(({node}+1)) -- {lm}" \
    --nodes 2 --memory 64M --mount "$MNT" --network "$NET6/64" --node-state-dir "$OWN"
equal "${NET6}1 ${NET6}2" "$(nodes)" "nodes"
cm_ stop
must_happen 10 nothing_on tux1 tux2
wait "$waits" || fail "a pipe that nothing writes to"
grep -q "pipe: it is a pipe, and nothing has been written to it" "$T/expect.out" || fail "$(cat "$T/expect.out")"
ssh_hosts down
check_nothing_left

#!/usr/bin/env bash
# --replicas 1: the network splits. cm is alone with the smaller part, the larger part elects another, files are written
# on both sides. No partition ever has two processes that serve it, and no byte is lost that a close has acknowledged.
# ctest: slow timeout=240
ALLOW_LOG='lm-gone|connect|closed|superseded|earlier term|lost|refused|No route|timed out|partition|did not take|client-behind|session|written data|cannot|can.t|joining|does not answer|too few nodes'
# shellcheck source=tests/support/own_net.sh
. "$(dirname "${BASH_SOURCE[0]}")/../support/own_net.sh"
# shellcheck source=tests/support/ssh_hosts.sh
. "$HARNESS_DIR/ssh_hosts.sh"
need redis-cli

MNT=$T/mnt
OWN=/run/memefs/$NAME # on each machine

protected() # MACHINE: all nodes are there, and each partition has its replica
{
    status_is "$1" '.unprotected == 0 and ([.nodes[] | select(.state == "up")] | length) == 3'
}

# All nodes know that they vote.
voters_settled()
{
    local i
    for i in 1 2 3; do
        on "tux$i" jq -e '[.nodes[].votes] == [3, 3, 3]' "$OWN/node-$((i - 1))/cm.json" >/dev/null || return 1
    done
}

events_on() # MACHINE WHAT: so many there are
{
    cm_on "$1" events | grep -c " $2 " || true
}

said_on() # MACHINE WHAT
{
    [ "$(events_on "$1" "$2")" -gt 0 ]
}

# Until $T/stop is there, files; $T/NAME.sums lists those whose close has succeeded.
cat >"$T/writer" <<'EOF'
n=0
while [ ! -e "$1/stop" ]; do
    n=$((n + 1))
    head -c 20000 /dev/urandom >"$1/$2.data"
    if timeout 30 cp "$1/$2.data" "$3/$2-$n" 2>>"$1/$2.failed"; then
        echo "$(sha256sum <"$1/$2.data" | cut -d' ' -f1)  $2-$n" >>"$1/$2.sums"
    fi
    sleep 0.05
done
EOF

write_on() # MACHINE
{
    on "$1" bash "$T/writer" "$T" "$1" "$MNT"
}

more_than() # LINES FILE
{
    [ "$(wc -l <"$2")" -gt "$1" ]
}

files_grow() # MACHINE
{
    must_happen 60 more_than "$(wc -l <"$T/$1.sums")" "$T/$1.sums"
}

right_on() # MACHINE: all whose close has succeeded are there
{
    cat "$T"/tux*.sums >"$T/all"
    # shellcheck disable=SC2016 # for the inner shell
    on "$1" bash -c 'cd "$1" && timeout 60 sha256sum --quiet -c "$2"' check "$MNT" "$T/all" >"$T/check" 2>&1
}

# serves SOCKET PASSWORD: would it execute a client's command now?
serves()
{
    local said
    said=$(timeout 1 redis-cli -s "$1" --user "$ADMIN" --pass "$2" --no-auth-warning <<<$'ROLE\nmfs_term' 2>/dev/null) || return 1
    [ "$(head -1 <<<"$said")" = master ] || return 1
    [ "$(tail -2 <<<"$said" | sed -n 1p)" = 0 ] || [ "$(tail -1 <<<"$said")" -gt 0 ]
}

# Each process of each partition: "partition socket password", by what its lm has noted.
processes()
{
    local pid root i
    for i in 1 2 3; do
        pid=$(cut -d' ' -f1 "$T/hosts.d/tux$i.pid")
        root=/proc/$pid/root
        jq -r --arg root "$root" '(.redis[], .copies[].redis) | "\(.index) \($root)\(.unix_path) \(.admin_password)"' \
            "$root$OWN/node-$((i - 1))/lm.json" 2>/dev/null || true
    done
}

# While the same one serves before and after, another one must not.
watch_masters()
{
    local part socket word of one other_word all
    while [ ! -e "$T/stop" ]; do
        all=$(processes)
        while read -r part socket word; do
            serves "$socket" "$word" || continue
            while read -r of one other_word; do
                if [ "$of" = "$part" ] && [ "$one" != "$socket" ] && serves "$one" "$other_word" && serves "$socket" "$word"; then
                    echo "partition $part: $socket and $one" >>"$T/two"
                fi
            done <<<"$all"
        done <<<"$all"
        echo >>"$T/looks"
    done
}

ADMIN=$(sed -n 's/.*MFS_REDIS_ADMIN *"\(.*\)".*/\1/p' "$HARNESS_DIR"/../../src/cluster/*.h)
ssh_hosts up 3
mkdir "$MNT"
cm_on tux1 start --hosts 'tux[1-3]' --nodes 3 --partitions 6 --beta 1 --memory 192M --replicas 1 --mount "$MNT" \
    --mount-options io_timeout=5 --ssh-command "$SSH" || fail "cm start"
must_happen 60 protected tux1
must_happen 20 voters_settled
touch "$T"/tux{1,3}.{sums,failed}
: >"$T/two"
: >"$T/looks"
watch_masters &
write_on tux1 &
write_on tux3 &
files_grow tux1
files_grow tux3
must_happen 20 more_than 2 "$T/looks"

say "cm's machine is on one side, two others on the other"
before=$(events_on tux1 failed-over)
ip link add "${NET}b" type bridge
ip link set "${NET}b" up
ip link set "${NET}0" master "${NET}b"
cm_on tux2 start --adopt || fail "cm start --adopt"
must_happen 60 status_is tux2 '[.nodes[] | select(.name == "node-0") | .partitions] == [0]'
files_grow tux3
must_happen 20 said_on tux1 cut-off
must_happen 20 more_than "$(($(wc -l <"$T/looks") + 2))" "$T/looks"
equal "$before" "$(events_on tux1 failed-over)" "replicas that have taken over where fewer than half of the nodes are"

say "it is whole again"
ip link set "${NET}0" master "$NET"
must_happen 30 on tux1 test ! -e "$OWN/cm.json"
must_happen 60 protected tux2
files_grow tux3
files_grow tux1
touch "$T/stop"
wait
[ ! -s "$T/two" ] || fail "two processes have served: $(head -5 "$T/two")"
for m in tux1 tux2 tux3; do
    wait_for 60 right_on "$m" || fail "closed files are lost or wrong on $m: $(head -5 "$T/check")"
done
say "$(wc -l <"$T/all") files are right, $(cat "$T"/tux*.failed | wc -l) writes failed, $(wc -l <"$T/looks") looks at all processes"

cm_on tux2 stop || fail "cm stop"
for m in tux1 tux2 tux3; do
    wait_for 20 nothing_on "$m" || fail "left on $m"
done
ssh_hosts down

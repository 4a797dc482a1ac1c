#!/usr/bin/env bash
# cm forget without replicas: the partitions of dead nodes begin empty on the others. Files elsewhere stay, what is lost
# is never read as zeros and is listed, names can be made again, and memefs fsck can mend the rest.
# ctest: slow timeout=300
# shellcheck source=tests/support/harness.sh
. "$(dirname "${BASH_SOURCE[0]}")/../support/harness.sh"
# shellcheck source=tests/support/replicas.sh
. "$HARNESS_DIR/replicas.sh"
need jq

ALLOW_LOG='partition|did not take|client-behind|session|lm-gone|joining failed|disconnected|expired|written data|lost|unreachable|connect|leases'
MEMORY=256M
START="test ! -e $T/broken-{name} || exit 7; exec {lm}"

whole() # NODES
{
    cm_ status --json | jq -e --arg nodes "$1" '.state == "running" and ([.nodes[].name] | sort | join(" ")) == $nodes' >/dev/null
}

# Of the files of before: those that are there, whole; those that are there, damaged; those that are gone.
sort_files() # MOUNT
{
    local sum name
    : >"$T/right"
    : >"$T/damaged"
    : >"$T/gone"
    while read -r sum name; do
        if [ ! -e "$1/$name" ]; then
            echo "$name" >>"$T/gone"
        elif [ "$(sha256sum <"$1/$name" 2>/dev/null)" = "$sum  -" ]; then
            echo "$name" >>"$T/right"
        else
            cat "$1/$name" >/dev/null 2>&1 && fail "$name is read without an error, and is not what it was"
            echo "$name" >>"$T/damaged"
        fi
    done <"$T/sums"
    say "$(wc -l <"$T/right") right, $(wc -l <"$T/damaged") damaged, $(wc -l <"$T/gone") gone"
}

make_files() # MOUNT
{
    local i
    mkdir "$1/dir"
    for ((i = 0; i < 24; i++)); do
        head -c 3000000 /dev/urandom >"$1/large$i"
        head -c 3000 /dev/urandom >"$1/small$i"
        head -c 3000 /dev/urandom >"$1/dir/small$i"
    done
    truncate -s 20M "$1/sparse"
    printf end >>"$1/sparse"
    (cd "$1" && sha256sum large* small* dir/* sparse >"$T/sums")
}

check_lost_list()
{
    memefs_lost --null | tr '\0' '\n' | sed 's|^/||' | sort >"$T/lost"
    diff <(sort "$T/damaged") "$T/lost" || fail "memefs lost lists something else"
}

deployment_start 4 --beta 4 --provider exec --exec-start "$START"
make_files "$MNT3"

say "the root's home and two nodes are dead"
die node-0
die node-1
must_happen 20 event_says disconnected .
sleep 2.5
expect_fail 1 cm_ replace node-0
grep -q "node-0 is not there, and nothing else has what is in 8 partitions" "$T/expect.out" || fail "$(cat "$T/expect.out")"
expect_fail 1 cm_ forget node-0 </dev/null
grep -q "node-1 is not whole, either" "$T/expect.out" || fail "$(cat "$T/expect.out")"
expect_fail 1 cm_ forget node-0 node-1 </dev/null
grep -q "would be lost, .* with --yes that is done" "$T/expect.out" || fail "$(cat "$T/expect.out")"
cm_ forget --dry-run node-0 node-1 --json | jq -e '.partitions_lost == 16 and .to == 2' || fail "dry run"
cm_ forget --yes node-0 node-1 --json >"$T/report" || fail "forget: $(cat "$T/report") $(tail -5 "$STATE/cm.log")"
jq -e '.partitions_lost == 16 and .from == 4 and .to == 2' "$T/report" || fail "$(cat "$T/report")"
must_happen 20 whole "node-2 node-3"
sort_files "$MNT2"
for kind in right damaged gone; do
    [ -s "$T/$kind" ] || fail "no file is $kind, of 16 of 32 partitions"
done
check_lost_list

say "names can be made again, damaged files written anew; changes of nodes work"
while read -r name; do
    mkdir -p "$MNT3/$(dirname "$name")"
    echo new >"$MNT3/$name" || fail "can't make $name again"
    equal new "$(cat "$MNT2/$name")" "$name on the other mount"
done <"$T/gone"
while read -r name; do
    echo new >"$MNT2/$name" || fail "can't write $name anew"
done <"$T/damaged"
[ -z "$(memefs_lost)" ] || fail "still lost: $(memefs_lost)"
cm_ scale +1 || fail "cm scale"
cm_ rebalance || fail "cm rebalance"
memefs_fsck --repair >"$T/repair" 2>&1 || true
fsck_clean
deployment_stop
rm "$T"/broken-*

say "cm is killed in the middle"
deployment_start 3 --beta 4 --provider exec --exec-start "$START"
make_files "$MNT0"
die node-1
sleep 2.5
cm_ forget --yes node-1 >"$T/out" 2>&1 &
forget=$!
must_happen 20 grep -q '"renew"' "$STATE/cm.json"
kill -KILL "$(cut -d' ' -f1 "$STATE/cm.pid")"
! wait "$forget" || fail "cm forget says all is well: $(cat "$T/out")"
must_happen 10 none_of cm
cm_ start || true # it says that a node is not there
must_happen 60 whole "node-0 node-2"
sort_files "$MNT0"
check_lost_list
memefs_fsck --repair >"$T/repair" 2>&1 || true
fsck_clean
deployment_stop

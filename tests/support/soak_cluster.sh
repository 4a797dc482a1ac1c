# The soak: load that checks itself (build/PRESET/tests/soak) on a cluster of network namespaces, and
# a driver that does something bad to it every few seconds. Sourced by tests/integration/soak.sh and
# tests/stress/soak.sh, which call soak_main with these options:
#
#   --seconds N      of load (default 30)
#   --seed N         of the faults and of the load; printed (default: the clock's)
#   --replicas 0|1   cm start --replicas (default 0)
#   --every N        seconds from one fault to the next (default 10); it takes longer when the
#                    deployment has not recovered by then
#   --faults "A B…"  these in turn; by default random ones of all that this version knows
#   --kinds "A B…"   random ones of these
#   --json FILE      the figures: those of the load, and of each kind of fault how often and how long
#                    the deployment took until all was well again; what is wrong goes to FILE.wrong
#
# Judged: nothing wrong is ever read, no call lasts longer than BOUND; after each fault the deployment
# is whole again without anybody's help but `cm start` when cm was killed; in the end every closed
# file is there, or exactly those are missing that `memefs lost` lists, each of which had bytes in a partition of which a
# process died without a replica (with replicas nothing is struck before all have one, but one may be given up just then); fsck finds
# nothing but what a crash explains, and after TIDY_TIME (harness.sh) nothing at all, which nobody has repaired; and
# the harness nothing that is left.
# shellcheck shell=bash

# shellcheck source=tests/support/own_net.sh
. "$(dirname "${BASH_SOURCE[0]}")/own_net.sh"

NODES=3 # and one more that comes and goes
IO_TIMEOUT=5
# What a call may last: a client that is stopped is waited for until its session is dead (20 s), a
# stopped client's own callers as long as it is stopped (HOLD at most), and a call may need several
# commands that each wait for their partition.
BOUND=60
HOLD=12
CALM=90 # s until all is well again: a process that died again and again is started after 30 s
FAULTS_BASIC="client-killed client-stopped lm-killed lm-stopped cm-killed cm-stopped redis-stopped \
node-stopped link-cut link-slow scale scale-struck rebalance full"
FAULTS_LOSING="redis-killed node-killed" # where that is survived

# pick N: a number below N in `picked`.
pick()
{
    picked=$(((RANDOM << 15 | RANDOM) % $1))
}

# knows PROGRAM VERB
knows()
{
    "$1" "$2" --help >/dev/null 2>&1
}

cluster_start() # [CM-START-ARGUMENT…]
{
    net up $((NODES + 1)) >/dev/null 2>&1 || skip "the kernel has no namespaces, bridges or veth links for us"
    CLUSTER=(--max-nodes 8 --beta 4 --provider exec --listen "$SUBNET.254:0" --first-address "$SUBNET.1"
        --exec-start "nsenter --net=/run/netns/$NET-{node} {lm}"
        --mount-options "io_timeout=$IO_TIMEOUT" "$@")
    deployment_start "$NODES" "${CLUSTER[@]}"
}

# pid_in FILE: leaves the process id in `pid`; 1 when there is none.
pid_in()
{
    pid=
    { read -r pid _; } 2>/dev/null <"$STATE/$1" && [ -n "$pid" ] && kill -0 "$pid" 2>/dev/null
}

redis_of() # NODE: leaves the pid of one of its processes in `pid`
{
    local files
    files=("$STATE/node-$1"/redis-*.pid)
    pick "${#files[@]}"
    pid_in "${files[picked]#"$STATE"/}"
}

# stop_and_go SECONDS PID…
stop_and_go()
{
    local seconds=$1
    shift
    kill -STOP "$@" 2>/dev/null || true
    sleep "$seconds"
    kill -CONT "$@" 2>/dev/null || true
}

nodes_now()
{
    cm_ status --json | jq '.nodes | length'
}

# One more node, or it goes again.
scale_other() # HOW
{
    local to=$((NODES + 1))
    [ "$(nodes_now)" = "$NODES" ] || to=$NODES
    cm_ scale "$to" --migration "$1" >"$T/scale.out" 2>&1
}

fill()
{
    local m n=0
    for ((m = 0; m < 2; m++)); do
        while [ "$n" -lt 40 ] &&
            timeout "$BOUND" dd if=/dev/zero of="$T/mnt$m/fill$n" bs=1M count=60 status=none 2>>"$T/fill.out"; do
            n=$((n + 1))
        done
        n=$((n + 1))
    done
    grep -q 'No space left' "$T/fill.out" || say "memory was not full"
    for ((m = 0; m < n; m++)); do
        timeout "$BOUND" rm -f "$T/mnt$((m % 2))/fill$m" || say "fill$m could not be removed"
    done
}

# The faults. `node` is one of those that stay, `hold` a time in seconds; each returns when what it
# did is over. Status 1: it could not be done.
fault_client-killed()
{
    pid_in "node-$node/client.pid" && kill -KILL "$pid"
}

fault_client-stopped()
{
    pid_in "node-$node/client.pid" && stop_and_go "$hold" "$pid"
}

fault_lm-killed()
{
    pid_in "node-$node/lm.pid" && kill -KILL "$pid"
}

fault_lm-stopped()
{
    pid_in "node-$node/lm.pid" && stop_and_go "$hold" "$pid"
}

fault_cm-killed()
{
    pid_in cm.pid && kill -KILL "$pid"
    must_happen 10 none_of cm
    sleep "$((hold / 3))"
    cm_ start >"$T/start.out" 2>&1 || fail "cm start after cm was killed: $(cat "$T/start.out")"
}

fault_cm-stopped()
{
    pid_in cm.pid && stop_and_go "$hold" "$pid"
}

fault_redis-stopped()
{
    redis_of "$node" && stop_and_go "$hold" "$pid"
}

fault_redis-killed()
{
    redis_of "$node" && kill -KILL "$pid"
}

# step_of PARTITION: of its replica; "": it has none.
step_of()
{
    jq -r ".parts[$1].replica_step // \"\"" "$STATE/cm.json"
}

lacks_replica() # PARTITION
{
    case $(step_of "$1") in
    "" | copy) return 0 ;;
    *) return 1 ;;
    esac
}

# A partition's replica dies, and before there is another one so does its process: what it holds is lost. Only
# where it is asked for by name.
fault_redis-alone-killed()
{
    local part own status=0
    part=$(jq -r --argjson n "$node" '[.parts | to_entries[] | select(.value.node == $n) | .key] | first' "$STATE/cm.json")
    pid_in "node-$node/redis-$part.pid" || return 1
    own=$pid
    pid_in "node-$(jq ".parts[$part].replica_node" "$STATE/cm.json")/redis-$part.pid" || return 1
    kill -KILL "$pid"
    wait_for 10 lacks_replica "$part" || return 1
    pid_in cm.pid && kill -STOP "$pid" # it makes another one at once
    if lacks_replica "$part"; then
        kill -KILL "$own"
        wait_for 10 gone "$own" || status=1
    else
        status=1
    fi
    kill -CONT "$pid"
    return "$status"
}

fault_node-stopped()
{
    # shellcheck disable=SC2046
    stop_and_go "$hold" $(ip netns pids "$NET-$node")
}

fault_node-killed()
{
    # shellcheck disable=SC2046
    kill -KILL $(ip netns pids "$NET-$node") 2>/dev/null || true
}

fault_link-cut()
{
    net cut "$node"
    sleep "$hold"
    net heal "$node"
}

fault_link-slow()
{
    net rate "$node" 5mbit
    sleep "$hold"
    net rate "$node" none
}

fault_scale()
{
    pick 2
    scale_other "$([ "$picked" -eq 0 ] && echo hot || echo cold)" || refused_for_memory
}

# What `cm scale` must not do but for one reason: small nodes that hold much, once more with every
# replica, may have no room for a partition. Then it has said so, and all stays where it was.
refused_for_memory()
{
    grep 'has no memory for it\|have room for\|can.t hold the data\|nodes would hold, but' "$T/scale.out" >/dev/null ||
        fail "cm scale: $(cat "$T/scale.out")"
    say "refused: $(tail -1 "$T/scale.out"): $(cm_ status --json |
        jq -c '[.nodes[] | [.name, .state, .partitions, .memory_used, .memory_capacity]]')"
}

checkpoint()
{
    cm_ checkpoint "$T/checkpoint" >"$T/checkpoint.out" 2>&1
}

# One that has bytes which were lost since is not replaced.
fault_checkpoint()
{
    checkpoint || { grep -q "memefs lost lists" "$T/checkpoint.out" && rm -r "$T/checkpoint" && checkpoint; } ||
        fail "cm checkpoint: $(cat "$T/checkpoint.out")"
}

# That the checkpoint then fails is no fault.
fault_checkpoint-struck()
{
    local victim=(client lm cm)
    checkpoint &
    local writing=$!
    pick 3
    sleep "0.$hold"
    "fault_${victim[picked]}-killed" || true
    wait "$writing" || true
}

# Somebody dies while partitions move. That the change of nodes then fails is no fault.
fault_scale-struck()
{
    local victim=(client lm cm)
    scale_other hot &
    local scale=$!
    pick 3
    sleep "0.$hold"
    "fault_${victim[picked]}-killed" || true
    wait "$scale" || true
}

fault_rebalance()
{
    cm_ rebalance >"$T/scale.out" 2>&1 || refused_for_memory
}

fault_full()
{
    fill
}

# --- what must be so after each of them -------------------------------------------------------------

well()
{
    local m
    cm_ status --json >"$T/status.json" 2>/dev/null || return 1
    # The next fault may come when every partition has its replica again.
    jq -e '.state == "running" and (.unprotected // 0) == 0' "$T/status.json" >/dev/null || return 1
    for ((m = 0; m < NODES; m++)); do
        mountpoint -q "$T/mnt$m" && timeout 5 ls "$T/mnt$m/soak" >/dev/null 2>&1 || return 1
    done
}

# one_fault NAME: it, and until all is well; leaves in $T/faults.tsv what it was.
one_fault()
{
    local name=$1 began=${EPOCHREALTIME/./} over calm status=0
    pick "$NODES"
    node=$picked
    pick $((HOLD - 1))
    hold=$((picked + 2))
    [ "$replicas" -eq 0 ] || wait_for "$CALM" well || fail "before $name: not well after $CALM s"
    echo "$name" >"$T/now.new" && mv "$T/now.new" "$T/now"
    "fault_$name" || status=$?
    [ "$status" -eq 0 ] || say "$name could not be done on node $node"
    over=${EPOCHREALTIME/./}
    wait_for "$CALM" well || {
        cm_ doctor || true
        fail "$name (node $node, $hold s): not well after $CALM s: $(jq -c '[.state, .nodes[].state]' "$T/status.json")"
    }
    calm=${EPOCHREALTIME/./}
    say "$(printf '%4d s: %-15s node %d, lasted %5.1f s, well after %5.1f s' "$SECONDS" "$name" "$node" \
        "$(((over - began) / 100000))e-1" "$(((calm - over) / 100000))e-1")"
    printf '%s\t%s\t%s\n' "$name" $(((over - began) / 1000)) $(((calm - over) / 1000)) >>"$T/faults.tsv"
    kill -0 "$load" 2>/dev/null || fail "the load has ended"
}

# All that this version is to survive.
faults_known()
{
    printf '%s ' "$FAULTS_BASIC"
    if knows memefs lost || [ "$replicas" -gt 0 ]; then
        printf '%s ' "$FAULTS_LOSING"
    fi
    ! knows cm checkpoint || printf 'checkpoint checkpoint-struck'
}

faults_until() # SECONDS
{
    local turn=0 next=$SECONDS name
    read -ra names <<<"$faults"
    while [ "$SECONDS" -lt "$1" ]; do
        if [ -n "$in_turn" ]; then
            [ "$turn" -lt "${#names[@]}" ] || break
            name=${names[turn]}
            turn=$((turn + 1))
        else
            pick "${#names[@]}"
            name=${names[picked]}
        fi
        one_fault "$name"
        next=$((next + every))
        while [ "$SECONDS" -lt "$next" ]; do
            sleep 0.2
        done
        [ "$SECONDS" -lt $((next + every)) ] || next=$SECONDS
    done
}

# --- in the end ---------------------------------------------------------------------------------------

figures() # FILE
{
    jq -R -s 'split("\n") | map(select(. != "") | split("\t")) | group_by(.[0]) |
        map({key: .[0][0], value: {times: length, recovered_ms_max: (map(.[2] | tonumber) | max),
             recovered_ms_mean: (map(.[2] | tonumber) | add / length | floor)}}) | from_entries' \
        "$T/faults.tsv" >"$T/faults.json"
    jq -s --argjson replicas "$replicas" \
        '.[0] + {replicas: $replicas, faults_done: .[1]}' "$T/load.json" "$T/faults.json" >"$1"
}

# What had no name any more when the load ended, housekeeping frees.
lost_has_names()
{
    memefs lost --json --name "$NAME" --state-dir "$STATE" >"$T/lost.json" || fail "memefs lost"
    jq -e 'all(.files[]; .path != "")' "$T/lost.json" >/dev/null
}

# The partitions of which a process died that had bytes and no replica just then, a JSON list: its
# names were taken up again, or its copy was not whole.
died_alone()
{
    jq -c -n '[inputs | select(.what == "partition-lost" or
            (.what == "redis-revived" and (.text | contains(" 0 stripes ") | not))) |
        .text | capture("^partition (?<part>[0-9]+):").part | tonumber] | unique' "$STATE/events.jsonl"
}

# Where a process without a replica has died a file may have lost content, but then it is listed, and no other is.
check_lost()
{
    local alone without_reason
    if ! knows memefs lost; then
        [ ! -s "$T/lost" ] || fail "files are lost: $(head -5 "$T/lost")"
        return 0
    fi
    wait_for "$TIDY_TIME" lost_has_names || true # which the comparison tells
    jq -r '.files[].path | ltrimstr("/")' "$T/lost.json" | sort -u >"$T/lost.told"
    sort -u "$T/lost" >"$T/lost.seen"
    diff "$T/lost.seen" "$T/lost.told" >&2 || fail "lost (<) is not what memefs lost lists (>)"
    alone=$(died_alone)
    without_reason=$(jq -c --argjson alone "$alone" '.files[] | .partitions -= $alone | select(.partitions != [])' "$T/lost.json")
    [ -z "$without_reason" ] ||
        fail "lost, and each process that died of these partitions had a replica (without one: $alone): $(head -5 <<<"$without_reason")"
    say "$(wc -l <"$T/lost.seen") files lost, all of them listed, in partitions of $alone"
}

soak_main()
{
    local seconds=30 seed=$((${EPOCHREALTIME/./} % 100000)) replicas=0 every=10 faults='' in_turn='' json=''
    local node hold load picked start_options=()
    while [ $# -gt 0 ]; do
        case $1 in
        --seconds) seconds=$2 ;;
        --seed) seed=$2 ;;
        --replicas) replicas=$2 ;;
        --every) every=$2 ;;
        --faults) faults=$2 in_turn=1 ;;
        --kinds) faults=$2 ;;
        --json) json=$2 ;;
        *) fail "unknown option $1" ;;
        esac
        shift 2
    done
    RANDOM=$seed
    say "seed $seed"
    [ "$replicas" -eq 0 ] || start_options=(--replicas "$replicas")
    faults=${faults:-$(faults_known)}
    MEMORY=${MEMORY:-256M}
    cluster_start "${start_options[@]}"
    local options=(--seconds 86400 --seed "$seed" --bound "$BOUND" --now "$T/now" --json "$T/load.json" --lost "$T/lost")
    local wrong=${json:+$json.wrong} # told at once, and kept however this ends
    wrong=${wrong:-$T/load.err}
    "$MEMEFS_BIN/../tests/soak" "${options[@]}" "$MNT0" "$MNT1" "$MNT2" >"$T/load.out" 2>"$wrong" &
    load=$!
    : >"$T/faults.tsv"
    must_happen 20 [ -d "$MNT1/soak" ]
    faults_until $((SECONDS + seconds))
    echo end >"$T/now"
    kill -TERM "$load"
    local status=0
    wait "$load" || status=$?
    cat "$T/load.out"
    cat "$wrong" >&2
    figures "${json:-$T/figures.json}"
    [ "$status" -eq 0 ] || fail "the load found something wrong"
    fsck_clean
    check_lost
    deployment_stop
    net down
}

#!/usr/bin/env bash
# A partition moves; at each step, each of the processes that take part is killed -9. What a user or
# the service manager would start again is started again (cm; Local Managers are started by cm). Then
# the deployment must be whole: one process per partition, at the node that the table names, nothing
# under way, all that was written and acknowledged there, and no error at any application whose own
# client was not killed. A partition may be lost only when its only copy was killed, and then it is
# told. In the end it scales again, and stops without a trace.
#
# ROUNDS=n goes n times through everything, in hot and in cold; without it a part is done once.
# CASES="cut:cm copy:target-redis" chooses. RESULTS=FILE: one line is appended per case.
# ctest: slow serial timeout=900
# shellcheck source=tests/support/harness.sh
. "$(dirname "${BASH_SOURCE[0]}")/../support/harness.sh"
need jq perl

ALLOW_LOG='Z error ' # managers tell what was done to them
STRIKE=$HARNESS_DIR/strike
MEMORY=256M
QUICK="copy:cm cut:cm release:cm copy:source-lm cut:source-lm copy:target-lm cut:target-lm \
copy:target-redis cut:target-redis copy:client cut:client copy:source-redis cut:source-redis"
FULL="copy:cm cut:cm release:cm undo:cm copy:source-lm cut:source-lm release:source-lm \
undo:source-lm copy:target-lm cut:target-lm release:target-lm undo:target-lm copy:target-redis \
cut:target-redis copy:client cut:client release:client copy:source-redis cut:source-redis"
CASES=${CASES:-${ROUNDS:+$FULL}}
CASES=${CASES:-$QUICK}
WRITERS=()

fail()
{
    kill -KILL "${WRITERS[@]}" 2>/dev/null || true
    printf 'FAIL: %s\n' "$*" >&2
    exit 1
}

# ---- load -----------------------------------------------------------------------------------------

size_of() # INDEX
{
    printf '%s' $((($1 * 7919) % 150000 + 1))
}

# Small files, and one that is written again and again; what was acknowledged is noted.
writer() # MOUNT NAME
{
    local index=0
    mkdir -p "$1/$2" || return 0
    while [ ! -e "$T/halt" ]; do
        index=$((index + 1))
        {
            if head -c "$(size_of $index)" "$T/data" >"$1/$2/f$index" &&
                printf '%s' $index >"$1/$2/counter"; then
                printf '%s\n' $index >>"$T/$2.done"
            else
                printf 'file %s\n' $index >&2
            fi
        } 2>>"$T/$2.errors"
        sleep 0.01
    done
}

load_start()
{
    rm -f "$T"/halt "$T"/w?.done "$T"/w?.errors
    touch "$T/w0.done" "$T/w1.done" "$T/w0.errors" "$T/w1.errors"
    writer "$MNT0" w0 &
    WRITERS=($!)
    writer "$MNT1" w1 &
    WRITERS+=($!)
    must_happen 20 [ -s "$T/w0.done" ]
}

load_stop()
{
    touch "$T/halt"
    must_happen 60 gone "${WRITERS[0]}"
    must_happen 60 gone "${WRITERS[1]}"
}

# All acknowledged content, seen from the other mount.
load_check() # NAME MOUNT
{
    local index last counter
    while read -r index; do
        head -c "$(size_of "$index")" "$T/data" | cmp - "$2/$1/f$index" || return 1
    done <"$T/$1.done"
    last=$(tail -n 1 "$T/$1.done")
    counter=$(cat "$2/$1/counter") || return 1
    [ -z "$last" ] || [ "${counter:-0}" -ge "$last" ]
}

# ---- what must be so afterwards --------------------------------------------------------------------

calm()
{
    jq -e '(.moves | length) == 0 and (.scale.step // "") == ""' "$STATE/cm.json"
}

running()
{
    [ "$(cm_ status --json | jq -r .state)" = running ]
}

told() # WHAT
{
    grep -q "\"what\":\"$1\"" "$STATE/events.jsonl"
}

one_process_each()
{
    local want got
    want=$(jq '.parts | length' "$STATE/cm.json")
    got=$(pids_of redis-server | wc -l)
    [ "$want" -eq "$got" ] &&
        jq -e '[.parts[] | .node, .password] == [.table.partitions[] | .node, .password]' \
            "$STATE/cm.json"
}

no_errors() # NAME
{
    [ ! -s "$T/$1.errors" ] || {
        head -5 "$T/$1.errors" >&2
        return 1
    }
}

# ---- one case --------------------------------------------------------------------------------------

# Which outcome it was, by the events.
outcome()
{
    if told partition-lost; then
        echo lost
    elif told forced; then
        echo forced
    elif told move-undone; then
        echo undone
    elif told move-failed; then
        echo 'undone, then moved'
    else
        echo moved
    fi
}

strike_at() # STEP VICTIM
{
    local stopped='' status=0
    # That needs a reason; and the source's Local Manager is asked first, so it lasts while that is
    # stopped.
    if [ "$1" = undo ]; then
        stopped=$("$STRIKE" "$STATE" copy source-lm 0 30 STOP | cut -d' ' -f2)
        "$STRIKE" "$STATE" copy target-redis 20 30 >>"$T/struck" || status=$?
    fi
    # A cut may last less than a millisecond, so the look must come in time.
    nice -n -15 "$STRIKE" "$STATE" "$1" "$2" "$([ "$1" = copy ] && echo $((RANDOM % 150)) || echo 0)" 30 \
        >>"$T/struck" || status=$?
    [ -z "$stopped" ] || kill -CONT "$stopped" 2>/dev/null || true
    return "$status"
}

check_whole() # STEP VICTIM
{
    must_happen 60 calm
    must_happen 40 running
    must_happen 30 one_process_each
    load_stop
    [ "$2" = client ] || no_errors w0 || fail "$1:$2: errors on mount 0"
    no_errors w1 || fail "$1:$2: errors on mount 1"
    must_happen 30 mountpoint -q "$MNT0"
    must_happen 30 ls "$MNT0"
    load_check w0 "$MNT1" || fail "$1:$2: what was written on mount 0"
    load_check w1 "$MNT0" || fail "$1:$2: what was written on mount 1"
    rm -rf "$MNT1/w0" "$MNT1/w1"
}

# Its only copy has died: that is told, nothing more is promised.
check_lost() # STEP VICTIM
{
    touch "$T/halt"
    [ "$2" = source-redis ] || fail "$1:$2: a partition is lost though nobody killed it"
    told partition-lost || told redis-died || fail "$1:$2: nobody tells that a partition is lost"
    kill -KILL "${WRITERS[@]}" 2>/dev/null || true
    must_happen 30 gone "${WRITERS[0]}"
    must_happen 30 gone "${WRITERS[1]}"
}

one_case() # STEP VICTIM MIGRATION
{
    local nodes status=0 result began=$SECONDS
    nodes=$(jq '.nodes | length' "$STATE/cm.json")
    : >"$STATE/events.jsonl"
    : >"$T/struck"
    load_start
    cm_ scale $((nodes == 2 ? 3 : 2)) --migration "$3" --rate 30M >"$T/scale.out" 2>&1 &
    local scale=$!
    strike_at "$1" "$2" || status=$?
    if [ "$status" -ne 0 ]; then
        say "$1:$2 $3: not struck ($status)"
    fi
    if [ "$2" = cm ] && [ "$status" -eq 0 ]; then
        must_happen 10 none_of cm
        cm_ start || fail "$1:$2: cm start after its death"
    fi
    wait "$scale" || [ "$2" = cm ] || [ "$2" = source-redis ] ||
        fail "$1:$2 $3: cm scale failed: $(cat "$T/scale.out")"
    result=$(outcome)
    if [ "$2" = source-redis ] && { [ "$result" != forced ] || ! one_process_each >/dev/null; }; then
        check_lost "$1" "$2"
        result=lost
    else
        check_whole "$1" "$2"
    fi
    STRUCK=$((status == 0))
    say "$1:$2 $3: $result, $((SECONDS - began)) s; $(tr '\n' ';' <"$T/struck")"
    [ "$STRUCK" -eq 0 ] ||
        printf '%s\t%s\t%s\t%s\n' "$1" "$2" "$3" "$result" >>"${RESULTS:-$T/results}"
    [ "$result" != lost ] || fresh
}

fresh()
{
    save_logs
    timeout 60 cm stop --name "$NAME" --state-dir "$STATE" || fail "cm stop"
    check_nothing_left
    begin
}

begin()
{
    deployment_start 2 --max-nodes 4
    head -c 30000000 "$T/data" >"$MNT0/ballast"
}

head -c 30000000 /dev/urandom >"$T/data"
begin
for ((round = 0; round < ${ROUNDS:-1}; round++)); do
    for migration in hot ${ROUNDS:+cold}; do
        for case in $CASES; do
            STRUCK=0
            for ((try = 0; try < 4 && !STRUCK; try++)); do # a step may be over too soon
                one_case "${case%:*}" "${case#*:}" "$migration"
            done
            [ "$STRUCK" -eq 1 ] || fail "$case $migration: never in time to kill anything"
        done
    done
done
cmp "$T/data" "$MNT0/ballast" || fail "what was there all the time"
cm_ scale 4 >/dev/null || fail "scale after all of it"
running || fail "not running"
say "everything was seen: $(cut -f 4 "${RESULTS:-$T/results}" | sort | uniq -c | tr -s ' \n' ' ')"
deployment_stop

#!/usr/bin/env bash
# A partition moves; at each step, each of the processes that take part is killed -9. What a user or
# the service manager would start again is started again (cm; Local Managers are started by cm). Then
# the deployment must be whole: one process per partition, at the node that the table names, nothing
# under way, all that was written and acknowledged there, and no error at any application whose own
# client was not killed. A partition may be lost only when its only copy was killed, and then it is
# told. In the end it scales again, and stops without a trace.
#
# A case is STEP:VICTIM. Steps are those of a move (cm/partitions/move.h) and come and go of a change of nodes;
# cm-twice is killed again while it starts anew, cm-long stays dead for some seconds.
#
# ROUNDS=n goes n times through everything, in hot and in cold; without it a part is done once.
# CASES="cut:cm copy:target-redis" and MIGRATIONS="hot cold" choose. RESULTS=FILE: one line is appended
# per case.
# ctest: slow serial timeout=420
# shellcheck source=tests/support/harness.sh
. "$(dirname "${BASH_SOURCE[0]}")/../support/harness.sh"
need jq perl

ALLOW_LOG='Z error ' # managers tell what was done to them
STRIKE=$HARNESS_DIR/strike
MEMORY=256M
QUICK="copy:cm cut:cm undo:cm copy:source-lm copy:target-lm cut:target-lm copy:target-redis \
cut:client cut:source-redis match:cm go:target-lm"
FULL="copy:cm cut:cm release:cm undo:cm drop:cm match:cm copy:cm-twice cut:cm-twice release:cm-twice \
undo:cm-twice cut:cm-long copy:source-lm cut:source-lm release:source-lm undo:source-lm \
drop:source-lm match:source-lm copy:target-lm cut:target-lm release:target-lm undo:target-lm \
drop:target-lm match:target-lm match:target-redis match:source-redis copy:target-redis cut:target-redis copy:client cut:client \
release:client undo:client come:cm come:cm-twice come:target-lm come:client go:cm go:cm-twice \
go:target-lm go:client copy:source-redis cut:source-redis drop:source-redis"
CASES=${CASES:-${ROUNDS:+$FULL}}
CASES=${CASES:-$QUICK}
MIGRATIONS=${MIGRATIONS:-hot${ROUNDS:+ cold}}
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

# All acknowledged content, seen from the other mount; but, where it went on with what had arrived of
# a process that died, a few files that it had taken last. One process for all: there are many files.
load_check() # NAME MOUNT
{
    local spared=0
    ! told forced || spared=10
    perl -e '
        my ($data, $done, $dir, $spared) = @ARGV;
        my $last = 0;
        local $/ = undef;
        sub slurp { open(my $f, "<", $_[0]) or die "$_[0]: $!\n"; my $t = <$f>; $t // "" }
        my $all = slurp($data);
        for my $index (split /\n/, slurp($done)) {
            my $want = substr($all, 0, $index * 7919 % 150000 + 1);
            my $got = eval { slurp("$dir/f$index") } // "";
            $got eq $want or $spared-- > 0 or die "$dir/f$index: $@differs\n";
            $last = $index;
        }
        !$last || slurp("$dir/counter") >= $last or die "$dir/counter is old\n";
    ' "$T/data" "$T/$1.done" "$2/$1" "$spared"
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
    elif told completed; then
        echo completed
    elif told scale-undone; then
        echo 'node did not come'
    elif told move-undone; then
        echo undone
    elif told move-failed; then
        echo 'undone, then moved'
    else
        echo moved
    fi
}

# What leads to that step, and has it last where it would be over too soon; then the blow.
strike_at() # STEP VICTIM
{
    local phases=() delay='' victim=${2%-twice}
    victim=${victim%-long}
    case $1 in
    copy | come | go)
        delay=+$((RANDOM % 150))
        ;;
    undo | drop)
        # The source's Local Manager is asked first. Then the source serves, and the target's is asked.
        phases+=("copy:source-lm=STOP,target-redis")
        [ "$1" = undo ] || phases+=("undo:target-lm=STOP,source-lm=CONT")
        ;;
    match)
        phases+=(cut:source-redis)
        ;;
    esac
    phases+=("$1$delay:$victim")
    # A cut may last less than a millisecond, so the look must come in time.
    nice -n -15 "$STRIKE" "$STATE" 60 "${phases[@]}" >>"$T/struck"
}

cm_lives()
{
    kill -0 "$(cut -d' ' -f1 "$STATE/cm.pid")"
}

# What a user or the service manager does.
restart_cm() # VICTIM
{
    must_happen 10 none_of cm
    [ "$1" != cm-long ] || sleep 5
    if [ "$1" = cm-twice ]; then
        cm_ start >"$T/start.out" 2>&1 &
        local starter=$!
        must_happen 20 cm_lives
        sleep "0.$(printf '%03d' $((RANDOM % 300)))"
        kill -KILL "$(cut -d' ' -f1 "$STATE/cm.pid")"
        wait "$starter" || true
        must_happen 10 none_of cm
    fi
    cm_ start || fail "cm start after its death"
}

check_whole() # STEP VICTIM
{
    must_happen 60 calm
    must_happen 40 running
    must_happen 30 one_process_each
    load_stop
    [ "$2" = client ] || no_errors w0 || fail "$1:$2: errors on mount 0"
    no_errors w1 || fail "$1:$2: errors on mount 1"
    must_happen 45 mountpoint -q "$MNT0" # its client is started again after up to 30 s
    must_happen 30 ls "$MNT0"
    load_check w0 "$MNT1" || fail "$1:$2: what was written on mount 0"
    load_check w1 "$MNT0" || fail "$1:$2: what was written on mount 1"
    rm -rf "$MNT1/w0" "$MNT1/w1"
}

# Its only copy has died: that is told, bytes are lost, and the partition is there again.
check_lost() # STEP VICTIM
{
    touch "$T/halt"
    told partition-lost || told redis-died || fail "$1:$2: nobody tells that a partition is lost"
    kill -KILL "${WRITERS[@]}" 2>/dev/null || true
    # Each of its last calls may wait for that partition as long as one may.
    must_happen 100 gone "${WRITERS[0]}"
    must_happen 100 gone "${WRITERS[1]}"
    must_happen 60 calm
    must_happen 60 running
    must_happen 30 one_process_each
    must_happen 30 ls "$MNT0" "$MNT1"
}

# A change of nodes may fail by that; what it leaves is looked at all the same.
may_fail() # STEP VICTIM
{
    case $1:$2 in
    *:cm* | *:source-redis | match:* | come:target-lm) ;;
    *) return 1 ;;
    esac
}

# Only one of a partition's processes was killed, and not the one that has its data.
may_lose() # STEP VICTIM
{
    case $1:$2 in
    *:source-redis | match:* | cut:target-redis) ;; # which may be the only one already
    *) return 1 ;;
    esac
}

# Bytes are gone: a process with the only copy died. A source's copy was not used when its move failed,
# and nothing came of that.
lost() # VICTIM
{
    told partition-lost ||
        { told redis-died && ! told forced && ! told completed &&
            { [ "$1" != source-redis ] || told move-failed; }; }
}

one_case() # STEP VICTIM MIGRATION
{
    local nodes status=0 result began=$SECONDS
    nodes=$(jq '.nodes | length' "$STATE/cm.json")
    case $1:$nodes in
    come:3 | go:2)
        nodes=$((5 - nodes))
        cm_ scale "$nodes" >/dev/null || fail "cm scale $nodes"
        must_happen 60 calm # what it leaves behind is not to be struck
        ;;
    esac
    : >"$STATE/events.jsonl"
    : >"$T/struck"
    load_start
    cm_ scale $((nodes == 2 ? 3 : 2)) --migration "$3" --rate 30M >"$T/scale.out" 2>&1 &
    local scale=$!
    strike_at "$1" "$2" || status=$?
    if [ "$status" -ne 0 ]; then
        say "$1:$2 $3: not struck ($status)"
    fi
    if [[ $2 = cm* ]] && [ "$status" -eq 0 ]; then
        restart_cm "$2"
    fi
    wait "$scale" || may_fail "$1" "$2" || fail "$1:$2 $3: cm scale failed: $(cat "$T/scale.out")"
    if may_lose "$1" "$2" && { ! wait_for 60 calm || lost "$2"; }; then
        check_lost "$1" "$2"
        result=lost
    else
        check_whole "$1" "$2"
        result=$(outcome)
    fi
    STRUCK=$((status == 0))
    [ "$result" != forced ] || FORCED=1
    say "$1:$2 $3: $result, $((SECONDS - began)) s; $(tr '\n' ';' <"$T/struck")"
    [ "$STRUCK" -eq 0 ] ||
        printf '%s\t%s\t%s\t%s\n' "$1" "$2" "$3" "$result" >>"${RESULTS:-$T/results}"
    [ "$result" != lost ] || fresh
}

missed() # STEP VICTIM MIGRATION
{
    [ -n "${ROUNDS:-}" ] || fail "$1:$2 $3: never in time to kill anything"
    printf '%s\t%s\t%s\tmissed\n' "$1" "$2" "$3" >>"${RESULTS:-$T/results}"
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
    deployment_start 2 --max-nodes 4 --beta 4
    FORCED=0
    head -c 30000000 "$T/data" >"$MNT0/ballast"
}

head -c 30000000 /dev/urandom >"$T/data"
begin
for ((round = 0; round < ${ROUNDS:-1}; round++)); do
    for migration in $MIGRATIONS; do
        for case in $CASES; do
            STRUCK=0
            for ((try = 0; try < 4 && !STRUCK; try++)); do # a step may be over too soon
                one_case "${case%:*}" "${case#*:}" "$migration"
            done
            [ "$STRUCK" -eq 1 ] || missed "${case%:*}" "${case#*:}" "$migration"
        done
    done
done
cmp "$T/data" "$MNT0/ballast" || fail "what was there all the time"
cm_ scale 4 >/dev/null || fail "scale after all of it"
running || fail "not running"
if [ "$FORCED" -eq 0 ]; then
    fsck_clean
else
    # What had not arrived of a partition is missing: inodes of names that are elsewhere, a directory's bits, links
    # that are counted too low. That is damage, which no search may mend by guessing (decisions/0025): it is for people.
    memefs_fsck --repair || fail "memefs fsck --repair"
    fsck_silent
fi
say "everything was seen: $(cut -f 4 "${RESULTS:-$T/results}" | sort | uniq -c | tr -s ' \n' ' ')"
deployment_stop

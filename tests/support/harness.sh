# The harness of integration tests: a deployment of one's own, and the promise that nothing of it is
# left. Sourced by a test; see docs/design/testing.md for a small example.
# shellcheck shell=bash
#
# Sourcing it starts the test anew in PID and mount namespaces of its own: the test sees only its
# own processes, its mounts are nobody else's, and the kernel removes both when the test ends in
# whatever way. The check for left-overs runs before that, inside.
#
# A test may set before it calls deployment_start:
#   ALLOW_LOG    an extended regular expression: lines of logs that are no failure of this test
#   MEMORY       per node, default 1G
# and reads:
#   T            private directory            NAME, STATE   the deployment's name and state directory
#   MNT0 MNT1 …  the mounts; cm, lm and memefs of the build are in PATH

set -euo pipefail

HARNESS_DIR=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
MEMEFS_BIN=${MEMEFS_BIN:-$(cd "$HARNESS_DIR/../.." && pwd)/build/release/bin}
PATH=$MEMEFS_BIN:$PATH
ALLOW_LOG=${ALLOW_LOG:-}

say()
{
    printf '# %s\n' "$*"
}

skip()
{
    printf 'SKIP: %s\n' "$*"
    exit 77
}

# COMMAND | says [OPTION…] PATTERN: a line of it is like that. "grep -q" would end at that line, and the
# command that still writes by a signal: the pipe fails though the line is there (scripts/lint shell).
says()
{
    grep "$@" >/dev/null
}

# fail MESSAGE…: ends the test; the trap prints the logs' tails and cleans up.
fail()
{
    printf 'FAIL: %s\n' "$*" >&2
    exit 1
}

need()
{
    local tool
    for tool in "$@"; do
        command -v "$tool" >/dev/null || skip "$tool is not installed"
    done
}

# wait_for SECONDS COMMAND…: runs the command every 50 ms until it succeeds; 1 when time is up. What its
# last try printed is in $T/tried; a `fail` in it ends the test, and harness_finish shows why.
wait_for()
{
    local deadline=$((SECONDS + $1))
    shift
    trying=yes
    until "$@" >"$T/tried" 2>&1; do
        [ "$SECONDS" -lt "$deadline" ] || {
            trying=
            return 1
        }
        sleep 0.05
    done
    trying=
}

# home_of FILE: its home partition, in bits 37 … 52 of its inode's number (src/base/ino.h).
home_of()
{
    printf '%s' $(($(stat -c %i "$1") >> 37 & 0xffff))
}

# gone PID
gone()
{
    ! kill -0 "$1" 2>/dev/null
}

# must_happen SECONDS COMMAND…: wait_for that fails the test.
must_happen()
{
    wait_for "$@" || fail "did not happen within $1 s: ${*:2}: $(tail -n 20 "$T/tried")"
}

# expect_fail STATUS COMMAND…: the command must end with that exit status.
expect_fail()
{
    local want=$1 got=0
    shift
    "$@" >"$T/expect.out" 2>&1 || got=$?
    [ "$got" -eq "$want" ] || {
        cat "$T/expect.out" >&2
        fail "exit status $got instead of $want: $*"
    }
}

# equal WANT GOT WHAT
equal()
{
    [ "$1" = "$2" ] || fail "$3: expected '$1', got '$2'"
}

# parent_of PID: leaves its parent in `parent`; 1 when it is gone. Here and below nothing is started:
# there are many processes to look at, and a process for each look is slow on a busy machine. One
# line is one read(2): of a file of several lines bash would read the rest anew, and in
# /proc/PID/status all lines shift while the process falls asleep.
parent_of()
{
    local line
    { IFS= read -r line; } 2>/dev/null <"/proc/$1/stat" || return 1
    line=${line##*) ? } # behind the name and the state
    parent=${line%% *}
    [[ $parent == +([0-9]) ]]
}

# in_test PID: the process descends from the test's own shell. Daemons do not: they belong to the
# namespace's init.
in_test()
{
    local pid=$1 parent
    while [ "$pid" -gt 1 ]; do
        [ "$pid" -ne "$$" ] || return 0
        if parent_of "$pid"; then
            pid=$parent
        elif [ "$pid" -ne "$1" ] && [ -e "/proc/$1" ]; then
            pid=$1 # an ancestor has ended meanwhile, and the process has another
        else
            return 0 # gone meanwhile
        fi
    done
    return 1
}

# The process ids of all that runs in the test's PID namespace and is not the test itself.
daemon_pids()
{
    local dir pid word
    for dir in /proc/[0-9]*; do
        pid=${dir#/proc/}
        [ "$pid" -ne 1 ] || continue
        word=
        { IFS= read -r -d '' word || true; } 2>/dev/null <"$dir/cmdline" || continue
        [ -n "$word" ] || continue # a zombie has none
        in_test "$pid" || printf '%s\n' "$pid"
    done
}

# pids_of PROGRAM: the deployment's processes of that name (cm, lm, memefs, redis-server).
pids_of()
{
    local pid comm
    for pid in $(daemon_pids); do
        comm=
        { read -r comm || true; } 2>/dev/null <"/proc/$pid/comm" || continue
        if [ "$comm" = "$1" ]; then
            printf '%s\n' "$pid"
        fi
    done
}

none_of()
{
    [ -z "$(pids_of "$1")" ]
}

# redis_serving PARTITION: leaves its process in `pid`, and its node's directory in `dir`.
redis_serving()
{
    local file
    for file in "$STATE"/node-*/redis-"$1".pid; do
        [ -s "$file" ] || continue
        read -r pid _ <"$file"
        dir=${file%/*}
        return 0
    done
    fail "no process of partition $1"
}

# redis_kill PARTITION: it dies, and lm starts another one in its place.
redis_kill()
{
    local pid dir
    redis_serving "$1"
    kill -KILL "$pid"
}

# redis_lose PARTITION: it dies with its journal, so that nothing can take its place.
redis_lose()
{
    local pid dir
    redis_serving "$1"
    rm -f "$dir/redis-$1".journal*
    kill -KILL "$pid"
}

# cm_ VERB…: the central manager's command line for this test's deployment.
cm_()
{
    local verb=$1
    shift
    timeout "${CM_TIMEOUT:-120}" cm "$verb" --name "$NAME" --state-dir "$STATE" "$@"
}

# memefs_fsck [ARGUMENT…]: of this test's deployment.
memefs_fsck()
{
    timeout "${FSCK_TIMEOUT:-300}" memefs fsck --name "$NAME" --state-dir "$STATE" "$@"
}

# memefs_lost [ARGUMENT…]: of this test's deployment.
memefs_lost()
{
    timeout "${FSCK_TIMEOUT:-300}" memefs lost --name "$NAME" --state-dir "$STATE" "$@"
}

# fsck_silent: memefs fsck finds nothing.
fsck_silent()
{
    memefs_fsck >"$T/fsck.out" || {
        cat "$T/fsck.out" >&2
        fail "memefs fsck finds something"
    }
}

# fsck_clean: memefs fsck finds nothing but what clients that died may leave, and that ends without help: the
# mounts that are there have TIDY_TIME for it (s: a session's life, its looks with half a minute between them,
# twice, as what is found can be disturbed; and what a busy machine takes).
TIDY_TIME=${TIDY_TIME:-240}
fsck_clean()
{
    local began=$SECONDS
    ! memefs_fsck --json >"$T/fsck.out" || return 0
    if [ ! -s "$T/fsck.out" ] || grep -F '"leak": false' "$T/fsck.out" >&2; then
        cat "$T/fsck.out" >&2
        fail "memefs fsck fails, or finds what no crash explains"
    fi
    grep -F '"kind"' "$T/fsck.out" || true
    until memefs_fsck >"$T/fsck.out"; do
        [ $((SECONDS - began)) -lt "$TIDY_TIME" ] || {
            cat "$T/fsck.out" >&2
            fail "after $TIDY_TIME s housekeeping has left something"
        }
        sleep 1
    done
    say "tidy after $((SECONDS - began)) s"
}

# deployment_start NODES [CM-START-ARGUMENT…]: every node has a mount; $MEMORY per node.
deployment_start()
{
    local nodes=$1 index program
    shift
    [ -c /dev/fuse ] || skip "no /dev/fuse"
    for program in cm lm memefs; do
        [ -x "$MEMEFS_BIN/$program" ] || fail "$program is not built in $MEMEFS_BIN"
    done
    for ((index = 0; index < nodes; index++)); do
        mkdir -p "$T/mnt$index"
        printf -v "MNT$index" '%s' "$T/mnt$index"
    done
    cm_ start --nodes "$nodes" --memory "${MEMORY:-1G}" --mount "$T/mnt%n" "$@" ||
        fail "cm start failed"
    for ((index = 0; index < nodes; index++)); do
        mountpoint -q "$T/mnt$index" || fail "$T/mnt$index is not mounted after cm start"
    done
}

# event_says WHAT REGEX: there is such an event, and its text is like that (needs jq).
event_says()
{
    cm_ events --json | jq -se --arg what "$1" --arg re "$2" \
        'any(.what == $what and (.text | test($re)))' >/dev/null
}

# cm_is_told FILTER: cm is killed and started again with what jq makes of its state.
cm_is_told()
{
    kill -KILL "$(cut -d' ' -f1 "$STATE/cm.pid")"
    must_happen 10 none_of cm
    jq "$1" "$STATE/cm.json" >"$T/cm.json"
    cat "$T/cm.json" >"$STATE/cm.json"
    cm_ start || fail "cm start"
}

# memory_of INDEX: KiB that a node's processes take, pages that several share in parts (PSS).
memory_of()
{
    local file pid
    for file in "$STATE/node-$1"/{redis-*,client,lm}.pid; do
        [ ! -e "$file" ] || pid=$(cut -d' ' -f1 "$file")
        awk '/^Pss:/ { print $2 }' "/proc/$pid/smaps_rollup" 2>/dev/null || true
    done | awk '{ sum += $1 } END { print sum + 0 }'
}

# sanitized: the programs are built with a sanitizer, which keeps freed memory and shadows of all.
sanitized()
{
    ldd "$MEMEFS_BIN/memefs" | grep -E 'lib[at]san' >/dev/null
}

# within_limit KIB: no node takes more than its limit and a sixteenth (what is taken between its looks of
# lm).
within_limit()
{
    local node taken
    for node in "$STATE"/node-*; do
        taken=$(memory_of "${node##*-}")
        say "${node##*/} takes $((taken >> 10)) MiB of $(($1 >> 10))"
        sanitized || [ "$taken" -le $(($1 * 17 / 16)) ] ||
            fail "${node##*/} takes $taken KiB, its limit is $1"
    done
}

# cm stop removes the state directory, logs and all: second names keep them for the checks.
save_logs()
{
    local inode name
    mkdir -p "$T/logs"
    while read -r inode name; do
        ln -f "$STATE/$name" "$T/logs/${name//\//_}.$inode" 2>/dev/null || true
    done < <(find "$STATE" -xdev -type f -name '*.log' -printf '%i %P\n' 2>/dev/null)
}

# deployment_stop: cm stop, then nothing may be left.
deployment_stop()
{
    save_logs
    cm_ stop || fail "cm stop failed"
    check_nothing_left
}

check_nothing_left()
{
    wait_for 10 no_daemons ||
        fail "processes left after cm stop: $(for pid in $(daemon_pids); do
            tr '\0' ' ' <"/proc/$pid/cmdline"
            printf '(%s); ' "$pid"
        done)"
    ! grep -F " $T/" /proc/self/mounts || fail "mounts left after cm stop"
    local sockets
    sockets=$(find "$T" -type s)
    [ -z "$sockets" ] || fail "sockets left after cm stop: $sockets"
    ! compgen -G "/var/tmp/memefs-$NAME-*" >&2 || fail "dump directories left after cm stop"
}

no_daemons()
{
    [ -z "$(daemon_pids)" ]
}

# Logs of all deployments of the test, each once, and the reports of sanitizers.
log_files()
{
    save_logs
    find "$T/logs" "$T"/sanitizer.* -type f 2>/dev/null | sort
}

# Lines at level error, reports of a sanitizer, and cores fail the test unless ALLOW_LOG covers them.
check_logs()
{
    local bad log
    while read -r log; do
        bad=$(grep -aE '^[^ ]+Z error |"level":"error"|Sanitizer|runtime error:|Segmentation|Assertion .* failed' \
            "$log" | { if [ -n "$ALLOW_LOG" ]; then grep -vE "$ALLOW_LOG"; else cat; fi; } | sed -n 1,20p) || true
        if [ -n "$bad" ]; then
            printf '%s:\n%s\n' "${log#"$T"/}" "$bad" >&2
            fail "suspicious lines in ${log#"$T"/}"
        fi
    done < <(log_files)
    local cores
    cores=$(find "$T" -xdev -type f \( -name core -o -name 'core.[0-9]*' \))
    [ -z "$cores" ] || fail "core files: $cores"
}

print_log_tails()
{
    local log
    while read -r log; do
        case $log in
        *redis*) continue ;; # thirty of them and seldom the cause
        esac
        [ -s "$log" ] || continue
        printf -- '---- %s\n' "${log#"$T"/}"
        tail -n 40 "$log"
    done < <(log_files)
}

# Runs at the end of every test, however it ends. A test that passed is still judged by its logs and
# by what it left behind.
harness_finish()
{
    local status=$?
    trap - EXIT
    kill -CONT -1 2>/dev/null || true
    if [ "$status" -eq 0 ]; then
        (harness_conclude) || status=1
    fi
    if [ "$status" -ne 0 ] && [ "$status" -ne 77 ]; then
        [ -z "$trying" ] || {
            exec 2>&"$told" # wait_for's redirection still holds
            tail -n 20 "$T/tried" >&2
        }
        print_log_tails >&2
    fi
    harness_cleanup
    exit "$status"
}

harness_conclude()
{
    if [ -n "$(daemon_pids)" ] || grep -qF " $T/" /proc/self/mounts; then
        deployment_stop
    fi
    check_nothing_left
    check_logs
}

harness_cleanup()
{
    local pid mount mounts
    for pid in $(daemon_pids); do
        kill -KILL "$pid" 2>/dev/null || true
    done
    mapfile -t mounts < <(awk -v below="$T/" 'index($2, below) == 1 { print $2 }' /proc/self/mounts)
    for mount in "${mounts[@]}"; do
        mount=$(printf '%b' "$mount") # blanks are written as \040
        # By force first, which breaks a connection whose client can't end (src/host/hung_mount.h); without looking at the path.
        umount -c -f "$mount" 2>/dev/null || umount -c -l "$mount" 2>/dev/null || true
    done
    rm -rf --one-file-system /var/tmp/memefs-"$NAME"-*
    umount -l "$T" 2>/dev/null || true # where it had to be a mount
    if [ -n "${KEEP:-}" ]; then
        say "kept: $T"
    else
        rm -rf --one-file-system "$T" || true
    fi
}

# Ends a test that takes too long in a way that lets it print its logs.
watchdog()
{
    local pid
    sleep "$1"
    {
        printf 'FAIL: not finished after %s s; processes:\n' "$1"
        ps -eo pid,ppid,stat,wchan:24,args
    } >&2
    # What the test stopped must go on, or every process that has a file of its open waits for it.
    kill -CONT -1
    kill -TERM $$
    # The shell handles the signal when its foreground command has ended.
    for pid in $(pgrep -P $$); do
        [ "$pid" -eq "$BASHPID" ] || kill -KILL "$pid"
    done
    sleep 20
    kill -KILL $$
}

# --- starts here ---------------------------------------------------------------------------------

if [ -z "${HARNESS_INSIDE:-}" ]; then
    [ "$(id -u)" -eq 0 ] || skip "must be root (mounts, namespaces)"
    # In a chroot "/" is no mount, so that its propagation cannot be made private.
    for HARNESS_INSIDE in private unchanged none; do
        namespaces=(unshare --mount --propagation "$HARNESS_INSIDE" --pid --fork --mount-proc)
        ! "${namespaces[@]}" true 2>/dev/null || break
    done
    [ "$HARNESS_INSIDE" != none ] || skip "unshare is not permitted here"
    export HARNESS_INSIDE
    # The namespace's init adopts and reaps the daemons: bash does that while it waits.
    # shellcheck disable=SC2016
    exec "${namespaces[@]}" --kill-child bash -c 'bash "$@" & wait "$!"' test-init "$0" "$@"
fi

# The path is short: UNIX sockets live below it.
T=$(mktemp -d "${TMPDIR:-/tmp}/mfs.XXXXXX")
chmod 755 "$T" # other users pass through to the mounts
if [ "$HARNESS_INSIDE" = unchanged ]; then
    mount --bind "$T" "$T"
    mount --make-private "$T" # what is mounted below stays in this namespace
fi
unset HARNESS_INSIDE # tests that run tests get their own
exec {told}>&2
trying= # yes: in wait_for
trap harness_finish EXIT
trap 'exit 130' INT TERM HUP
NAME=t${T##*.}
STATE=$T/s
ulimit -c 0
watchdog "${TEST_SECONDS:-600}" &
disown

# Sanitizers report into files that check_logs reads, whatever a daemon does with its stderr.
export ASAN_OPTIONS="log_path=$T/sanitizer:detect_leaks=1:${ASAN_OPTIONS:-}"
export UBSAN_OPTIONS="log_path=$T/sanitizer:print_stacktrace=1:${UBSAN_OPTIONS:-}"
export TSAN_OPTIONS="log_path=$T/sanitizer:second_deadlock_stack=1:${TSAN_OPTIONS:-}"

# What the tests of replicas share: a load of checksummed files, and questions about who has what.
# Source it after harness.sh.
# shellcheck shell=bash

# unprotected N: so many partitions have no replica.
unprotected()
{
    [ "$(cm_ status --json | jq .unprotected)" = "$1" ]
}

await_protected()
{
    must_happen 60 unprotected 0
}

# die NODE: as a machine does: its processes are killed, its mount and its directories are gone, and its lm can't be
# started again, where --exec-start fails for a node with that file.
die()
{
    local file
    touch "$T/broken-$1"
    for file in "$STATE/$1"/{lm,client,redis-*}.pid; do
        [ ! -s "$file" ] || kill -KILL "$(cut -d' ' -f1 "$file")" || true
    done
    umount -l "$T/mnt${1#node-}"
    rm -r "${STATE:?}/$1" /var/tmp/memefs-"$NAME"-*/"$1"
}

# primaries NODE, replicas NODE: the process ids of the partitions that it serves, or has replicas of.
primaries()
{
    local part
    for part in $(jq -r --argjson n "$1" '.parts | to_entries[] | select(.value.node == $n) | .key' "$STATE/cm.json"); do
        cut -d' ' -f1 "$STATE/node-$1/redis-$part.pid"
    done
}

replicas()
{
    local part
    for part in $(jq -r --argjson n "$1" '.parts | to_entries[] |
        select(.value.replica_step == "ready" and .value.replica_node == $n) | .key' "$STATE/cm.json"); do
        cut -d' ' -f1 "$STATE/node-$1/redis-$part.pid"
    done
}

# serves_not NODE PID: the process is not one that serves a partition any more.
serves_not()
{
    ! grep -qx "$2" <(primaries "$1") # in a pipe, who writes into it may fail when grep has seen enough
}

# events_of WHAT: so many there are.
events_of()
{
    cm_ events | grep -c " $1 " || true
}

more_events() # WHAT THAN
{
    [ "$(events_of "$1")" -gt "$2" ]
}

# epoch_ms: for what is told, never for what is judged.
epoch_ms()
{
    date +%s%3N
}

# write_files MOUNT NAME: until $T/stop is there, files of several sizes; $T/NAME.sums lists those whose close
# has succeeded, $T/NAME.failed what failed, $T/NAME.times when each was done.
write_files()
{
    local n=0 size
    touch "$T/$2.sums" "$T/$2.failed"
    mkdir -p "$1/$2"
    while [ ! -e "$T/stop" ]; do
        n=$((n + 1))
        size=$((n % 7 == 0 ? 3000000 : n % 3 == 0 ? 200000 : 5000))
        head -c "$size" /dev/urandom >"$T/$2.data"
        if cp "$T/$2.data" "$1/$2/$n" 2>>"$T/$2.failed"; then
            (cd "$T" && sha256sum "$2.data") | sed "s|$2.data|$2/$n|" >>"$T/$2.sums"
            epoch_ms >>"$T/$2.times"
        fi
        [ "$n" -lt "${FILES_MOST:-400}" ] || sleep 0.2 # memory has an end
    done
}

# files_grow NAME: one more is written than there are now.
files_grow()
{
    local before
    before=$(wc -l <"$T/$1.sums")
    must_happen "${2:-60}" more_than "$before" "$1"
}

more_than()
{
    [ "$(wc -l <"$T/$2.sums")" -gt "$1" ]
}

# check_files MOUNT NAME: all whose close has succeeded are there and right.
check_files()
{
    (cd "$1" && sha256sum --quiet -c "$T/$2.sums" >"$T/check.out" 2>&1) || {
        head -20 "$T/check.out" >&2
        fail "closed files of $2 are lost or wrong"
    }
    say "$2: $(wc -l <"$T/$2.sums") files are right, $(wc -l <"$T/$2.failed") writes failed"
}

# longest_pause NAME SINCE-MS: between two files that were done, from then on.
longest_pause()
{
    awk -v since="$2" '$1 >= since { if (last && $1 - last > most) most = $1 - last; last = $1 }
        $1 < since { last = $1 } END { print most + 0 }' "$T/$1.times"
}

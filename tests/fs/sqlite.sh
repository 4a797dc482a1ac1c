#!/usr/bin/env bash
# sqlite's journals work: rollback and WAL, several writers, and a writer killed in mid-transaction.
# ctest: timeout=240
# shellcheck source=tests/support/fs_script.sh
. "$(dirname "${BASH_SOURCE[0]}")/../support/fs_script.sh"
need sqlite3

sql()
{
    sqlite3 -cmd '.timeout 30000' "$@"
}

check()
{
    local answer
    answer=$(sql "$1" 'PRAGMA integrity_check;')
    [ "$answer" = ok ] || fail "$1: integrity_check: $answer"
}

insert_many() # DATABASE WRITER ROWS
{
    local i
    for ((i = 0; i < $3; i++)); do
        printf 'INSERT INTO t VALUES (%d, %d, hex(randomblob(200)));\n' "$2" "$i"
    done | sql "$1" >/dev/null
}

for mode in delete wal; do
    db=$mode.db
    sql "$db" "PRAGMA journal_mode=$mode; CREATE TABLE t (writer, n, data); CREATE INDEX i ON t (data);" >/dev/null
    writers=()
    for writer in 1 2 3; do
        insert_many "$db" "$writer" 60 &
        writers+=($!)
    done
    for pid in "${writers[@]}"; do
        wait "$pid" || fail "$mode: a writer failed"
    done
    check "$db"
    [ "$(sql "$db" 'SELECT count(*) FROM t;')" = 180 ] || fail "$mode: rows are missing"

    # A transaction that never ends, in a process that is killed: nothing of it may be seen.
    mkfifo "$scratch/$mode.in"
    sqlite3 "$db" <"$scratch/$mode.in" >/dev/null 2>&1 &
    victim=$!
    exec 9>"$scratch/$mode.in"
    printf 'PRAGMA cache_spill=1; PRAGMA cache_size=5; BEGIN IMMEDIATE;\n' >&9
    printf "UPDATE t SET data = 'lost';\n%.0s" 1 2 3 >&9
    sleep 1
    {
        kill -KILL "$victim"
        wait "$victim" || true
    } 2>/dev/null
    exec 9>&-
    check "$db"
    [ "$(sql "$db" "SELECT count(*) FROM t WHERE data = 'lost';")" = 0 ] || fail "$mode: half a transaction"
    sql "$db" 'VACUUM;'
    check "$db"
    cp "$db" "$scratch/copy.db"
    check "$scratch/copy.db"
done

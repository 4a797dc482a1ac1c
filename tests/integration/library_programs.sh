#!/usr/bin/env bash
# Programs that use libmemefs, as cm sees them: connections that a program has ended are forgotten while it runs, and
# cm stop ends no program, whatever it calls itself. A connection ends soon though partitions do not answer, or are gone.
# ctest: timeout=120
# shellcheck source=tests/support/harness.sh
. "$(dirname "${BASH_SOURCE[0]}")/../support/harness.sh"

ALLOW_LOG='lm\[.*(can.t|died)|partition [0-9]+|written data are lost'
MEMORY=256M
deployment_start 1
export MEMEFS_TEST_NAME=$NAME MEMEFS_TEST_STATE=$STATE
program=$MEMEFS_BIN/../tests/lib_programs
[ -x "$program" ] || skip "$program is not built"

said() # PROGRAM WORDS
{
    grep -qx "$2" "$T/$1.out"
}

ended() # PROGRAM
{
    grep '^ended incomplete' "$T/$1.out" >/dev/null
}

listed() # NUMBER NAME
{
    [ "$(cm_ clients | grep -c -- "$2")" -eq "$1" ]
}

say "many small files at once: what is lost is an error, not zeros"
mkdir "$MNT0/small"
for i in $(seq 60); do
    head -c 3000 /dev/zero | tr '\0' x >"$MNT0/small/$i"
done
sync -f "$MNT0"
redis_kill 0
redis_kill 1
any_lost()
{
    [ "$(memefs_lost "$@" | wc -l)" -gt 0 ]
}
must_happen 30 any_lost
lost=$(memefs_lost | wc -l)
equal "$lost lost" "$("$program" lost 60)" "files that mget says are lost"
rm -r "$MNT0/small"

mkfifo "$T/named.in" "$T/unnamed.in"
"$program" hold 20 prog <"$T/named.in" >"$T/named.out" &
named=$!
"$program" hold 2 "" <"$T/unnamed.in" >"$T/unnamed.out" &
unnamed=$!
exec 8>"$T/named.in" 9>"$T/unnamed.in"
must_happen 60 said named connected
must_happen 60 said unnamed connected
must_happen 20 listed 20 "prog$\|prog "
must_happen 20 listed 2 lib_programs

say "connections that ended are no clients any more"
echo >&8
echo >&9
must_happen 60 said named "one left"
must_happen 60 said unnamed "one left"
must_happen 20 listed 1 "prog$\|prog "
must_happen 20 listed 1 lib_programs

# The end of a connection, with 12 files to be written back: the bound is of all of them together.
mkfifo "$T/end.in" "$T/stopped.in"
"$program" end 2000 <"$T/end.in" >"$T/end.out" &
end=$!
"$program" end 2000 <"$T/stopped.in" >"$T/stopped.out" &
stopped=$!
exec 6>"$T/end.in" 7>"$T/stopped.in"
must_happen 60 said end connected
must_happen 60 said stopped connected

say "a connection ends though no partition answers"
redis=$(pids_of redis-server)
# shellcheck disable=SC2086
kill -STOP $redis
echo >&6
must_happen 20 ended end
# shellcheck disable=SC2086
kill -CONT $redis
cat "$T/end.out"

say "cm stop leaves both programs running"
cm_ stop || fail "cm stop failed"
echo >&7
must_happen 20 ended stopped
cat "$T/stopped.out"
wait "$end" || fail "the program that ends without answers: status $?"
wait "$stopped" || fail "the program that ends when all is stopped: status $?"
exec 8>&- 9>&-
wait "$named" || fail "the program with a name: status $?"
wait "$unnamed" || fail "the program without a name: status $?"
said named "goes on" || fail "the program with a name did not go on"
said unnamed "goes on" || fail "the program without a name did not go on"
check_nothing_left

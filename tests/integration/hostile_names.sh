#!/usr/bin/env bash
# Names that a terminal or a shell would obey: what lists files shows them as a shell reads them, or with --null as they are, and
# completion runs nothing (reports of a session: ESC and newlines came out raw; a directory called $(…) in /run/memefs was run).
# ctest: timeout=60
# shellcheck source=tests/support/harness.sh
. "$(dirname "${BASH_SOURCE[0]}")/../support/harness.sh"
# shellcheck disable=SC2034
ALLOW_LOG='redis|died|lost|revived'
need jq

say "completion"
(
    cd "$T"
    # shellcheck source=scripts/packaging/memefs.bash
    . "$HARNESS_DIR/../../scripts/packaging/memefs.bash"
    # shellcheck disable=SC2016
    hostile='/run/memefs/x$(touch ran)'
    mkdir -p "$hostile" "/run/memefs/$NAME-seen"
    complete_it() # PROGRAM WORD…: into COMPREPLY
    {
        COMP_WORDS=("$@")
        COMP_CWORD=$(($# - 1))
        _memefs "$1"
    }
    complete_it cm status --name ''
    rmdir "$hostile" "/run/memefs/$NAME-seen"
    [ ! -e ran ] || fail "completion ran a command"
    [[ " ${COMPREPLY[*]} " = *" $NAME-seen "* ]] || fail "deployments: ${COMPREPLY[*]}"
    [[ "${COMPREPLY[*]}" != *touch* ]] || fail "no deployment is called so: ${COMPREPLY[*]}"
    complete_it cm sta
    equal "start status" "$(printf '%s\n' "${COMPREPLY[@]}" | sort | paste -sd ' ')" "verbs"
    complete_it cm start --migration h
    equal hot "${COMPREPLY[*]}" "choices"
    complete_it memefs lost --nu
    equal --null "${COMPREPLY[*]}" "options"
    # shellcheck disable=SC2016
    mkdir dir && touch 'dir/f$(touch ran)' dir/g
    complete_it memefs layout dir/
    equal 2 "${#COMPREPLY[@]}" "files"
    [ ! -e ran ] || fail "completion of files ran a command"
) || exit 1

say "lists"
MEMORY=64M deployment_start 1
# shellcheck disable=SC2016
names=(plain 'a b' "it's" $'new\nline' $'\e[31mred' $'\xc2\x9b2J' $'\xff' schön $'tab\t' '$(touch ran)' '~root')
mkdir "$MNT0/d"
for name in "${names[@]}"; do
    for i in 1 2 3 4 5 6; do
        printf 'x' >"$MNT0/d/$name$i"
    done
done
memefs layout "$MNT0/d/"$'\e[31mred1' >"$T/out"
grep -qF "'$MNT0/d/'\$'\\033''[31mred1': inode" "$T/out" || fail "layout: $(cat -v "$T/out")"
memefs layout "$MNT0/d/plain1" | says "^$MNT0/d/plain1: inode" || fail "a plain name is quoted"
expect_fail 1 memefs layout $'/proc/\e[31m'
! grep -q $'\e' "$T/expect.out" || fail "an error tells the terminal something"
redis_kill 0
must_happen 20 event_says redis-revived 'partition 0'
memefs_lost "$MNT0" >"$T/lost"
memefs_lost --null "$MNT0" >"$T/null"
[ -s "$T/null" ] || fail "nothing was lost: nothing was tested"
[ -z "$(LC_ALL=C tr -d '\n\303\266 -~' <"$T/lost")" ] || fail "control characters: $(cat -v "$T/lost")"
while IFS= read -r line; do
    eval "printf '%s\\0' $line"
done <"$T/lost" | cmp - "$T/null" || fail "a shell reads other names"
while IFS= read -r -d '' path; do
    [ -f "$path" ] || fail "no such file: $path"
    rm "$path"
done <"$T/null"
equal "" "$(memefs_lost)" "lost after all were removed"
[ ! -e ran ] || fail "a name was run"
deployment_stop

#!/usr/bin/env bash
# The command lines: help, versions, wrong usage (exit 2, one line that says why), and calls for a
# deployment that is not there (exit 1).
# shellcheck source=tests/support/harness.sh
. "$(dirname "${BASH_SOURCE[0]}")/../support/harness.sh"

for program in cm lm memefs; do
    "$program" --help >"$T/help" || fail "$program --help"
    "$program" -h | cmp -s - "$T/help" || fail "$program -h is not $program --help"
    [ "$(wc -l <"$T/help")" -ge 3 ] || fail "$program --help says little"
    "$program" --version >"$T/version" || fail "$program --version"
    grep -qE '[0-9]+\.[0-9]+' "$T/version" || fail "$program --version names no version"
done
for verb in start status scale drain replace forget rebalance events doctor stop; do
    cm "$verb" --help >"$T/help" || fail "cm $verb --help"
    grep -q -- "--name" "$T/help" || fail "cm $verb --help does not mention --name"
    cm "$verb" -h | cmp -s - "$T/help" || fail "cm $verb -h is not cm $verb --help"
done
for verb in mount umount layout fsck lost stats stage-in stage-out bench; do
    memefs "$verb" --help >/dev/null || fail "memefs $verb --help"
done

# The manual pages tell of every option that the programs have, and of no other.
same_options() # PAGE COMMAND…
{
    local page=$HARNESS_DIR/../../docs/man/$1 command
    shift
    for command in "$@"; do
        # shellcheck disable=SC2086
        $command --help
    done | grep -oE '^  --[a-z0-9-]+' | tr -d ' ' | grep -vxE -- '--(help|version)' | sort -u >"$T/in-help"
    sed 's/\\-/-/g' "$page" | grep -E '^\.(B|BI|BR|RB) ' | grep -oE -- '--[a-z0-9-]+' |
        grep -vxE -- '--(help|version)' | sort -u >"$T/in-page"
    diff "$T/in-help" "$T/in-page" || fail "the options in the help (<) and in ${page##*/} (>) differ"
}
same_options cm.1 "cm start" "cm status" "cm top" "cm describe" "cm list" "cm scale" "cm drain" "cm replace" "cm forget" "cm rebalance" "cm policy" "cm events" "cm doctor" "cm report" "cm mark" "cm stop"
same_options lm.8 lm
same_options memefs.1 "memefs mount" "memefs umount" "memefs layout" "memefs fsck" "memefs lost" "memefs stats" "memefs profile" "memefs top" "memefs trace" "memefs stage-in" "memefs bench"
sed -n '/^.SH MOUNT OPTIONS/,/^.SH EXIT/p' "$HARNESS_DIR/../../docs/man/memefs.1" >"$T/section"
for option in $(memefs mount --help | sed -n '/^Mount options/,$s/^  \([a-z_]*\)[= ].*/\1/p'); do
    grep -qw -- "$option" "$T/section" || fail "memefs.1 does not tell of -o $option"
done

wrong_usage()
{
    expect_fail 2 "$@"
    [ -s "$T/expect.out" ] || fail "no message: $*"
}
wrong_usage cm
wrong_usage cm no-such-verb
wrong_usage cm start --no-such-option
wrong_usage cm start --nodes none
wrong_usage cm start --nodes 0
wrong_usage cm start --memory 12parsecs
wrong_usage cm start --migration lukewarm
wrong_usage cm mark
wrong_usage cm mark ""
wrong_usage cm mark one two
wrong_usage cm mark $'two\nlines'
wrong_usage cm mark $'\xff'
wrong_usage cm mark "$(printf '%201s' x)"
wrong_usage cm scale
wrong_usage cm scale many
wrong_usage cm scale 2 3
wrong_usage cm scale 2 --rate fast
wrong_usage cm rebalance 2
wrong_usage cm doctor now
wrong_usage cm doctor --name ..
wrong_usage memefs
wrong_usage memefs no-such-verb
wrong_usage memefs mount
wrong_usage memefs layout
wrong_usage memefs stage-in
wrong_usage memefs stage-in "$T"
wrong_usage memefs stage-out --jobs 0 "$T" "$T"
wrong_usage memefs stage-out -T "$T" "$T" "$T"
wrong_usage memefs fsck /mnt
wrong_usage memefs fsck --mend
wrong_usage memefs mount -o no_such_option "$T"
wrong_usage memefs mount --lm "$T/lm.sock" --cm 127.0.0.1:1 "$T"
wrong_usage lm --no-such-option

cannot()
{
    expect_fail 1 "$@"
    equal 1 "$(wc -l <"$T/expect.out")" "lines of the message of '$*'"
}
cannot cm_ status
cannot cm_ events
cannot cm_ scale 2
cannot cm_ rebalance
cannot memefs layout /etc/passwd
cannot memefs fsck --state-dir "$T/nothing"
cannot memefs mount --lm "$T/no-such-socket" "$T"

mkdir "$T/foreign"
mount -t tmpfs -o size=64k tmpfs "$T/foreign"
cannot memefs umount "$T/foreign"
umount "$T/foreign" || fail "memefs umount has unmounted what is not its own"

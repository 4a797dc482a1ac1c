#!/usr/bin/env bash
# cm top on terminals: sizes, keys, a resize, colours and characters as the terminal and the locale have them, cm's
# death, and the terminal given back at any end.
# ctest: waits timeout=90
# shellcheck source=tests/support/harness.sh
. "$(dirname "${BASH_SOURCE[0]}")/../support/harness.sh"
need jq python3
/usr/bin/python3 -c 'import pyte' 2>/dev/null || skip "python3-pyte is not installed"

# on SIZE [VARIABLE=VALUE…]: cm top in a terminal; the script is on standard input.
on()
{
    local size=$1
    shift
    env -u NO_COLOR TERM=xterm-256color LC_ALL=C.UTF-8 "$@" \
        timeout 60 /usr/bin/python3 "$HARNESS_DIR/terminal" "$size" \
        "$MEMEFS_BIN/cm" top --name "$NAME" --state-dir "$STATE" || fail "on a terminal of $size, $*"
}

on 80x24 <<'END'
see cm: top: deployment .* is not running
end 1
END
deployment_start 3 --partitions 8
dd if=/dev/urandom of="$MNT1/file" bs=1M count=20 status=none

say "80x24"
on 80x24 <<END
see $NAME running  3 nodes, 16 partitions|$NAME running  3 nodes
fits
see ^NODE +STATE +PARTS +MEMORY +IN/s +OUT/s
see ^>node-0 +up +[0-9]+ .* [0-9]+% +[0-9.]+ [KM]?i?B
see ^ node-2 .*·
see ^ [0-9:]{8} node-2 +mounted
see ^q quit
color
keys j
see ^>node-1
keys s
see by memory
keys o
see by out
keys \r
see ^Node: +node-1
see ^Mount: +$MNT1
keys \e
see ^NODE
keys \e[B
see ^>node-
keys h
see nodes by name, memory in use
keys h
see ^NODE
keys np
see PAUSED
keys p
gone PAUSED
size 120x40
see ^NODE +STATE +PARTS +MEMORY {30}
see ^ node-2
fits
size 30x6
see too small
size 80x24
see ^NODE
signal TSTP
signal CONT
see ^NODE
keys q
end 0
END

say "operations"
# Until it is killed, however fast the machine is.
for ((i = 0;; i++)); do
    mkdir "$MNT2/dir$i" 2>/dev/null || break
    sleep 0.005
done &
on 120x40 <<END
see ^MOUNT +NODE +OPS/s +ERR/s +READ/s +WRITE/s +P50 +P99
see ^ $MNT2 +node-2 +[1-9][0-9]* +[0-9]+ .* [0-9.]+ [um]?s +[0-9.]+ [um]?s
keys x
see by operations
keys w
see ^OPERATION +OPS/s +ERR/s +MEAN +MAX +SO FAR
see ^mkdir +[1-9][0-9]* +[0-9]+ +[0-9.]+ [um]s +[0-9.]+ [um]?s
see ^ +[1-9][0-9]* +1  \. *\$
see ^ +[1-9][0-9.]* [KM]?i?B +[1-9][0-9.]* [KM]?i?B +node-2 +$MNT2
fits
keys w
see ^NODE
keys q
end 0
END
worked()
{
    cm_ top --json | jq -e --arg path "$MNT2" 'any(.operations[]; .name == "mkdir" and .operations_rate > 1 and .mean > 0) and
        .directories[0].name == "." and .directories[0].rate > 1 and .directories[0].mounts >= 1 and
        any(.mounts[]; .path == $path and .sent_rate > 100 and .received_rate > 100)'
}
must_happen 20 worked
cm_ top --once </dev/null | grep -E '^  mkdir: [1-9][0-9]*/s' >/dev/null || fail "cm top --once: no operations"
kill $!
wait $! || true

say "other terminals and ends"
on 120x40 LC_ALL=C NO_COLOR=1 <<'END'
see ^.node-0 .*#?\.\.\.
fits
ascii
nocolor
signal INT
end 130
END
on 120x40 TERM=vt100 <<'END'
see ^.node-0
nocolor
signal TERM
end 143
END
on 80x24 <<'END'
see ^.node-0
keys \x1c
end 131
END
on 80x24 <<'END'
see ^.node-0
signal SEGV
end -11
END
on 80x24 TERM=dumb <<'END'
see cm +running
end 0
END
cm_ top --json | jq -e '.status.nodes | length == 3' >/dev/null || fail "cm top --json: $(cm_ top --json)"
cm_ top --json | jq -e '.events[-1].time and (.moves | type == "array")' >/dev/null || fail "no events"
cm_ top --json | jq -e --arg path "$MNT2" 'any(.mounts[]; .path == $path and .node == "node-2" and .operations > 0)' \
    >/dev/null || fail "no mounts: $(cm_ top --json)"
cm_ top --once </dev/null | says -E '^node-1 ' || fail "cm top --once"

say "moves, and cm's death"
dd if=/dev/urandom of="$MNT0/large" bs=1M count=60 status=none
(
    sleep 1
    cm_ scale 2 --rate 2M >"$T/scaled" 2>&1 || true
) &
on 120x40 <<END
see partitions? on the way
see [0-9]+ +node-2 -> node-. +copying .* [0-9.]+ [KM]iB/s, [0-9:]+( s)? left
signal INT
end 130
END
cm_ scale --cancel || true # it need not go on
wait $!
cm=$(cut -d' ' -f1 "$STATE/cm.pid")
(
    sleep 1
    kill -KILL "$cm"
    sleep 2
    cm_ start >/dev/null 2>&1
) &
on 80x24 <<END
see ^.node-0
see the cm of deployment .* does not run
see ^.node-0
keys j
see ^>node-1
gone does not run
keys q
end 0
END
wait $!
deployment_stop

#!/usr/bin/env bash
# All that is written goes to the partitions of one node, more than it can hold: they move to the other by
# themselves, writers wait meanwhile, and none is refused while there is room on the other node.
# ctest: release timeout=150
# shellcheck source=tests/support/harness.sh
. "$(dirname "${BASH_SOURCE[0]}")/../support/harness.sh"
need jq python3

MEMORY=200M

# write_to_node_0 MIB: files of some 900 KiB whose home, and so all of their content, is a partition that node
# 0 had at the start: one of the first half. Prints how many MiB were taken before a write was refused.
write_to_node_0()
{
    python3 - "$MNT0" "$1" <<'PYTHON'
import errno, os, sys

top, most = sys.argv[1], int(sys.argv[2]) << 20
PARTITIONS, SIZE = 12, 900 << 10
data, done, n = os.urandom(SIZE), 0, 0
while done < most:
    n += 1
    path = f"{top}/file{n}"
    fd = os.open(path, os.O_CREAT | os.O_WRONLY)
    if (os.fstat(fd).st_ino >> 37 & 0xffff) >= PARTITIONS // 2:
        os.close(fd)
        os.unlink(path)
        continue
    try:
        os.write(fd, data)
        os.close(fd)
    except OSError as e:
        assert e.errno == errno.ENOSPC, e
        break
    done += SIZE
print(done >> 20)
PYTHON
}

deployment_start 2 --partitions 12
room=$(cm_ status --json | jq '.nodes[0].memory_capacity / 1048576 | floor')
took=$(write_to_node_0 $((room * 5 / 4)))
say "$took MiB taken, where a node has room for $room: $(cm_ status --json |
    jq -c '[.nodes[] | [.partitions, (.memory_used / 1048576 | floor)]]')"
[ "$took" -ge $((room * 5 / 4 - 1)) ] || fail "refused, though node 1 has room: $(cm_ status)"
event_says scale 'by memory' || fail "no event tells that room was made"
event_says moved 'node-0 to node-1' || fail "node 0 has all that it had"
for file in "$MNT1"/file*; do
    equal 921600 "$(stat -c %s "$file")" "size of $file"
done
deployment_stop

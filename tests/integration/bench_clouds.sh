#!/usr/bin/env bash
# The benchmark on clouds does what it says, in small: every workload runs to its end with all content as written,
# with rates that are told and with those that cm finds, and leaves its tables and plots; a time is never below its
# bound; and the arithmetic of ideals holds (tests/bench/netbench/ideal.py).
# ctest: slow release timeout=400 waits long=105
# shellcheck source=tests/support/harness.sh
. "$(dirname "${BASH_SOURCE[0]}")/../support/harness.sh"
need python3 ip tc nsenter
BENCH=$HARNESS_DIR/../bench
unshare --net --mount bash -c '
    mkdir -p /run/netns && mount -t tmpfs none /run/netns && ip netns add probe &&
    ip link add probe type bridge && tc qdisc add dev probe root tbf rate 1mbit burst 10kb latency 1ms' \
    >/dev/null 2>&1 || skip "the kernel has no namespaces, bridges or token buckets for us"
export PYTHONDONTWRITEBYTECODE=1

say "ideals"
python3 - "$BENCH" <<'PYTHON' || fail "ideals"
import random, sys
sys.path.insert(0, sys.argv[1])
from netbench import ideal, rates

near = lambda a, b: abs(a - b) < 1e-6 * max(a, b)
# Two equal nodes: a half stays, so each link carries a quarter of the data, either way.
assert near(ideal.least_time([0.5, 0.5], [1, 1], 100), 25)
# All is held by one: nothing crosses its link if it does all the work.
assert ideal.least_time([1, 0], [1, 1], 100) < 1e-3
source = random.Random(1)
for _ in range(200):
    r = [source.uniform(1, 20) for _ in range(source.randint(4, 16))]
    best, even = ideal.best_shares(r), [1 / len(r)] * len(r)
    t = ideal.least_time(best, r, 100)
    assert near(sum(best), 1) and near(t, ideal.least_time(best, r, 0, 100))
    assert t <= 1.000001 * ideal.least_time([x / sum(r) for x in r], r, 100) <= 1.0001 * ideal.least_time(even, r, 100)
    assert t >= 100 * (1 - max(best)) / sum(r) * 0.999999
for p in rates.clouds().values():
    drawn, factor = rates.draw(p, 8, "x", 100)
    assert near(sum(drawn), 100) and all(p[0] <= d / factor * 1.0001 and d / factor <= p[-1] * 1.0001 for d in drawn)
assert rates.draw([1, 2, 3, 4, 5], 4, "x", 9) == rates.draw([1, 2, 3, 4, 5], 4, "x", 9)
PYTHON

small() # WORKLOAD KNOW
{
    say "$1, $2"
    timeout -k 5 150 "$BENCH/clouds" --bin "$MEMEFS_BIN" --out "$T/$1" --clouds A --draws 1 --nodes 3 --seconds 2 \
        --total 60 --workload "$1" --know "$2" --memory 256M --limit 60 >"$T/$1.out" 2>&1 ||
        fail "clouds: $(cat "$T/$1.out")"
    equal 3 "$(wc -l <"$T/$1/summary.csv")" "lines of the summary of $1"
    equal 5 "$(wc -l <"$T/$1/runs.csv")" "lines of the runs of $1"
    python3 - "$T/$1/runs.csv" <<'PYTHON' || fail "$1 was faster than its links"
import csv, sys
for row in csv.DictReader(open(sys.argv[1])):
    if row["phase"] != "search":  # there two on a node may read a file at the same time, which is fetched once
        assert 0 < 0.85 * float(row["held_s"]) < float(row["s"]), row  # buckets start full
PYTHON
    [ "$(find "$T/$1" -name 'A-0-*.svg' | wc -l)" -eq 2 ] || fail "plots of $1"
}

small micro told
small montage probe
small blast observe
none_of cm || fail "a deployment is left"

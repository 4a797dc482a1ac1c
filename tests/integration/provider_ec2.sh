#!/usr/bin/env bash
# Nodes that are EC2's instances: moto's API, whose instances are namespaces that run their user data
# (tests/support/ec2_cloud). Keys from each place, throttling, answers that get lost, too little capacity,
# cm killed while it asks, spot notices; and no instance is left.
# ctest: release timeout=240 long=35
# shellcheck source=tests/support/own_net.sh
. "$(dirname "${BASH_SOURCE[0]}")/../support/own_net.sh"
need curl ip nsenter
PYTHON=$HARNESS_DIR/../../build/venv/bin/python3
"$PYTHON" -c 'import moto.ec2' 2>/dev/null || skip "moto is not installed (scripts/setup --tests)"

ALLOW_LOG='lm-gone|killed|connect|closed|lost|ended|no address|has gone|interrupted'
MEMORY=128M
CLOUD=$T/cloud PORT=5000
export AWS_REGION=eu-west-1 AWS_ENDPOINT_URL_EC2=http://$SUBNET.254:$PORT HOME=$T
export AWS_EC2_METADATA_SERVICE_ENDPOINT=http://$SUBNET.254:$((PORT + 1))

calls() # ACTION ANSWER: how many there were
{
    grep -cx "$1 $2" "$CLOUD/calls" || true
}

has_asked() # MORE-THAN
{
    [ "$(calls RunInstances OK)" -gt "$1" ]
}

fault() # JSON
{
    printf '%s\n' "$1" >"$CLOUD/faults"
}

instances()
{
    find "$CLOUD/pids" -type f | wc -l
}

instances_are()
{
    [ "$(instances)" -eq "$1" ]
}

nodes_are()
{
    [ "$(cm_ status --json | jq -r '"\(.state) \(.nodes | length)"')" = "running $1" ]
}

on() # INSTANCE COMMAND…: on that machine
{
    nsenter -t "$(cat "$CLOUD/pids/$1")" -m -n -- "${@:2}"
}

start() # ARGUMENT…
{
    cm_ start --provider ec2 --ec2-image ami-03cf127a --ec2-type r6i.large --memory "$MEMORY" --partitions 8 \
        --ec2-spot --ec2-setup "$T/setup" --listen "$SUBNET.254:0" --mount /run/memefs-here "$@"
}

net up 4
mkdir "$CLOUD"
"$PYTHON" "$HARNESS_DIR/ec2_cloud" "$CLOUD" "$SUBNET.254" "$PORT" "$NET" 4 &
must_happen 60 test -e "$CLOUD/ready"
echo 'echo set up >/run/set-up' >"$T/setup"

say "wrong usage"
expect_fail 2 cm_ start --provider ec2 --ec2-type t3.small --memory 64M
grep -q "needs --ec2-image" "$T/expect.out" || fail "$(cat "$T/expect.out")"
expect_fail 2 start --ec2-region 'x/y'
expect_fail 2 start --ec2-endpoint ftp://x
expect_fail 2 start --ec2-setup "$T/none"
expect_fail 2 cm_ start --provider local --ec2-type t3.small
grep -q "only with --provider ec2" "$T/expect.out" || fail "$(cat "$T/expect.out")"

say "without a key, and with one that is refused"
AWS_EC2_METADATA_DISABLED=true expect_fail 1 start
grep -q "there is no key for AWS" "$T/expect.out" || fail "$(cat "$T/expect.out")"
AWS_ACCESS_KEY_ID=AKENVIRONMENT AWS_SECRET_ACCESS_KEY=wrong expect_fail 1 start
grep -q "AuthFailure" "$T/expect.out" || fail "$(cat "$T/expect.out")"
equal 0 "$(instances)" "instances"

say "too little capacity for one of two: the other is given back"
mkdir "$T/.aws"
printf '[other]\naws_access_key_id=x\n[default]\n aws_access_key_id = AKFILE\naws_secret_access_key=secret-of-file\n' >"$T/.aws/credentials"
fault '{"RunInstances": {"code": "InsufficientInstanceCapacity", "status": 500, "times": 1}}'
expect_fail 1 start --nodes 2
grep -q "InsufficientInstanceCapacity" "$T/expect.out" || fail "$(cat "$T/expect.out")"
must_happen 20 instances_are 0

say "which fails, and that is said"
fault '{"RunInstances": {"code": "InsufficientInstanceCapacity", "status": 500, "times": 1},
        "TerminateInstances": {"code": "UnauthorizedOperation", "status": 403, "times": 3}}'
expect_fail 1 start --nodes 2
grep -qE "node-[01]: not given back: instance i-[0-9a-f]+ may still run: .*UnauthorizedOperation" "$T/expect.out" ||
    fail "$(cat "$T/expect.out")"
must_happen 60 instances_are 0
rm "$T/.aws/credentials"

say "start, with the role's key: throttled, and an answer gets lost"
echo AKROLE:secret-of-role >"$CLOUD/key"
fault '{"RunInstances": {"code": "InternalError", "status": 500, "times": 1, "after": true},
        "DescribeInstances": {"code": "RequestLimitExceeded", "status": 503, "times": 2}}'
start --nodes 2
equal 2 "$(instances)" "instances"
read -r first second < <(find "$CLOUD/pids" -type f -printf '%f\n' | sort | paste -sd' ')
on "$first" test -e /run/set-up || fail "the operator's part of the user data has not run"
head -c 20M /dev/urandom >"$T/data"
on "$first" cp "$T/data" /run/memefs-here/data
on "$second" cmp "$T/data" /run/memefs-here/data || fail "the other machine sees something else"

say "cm is killed while it asks for a third"
cm_ scale 3 >/dev/null 2>&1 &
scaling=$!
asked=$(calls RunInstances OK)
must_happen 20 has_asked "$asked"
kill -KILL "$(pids_of cm)"
wait "$scaling" || true
start
must_happen 60 nodes_are 3
must_happen 20 instances_are 3

say "a spot instance is to be interrupted: it drains, and ends"
third=$(find "$CLOUD/pids" -type f -printf '%f\n' | grep -vx -e "$first" -e "$second")
: >"$CLOUD/spot/$third"
must_happen 60 nodes_are 2
must_happen 20 instances_are 2
on "$second" cmp "$T/data" /run/memefs-here/data || fail "the data have changed"

say "stop: what could not be given back is named; nothing is left, and no secret is in a log"
# Three times, as the one of the spot instance may still be under way; lms that end take their instances along.
fault '{"TerminateInstances": {"code": "UnauthorizedOperation", "status": 403, "times": 3}}'
expect_fail 1 cm_ stop
grep -qE "not given back: node-[01]: instance i-[0-9a-f]+ may still run: .*UnauthorizedOperation" "$T/expect.out" ||
    fail "says $(cat "$T/expect.out")"
must_happen 20 instances_are 0
if grep -rqF secret-of "$STATE" 2>/dev/null; then
    fail "a key is in the deployment's files"
fi
kill %1
wait || true

#!/usr/bin/env bash
# What EC2 may answer and should not: answers that are cut, too long, empty or no XML, instances that nobody asked for,
# nothing at all. Each is survived, or ends with what to do; and no instance is left.
# ctest: release waits timeout=180 long=35
# shellcheck source=tests/support/own_net.sh
. "$(dirname "${BASH_SOURCE[0]}")/../support/own_net.sh"
PYTHON=$HARNESS_DIR/../../build/venv/bin/python3
"$PYTHON" -c 'import moto.ec2' 2>/dev/null || skip "moto is not installed (scripts/setup --tests)"

ALLOW_LOG='lm-gone|killed|connect|closed|lost|ended|no address|has gone|ec2|join'
CLOUD=$T/cloud PORT=5000
export AWS_REGION=eu-west-1 HOME=$T AWS_EC2_METADATA_DISABLED=true
export AWS_ACCESS_KEY_ID=AKENVIRONMENT AWS_SECRET_ACCESS_KEY=secret/of+environment

instances_are() # NUMBER
{
    [ "$(find "$CLOUD/pids" -type f | wc -l)" -eq "$1" ]
}

start() # ARGUMENT…
{
    cm_ start --provider ec2 --ec2-image ami-03cf127a --ec2-type r6i.large --memory 64M --partitions 4 \
        --listen "$SUBNET.254:0" --ec2-endpoint "http://$SUBNET.254:$PORT" "$@"
}

refused() # WORDS
{
    grep -qE "$1" "$T/expect.out" || fail "says $(cat "$T/expect.out")"
    must_happen 20 instances_are 0
}

net up 2
mkdir "$CLOUD"
"$PYTHON" "$HARNESS_DIR/ec2_cloud" "$CLOUD" "$SUBNET.254" "$PORT" "$NET" 2 &
cloud=$!
must_happen 60 test -e "$CLOUD/ready"

# survives FAULTS: a node comes all the same, and goes
survives()
{
    say "$1"
    printf '%s\n' "$1" >"$CLOUD/faults"
    start --nodes 1
    cm_ stop
    must_happen 20 instances_are 0
}

survives '{"RunInstances": {"times": 1, "cut": true}, "DescribeInstances": {"times": 1, "huge": 20}}'
survives '{"RunInstances": {"times": 1, "after": true, "cut": true}, "DescribeInstances": {"times": 1, "body": "<html>"}}'
# Its number is not known, and stop must not wait until EC2 has forgotten it.
survives '{"RunInstances": {"times": 1, "after": true, "body": "<RunInstancesResponse/>"}}'
survives '{"RunInstances": {"times": 1, "after": true, "twice": true}, "TerminateInstances": {"times": 1, "cut": true}}'

say "what ends an instance is no answer of EC2's"
echo '{"TerminateInstances": {"times": 9, "body": "<html>no</html>"}}' >"$CLOUD/faults"
start --nodes 1
expect_fail 1 cm_ stop
refused "instance i-[0-9a-f]+ may still run: TerminateInstances: what answers is not EC2"

say "what is refused says what helps"
echo '{"RunInstances": {"times": 9, "status": 400, "code": "RequestExpired"}}' >"$CLOUD/faults"
expect_fail 1 start --nodes 1
refused "RequestExpired\): is this machine's clock right"
echo '{"RunInstances": {"times": 9, "status": 403, "code": "UnauthorizedOperation"}}' >"$CLOUD/faults"
expect_fail 1 start --nodes 1
refused "UnauthorizedOperation\): the key needs that right"

say "credentials that can't be read: cm does not wait for what may never come"
mkfifo "$T/pipe"
export AWS_SHARED_CREDENTIALS_FILE=$T/pipe
unset AWS_ACCESS_KEY_ID
expect_fail 1 start --nodes 1
export AWS_ACCESS_KEY_ID=AKENVIRONMENT
refused "credentials file \($T/pipe: Operation not supported\)"

say "instances that never boot, and a cm that is killed while it waits for them: given back all the same"
echo 'sleep 1000' >"$T/never"
rm "$CLOUD/faults"
start --nodes 2 --ec2-setup "$T/never" >"$T/start.out" 2>&1 &
starting=$!
must_happen 30 instances_are 2
kill -KILL "$(cut -d' ' -f1 "$STATE/cm.pid")"
! wait "$starting" || fail "a start without cm succeeds"
instances_are 0 || must_happen 5 instances_are 0
start --nodes 1 --ec2-setup "$T/never" >"$T/start.out" 2>&1 &
starting=$!
must_happen 30 instances_are 1
kill -KILL "$starting" "$(pgrep -P "$starting" cm)" "$(cut -d' ' -f1 "$STATE/cm.pid")"
wait "$starting" || true
cm_ stop
must_happen 5 instances_are 0

say "what answers does not speak TLS"
expect_fail 1 start --ec2-endpoint "https://$SUBNET.254:$PORT"
refused "SSL.*can this machine reach it"
kill "$cloud"
wait || true

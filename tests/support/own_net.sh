# For tests whose nodes are network namespaces (scripts/netns-cluster). Sourced in place of harness.sh,
# which it brings along. Runs the test anew in a network namespace of its own, so that the bridge and
# all links go with it however it ends; skips it where the kernel or the tools can't do that.
#
#   NET, SUBNET   the cluster's name and addresses; the machine itself is $SUBNET.254
#   net ARG…      scripts/netns-cluster for it
# shellcheck shell=bash

own_net_skip()
{
    printf 'SKIP: %s\n' "$*"
    exit 77
}

if [ -z "${IN_OWN_NET-}" ]; then
    for tool in ip tc nsenter; do
        command -v "$tool" >/dev/null || own_net_skip "$tool is not installed"
    done
    unshare --net true 2>/dev/null || own_net_skip "network namespaces can't be made here"
    IN_OWN_NET=1 exec unshare --net bash "$0" "$@"
fi
# shellcheck source=tests/support/harness.sh
. "$(dirname "${BASH_SOURCE[0]}")/harness.sh"
need jq

# shellcheck disable=SC2034 # for who sources this
NET=t SUBNET=10.213.0

net()
{
    "$HARNESS_DIR/../../scripts/netns-cluster" --name "$NET" "$@"
}

can_shape_links()
{
    ip netns add probe && ip link add probe type bridge &&
        tc qdisc add dev probe root tbf rate 1mbit burst 10kb latency 1ms &&
        ip link delete probe && ip netns delete probe
}

# Where ip(8) keeps the names of namespaces; it may not exist, and is not to be shared.
mkdir -p /run/netns
mount -t tmpfs none /run/netns
ip link set lo up
can_shape_links >/dev/null 2>&1 || skip "the kernel has no namespaces, bridges or token buckets for us"

#include "cm/cli/options.h"

#include "base/log.h"
#include "cluster/placement.h"
#include "cluster/table.h"

const struct mfs_conf_option mfs_cm_start_options[] = {
    {"nodes", MFS_CONF_UINT, "N", "1", 1, 1024, "number of nodes"},
    {"memory", MFS_CONF_SIZE, "SIZE", NULL, 16 << 20, 1125899906842624.0,
     "memory that each node gives, e.g. 4G (default: half of what is available, shared equally)"},
    {"mount", MFS_CONF_STRING, "PATH", NULL, 1, 511,
     "where to mount: on each node that is a machine of its own, else on node 0 (default: "
     "nowhere). "
     "With %n, the node's index, on every node: several mounts on one machine are for tests, as "
     "programs take one file for several"},
    {"mount-options", MFS_CONF_STRING, "LIST", NULL, 1, 511, "passed to memefs mount -o"},
    {"provider", MFS_CONF_CHOICE, "local|exec|ssh|slurm|ec2", "local", 0, 0,
     "where nodes come from (with --hosts: ssh; within a Slurm allocation: slurm)"},
    {"first-address", MFS_CONF_STRING, "ADDRESS", NULL, 7, 15,
     "the first node's; the others' follow (default: local 127.0.0.1, else each node tells its "
     "own)"},
    {"max-nodes", MFS_CONF_UINT, "M", NULL, 1, MFS_PARTITIONS_MAX,
     "how far it may grow: the policy goes no higher, and there are 8 partitions for each of M "
     "nodes, "
     "fewer if they are small (default: 8 for each of 8 times --nodes, at least 16; for each of "
     "--nodes where all are on one machine)"},
    {"partitions", MFS_CONF_UINT, "P", NULL, 1, MFS_PARTITIONS_MAX,
     "at least so many partitions instead (also the most nodes there can ever be)"},
    {"beta", MFS_CONF_REAL, "B", "4", 0.1, 64,
     "instead: partitions per node and log2 of the nodes"},
    {"stripe-size", MFS_CONF_SIZE, "SIZE", "1044480", MFS_STRIPE_SIZE_UNIT, MFS_STRIPE_SIZE_DEFAULT,
     "bytes of a file that go to one partition together, whole pages; a checkpoint keeps its own"},
    {"policy", MFS_CONF_STRING, "NAME", "none", 1, 15,
     "how it grows and shrinks by itself: none, or cso, nso, aso, each also with +csi or +asi"},
    {"min-nodes", MFS_CONF_UINT, "M", NULL, 1, MFS_PARTITIONS_MAX,
     "the policy goes no lower (default: --nodes)"},
    {"scale-out-at", MFS_CONF_REAL, "PERCENT", NULL, 1, 100, "add nodes above so much use (95)"},
    {"scale-out-step", MFS_CONF_REAL, "PERCENT", NULL, 1, 1000,
     "so many, of --nodes (cso 50, nso 100) or of the nodes there are (aso 100)"},
    {"scale-in-at", MFS_CONF_REAL, "PERCENT", NULL, 1, 100,
     "remove nodes below so much use (csi 75, asi 50)"},
    {"scale-in-step", MFS_CONF_REAL, "PERCENT", NULL, 1, 100,
     "so many of the nodes there are, at most (csi 25, asi 50)"},
    {"scale-in-to", MFS_CONF_REAL, "PERCENT", NULL, 1, 100,
     "so full may what stays be then, at most; below --scale-out-at (85)"},
    {"scale-window", MFS_CONF_REAL, "SECONDS", NULL, 1, 86400,
     "so long must use not have grown before nodes are removed (45)"},
    {"scale-settle", MFS_CONF_REAL, "SECONDS", NULL, 1, 86400,
     "so long after a change no nodes are added (3)"},
    {"migration", MFS_CONF_CHOICE, "hot|cold", "hot", 0, 0, "how partitions are moved"},
    {"migration-rate", MFS_CONF_SIZE, "SIZE", "0", 0, 1125899906842624.0,
     "bytes/s at which one partition is copied, at most; 0 for no limit"},
    {"link-rate", MFS_CONF_SIZE, "SIZE", "0", 0, 1125899906842624.0,
     "bytes/s that a node's link carries, for the lower bound in reports; 0 for unknown"},
    {"weights", MFS_CONF_CHOICE, "memory|bandwidth|auto", "memory", 0, 0,
     "what the nodes' shares follow; auto: bandwidth where nodes are known to differ in it"},
    {"bandwidth", MFS_CONF_STRING, "RATE[,RATE...]", NULL, 1, 511,
     "bytes/s that each node's link carries each way, e.g. 125M,0,50M; the last one is of all "
     "further nodes, 0 for unknown"},
    {"rebalance", MFS_CONF_CHOICE, "auto|off", "auto", 0, 0,
     "whether partitions move by themselves: after failovers, off a node that is nearly full and, "
     "with weights other than memory, when links change"},
    {"rebalance-at", MFS_CONF_REAL, "PERCENT", NULL, 1, 1000,
     "bandwidths that differ by so much have changed, and so much must be gained (20)"},
    {"rebalance-window", MFS_CONF_REAL, "SECONDS", NULL, 1, 3600,
     "so long must a change have lasted (5)"},
    {"rebalance-horizon", MFS_CONF_REAL, "SECONDS", NULL, 1, 86400,
     "in which a move must pay back (60)"},
    {"rebalance-factor", MFS_CONF_REAL, "F", NULL, 0.01, 1000, "so many times its cost (1.5)"},
    {"interface", MFS_CONF_STRING, "NAME", NULL, 1, 15,
     "the network interface of each node that is measured (default: the one with its address)"},
    {"probe", MFS_CONF_FLAG, NULL, NULL, 0, 0,
     "measure what links carry when nodes come: 1 s each, 3 s if slow, nine turns at most"},
    {"restore", MFS_CONF_STRING, "DIR", NULL, 1, 511,
     "begin with the checkpoint in this directory (cm checkpoint), on any number of nodes"},
    {"replicas", MFS_CONF_UINT, "R", "0", 0, 1,
     "copies of each partition on another node; takes as much memory again"},
    {"auto-forget", MFS_CONF_UINT, "SECONDS", "0", 0, 86400,
     "forget a node that is away for so long, once its replicas have taken over; 0: never"},
    {"grace", MFS_CONF_UINT, "SECONDS", "25", 0, 86400,
     "from SIGTERM to the end of a node's lm, at most: what it has moves to others meanwhile"},
    {"on-end", MFS_CONF_STRING, "checkpoint:/DIR", NULL, 1, 511,
     "when nodes are told to end, and others have no room for what they hold: write a checkpoint "
     "to that directory first"},
    {"listen", MFS_CONF_STRING, "ADDRESS", NULL, 3, 127,
     "where cm listens, port 0 for any (default: local 127.0.0.1:0, else the address that leads to "
     "the nodes, or the default route's)"},
    {"network", MFS_CONF_STRING, "CIDR", NULL, 1, 63,
     "of nodes elsewhere and cm: each uses the address that it has in this network, e.g. "
     "10.1.0.0/16"},
    {"node-state-dir", MFS_CONF_STRING, "DIR", NULL, 1, 511,
     "of nodes elsewhere, each on its own machine (default: --state-dir, else as there)"},
    {"metrics", MFS_CONF_STRING, "ADDRESS:PORT", NULL, 3, 127,
     "serve figures over HTTP there, for Prometheus (default: nowhere); at an address of others "
     "than this machine who reads shows the token in the state directory"},
    {"ui", MFS_CONF_STRING, "ADDRESS:PORT", NULL, 3, 127,
     "serve a page there that shows the deployment to a browser, at /ui (default: nowhere); "
     "it changes nothing without --ui-write; who may read as with --metrics, whose address it may "
     "be, too"},
    {"ui-write", MFS_CONF_FLAG, NULL, NULL, 0, 0,
     "let the page of --ui scale, drain and set the policy, for who gives it the token in the file "
     "token-write of the state directory"},
    {"node-metrics", MFS_CONF_UINT, "PORT", NULL, 1, 65535,
     "likewise, each node its own at its address; the next free port where nodes share one "
     "(default: none)"},
    {"log-level", MFS_CONF_CHOICE, "error|warn|info|debug", "info", 0, 0, "what cm.log shows"},
    {"events-size", MFS_CONF_SIZE, "SIZE", "16M", 65536, 1099511627776.0,
     "bytes that the file of events takes, at most; of more the oldest go"},
    {"log-format", MFS_CONF_CHOICE, MFS_LOG_FORMATS, "text", 0, 0,
     "lines of the logs, of nodes and mounts, too: for people, or a JSON object each"},
    {0}};

const struct mfs_conf_option mfs_cm_run_options[] = {
    {"config", MFS_CONF_STRING, "FILE", NULL, 1, 4000,
     "a JSON object with any of these options; the command line wins"},
    {"adopt", MFS_CONF_FLAG, NULL, NULL, 0, 0,
     "on a machine with a node: have the deployment's cm here from now on; what runs goes on. "
     "Where "
     "its cm does not answer more than half of the nodes must agree"},
    {"yes", MFS_CONF_FLAG, NULL, NULL, 0, 0,
     "with --adopt: fewer nodes are enough, as the machines of the others are gone for good"},
    {"foreground", MFS_CONF_FLAG, NULL, NULL, 0, 0,
     "stay, log to stderr, and stop the deployment on SIGINT or SIGTERM"},
    {0}};

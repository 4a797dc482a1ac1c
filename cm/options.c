/* The options. */
#include "cm/options.h"

#include "cluster/placement.h"

const struct mfs_conf_option mfs_cm_common_options[] = {
    {"name", MFS_CONF_STRING, "NAME", "memefs", 1, 63, "the deployment's name"},
    {"state-dir", MFS_CONF_STRING, "DIR", NULL, 1, 4000,
     "where it keeps its state (default: /run/memefs/NAME)"},
    {"help", MFS_CONF_FLAG, NULL, NULL, 0, 0, "show this and exit"},
    {0}};

const struct mfs_conf_option mfs_cm_start_options[] = {
    {"nodes", MFS_CONF_UINT, "N", "1", 1, 1024, "number of nodes"},
    {"memory", MFS_CONF_SIZE, "SIZE", NULL, 16 << 20, 1125899906842624.0,
     "memory that each node gives, e.g. 4G (default: half of what is available, shared equally)"},
    {"mount", MFS_CONF_STRING, "PATH", NULL, 1, 511,
     "where to mount; %n is the node's index, without it node 0 alone mounts (default: nowhere)"},
    {"mount-options", MFS_CONF_STRING, "LIST", NULL, 1, 511, "passed to memefs mount -o"},
    {"provider", MFS_CONF_CHOICE, "local", "local", 0, 0, "where nodes come from"},
    {"beta", MFS_CONF_REAL, "B", "4", 0.1, 64, "partitions per node and log2 of the nodes"},
    {"partitions", MFS_CONF_UINT, "P", NULL, 1, MFS_PARTITIONS_MAX,
     "at least so many partitions (also the most nodes there can ever be)"},
    {"max-nodes", MFS_CONF_UINT, "M", NULL, 1, MFS_PARTITIONS_MAX,
     "at least so many partitions that M nodes can be had"},
    {"policy", MFS_CONF_STRING, "NAME", "none", 1, 15, "how it grows and shrinks by itself: none"},
    {"migration", MFS_CONF_CHOICE, "hot|cold", "hot", 0, 0, "how partitions are moved"},
    {"weights", MFS_CONF_CHOICE, "memory|bandwidth", "memory", 0, 0,
     "what the nodes' shares follow; so far memory"},
    {"replicas", MFS_CONF_UINT, "R", "0", 0, 15,
     "copies of each partition on other nodes; so far 0"},
    {"listen", MFS_CONF_STRING, "ADDRESS", "127.0.0.1:0", 3, 127,
     "where cm listens, port 0 for any"},
    {"log-level", MFS_CONF_CHOICE, "error|warn|info|debug", "info", 0, 0, "what cm.log shows"},
    {0}};

const struct mfs_conf_option mfs_cm_run_options[] = {
    {"config", MFS_CONF_STRING, "FILE", NULL, 1, 4000,
     "a JSON object with any of these options; the command line wins"},
    {"foreground", MFS_CONF_FLAG, NULL, NULL, 0, 0,
     "stay, log to stderr, and stop the deployment on SIGINT or SIGTERM"},
    {0}};

const struct mfs_conf_option mfs_cm_json_options[] = {
    {"json", MFS_CONF_FLAG, NULL, NULL, 0, 0, "one JSON object (events: one per line)"}, {0}};

const struct mfs_conf_option mfs_cm_follow_options[] = {
    {"follow", MFS_CONF_FLAG, NULL, NULL, 0, 0, "go on until the deployment is stopped"}, {0}};

const struct mfs_conf_option mfs_cm_stop_options[] = {
    {"keep-logs", MFS_CONF_FLAG, NULL, NULL, 0, 0, "leave the logs in the state directory"}, {0}};

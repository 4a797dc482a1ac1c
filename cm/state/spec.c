/* From options to a deployment: what the operator gives for nodes, memory and partitions is checked
 * and completed, node by node, into the state that cm starts with. Pure but for reading the
 * machine's memory. The first contradiction is the error, in words of the options. */
#include "cm/state/spec.h"

#include <arpa/inet.h>
#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "args/paths.h"
#include "host/cgroup.h"
#include "base/file.h"
#include "base/text.h"
#include "cluster/capacity.h"
#include "cluster/y0.h"
#include "cm/state/differs.h"
#include "cm/state/listen.h"
#include "cm/state/manifest.h"
#include "cm/state/policy_conf.h"
#include "cm/plan/partitions.h"
#include "cm/state/rebalance_conf.h"
#include "cm/provider/traits.h"
#include "cm/state/weights.h"
#include "net/address.h"

#define MIB         (1ULL << 20)
#define LOCAL_FIRST "127.0.0.1" /* address of the first local node */

static_assert(MFS_DEPLOYMENT_NAME_MAX <= MFS_NAME_MAX, "messages take every name");

/* ---- memory ---------------------------------------------------------------------------------- */

uint64_t mfs_spec_meminfo(const char *key)
{
    unsigned long long kib = 0;
    struct mfs_buf b;
    const char *at;

    mfs_buf_init(&b);
    if (!mfs_file_read("/proc/meminfo", 65536, &b) && !mfs_buf_append(&b, "", 1)) {
        at = strstr(mfs_buf_data(&b), key);
        if (at)
            sscanf(at + strlen(key), ": %llu", &kib);
    }
    mfs_buf_fini(&b);
    return kib * 1024;
}

int mfs_spec_check_memory(const struct mfs_cm_state *s, uint32_t nodes, struct mfs_err *err)
{
    uint64_t total =
        mfs_provider_traits(s->provider)->one_machine ? mfs_spec_meminfo("MemTotal") : 0;

    if (total && s->memory > total / nodes)
        return mfs_err_set(err, -ENOMEM, "memory: %s of %s are more than this machine's %s",
                           MFS_TEXT_COUNT(nodes, "node"), MFS_TEXT_BYTES(s->memory),
                           MFS_TEXT_BYTES(total));
    return 0;
}

/* Of the machine's memory, or what our control groups leave of it. */
static uint64_t available(void)
{
    uint64_t machine = mfs_spec_meminfo("MemAvailable"), left = mfs_cgroup_left();

    return machine < left ? machine : left;
}

static int choose_memory(const struct mfs_conf *conf, struct mfs_cm_state *s, struct mfs_err *err)
{
    s->memory = mfs_conf_uint(conf, "memory");
    if (!mfs_conf_given(conf, "memory"))
        s->memory = available() / 2 / s->nnodes / MIB * MIB;
    if (s->memory < 16 * MIB)
        return mfs_err_set(err, -ENOMEM,
                           "memory: not enough is available for %s; give "
                           "--memory or fewer nodes",
                           MFS_TEXT_COUNT(s->nnodes, "node"));
    return mfs_spec_check_memory(s, s->nnodes, err) ? (err->code = -EINVAL) : 0; /* wrong usage */
}

/* ---- nodes ----------------------------------------------------------------------------------- */

int mfs_spec_mount(const char *pattern, uint32_t index, bool everywhere, char out[MFS_PATH_MAX])
{
    const char *mark = strstr(pattern, "%n");

    out[0] = '\0';
    if (!mark && index && !everywhere)
        return 0;
    if (!mark)
        return mfs_text_copy(out, MFS_PATH_MAX, pattern);
    return mfs_text_format(out, MFS_PATH_MAX, "%.*s%u%s", (int)(mark - pattern), pattern, index,
                           mark + 2);
}

static int choose_mount(const struct mfs_conf *conf, struct mfs_cm_state *s, struct mfs_err *err)
{
    const char *mount = mfs_conf_str(conf, "mount"), *options = mfs_conf_str(conf, "mount-options");
    char cwd[MFS_PATH_MAX];
    size_t len;
    int rc = 0;

    if (options)
        mfs_text_copy(s->mount_options, sizeof s->mount_options, options);
    if (!mount)
        return 0;
    if (mount[0] == '/')
        rc = mfs_text_copy(s->mount, sizeof s->mount, mount);
    else if (!getcwd(cwd, sizeof cwd))
        rc = -errno;
    else
        rc = mfs_text_format(s->mount, sizeof s->mount, "%s/%s", cwd, mount);
    if (rc)
        return mfs_err_set(err, rc, "mount: %s: %s", mount, strerror(-rc));
    for (len = strlen(s->mount); len > 1 && s->mount[len - 1] == '/'; len--)
        s->mount[len - 1] = '\0';
    if (len == 1)
        return mfs_err_set(err, -EINVAL, "mount: not over the root directory");
    return 0;
}

/* Counted from the first one's; "" where each tells its own when it joins. */
static int make_address(const struct mfs_cm_state *s, uint32_t slot, char out[MFS_HOST_MAX],
                        struct mfs_err *err)
{
    struct in_addr address;
    uint32_t at;

    out[0] = '\0';
    if (!s->first_address[0])
        return 0;
    if (!inet_aton(s->first_address, &address))
        return mfs_err_set(err, -EINVAL, "first-address: %s is not an IPv4 address",
                           s->first_address);
    at = ntohl(address.s_addr);
    if (!at || at >= INADDR_UNSPEC_GROUP - slot)
        return mfs_err_set(err, -EINVAL,
                           "first-address: %s and %u more lead to what is no address of a node",
                           s->first_address, slot);
    address.s_addr = htonl(at + slot);
    inet_ntop(AF_INET, &address, out, MFS_HOST_MAX);
    return 0;
}

static int find_place(const struct mfs_cm_state *s, uint32_t slot, struct mfs_provider_place *out,
                      struct mfs_err *err)
{
    const struct mfs_provider *p = mfs_provider_find(s->provider);
    int rc = 0;

    *out = (struct mfs_provider_place){0};
    if (p && p->place)
        rc = p->place(s->provider_option, s->nprovider_options, slot, out, err);
    if (!out->memory)
        out->memory = s->memory;
    return rc || out->address[0] ? rc : make_address(s, slot, out->address, err);
}

int mfs_spec_host(const struct mfs_cm_state *s, uint32_t slot, char out[MFS_HOSTLIST_NAME],
                  struct mfs_err *err)
{
    struct mfs_provider_place place;
    int rc = find_place(s, slot, &place, err);

    return rc ? rc : mfs_text_copy(out, MFS_HOSTLIST_NAME, place.host);
}

int mfs_spec_node(const struct mfs_cm_state *s, uint32_t id, uint32_t slot, struct mfs_cm_node *n,
                  struct mfs_err *err)
{
    bool everywhere = mfs_provider_traits(s->provider)->own_machines;
    struct mfs_provider_place place;
    double configured;
    int rc = mfs_weights_configured(s->bandwidth, slot, &configured, err);

    if (!rc)
        rc = find_place(s, slot, &place, err);
    if (rc)
        return rc;
    *n = (struct mfs_cm_node){
        .id = id, .slot = slot, .memory = place.memory, .bandwidth = configured};
    if (configured > 0)
        mfs_text_copy(n->bandwidth_from, sizeof n->bandwidth_from, MFS_BANDWIDTH_CONFIGURED);
    snprintf(n->name, sizeof n->name, "node-%u", id);
    mfs_text_copy(n->address, sizeof n->address, place.address);
    rc = s->mount[0] ? mfs_spec_mount(s->mount, slot, everywhere && !place.further, n->mount) : 0;
    return rc ? mfs_err_set(err, rc, "mount: %s: too long", s->mount) : 0;
}

static int make_nodes(const struct mfs_conf *conf, struct mfs_cm_state *s, struct mfs_err *err)
{
    int rc;

    s->nnodes = (uint32_t)mfs_conf_uint(conf, "nodes");
    s->node = calloc(s->nnodes, sizeof *s->node);
    if (!s->node)
        return mfs_err_set(err, -ENOMEM, "out of memory");
    rc = choose_memory(conf, s, err);
    if (!rc)
        rc = choose_mount(conf, s, err);
    for (uint32_t i = 0; i < s->nnodes && !rc; i++)
        rc = mfs_spec_node(s, i, i, &s->node[i], err);
    s->started_with = s->next_node = s->nnodes;
    return rc;
}

/* ---- restoring ------------------------------------------------------------------------------- */

/* Partitions, stripe size, epoch and images are those of the checkpoint. */
/* Is that directory the mount's, or in it? Each %n of the mount stands for some number. */
static bool is_in_mount(const char *dir, const char *mount)
{
    for (; *mount; mount++) {
        if (mount[0] == '%' && mount[1] == 'n') {
            dir += strspn(dir, "0123456789");
            mount++;
        } else if (*dir++ != *mount) {
            return false;
        }
    }
    return !*dir || *dir == '/';
}

static int take_on_end(const struct mfs_conf *conf, struct mfs_cm_state *s, struct mfs_err *err)
{
    const char *given = mfs_conf_str(conf, "on-end"), *dir;
    char mount[MFS_PATH_MAX] = "";

    if (!given)
        return 0;
    dir = given + strlen(MFS_ON_END_CHECKPOINT);
    if (strncmp(given, MFS_ON_END_CHECKPOINT, strlen(MFS_ON_END_CHECKPOINT)) || *dir != '/')
        return mfs_err_set(err, -EINVAL,
                           "on-end: give checkpoint:/DIR, on a file system that all "
                           "nodes share");
    if (mfs_conf_str(conf, "mount") &&
        mfs_file_absolute(mfs_conf_str(conf, "mount"), mount, sizeof mount))
        mount[0] = '\0';
    if (mount[0] && is_in_mount(dir, mount))
        return mfs_err_set(err, -EINVAL, "on-end: %s is in the mount, with which it would be lost",
                           dir);
    if (!access(dir, F_OK) && access(dir, W_OK))
        return mfs_err_set(err, -errno, "on-end: %s: %s", dir, strerror(errno));
    if (mfs_manifest_check(dir, s->name, err))
        return mfs_err_prefix(err, "on-end");
    if (mfs_text_copy(s->on_end, sizeof s->on_end, given))
        return mfs_err_set(err, -ENAMETOOLONG, "on-end: the path is too long");
    return 0;
}

static int take_checkpoint(const struct mfs_conf *conf, struct mfs_cm_state *s, struct mfs_err *err)
{
    const char *dir = mfs_conf_str(conf, "restore");
    char path[PATH_MAX];
    struct mfs_manifest m;
    int rc;

    if (!dir)
        return 0;
    rc = mfs_manifest_restore(dir, path, &m, err);
    if (rc)
        return rc;
    rc = mfs_text_copy(s->image_dir, sizeof s->image_dir, path);
    if (!rc)
        rc = mfs_text_copy(s->restored, sizeof s->restored, dir);
    s->image_epoch = m.epoch;
    s->stripe_size = m.stripe_size;
    s->nimages = m.nparts;
    s->image = m.part;
    m.part = NULL; /* ours now */
    m.nparts = 0;
    mfs_manifest_clear(&m);
    return rc ? mfs_err_set(err, rc, "restore: %s: %s", path, strerror(-rc)) : 0;
}

/* P is that of the checkpoint, for ever. */
static int check_checkpoint(const struct mfs_conf *conf, const struct mfs_cm_state *s,
                            struct mfs_err *err)
{
    uint64_t least = mfs_conf_uint(conf, "partitions"), nodes = mfs_conf_uint(conf, "max-nodes");

    if (least > s->nimages)
        return mfs_err_set(err, -EINVAL, "partitions: the checkpoint has %u, which can't change",
                           s->nimages);
    if (nodes > s->nimages || s->nnodes > s->nimages)
        return mfs_err_set(err, -EINVAL,
                           "nodes: the checkpoint has %u partitions, and there can't be more nodes",
                           s->nimages);
    return 0;
}

/* Before anything is begun: can the processes of every node start? */
static int check_starts(const struct mfs_cm_state *s, struct mfs_err *err)
{
    for (uint32_t n = 0; n < s->nnodes; n++) {
        uint32_t parts = mfs_cm_state_count(s, s->node[n].id);
        uint64_t least = mfs_capacity_start(parts);

        if (s->node[n].memory < least)
            return mfs_err_set(err, -EINVAL,
                               "memory: %s is too little for the redis processes of %s on %s: give "
                               "%lluM or more, or fewer --partitions or --beta",
                               MFS_TEXT_BYTES(s->node[n].memory),
                               MFS_TEXT_COUNT(parts, "partition"), s->node[n].name,
                               (unsigned long long)(least / MIB));
    }
    return 0;
}

/* Has every node the memory for what it gets? */
static int check_fits(const struct mfs_cm_state *s, struct mfs_err *err)
{
    for (uint32_t n = 0; n < s->nnodes; n++) {
        uint32_t parts = mfs_cm_state_count(s, s->node[n].id);
        uint64_t most = mfs_capacity_used(s->node[n].memory, parts), takes = 0, all = 0;

        for (uint32_t i = 0; i < s->nimages; i++) {
            all += s->image[i].memory;
            if (s->part[i].node == s->node[n].id)
                takes += s->image[i].memory;
        }
        takes += all * s->replicas / s->nnodes; /* of the others' partitions, about */
        if (takes > most)
            return mfs_err_set(err, -ENOSPC,
                               "memory: the checkpoint takes %s; %s would be on %s, replicas "
                               "included, and %s is what it "
                               "has for data; give more --nodes or more --memory",
                               MFS_TEXT_BYTES(all), MFS_TEXT_BYTES(takes), s->node[n].name,
                               MFS_TEXT_BYTES(most));
    }
    return 0;
}

/* ---- partitions ------------------------------------------------------------------------------ */

static int make_passwords(struct mfs_cm_state *s)
{
    int rc = 0;

    for (uint32_t i = 0; i < s->nparts && !rc; i++) {
        rc = mfs_random_hex(s->part[i].password, (MFS_SECRET_MAX - 1) / 2);
        if (!rc)
            rc = mfs_random_hex(s->part[i].admin_password, (MFS_SECRET_MAX - 1) / 2);
    }
    return rc;
}

static void give_out(struct mfs_cm_state *s, const uint32_t *counts)
{
    uint32_t part = 0;

    for (uint32_t i = 0; i < s->nnodes; i++)
        for (uint32_t k = 0; k < counts[i]; k++, part++)
            s->part[part].node = s->node[i].id;
}

int mfs_spec_divide(struct mfs_cm_state *s, struct mfs_err *err)
{
    const struct mfs_cm_node **node = calloc(s->nnodes, sizeof(const struct mfs_cm_node *));
    double *weight = calloc(s->nnodes, sizeof *weight);
    uint32_t *counts = calloc(s->nnodes, sizeof *counts);
    uint64_t used = 0;
    int rc = -ENOMEM;

    if (node && weight && counts) {
        for (uint32_t i = 0; i < s->nnodes; i++)
            node[i] = &s->node[i];
        for (uint32_t i = 0; i < s->nimages; i++)
            used += s->image[i].memory;
        mfs_weights_make(s, node, s->nnodes, used, weight);
        rc = mfs_y0_counts(weight, s->nnodes, s->nparts, counts);
    }
    if (!rc)
        give_out(s, counts);
    else
        mfs_err_set(err, rc, "cannot divide %s over %s: %s", MFS_TEXT_COUNT(s->nparts, "partition"),
                    MFS_TEXT_COUNT(s->nnodes, "node"), strerror(-rc));
    free(node);
    free(weight);
    free(counts);
    return rc;
}

static uint32_t number_of_parts(const struct mfs_conf *conf, const struct mfs_cm_state *s)
{
    uint64_t least = mfs_conf_uint(conf, "partitions"), nodes = mfs_conf_uint(conf, "max-nodes");
    const struct mfs_partitions_for d = {.nodes = s->nnodes,
                                         .max_nodes = (uint32_t)nodes,
                                         .memory = s->memory,
                                         .stripe_size = s->stripe_size,
                                         .one_machine =
                                             mfs_provider_traits(s->provider)->one_machine};

    if (s->nimages)
        return s->nimages;
    if (!mfs_conf_given(conf, "partitions") && !mfs_conf_given(conf, "beta"))
        return mfs_partitions_default(&d);
    return mfs_y0_partitions(s->nnodes, s->beta, (uint32_t)(least > nodes ? least : nodes));
}

static int make_parts(const struct mfs_conf *conf, struct mfs_cm_state *s, struct mfs_err *err)
{
    int rc;

    s->beta = mfs_conf_real(conf, "beta");
    s->nparts = number_of_parts(conf, s);
    s->part = calloc(s->nparts, sizeof *s->part);
    if (!s->part)
        return mfs_err_set(err, -ENOMEM, "out of memory");
    rc = make_passwords(s);
    return rc ? mfs_err_set(err, rc, "no random numbers: %s", strerror(-rc))
              : mfs_spec_divide(s, err);
}

/* ---- all of it ------------------------------------------------------------------------------- */

static int check_stripe_size(const struct mfs_conf *conf, struct mfs_err *err)
{
    if (mfs_conf_uint(conf, "stripe-size") % MFS_STRIPE_SIZE_UNIT)
        return mfs_err_set(err, -EINVAL, "stripe-size: must be a multiple of %u",
                           MFS_STRIPE_SIZE_UNIT);
    return 0;
}

/* Where nothing was said each lm has its own default, as it may be another user's than ours. */
static int choose_node_dir(const struct mfs_conf *conf, const struct mfs_provider_traits *traits,
                           struct mfs_cm_state *s, struct mfs_err *err)
{
    const char *dir = mfs_conf_str(conf, "node-state-dir");
    int rc;

    if (traits->sees_processes && dir)
        return mfs_err_set(err, -EINVAL,
                           "node-state-dir: only for nodes elsewhere, not with --provider %s",
                           traits->name);
    if (!dir && !traits->sees_processes)
        dir = mfs_conf_str(conf, "state-dir");
    rc = dir ? mfs_file_absolute(dir, s->node_dir, sizeof s->node_dir) : 0;
    return rc ? mfs_err_set(err, rc, "node-state-dir: %s: %s", dir, strerror(-rc)) : 0;
}

static int choose_provider(const struct mfs_conf *conf, struct mfs_cm_state *s, struct mfs_err *err)
{
    const char *name = mfs_conf_str(conf, "provider");
    const struct mfs_provider *p = mfs_provider_find(name);
    int rc;

    if (!p)
        return mfs_err_set(err, -EINVAL, "provider: \"%s\" is not known", name);
    rc = mfs_provider_take_options(p, conf, &s->provider_option, &s->nprovider_options, err);
    if (!rc && p->check)
        rc = p->check(conf, err);
    if (!rc && !p->traits->one_machine && !mfs_conf_given(conf, "memory"))
        rc = mfs_err_set(err, -EINVAL, "memory: --provider %s needs to be told what a node gives",
                         name);
    return rc ? rc : choose_node_dir(conf, p->traits, s, err);
}

static void copy_words(const struct mfs_conf *conf, struct mfs_cm_state *s)
{
    const struct {
        char *out;
        size_t n;
        const char *key;
    } words[] = {{s->name, sizeof s->name, "name"},
                 {s->provider, sizeof s->provider, "provider"},
                 {s->migration, sizeof s->migration, "migration"},
                 {s->weights, sizeof s->weights, "weights"},
                 {s->bandwidth, sizeof s->bandwidth, "bandwidth"},
                 {s->log_level, sizeof s->log_level, "log-level"},
                 {s->log_format, sizeof s->log_format, "log-format"},
                 {s->first_address, sizeof s->first_address, "first-address"},
                 {s->network, sizeof s->network, "network"},
                 {s->metrics, sizeof s->metrics, "metrics"},
                 {s->ui, sizeof s->ui, "ui"},
                 {s->interface, sizeof s->interface, "interface"}};

    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (mfs_conf_str(conf, words[i].key))
            mfs_text_copy(words[i].out, words[i].n, mfs_conf_str(conf, words[i].key));
    mfs_text_copy(s->phase, sizeof s->phase, MFS_PHASE_STARTING);
}

static int check_address(const char *option, const char *address, struct mfs_err *err)
{
    struct mfs_address a;
    int rc = address[0] ? mfs_address_parse(address, &a, err) : 0;

    if (!rc && address[0] && a.sa.ss_family == AF_UNIX)
        rc = mfs_err_set(err, -EINVAL, "\"%s\" is not an address like 127.0.0.1:9470", address);
    return rc ? mfs_err_prefix(err, option) : 0;
}

int mfs_spec_make(const struct mfs_conf *conf, struct mfs_cm_state *s, struct mfs_err *err)
{
    int rc;

    memset(s, 0, sizeof *s);
    rc = choose_provider(conf, s, err);
    if (!rc)
        rc = check_stripe_size(conf, err);
    if (rc) {
        mfs_cm_state_clear(s);
        return rc;
    }
    copy_words(conf, s);
    if (!s->first_address[0] && mfs_provider_traits(s->provider)->one_machine)
        mfs_text_copy(s->first_address, sizeof s->first_address, LOCAL_FIRST);
    rc = mfs_listen_choose(conf, s, err);
    if (rc) {
        mfs_cm_state_clear(s);
        return rc;
    }
    s->rate = mfs_conf_uint(conf, "migration-rate");
    s->stripe_size = (uint32_t)mfs_conf_uint(conf, "stripe-size");
    s->replicas = (uint32_t)mfs_conf_uint(conf, "replicas");
    s->grace = (uint32_t)mfs_conf_uint(conf, "grace");
    s->node_metrics = (uint32_t)mfs_conf_uint(conf, "node-metrics");
    s->auto_forget = (uint32_t)mfs_conf_uint(conf, "auto-forget");
    s->link_rate = mfs_conf_uint(conf, "link-rate");
    s->probe = mfs_conf_flag(conf, "probe");
    s->ui_write = mfs_conf_flag(conf, "ui-write");
    s->events_size = mfs_conf_uint(conf, "events-size");
    rc = check_address("metrics", s->metrics, err);
    if (!rc)
        rc = check_address("ui", s->ui, err);
    if (!rc && s->ui_write && !s->ui[0])
        rc = mfs_err_set(err, -EINVAL, "--ui-write is of the page that --ui serves: give both");
    if (!rc)
        rc = take_checkpoint(conf, s, err);
    if (!rc)
        rc = take_on_end(conf, s, err);
    if (!rc)
        rc = make_nodes(conf, s, err);
    if (!rc && s->nimages)
        rc = check_checkpoint(conf, s, err);
    if (!rc)
        rc = make_parts(conf, s, err);
    if (!rc)
        rc = check_fits(s, err);
    if (!rc)
        rc = check_starts(s, err);
    if (!rc)
        rc = mfs_policy_choose(conf, s, err);
    mfs_rebalance_choose(conf, &s->balancing);
    if (rc)
        mfs_cm_state_clear(s);
    return rc;
}

static int compare_words(const struct mfs_conf *conf, const struct mfs_cm_state *s,
                         struct mfs_err *err)
{
    const struct {
        const char *key, *has;
    } words[] = {{"migration", s->migration}, {"restore", s->restored},
                 {"weights", s->weights},     {"bandwidth", s->bandwidth},
                 {"on-end", s->on_end},       {"mount-options", s->mount_options},
                 {"listen", s->listen},       {"network", s->network},
                 {"log-level", s->log_level}, {"log-format", s->log_format},
                 {"metrics", s->metrics},     {"ui", s->ui}};

    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (mfs_conf_given(conf, words[i].key) &&
            strcmp(mfs_conf_str(conf, words[i].key), words[i].has))
            return mfs_state_differs(err, words[i].key, words[i].has);
    return 0;
}

int mfs_spec_compare(const struct mfs_conf *conf, const struct mfs_cm_state *s, struct mfs_err *err)
{
    struct mfs_cm_state mount = {0};
    char number[32];
    int rc;

    /* It may have grown or shrunk since; the call that started it is still a good one. */
    if (mfs_conf_given(conf, "nodes") && mfs_conf_uint(conf, "nodes") != s->nnodes &&
        mfs_conf_uint(conf, "nodes") != s->started_with) {
        snprintf(number, sizeof number, "%u", s->nnodes);
        return mfs_state_differs(err, "nodes", number);
    }
    if (mfs_conf_given(conf, "memory") && mfs_conf_uint(conf, "memory") != s->memory)
        return mfs_state_differs(err, "memory", MFS_TEXT_BYTES(s->memory));
    if (mfs_conf_given(conf, "stripe-size") && mfs_conf_uint(conf, "stripe-size") != s->stripe_size)
        return mfs_state_differs(err, "stripe-size", MFS_TEXT_BYTES(s->stripe_size));
    if (mfs_conf_given(conf, "events-size") && mfs_conf_uint(conf, "events-size") != s->events_size)
        return mfs_state_differs(err, "events-size", MFS_TEXT_BYTES(s->events_size));
    if (mfs_conf_given(conf, "ui-write") && mfs_conf_flag(conf, "ui-write") != s->ui_write)
        return mfs_state_differs(err, "ui-write", s->ui_write ? "on" : "off");
    if (mfs_conf_given(conf, "mount")) {
        rc = choose_mount(conf, &mount, err);
        if (rc)
            return rc;
        if (strcmp(mount.mount, s->mount))
            return mfs_state_differs(err, "mount", s->mount);
    }
    if (mfs_conf_given(conf, "beta") && mfs_conf_real(conf, "beta") != s->beta) {
        snprintf(number, sizeof number, "%g", s->beta);
        return mfs_state_differs(err, "beta", number);
    }
    if (mfs_conf_given(conf, "replicas") && mfs_conf_uint(conf, "replicas") != s->replicas) {
        snprintf(number, sizeof number, "%u", s->replicas);
        return mfs_state_differs(err, "replicas", number);
    }
    if (mfs_conf_given(conf, "grace") && mfs_conf_uint(conf, "grace") != s->grace) {
        snprintf(number, sizeof number, "%u", s->grace);
        return mfs_state_differs(err, "grace", number);
    }
    if (mfs_conf_given(conf, "auto-forget") &&
        mfs_conf_uint(conf, "auto-forget") != s->auto_forget) {
        snprintf(number, sizeof number, "%u", s->auto_forget);
        return mfs_state_differs(err, "auto-forget", number);
    }
    if (mfs_conf_uint(conf, "partitions") > s->nparts ||
        mfs_conf_uint(conf, "max-nodes") > s->nparts) {
        snprintf(number, sizeof number, "%u", s->nparts);
        return mfs_state_differs(err, "partitions", number);
    }
    if (mfs_conf_given(conf, "node-metrics") &&
        mfs_conf_uint(conf, "node-metrics") != s->node_metrics) {
        snprintf(number, sizeof number, "%u", s->node_metrics);
        return mfs_state_differs(err, "node-metrics", number);
    }
    if (compare_words(conf, s, err))
        return err->code;
    rc = mfs_rebalance_compare(conf, &s->balancing, err);
    return rc ? rc : mfs_policy_compare(conf, s, err);
}

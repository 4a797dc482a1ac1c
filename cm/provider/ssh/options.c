/* Options of the ssh provider, and what follows from the hosts that were named. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "cm/provider/options.h"
#include "cm/provider/run.h"
#include "cm/provider/ssh/impl.h"

#define NODES_MOST    1024 /* at a start */
#define HOSTS_TRIED   8    /* for cm's own address: each may take as long as the resolver does */
#define PLACES_BYTES  (4U << 20)
#define PROBE_SECONDS 5 /* to connect */

const struct mfs_conf_option mfs_ssh_options[] = {
    {"hosts", MFS_CONF_STRING, "LIST|FILE", NULL, 1, PLACES_BYTES,
     "the machines for nodes: a list as in tux[1-4,7], or a file of lines HOST [slots=N] "
     "[memory=SIZE] [address=ADDRESS] (a name with a '/' in it, or of a file that exists; -: "
     "standard input)"},
    {"ssh-command", MFS_CONF_STRING, "COMMAND", "ssh", 1, 511,
     "with --hosts: how to call ssh, e.g. 'ssh -p 2222 -i key'"},
    {"programs", MFS_CONF_STRING, "DIR", NULL, 2, 511,
     "with --hosts: where lm and memefs are on each of them (default: as on this machine)"},
    {"ship", MFS_CONF_FLAG, NULL, NULL, 0, 0,
     "with --hosts: carry the programs over, to a directory that is removed at the end"},
    {0}};

bool mfs_ssh_is_here(const struct mfs_conf *conf)
{
    return mfs_conf_given(conf, "hosts");
}

/* ---- what follows from the hosts ------------------------------------------------------------- */

static int complete_nodes(struct mfs_conf *conf, uint32_t places, struct mfs_err *err)
{
    char text[16];
    int rc;

    if (!mfs_conf_knows(conf, "nodes"))
        return 0;
    if (!mfs_conf_given(conf, "nodes") && places > NODES_MOST)
        return mfs_err_set(err, -EINVAL,
                           "hosts: they have %u places, and a deployment starts with %d nodes at "
                           "most: give --nodes",
                           places, NODES_MOST);
    snprintf(text, sizeof text, "%u", places);
    rc = mfs_provider_complete(conf, "nodes", text, err);
    /* All of them can be had later. A checkpoint has its own number of partitions. */
    if (!rc && !mfs_conf_given(conf, "partitions") && !mfs_conf_given(conf, "restore"))
        rc = mfs_provider_complete(conf, "max-nodes", text, err);
    return rc;
}

/* Of all further nodes, where each host says its own: the least of them. */
static int complete_memory(struct mfs_conf *conf, const struct mfs_hosts *h, struct mfs_err *err)
{
    uint64_t least = UINT64_MAX;
    char text[32];

    for (uint32_t i = 0; i < h->n; i++)
        least = h->host[i].memory < least ? h->host[i].memory : least;
    if (!least)
        return 0;
    snprintf(text, sizeof text, "%llu", (unsigned long long)least);
    return mfs_provider_complete(conf, "memory", text, err);
}

/* By the first host to which a way leads that is not this machine's own. */
static void complete_listen(struct mfs_conf *conf, const struct mfs_hosts *h)
{
    for (uint32_t i = 0; i < h->n && i < HOSTS_TRIED; i++)
        if (mfs_provider_listen_towards(
                conf, h->host[i].address[0] ? h->host[i].address : mfs_host_machine(&h->host[i])))
            return;
}

static int keep_places(struct mfs_conf *conf, const struct mfs_hosts *h, struct mfs_err *err)
{
    struct mfs_buf text;
    int rc;

    mfs_buf_init(&text);
    rc = mfs_hosts_put_places(h, &text);
    if (!rc)
        rc = mfs_buf_append(&text, "", 1);
    rc = rc ? mfs_err_set(err, rc, "out of memory")
            : mfs_conf_set(conf, "hosts", mfs_buf_data(&text), MFS_CONF_ARGV, err);
    mfs_buf_fini(&text);
    return rc;
}

int mfs_ssh_environment(struct mfs_conf *conf, struct mfs_err *err)
{
    const char *given = mfs_conf_str(conf, "hosts");
    struct mfs_hosts h;
    int rc;

    if (!given)
        return 0; /* mfs_ssh_check says it */
    if (mfs_hosts_read(given, &h, err))
        return mfs_err_prefix(err, "hosts");
    rc = complete_nodes(conf, mfs_hosts_places(&h), err);
    if (!rc)
        rc = complete_memory(conf, &h, err);
    if (!rc)
        rc = keep_places(conf, &h, err);
    if (!rc)
        complete_listen(conf, &h);
    mfs_hosts_clear(&h);
    return rc;
}

int mfs_ssh_check(const struct mfs_conf *conf, struct mfs_err *err)
{
    const char *programs = mfs_conf_str(conf, "programs");

    if (!mfs_conf_str(conf, "hosts"))
        return mfs_err_set(err, -EINVAL, "provider: ssh needs --hosts, the machines for nodes");
    if (programs && mfs_conf_flag(conf, "ship"))
        return mfs_err_set(err, -EINVAL, "programs: not with --ship, which carries them over");
    if (programs && programs[0] != '/')
        return mfs_err_set(err, -EINVAL, "programs: %s does not begin with /", programs);
    return 0;
}

/* ---- places ---------------------------------------------------------------------------------- */

int mfs_ssh_host(const struct mfs_provider_option *option, uint32_t noptions, uint32_t place,
                 struct mfs_host *out, struct mfs_err *err)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < noptions; i++)
        if (!strcmp(option[i].key, "hosts") && n++ == place)
            return mfs_hosts_place(option[i].value, out, err);
    return mfs_err_set(err, -EINVAL, "nodes: --hosts has %s, and all are taken",
                       MFS_TEXT_COUNT(n, "place"));
}

int mfs_ssh_place(const struct mfs_provider_option *option, uint32_t noptions, uint32_t slot,
                  struct mfs_provider_place *out, struct mfs_err *err)
{
    struct mfs_host h = {0};
    int rc = mfs_ssh_host(option, noptions, slot, &h, err);

    if (rc)
        return rc;
    out->memory = h.memory;
    out->further = h.round > 0;
    mfs_text_copy(out->host, sizeof out->host, mfs_host_machine(&h));
    return mfs_text_copy(out->address, sizeof out->address, h.address);
}

/* ---- ssh ------------------------------------------------------------------------------------- */

/* The operator's command is read by a shell, and ssh takes the first of several values: what it
 * says itself goes before ours. A connection that is shared already (ControlPath) is used, none is
 * kept.
 */
int mfs_ssh_command(const char *ssh, unsigned seconds, char *out, size_t n)
{
    return mfs_text_format(
        out, n,
        "exec %s -T -x -a -o BatchMode=yes -o ConnectTimeout=%u -o ServerAliveInterval=5 "
        "-o ControlMaster=no -o ClearAllForwardings=yes -o RemoteCommand=none -- \"$0\" \"$1\"",
        ssh ? ssh : "ssh", seconds);
}

static const char *find_option(const struct mfs_provider_option *option, uint32_t n,
                               const char *key)
{
    for (uint32_t i = 0; i < n; i++)
        if (!strcmp(option[i].key, key))
            return option[i].value;
    return NULL;
}

bool mfs_ssh_ships(const struct mfs_provider_option *option, uint32_t noptions)
{
    const char *value = find_option(option, noptions, "ship");
    bool ships = false;

    return value && !mfs_text_bool(value, &ships) && ships;
}

/* Of a host's first place alone, which come before all others. */
int mfs_ssh_probe(const struct mfs_provider_option *option, uint32_t noptions, uint32_t place,
                  struct mfs_provider_probe *out)
{
    const char *dir = find_option(option, noptions, "programs");
    const char *ssh = find_option(option, noptions, "ssh-command");
    char lm[PATH_MAX], word[1024];
    struct mfs_host h = {0};
    struct mfs_err err;
    int rc = mfs_ssh_host(option, noptions, place, &h, &err);

    if (rc || h.round)
        return -ENOENT;
    rc = dir ? mfs_text_format(lm, sizeof lm, "%s/lm", dir) : mfs_run_sibling("lm", lm, sizeof lm);
    if (!rc)
        rc = mfs_text_quote(word, sizeof word, lm);
    if (!rc)
        rc = mfs_ssh_ships(option, noptions)
                 ? mfs_text_copy(out->line, sizeof out->line, "true")
                 : mfs_text_format(out->line, sizeof out->line,
                                   "%s --version && redis-server --version", word);
    if (!rc)
        rc = mfs_ssh_command(ssh, PROBE_SECONDS, out->command, sizeof out->command);
    if (rc)
        return rc;
    mfs_text_copy(out->host, sizeof out->host, h.name);
    snprintf(out->program, sizeof out->program, "%.480s or redis-server", lm);
    snprintf(out->advice, sizeof out->advice, "%s -o BatchMode=yes %s %.400s --version",
             ssh ? ssh : "ssh", h.name, word);
    out->argv[0] = "/bin/sh";
    out->argv[1] = "-c";
    out->argv[2] = out->command;
    out->argv[3] = out->host;
    out->argv[4] = out->line;
    out->argv[5] = NULL;
    return 0;
}

void mfs_ssh_explain_probe(const struct mfs_provider_probe *p, const struct mfs_err *how,
                           const char *output, struct mfs_err *out)
{
    mfs_ssh_explain(p->host, p->program, how, output, out);
}

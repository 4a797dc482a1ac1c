/* The providers there are, and what they share. */
#include "cm/provider/provider.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "host/own_address.h"
#include "host/proc.h"
#include "proto/secret.h"
#include "net/address.h"

static const struct mfs_provider *const providers[] = {&mfs_provider_local, &mfs_provider_exec,
                                                       &mfs_provider_ssh, &mfs_provider_slurm,
                                                       &mfs_provider_ec2};

const struct mfs_provider *mfs_provider_find(const char *name)
{
    for (size_t i = 0; i < sizeof providers / sizeof *providers; i++)
        if (!strcmp(providers[i]->traits->name, name))
            return providers[i];
    return NULL;
}

const struct mfs_provider_traits *mfs_provider_traits(const char *name)
{
    static const struct mfs_provider_traits unknown = {.name = ""};
    const struct mfs_provider *p = mfs_provider_find(name);

    return p ? p->traits : &unknown;
}

int mfs_provider_environment(struct mfs_conf *conf, struct mfs_err *err)
{
    const struct mfs_provider *p;

    for (size_t i = 0; i < sizeof providers / sizeof *providers; i++)
        if (!mfs_conf_given(conf, "provider") && providers[i]->is_here &&
            providers[i]->is_here(conf))
            mfs_conf_set(conf, "provider", providers[i]->traits->name, MFS_CONF_FILE, err);
    p = mfs_provider_find(mfs_conf_str(conf, "provider"));
    return p && p->environment ? p->environment(conf, err) : 0;
}

int mfs_provider_complete(struct mfs_conf *conf, const char *key, const char *value,
                          struct mfs_err *err)
{
    if (!value || !*value || !mfs_conf_knows(conf, key) || mfs_conf_given(conf, key))
        return 0;
    return mfs_conf_set(conf, key, value, MFS_CONF_FILE, err);
}

bool mfs_provider_listen_towards(struct mfs_conf *conf, const char *machine)
{
    char address[INET6_ADDRSTRLEN], listen[INET6_ADDRSTRLEN + 8];
    struct mfs_err err;

    if (!mfs_conf_knows(conf, "listen") || mfs_conf_given(conf, "listen") ||
        mfs_conf_given(conf, "network"))
        return true;
    if (mfs_own_address_towards(machine, address) || mfs_own_address_is_loopback(address))
        return false;
    return !mfs_address_join(address, 0, listen, sizeof listen) &&
           !mfs_provider_complete(conf, "listen", listen, &err);
}

/* ---- options --------------------------------------------------------------------------------- */

static int refuse_others(const struct mfs_provider *p, const struct mfs_conf *conf,
                         struct mfs_err *err)
{
    for (size_t i = 0; i < sizeof providers / sizeof *providers; i++) {
        const struct mfs_conf_option *o = providers[i] == p ? NULL : providers[i]->options;

        for (; o && o->key; o++)
            if (mfs_conf_knows(conf, o->key) && mfs_conf_given(conf, o->key))
                return mfs_err_set(err, -EINVAL, "%s: only with --provider %s", o->key,
                                   providers[i]->traits->name);
    }
    return 0;
}

/* Adds an entry for each line of the value. */
static int take(struct mfs_provider_option **list, uint32_t *n, const char *key, const char *value)
{
    for (const char *at = value; at;) {
        size_t len = strcspn(at, "\n");
        struct mfs_provider_option *more = reallocarray(*list, *n + 1, sizeof *more);
        int rc = more ? 0 : -ENOMEM;

        if (more)
            *list = more;
        if (!rc)
            rc = mfs_text_copy(more[*n].key, sizeof more->key, key);
        if (!rc)
            rc = mfs_text_format(more[*n].value, sizeof more->value, "%.*s", (int)len, at);
        if (rc)
            return rc;
        ++*n;
        at = at[len] && at[len + 1] ? at + len + 1 : NULL;
    }
    return 0;
}

int mfs_provider_take_options(const struct mfs_provider *p, const struct mfs_conf *conf,
                              struct mfs_provider_option **list, uint32_t *n, struct mfs_err *err)
{
    int rc = refuse_others(p, conf, err);

    *list = NULL;
    *n = 0;
    if (rc)
        return rc;
    for (const struct mfs_conf_option *o = p->options; o && o->key; o++) {
        bool on = o->type != MFS_CONF_FLAG || mfs_conf_flag(conf, o->key);

        rc = on && mfs_conf_given(conf, o->key) ? take(list, n, o->key, mfs_conf_str(conf, o->key))
                                                : 0;
        if (rc)
            return mfs_err_set(err, rc, "%s: %s", o->key, strerror(-rc));
    }
    return 0;
}

const char *mfs_provider_option(const struct mfs_provider_context *c, const char *key)
{
    for (uint32_t i = 0; i < c->noptions; i++)
        if (!strcmp(c->option[i].key, key))
            return c->option[i].value;
    return NULL;
}

/* ---- the Local Manager's command line -------------------------------------------------------- */

/* A list of arguments that has room. */
static void add(struct mfs_lm_command *c, size_t *n, const char *option, const char *value)
{
    assert(*n + 2 < sizeof c->argv / sizeof *c->argv);
    c->argv[(*n)++] = option;
    if (value)
        c->argv[(*n)++] = value;
    c->argv[*n] = NULL;
}

int mfs_provider_command(const struct mfs_provider_context *c, const struct mfs_provider_node *n,
                         struct mfs_lm_command *out)
{
    int rc = mfs_proc_sibling("lm", out->lm, sizeof out->lm);
    size_t at = 0;

    snprintf(out->id, sizeof out->id, "%u", n->id);
    snprintf(out->grace, sizeof out->grace, "%u", c->grace);
    add(out, &at, out->lm, NULL);
    add(out, &at, "--name", c->paths->name);
    add(out, &at, "--node", out->id);
    if (n->address[0])
        add(out, &at, "--address", n->address);
    else if (c->network[0])
        add(out, &at, "--network", c->network);
    if (c->node_dir[0])
        add(out, &at, "--state-dir", c->node_dir);
    add(out, &at, "--cm", c->cm);
    add(out, &at, "--grace", out->grace);
    add(out, &at, "--secret", "given");
    if (c->log_format[0])
        add(out, &at, "--log-format", c->log_format);
    snprintf(out->metrics, sizeof out->metrics, "%u", c->metrics);
    if (c->metrics)
        add(out, &at, "--metrics", out->metrics);
    if (c->interface[0])
        add(out, &at, "--interface", c->interface);
    /* By its name also where that is its stderr already, so that it can be opened anew. */
    add(out, &at, "--log", "file");
    if (!c->here)
        add(out, &at, "--clean", NULL);
    if (!c->detached)
        add(out, &at, "--foreground", NULL);
    return rc;
}

int mfs_provider_quote(const struct mfs_lm_command *c, struct mfs_buf *out)
{
    char word[4 * PATH_MAX];
    int rc = 0;

    for (size_t i = 0; c->argv[i] && !rc; i++) {
        rc = mfs_text_quote(word, sizeof word, c->argv[i]);
        if (!rc)
            rc = mfs_buf_printf(out, i ? " %s" : "%s", word);
    }
    return rc;
}

/* ---- the secret ------------------------------------------------------------------------------ */

int mfs_provider_input(const struct mfs_provider_context *c, struct mfs_provider_input *out)
{
    size_t len = c->secret->len;

    if (!len || len >= sizeof out->value || memchr(c->secret->bytes, '\0', len) ||
        memchr(c->secret->bytes, '\n', len))
        return -EINVAL;
    memcpy(out->value, c->secret->bytes, len);
    out->value[len] = '\0';
    memcpy(out->line, out->value, len);
    memcpy(out->line + len, "\n", 2);
    out->input = (struct mfs_proc_input){out->line, MFS_SECRET_VARIABLE, out->value};
    return 0;
}

void mfs_provider_input_wipe(struct mfs_provider_input *in)
{
    explicit_bzero(in, sizeof *in);
}

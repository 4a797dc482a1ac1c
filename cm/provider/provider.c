/* The providers there are, and what they share. */
#include "cm/provider/provider.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "host/proc.h"
#include "proto/secret.h"

static const struct mfs_provider *const providers[] = {&mfs_provider_local, &mfs_provider_exec,
                                                       &mfs_provider_slurm};

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

void mfs_provider_environment(struct mfs_conf *conf)
{
    const struct mfs_provider *p;
    struct mfs_err err;

    for (size_t i = 0; i < sizeof providers / sizeof *providers; i++)
        if (!mfs_conf_given(conf, "provider") && providers[i]->is_here && providers[i]->is_here())
            mfs_conf_set(conf, "provider", providers[i]->traits->name, MFS_CONF_FILE, &err);
    p = mfs_provider_find(mfs_conf_str(conf, "provider"));
    if (p && p->environment)
        p->environment(conf);
}

/* ---- options --------------------------------------------------------------------------------- */

static int refuse_others(const struct mfs_provider *p, const struct mfs_conf *conf,
                         struct mfs_err *err)
{
    for (size_t i = 0; i < sizeof providers / sizeof *providers; i++) {
        const struct mfs_conf_option *o = providers[i] == p ? NULL : providers[i]->options;

        for (; o && o->key; o++)
            if (mfs_conf_given(conf, o->key))
                return mfs_err_set(err, -EINVAL, "%s: only with --provider %s", o->key,
                                   providers[i]->traits->name);
    }
    return 0;
}

static int take(struct mfs_provider_option *to, const char *key, const char *value)
{
    int rc = mfs_text_copy(to->key, sizeof to->key, key);

    return rc ? rc : mfs_text_copy(to->value, sizeof to->value, value);
}

int mfs_provider_take_options(const struct mfs_provider *p, const struct mfs_conf *conf,
                              struct mfs_provider_option **list, uint32_t *n, struct mfs_err *err)
{
    const struct mfs_conf_option *o = p->options;
    int rc = refuse_others(p, conf, err);
    size_t most = 0;

    *list = NULL;
    *n = 0;
    while (o && o[most].key)
        most++;
    if (rc || !most)
        return rc;
    *list = calloc(most, sizeof **list);
    if (!*list)
        return mfs_err_set(err, -ENOMEM, "out of memory");
    for (; o->key && !rc; o++)
        if (mfs_conf_given(conf, o->key))
            rc = take(&(*list)[(*n)++], o->key, mfs_conf_str(conf, o->key));
    return rc ? mfs_err_set(err, rc, "%s: %s", o[-1].key, strerror(-rc)) : 0;
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
    if (c->node_dir[0])
        add(out, &at, "--state-dir", c->node_dir);
    add(out, &at, "--cm", c->cm);
    add(out, &at, "--grace", out->grace);
    add(out, &at, "--secret", "given");
    if (c->interface[0])
        add(out, &at, "--interface", c->interface);
    if (!c->here)
        add(out, &at, "--log", "file");
    if (!c->here)
        add(out, &at, "--clean", NULL);
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

#include "cm/state/options_of.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/text.h"
#include "cm/provider/traits.h"
#include "cm/state/policy_conf.h"
#include "cm/state/rebalance_conf.h"

#define MIB ((uint64_t)1 << 20)

struct list {
    struct mfs_manifest_option *one;
    uint32_t n;
    bool failed;
};

static void add(void *arg, const char *key, const char *value)
{
    struct list *l = arg;
    struct mfs_manifest_option *more = reallocarray(l->one, l->n + 1, sizeof *more);

    if (!more) {
        l->failed = true;
        return;
    }
    l->one = more;
    mfs_text_copy(more[l->n].key, sizeof more[l->n].key, key);
    mfs_text_copy(more[l->n++].value, sizeof more->value, value);
}

static void add_number(struct list *l, const char *key, uint64_t n)
{
    char text[32];

    snprintf(text, sizeof text, "%" PRIu64, n);
    add(l, key, text);
}

static void add_size(struct list *l, const char *key, uint64_t bytes)
{
    char text[32];

    if (bytes % MIB)
        snprintf(text, sizeof text, "%" PRIu64, bytes);
    else
        snprintf(text, sizeof text, "%" PRIu64 "M", bytes / MIB);
    if (bytes)
        add(l, key, text);
}

static void add_words(struct list *l, const struct mfs_cm_state *s)
{
    const bool local = mfs_provider_traits(s->provider)->one_machine;
    const struct {
        const char *key, *value;
    } words[] = {
        {"provider", s->provider},           {"first-address", local ? "" : s->first_address},
        {"interface", s->interface},         {"mount", s->mount},
        {"mount-options", s->mount_options}, {"policy", s->policy},
        {"migration", s->migration},         {"weights", s->weights},
        {"bandwidth", s->bandwidth},         {"log-level", s->log_level},
        {"log-format", s->log_format},       {"on-end", s->on_end}};

    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (words[i].value[0])
            add(l, words[i].key, words[i].value);
}

static void add_numbers(struct list *l, const struct mfs_cm_state *s)
{
    add_number(l, "nodes", s->nnodes);
    add_size(l, "memory", s->memory);
    add_number(l, "replicas", s->replicas);
    add_number(l, "grace", s->grace);
    add_number(l, "auto-forget", s->auto_forget);
    add_size(l, "migration-rate", s->rate);
    add_size(l, "link-rate", s->link_rate);
    add_size(l, "events-size", s->events_size);
    if (s->probe)
        add(l, "probe", "yes");
}

int mfs_options_of(const struct mfs_cm_state *s, struct mfs_manifest_option **list, uint32_t *n)
{
    struct list l = {0};

    add_words(&l, s);
    add_numbers(&l, s);
    mfs_policy_tell(&s->scaling, add, &l);
    mfs_rebalance_tell(&s->balancing, add, &l);
    for (uint32_t i = 0; i < s->nprovider_options; i++)
        add(&l, s->provider_option[i].key, s->provider_option[i].value);
    if (l.failed) {
        free(l.one);
        l = (struct list){0};
    }
    *list = l.one;
    *n = l.n;
    return l.one ? 0 : -ENOMEM;
}

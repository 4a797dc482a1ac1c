/* Re-planning from the options. */
#include "cm/state/rebalance_conf.h"

#include <errno.h>
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "cm/state/differs.h"

static const struct {
    const char *key;
    size_t offset;
    double unit;
} reals[] = {{"rebalance-at", offsetof(struct mfs_rebalance_settings, at), 0.01},
             {"rebalance-window", offsetof(struct mfs_rebalance_settings, window), 1},
             {"rebalance-horizon", offsetof(struct mfs_rebalance_settings, horizon), 1},
             {"rebalance-factor", offsetof(struct mfs_rebalance_settings, factor), 1}};

#define NREALS (sizeof reals / sizeof *reals)

static double *at(struct mfs_rebalance_settings *s, size_t i)
{
    return (double *)((char *)s + reals[i].offset);
}

void mfs_rebalance_choose(const struct mfs_conf *conf, struct mfs_rebalance_settings *s)
{
    *s = (struct mfs_rebalance_settings){.off = !strcmp(mfs_conf_str(conf, "rebalance"), "off")};
    for (size_t i = 0; i < NREALS; i++)
        if (mfs_conf_given(conf, reals[i].key))
            *at(s, i) = mfs_conf_real(conf, reals[i].key) * reals[i].unit;
}

int mfs_rebalance_compare(const struct mfs_conf *conf, const struct mfs_rebalance_settings *has,
                          struct mfs_err *err)
{
    struct mfs_rebalance_settings asked, is = *has;

    mfs_rebalance_choose(conf, &asked);
    if (mfs_conf_given(conf, "rebalance") && asked.off != is.off)
        return mfs_state_differs(err, "rebalance", NULL);
    for (size_t i = 0; i < NREALS; i++)
        if (*at(&asked, i) > 0 && fabs(*at(&asked, i) - *at(&is, i)) > 1e-9)
            return mfs_state_differs(err, reals[i].key, NULL);
    return 0;
}

void mfs_rebalance_tell(const struct mfs_rebalance_settings *s,
                        void (*tell)(void *arg, const char *key, const char *value), void *arg)
{
    struct mfs_rebalance_settings has = *s;
    char text[32];

    if (s->off)
        tell(arg, "rebalance", "off");
    for (size_t i = 0; i < NREALS; i++) {
        snprintf(text, sizeof text, "%g", *at(&has, i) / reals[i].unit);
        if (*at(&has, i) > 0)
            tell(arg, reals[i].key, text);
    }
}

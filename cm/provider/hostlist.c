#include "cm/provider/hostlist.h"

#include <ctype.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DIGITS 9 /* of a number, at most */

/* A range of a bracket. */
struct range {
    unsigned long first, last;
    int width;
};

static int wrong(const char *at, const char *what, struct mfs_err *err)
{
    return mfs_err_set(err, -EINVAL, "%s at \"%.40s\"", what, at);
}

static int add(struct mfs_hostlist *l, const char *name, struct mfs_err *err)
{
    char **more;

    if (!*name)
        return mfs_err_set(err, -EINVAL, "a host has no name");
    if (*name == '-') /* it would be an option of the command that is given it */
        return wrong(name, "no name of a host", err);
    if (l->n == MFS_HOSTLIST_MOST)
        return mfs_err_set(err, -E2BIG, "more than %d hosts", MFS_HOSTLIST_MOST);
    more = reallocarray(l->host, l->n + 1, sizeof *more);
    if (more)
        l->host = more;
    if (!more || !(more[l->n] = strdup(name)))
        return mfs_err_set(err, -ENOMEM, "out of memory");
    l->n++;
    return 0;
}

static int number(const char **at, unsigned long *n, int *digits)
{
    *n = 0;
    for (*digits = 0; isdigit((unsigned char)**at); (*at)++, (*digits)++)
        *n = *n * 10 + (unsigned long)(**at - '0');
    return *digits >= 1 && *digits <= DIGITS ? 0 : -EINVAL;
}

/* "3", "08-11" */
static int range(const char **at, struct range *r, struct mfs_err *err)
{
    const char *from = *at;
    int digits;

    if (strspn(from, "0123456789") > DIGITS || number(at, &r->first, &r->width))
        return wrong(from, "a number is missing or too long", err);
    r->last = r->first;
    if (**at != '-')
        return 0;
    (*at)++;
    if (strspn(*at, "0123456789") > DIGITS || number(at, &r->last, &digits) || r->last < r->first)
        return wrong(from, "no range of numbers", err);
    return 0;
}

static int expand(struct mfs_hostlist *l, const char *name, size_t len, const char *rest,
                  struct mfs_err *err);

static int expand_range(struct mfs_hostlist *l, const char *name, size_t len, const struct range *r,
                        const char *rest, struct mfs_err *err)
{
    char more[MFS_HOSTLIST_NAME];
    int rc = 0;

    for (unsigned long i = r->first; i <= r->last && !rc; i++) {
        int n = snprintf(more, sizeof more, "%.*s%0*lu", (int)len, name, r->width, i);

        rc = n < (int)sizeof more ? expand(l, more, (size_t)n, rest, err)
                                  : wrong(name, "a name is too long", err);
    }
    return rc;
}

/* `at` is behind a '[': all of its ranges, each with what comes behind the ']'. */
static int expand_bracket(struct mfs_hostlist *l, const char *name, size_t len, const char *at,
                          struct mfs_err *err)
{
    const char *rest = strchr(at, ']');
    struct range r = {0};
    int rc;

    if (!rest)
        return wrong(at, "']' is missing", err);
    if (memchr(at, ':', (size_t)(rest - at)))
        return wrong(at, "an address of IPv6 stands without brackets", err);
    do {
        rc = range(&at, &r, err);
        if (!rc)
            rc = expand_range(l, name, len, &r, rest + 1, err);
    } while (!rc && *at == ',' && *++at);
    if (!rc && at != rest)
        rc = wrong(at, "no range of numbers", err);
    return rc;
}

/* The hosts of one word: `name` is what is known of it, `rest` goes on to a comma outside of
 * brackets, or to the end. Each bracket is a step of recursion, and a name has room for a few. */
static int expand(struct mfs_hostlist *l, const char *name, size_t len, const char *rest,
                  struct mfs_err *err)
{
    size_t plain = strcspn(rest, "[],");
    char more[MFS_HOSTLIST_NAME];

    if (len + plain >= sizeof more)
        return wrong(name, "a name is too long", err);
    memcpy(more, name, len);
    memcpy(more + len, rest, plain);
    more[len + plain] = '\0';
    if (strcspn(more, " \t\r\n/'\"\\$`;&|<>()*?") != len + plain)
        return wrong(more, "no name of a host", err);
    if (rest[plain] == '[')
        return expand_bracket(l, more, len + plain, rest + plain + 1, err);
    if (rest[plain] == ']')
        return wrong(rest + plain, "'[' is missing", err);
    return add(l, more, err);
}

/* Behind the comma that ends the word; NULL: there is none. */
static const char *next_word(const char *at)
{
    bool inside = false;

    for (; *at && (inside || *at != ','); at++)
        inside = *at == '[' || (inside && *at != ']');
    return *at ? at + 1 : NULL;
}

int mfs_hostlist_parse(const char *text, struct mfs_hostlist *l, struct mfs_err *err)
{
    int rc = 0;

    *l = (struct mfs_hostlist){0};
    for (const char *at = text; at && !rc; at = next_word(at))
        rc = expand(l, "", 0, at, err);
    if (rc)
        mfs_hostlist_clear(l);
    return rc;
}

void mfs_hostlist_clear(struct mfs_hostlist *l)
{
    for (uint32_t i = 0; i < l->n; i++)
        free(l->host[i]);
    free(l->host);
    *l = (struct mfs_hostlist){0};
}

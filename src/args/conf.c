/* Options from a table. Values are kept as the checked text and converted when asked for. */
#include "args/conf.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"

#define HELP_COLUMN 30

struct value {
    const struct mfs_conf_option *option;
    enum mfs_conf_source source;
    char *text; /* own, NULL: the default */
};

struct mfs_conf {
    size_t n;
    struct value value[];
};

struct mfs_conf *mfs_conf_create(const struct mfs_conf_option *const *groups)
{
    struct mfs_conf *c;
    size_t n = 0;

    for (size_t g = 0; groups[g]; g++)
        for (const struct mfs_conf_option *o = groups[g]; o->key; o++)
            n++;
    c = calloc(1, sizeof *c + n * sizeof c->value[0]);
    if (!c)
        return NULL;
    for (size_t g = 0; groups[g]; g++)
        for (const struct mfs_conf_option *o = groups[g]; o->key; o++)
            c->value[c->n++].option = o;
    return c;
}

void mfs_conf_destroy(struct mfs_conf *c)
{
    if (!c)
        return;
    for (size_t i = 0; i < c->n; i++)
        free(c->value[i].text);
    free(c);
}

static const struct value *find(const struct mfs_conf *c, const char *key)
{
    for (size_t i = 0; i < c->n; i++)
        if (!strcmp(c->value[i].option->key, key))
            return &c->value[i];
    return NULL;
}

static int unknown(const struct mfs_conf *c, const char *dashes, const char *key,
                   struct mfs_err *err)
{
    unsigned best = (unsigned)strlen(key) / 2 + 1;
    const char *near = NULL;

    for (size_t i = 0; i < c->n; i++) {
        unsigned d = mfs_text_distance(key, c->value[i].option->key);

        if (d < best && c->value[i].option->help) {
            best = d;
            near = c->value[i].option->key;
        }
    }
    if (!near)
        return mfs_err_set(err, -EINVAL, "unknown option %s%s (see --help)", dashes, key);
    return mfs_err_set(err, -EINVAL, "unknown option %s%s, did you mean %s%s?", dashes, key, dashes,
                       near);
}

static bool is_choice(const char *words, const char *text)
{
    size_t n = strlen(text);

    for (const char *at = words; at; at = strchr(at, '|') ? strchr(at, '|') + 1 : NULL)
        if (!strncmp(at, text, n) && (at[n] == '|' || !at[n]) && n)
            return true;
    return false;
}

static int check_number(const struct mfs_conf_option *o, const char *text, struct mfs_err *err)
{
    uint64_t whole = 0;
    double v = 0;
    int rc;

    if (o->type == MFS_CONF_REAL)
        rc = mfs_text_f64(text, &v);
    else if (o->type == MFS_CONF_SIZE)
        rc = mfs_text_size(text, &whole);
    else
        rc = mfs_text_u64(text, &whole);
    if (rc)
        return mfs_err_set(err, -EINVAL, "%s: \"%s\" is not a %s", o->key, text,
                           o->type == MFS_CONF_SIZE ? "size like 512M or 4G" : "number in range");
    if (o->type != MFS_CONF_REAL)
        v = (double)whole;
    if (o->max > 0 && (v < o->min || v > o->max)) {
        if (o->type == MFS_CONF_SIZE)
            return mfs_err_set(err, -EINVAL, "%s: %s is not between %s and %s", o->key, text,
                               MFS_TEXT_BYTES((uint64_t)o->min), MFS_TEXT_BYTES((uint64_t)o->max));
        return mfs_err_set(err, -EINVAL, "%s: %s is not between %g and %g", o->key, text, o->min,
                           o->max);
    }
    return 0;
}

static int check(const struct mfs_conf_option *o, const char *text, struct mfs_err *err)
{
    size_t len = strlen(text);
    bool flag;

    switch (o->type) {
    case MFS_CONF_FLAG:
        if (mfs_text_bool(text, &flag))
            return mfs_err_set(err, -EINVAL, "%s: \"%s\" is neither yes nor no", o->key, text);
        return 0;
    case MFS_CONF_CHOICE:
        if (!is_choice(o->arg, text))
            return mfs_err_set(err, -EINVAL, "%s: \"%s\" is not one of %s", o->key, text, o->arg);
        return 0;
    case MFS_CONF_STRING:
        if (o->max > 0 && ((double)len < o->min || (double)len > o->max))
            return mfs_err_set(err, -EINVAL, "%s: \"%s\" must have %g to %g characters", o->key,
                               text, o->min, o->max);
        return 0;
    default:
        return check_number(o, text, err);
    }
}

static int set(struct value *v, const char *text, enum mfs_conf_source source, struct mfs_err *err)
{
    char *copy;
    int rc = check(v->option, text, err);

    if (rc)
        return rc;
    if (source < v->source)
        return 0;
    copy = strdup(text);
    if (!copy)
        return mfs_err_set(err, -ENOMEM, "out of memory");
    free(v->text);
    v->text = copy;
    v->source = source;
    return 0;
}

int mfs_conf_set(struct mfs_conf *c, const char *key, const char *text, enum mfs_conf_source source,
                 struct mfs_err *err)
{
    const struct value *v = find(c, key);

    if (!v)
        return unknown(c, source == MFS_CONF_ARGV ? "--" : "", key, err);
    return set(&c->value[v - c->value], text, source, err);
}

/* One option at argv[*at], which begins with "--". */
static int take(struct mfs_conf *c, int argc, char **argv, int *at, struct mfs_err *err)
{
    char *text = argv[*at] + 2, *equals = strchr(text, '='), key[64];
    const struct value *v;
    const char *value;

    if (mfs_text_format(key, sizeof key, "%.*s", equals ? (int)(equals - text) : (int)strlen(text),
                        text))
        return mfs_err_set(err, -EINVAL, "unknown option --%s", text);
    v = find(c, key);
    if (!v)
        return unknown(c, "--", key, err);
    if (equals)
        value = equals + 1;
    else if (v->option->type == MFS_CONF_FLAG)
        value = "yes";
    else if (*at + 1 < argc)
        value = argv[++*at];
    else
        return mfs_err_set(err, -EINVAL, "--%s needs a value (%s)", key, v->option->arg);
    return set(&c->value[v - c->value], value, MFS_CONF_ARGV, err);
}

int mfs_conf_argv(struct mfs_conf *c, int argc, char **argv, int args, struct mfs_err *err)
{
    bool options = true;
    int n = 0;

    for (int i = 0; i < argc; i++) {
        int rc = 0;

        if (options && !strcmp(argv[i], "--")) {
            options = false;
        } else if (options && !strncmp(argv[i], "--", 2)) {
            rc = take(c, argc, argv, &i, err);
        } else if (options && !strcmp(argv[i], "-h") && find(c, "help")) {
            rc = mfs_conf_set(c, "help", "yes", MFS_CONF_ARGV, err);
        } else if (options && argv[i][0] == '-' && argv[i][1] &&
                   !strchr("0123456789", argv[i][1])) {
            rc = mfs_err_set(err, -EINVAL, "unknown option %s (see --help)", argv[i]);
        } else if (n == args) {
            rc = mfs_err_set(err, -EINVAL, "unexpected argument \"%s\" (see --help)", argv[i]);
        } else {
            argv[n++] = argv[i];
        }
        if (rc)
            return rc;
    }
    return n;
}

static const struct value *known(const struct mfs_conf *c, const char *key)
{
    const struct value *v = find(c, key);

    if (!v)
        abort();
    return v;
}

const char *mfs_conf_str(const struct mfs_conf *c, const char *key)
{
    const struct value *v = known(c, key);

    return v->text ? v->text : v->option->def;
}

uint64_t mfs_conf_uint(const struct mfs_conf *c, const char *key)
{
    const char *text = mfs_conf_str(c, key);
    uint64_t v = 0;

    if (text && known(c, key)->option->type == MFS_CONF_SIZE)
        mfs_text_size(text, &v);
    else if (text)
        mfs_text_u64(text, &v);
    return v;
}

double mfs_conf_real(const struct mfs_conf *c, const char *key)
{
    const char *text = mfs_conf_str(c, key);
    double v = 0;

    if (text)
        mfs_text_f64(text, &v);
    return v;
}

bool mfs_conf_flag(const struct mfs_conf *c, const char *key)
{
    const char *text = mfs_conf_str(c, key);
    bool v = false;

    if (text)
        mfs_text_bool(text, &v);
    return v;
}

bool mfs_conf_given(const struct mfs_conf *c, const char *key)
{
    return known(c, key)->source != MFS_CONF_DEFAULT;
}

static void help_line(const struct mfs_conf_option *o, FILE *to)
{
    int n = fprintf(to, "  --%s", o->key);

    if (o->type != MFS_CONF_FLAG)
        n += fprintf(to, " %s", o->arg);
    if (n >= HELP_COLUMN) {
        fputc('\n', to);
        n = 0;
    }
    fprintf(to, "%*s%s", HELP_COLUMN - n, "", o->help);
    if (o->def && *o->def && o->type != MFS_CONF_FLAG)
        fprintf(to, " (default: %s)", o->def);
    fputc('\n', to);
}

void mfs_conf_help(const struct mfs_conf_option *const *groups, FILE *to)
{
    for (size_t g = 0; groups[g]; g++)
        for (const struct mfs_conf_option *o = groups[g]; o->key; o++)
            if (o->help)
                help_line(o, to);
}

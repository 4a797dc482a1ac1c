/* Options from tables. There is a value for each option, with the source that it has from: a
 * default, then a file, then the command line; a weaker source never replaces a stronger one's.
 * Values are kept as the checked text and converted when asked for, which so can't fail. An alias
 * has no value: whatever is said by it is said of the option it stands for. */
#include "args/conf.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"

#define HELP_COLUMN 30
#define WORD_MAX    64 /* of an option that may be like a known one */

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

static const struct value *find_n(const struct mfs_conf *c, const char *key, size_t n)
{
    for (size_t i = 0; i < c->n; i++) {
        const char *known = c->value[i].option->key;

        if (!strncmp(known, key, n) && !known[n])
            return &c->value[i];
    }
    return NULL;
}

/* The option that is called so, or by an alias, which may also say the value. */
static struct value *find(struct mfs_conf *c, const char *key, size_t n, const char **text)
{
    const struct value *v = find_n(c, key, n);

    if (v && v->option->type == MFS_CONF_ALIAS) {
        const char *meant = v->option->arg;

        n = strcspn(meant, "=");
        if (meant[n])
            *text = meant + n + 1;
        v = find_n(c, meant, n);
        assert(v && v->option->type != MFS_CONF_ALIAS);
    }
    return v ? &c->value[v - c->value] : NULL;
}

/* The option that was meant, perhaps: NULL if none is like it. */
static const char *like(const struct mfs_conf *c, const char *key, size_t n)
{
    unsigned best = (unsigned)n / 2 + 1;
    const char *near = NULL;
    char text[WORD_MAX];

    if (mfs_text_format(text, sizeof text, "%.*s", (int)n, key))
        return NULL;
    for (size_t i = 0; i < c->n; i++) {
        unsigned d = mfs_text_distance(text, c->value[i].option->key);

        if (d < best && c->value[i].option->help) {
            best = d;
            near = c->value[i].option->key;
        }
    }
    return near;
}

static int unknown(const struct mfs_conf *c, const char *dashes, const char *key, size_t n,
                   struct mfs_err *err)
{
    const char *near = like(c, key, n);

    n = n < MFS_CONF_SHOWN_MAX ? n : MFS_CONF_SHOWN_MAX;
    if (!near)
        return mfs_err_set(err, -EINVAL, "unknown option %s%.*s (see --help)", dashes, (int)n, key);
    return mfs_err_set(err, -EINVAL, "unknown option %s%.*s, did you mean %s%s?", dashes, (int)n,
                       key, dashes, near);
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
        return mfs_err_set(err, -EINVAL, "%s: \"" MFS_CONF_SHOWN "\" is not a %s", o->key, text,
                           o->type == MFS_CONF_SIZE ? "size like 512M or 4G" : "number in range");
    if (o->type != MFS_CONF_REAL)
        v = (double)whole;
    if (o->max > 0 && (v < o->min || v > o->max)) {
        if (o->type == MFS_CONF_SIZE)
            return mfs_err_set(err, -EINVAL, "%s: " MFS_CONF_SHOWN " is not between %s and %s",
                               o->key, text, MFS_TEXT_BYTES((uint64_t)o->min),
                               MFS_TEXT_BYTES((uint64_t)o->max));
        return mfs_err_set(err, -EINVAL, "%s: " MFS_CONF_SHOWN " is not between %g and %g", o->key,
                           text, o->min, o->max);
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
            return mfs_err_set(err, -EINVAL, "%s: \"" MFS_CONF_SHOWN "\" is neither yes nor no",
                               o->key, text);
        return 0;
    case MFS_CONF_CHOICE:
        if (!is_choice(o->arg, text))
            return mfs_err_set(err, -EINVAL, "%s: \"" MFS_CONF_SHOWN "\" is not one of %s", o->key,
                               text, o->arg);
        return 0;
    case MFS_CONF_STRING:
    case MFS_CONF_LIST:
        if (o->max > 0 && ((double)len < o->min || (double)len > o->max))
            return mfs_err_set(err, -EINVAL,
                               "%s: \"" MFS_CONF_SHOWN "\" must have %.0f to %.0f characters",
                               o->key, text, o->min, o->max);
        return 0;
    default:
        return check_number(o, text, err);
    }
}

static char *added(const char *list, const char *text)
{
    size_t n = strlen(list) + strlen(text) + 2;
    char *both = malloc(n);

    if (both)
        snprintf(both, n, "%s,%s", list, text);
    return both;
}

static int set(struct value *v, const char *text, enum mfs_conf_source source, struct mfs_err *err)
{
    char *copy;
    int rc = check(v->option, text, err);

    if (rc)
        return rc;
    if (source < v->source)
        return 0;
    if (v->option->type == MFS_CONF_LIST && v->text && source == v->source)
        copy = added(v->text, text);
    else
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
    struct value *v = find(c, key, strlen(key), &text);

    return v ? set(v, text, source, err) : unknown(c, "", key, strlen(key), err);
}

/* The option of n bytes, and `text`, its value if it has one, else `next`, which may be NULL, if it
 * needs one: then 1 is returned. */
static int take(struct mfs_conf *c, const char *dashes, const char *key, size_t n, const char *text,
                const char *next, struct mfs_err *err)
{
    const char *meant = NULL;
    struct value *v = find(c, key, n, &meant);
    int rc;

    if (!v || (n == 1 && !strcmp(dashes, "--"))) /* letters have one dash */
        return unknown(c, dashes, key, n, err);
    if (meant && text)
        return mfs_err_set(err, -EINVAL, "%s%.*s takes no value", dashes, (int)n, key);
    if (!text)
        text = meant ? meant : v->option->type == MFS_CONF_FLAG ? "yes" : NULL;
    if (!text && !next)
        return mfs_err_set(err, -EINVAL, "%s%.*s needs a value (%s)", dashes, (int)n, key,
                           v->option->arg);
    rc = set(v, text ? text : next, MFS_CONF_ARGV, err);
    return rc ? rc : !text;
}

static int take_word(struct mfs_conf *c, const char *dashes, const char *word, const char *next,
                     struct mfs_err *err)
{
    size_t n = strcspn(word, "=");

    return take(c, dashes, word, n, word[n] ? word + n + 1 : NULL, next, err);
}

int mfs_conf_word(struct mfs_conf *c, const char *dashes, const char *word, struct mfs_err *err)
{
    return take_word(c, dashes, word, NULL, err);
}

static bool is_option(const char *word)
{
    return word[0] == '-' && word[1] && !strchr("0123456789", word[1]);
}

/* A letter, whose value may be in the same word; a flag's may not. */
static bool is_letter(struct mfs_conf *c, const char *word)
{
    const char *meant = NULL;
    const struct value *v = find(c, word, 1, &meant);

    return v && (!word[1] || v->option->type != MFS_CONF_FLAG);
}

/* The option at argv[0], and argv[1] if that is its value: 1 then. */
static int take_option(struct mfs_conf *c, char **argv, int argc, struct mfs_err *err)
{
    const char *word = argv[0], *next = argc > 1 ? argv[1] : NULL;

    if (!strncmp(word, "--", 2))
        return take_word(c, "--", word + 2, next, err);
    if (!is_letter(c, word + 1))
        return mfs_err_set(err, -EINVAL, "unknown option " MFS_CONF_SHOWN " (see --help)", word);
    return take(c, "-", word + 1, 1, word[2] ? word + 2 : NULL, next, err);
}

int mfs_conf_argv(struct mfs_conf *c, int argc, char **argv, int args, struct mfs_err *err)
{
    bool options = true;
    int n = 0, rc = 0;

    for (int i = 0; i < argc && rc >= 0; i++) {
        if (options && !strcmp(argv[i], "--")) {
            options = false;
        } else if (options && is_option(argv[i])) {
            rc = take_option(c, argv + i, argc - i, err);
            i += rc > 0;
        } else if (n == args) {
            rc = mfs_err_set(err, -EINVAL,
                             "unexpected argument \"" MFS_CONF_SHOWN "\" (see --help)", argv[i]);
        } else {
            argv[n++] = argv[i];
        }
    }
    return rc < 0 ? rc : n;
}

static const struct value *known(const struct mfs_conf *c, const char *key)
{
    const struct value *v = find_n(c, key, strlen(key));

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

bool mfs_conf_knows(const struct mfs_conf *c, const char *key)
{
    return find_n(c, key, strlen(key));
}

static bool takes_value(const struct mfs_conf_option *o)
{
    return o->type != MFS_CONF_FLAG && o->type != MFS_CONF_ALIAS;
}

static void help_line(const struct mfs_conf_option *o, const char *dashes, char equals, FILE *to)
{
    int n = fprintf(to, "  %s%s", dashes, o->key);

    if (takes_value(o))
        n += fprintf(to, "%c%s", equals, o->arg);
    if (n >= HELP_COLUMN) {
        fputc('\n', to);
        n = 0;
    }
    fprintf(to, "%*s%s", HELP_COLUMN - n, "", o->help);
    if (o->def && *o->def && takes_value(o))
        fprintf(to, " (default: %s)", o->def);
    fputc('\n', to);
}

void mfs_conf_help(const struct mfs_conf_option *const *groups, const char *dashes, char equals,
                   FILE *to)
{
    for (size_t g = 0; groups[g]; g++)
        for (const struct mfs_conf_option *o = groups[g]; o->key; o++)
            if (o->help)
                help_line(o, dashes, equals, to);
}

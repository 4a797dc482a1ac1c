/* The values of keys, and what can be asked of all of them. */
#include "redis_values.h"

#include <stdlib.h>
#include <string.h>

#include "partition/protocol.h"

#define KEYS       1024
#define STRING_MAX (512U << 20)

static struct value keys[KEYS], aside[KEYS];

/* ---- strings --------------------------------------------------------------------------------- */

struct RedisModuleString *fuzz_string(const void *p, size_t n)
{
    struct RedisModuleString *s = malloc(sizeof *s);

    FUZZ_CHECK(s && n <= STRING_MAX);
    *s = (struct RedisModuleString){1, n, calloc(1, n + 1)};
    FUZZ_CHECK(s->p);
    if (p && n)
        memcpy(s->p, p, n);
    return s;
}

void fuzz_string_free(struct RedisModuleString *s)
{
    if (!s || --s->refs)
        return;
    free(s->p);
    free(s);
}

struct RedisModuleString *fuzz_string_share(struct RedisModuleString *s)
{
    s->refs++;
    return s;
}

bool fuzz_string_same(const struct RedisModuleString *a, const struct RedisModuleString *b)
{
    return a->n == b->n && !memcmp(a->p, b->p, a->n);
}

/* ---- fields and members ---------------------------------------------------------------------- */

struct field *fuzz_field_find(const struct value *v, const struct RedisModuleString *name)
{
    for (size_t i = 0; i < v->nfields; i++)
        if (fuzz_string_same(v->field[i].name, name))
            return &v->field[i];
    return NULL;
}

struct field *fuzz_field_add(struct value *v, const struct RedisModuleString *name)
{
    if (v->nfields == v->room) {
        v->room = 2 * v->room + 4;
        v->field = reallocarray(v->field, v->room, sizeof *v->field);
        FUZZ_CHECK(v->field);
    }
    v->field[v->nfields] = (struct field){fuzz_string(name->p, name->n), NULL};
    return &v->field[v->nfields++];
}

void fuzz_field_drop(struct value *v, struct field *f)
{
    fuzz_string_free(f->name);
    fuzz_string_free(f->value);
    *f = v->field[--v->nfields];
}

void fuzz_value_drop(struct value *v)
{
    while (v->nfields)
        fuzz_field_drop(v, &v->field[v->nfields - 1]);
    free(v->field);
    fuzz_string_free(v->string);
    *v = (struct value){.name = v->name, .expires = -1, .open = v->open};
}

/* ---- keys ------------------------------------------------------------------------------------ */

bool fuzz_value_may_be(const struct value *v, int type)
{
    return !v->type || v->type == type;
}

struct value *fuzz_value_find(const struct RedisModuleString *name)
{
    struct value *spare = NULL;

    for (unsigned i = 0; i < KEYS; i++) {
        if (keys[i].name && fuzz_string_same(keys[i].name, name))
            return &keys[i];
        if (!keys[i].name && !spare)
            spare = &keys[i];
    }
    FUZZ_CHECK(spare);
    return spare;
}

void fuzz_value_forget(struct value *v)
{
    fuzz_string_free(v->name);
    v->name = NULL;
}

struct value *fuzz_value_next(size_t *at)
{
    while (*at < KEYS)
        if (keys[(*at)++].type)
            return &keys[*at - 1];
    return NULL;
}

void fuzz_keys_each(void (*each)(void *arg, struct RedisModuleString *name), void *arg)
{
    struct value *v;
    size_t at = 0;

    while ((v = fuzz_value_next(&at)))
        each(arg, v->name);
}

static void drop_all(struct value *all)
{
    for (unsigned i = 0; i < KEYS; i++) {
        if (!all[i].name)
            continue;
        fuzz_value_drop(&all[i]);
        fuzz_value_forget(&all[i]);
    }
}

void fuzz_keys_drop(void)
{
    drop_all(keys);
}

/* ---- comparing ------------------------------------------------------------------------------- */

void fuzz_keys_put_aside(void)
{
    FUZZ_CHECK(!fuzz_keys_open());
    drop_all(aside);
    memcpy(aside, keys, sizeof aside);
    memset(keys, 0, sizeof keys);
}

static void compare_fields(const struct value *was, const struct value *is)
{
    FUZZ_CHECK(is->nfields == was->nfields);
    for (size_t i = 0; i < was->nfields; i++) {
        const struct field *f = fuzz_field_find(is, was->field[i].name);

        FUZZ_CHECK(f && !f->value == !was->field[i].value);
        FUZZ_CHECK(!f->value || fuzz_string_same(f->value, was->field[i].value));
    }
}

static void compare(const struct value *was)
{
    const struct value *is = fuzz_value_find(was->name);

    FUZZ_CHECK(is->type);
    if (was->name->n && was->name->p[0] == 'S')
        return;
    FUZZ_CHECK(is->type == was->type && is->expires == was->expires);
    if (was->string)
        FUZZ_CHECK(fuzz_string_same(is->string, was->string));
    else
        compare_fields(was, is);
}

/* What is lost with the process is counted while the next one reads the journal. */
static bool is_kept(const struct value *v)
{
    const size_t n = sizeof MFS_LOSSES_KEY - 1;

    return v->type && !(v->name->n == n && !memcmp(v->name->p, MFS_LOSSES_KEY, n));
}

void fuzz_keys_compare(void)
{
    size_t was = 0, is = 0;

    for (unsigned i = 0; i < KEYS; i++) {
        was += is_kept(&aside[i]);
        is += is_kept(&keys[i]);
        if (is_kept(&aside[i]))
            compare(&aside[i]);
    }
    FUZZ_CHECK(was == is);
    drop_all(aside);
}

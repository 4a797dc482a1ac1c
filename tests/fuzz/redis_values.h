/* A key of the stand-in for redis, for redis_keys.c alone. */
#ifndef MFS_FUZZ_REDIS_VALUES_H
#define MFS_FUZZ_REDIS_VALUES_H

#include "redis_parts.h"

struct field {
    struct RedisModuleString *name, *value; /* value NULL: member of a set */
};

struct value {
    struct RedisModuleString *name;
    int type; /* MFS_REDIS_STRING …; 0: there is no such key */
    struct RedisModuleString *string;
    struct field *field; /* of a hash or set */
    size_t nfields, room;
    long long expires; /* ms since the epoch, -1: never */
    unsigned open;     /* handles */
};

bool fuzz_value_may_be(const struct value *v, int type); /* is, or could become one */
/* That of the name, or one for it that has no name yet. */
struct value *fuzz_value_find(const struct RedisModuleString *name);
struct value *fuzz_value_next(size_t *at); /* of those that there are; NULL: no more */
void fuzz_value_drop(struct value *v);     /* there is no such key; its name stays */
void fuzz_value_forget(struct value *v);   /* the name */

struct field *fuzz_field_find(const struct value *v, const struct RedisModuleString *name);
struct field *fuzz_field_add(struct value *v, const struct RedisModuleString *name);
void fuzz_field_drop(struct value *v, struct field *f);

#endif

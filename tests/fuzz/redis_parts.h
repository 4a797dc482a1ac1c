/* What the parts of the stand-in for redis share among themselves: redis_keys.c has the keys,
 * redis_answers.c what commands and calls answer, redis_calls.c commands of redis itself, and
 * redis_host.c the module in it. */
#ifndef MFS_FUZZ_REDIS_PARTS_H
#define MFS_FUZZ_REDIS_PARTS_H

#include <stdarg.h>

#include "input.h"
#include "partition/journal/api.h"
#include "partition/redis.h"

/* All functions that a module may ask for. */
struct fuzz_redis_api {
    struct mfs_redis_api redis;
    struct mfs_journal_api journal;
};

/* Each part gives its own ones. */
void fuzz_keys_give(struct fuzz_redis_api *api);
void fuzz_answers_give(struct fuzz_redis_api *api);
void fuzz_calls_give(struct fuzz_redis_api *api);

/* ---- strings: counted, the bytes are followed by NUL ----------------------------------------- */

struct RedisModuleString {
    unsigned refs;
    size_t n;
    char *p;
};

struct RedisModuleString *fuzz_string(const void *p, size_t n); /* p NULL: zeros */
struct RedisModuleString *fuzz_string_share(struct RedisModuleString *s);
void fuzz_string_free(struct RedisModuleString *s);
bool fuzz_string_same(const struct RedisModuleString *a, const struct RedisModuleString *b);

/* ---- keys ------------------------------------------------------------------------------------ */

/* As a client's SET, SETRANGE, HSET, HDEL, SADD, SREM and DEL do it: whether something was changed.
 * Keys of another type stay as they are. */
bool fuzz_key_set(struct RedisModuleString *name, struct RedisModuleString *value);
/* The value's length then; -1: an error. */
long long fuzz_key_setrange(struct RedisModuleString *name, size_t off,
                            struct RedisModuleString *part);
bool fuzz_key_hset(struct RedisModuleString *name, struct RedisModuleString *field,
                   struct RedisModuleString *value);
bool fuzz_key_hdel(struct RedisModuleString *name, struct RedisModuleString *field);
bool fuzz_key_sadd(struct RedisModuleString *name, struct RedisModuleString *member);
bool fuzz_key_srem(struct RedisModuleString *name, struct RedisModuleString *member);
bool fuzz_key_del(struct RedisModuleString *name);
bool fuzz_key_is_member(struct RedisModuleString *name, struct RedisModuleString *member);

/* Calls each(name) for all keys. */
void fuzz_keys_each(void (*each)(void *arg, struct RedisModuleString *name), void *arg);
unsigned fuzz_keys_open(void); /* handles that are not closed yet */
void fuzz_keys_drop(void);

/* Puts all keys aside, then compares: all keys that are there now with those, drops the latter.
 * Of stripes (S…) a journal tells only that they are there. */
void fuzz_keys_put_aside(void);
void fuzz_keys_compare(void);

/* ---- what commands and calls answer ---------------------------------------------------------- */

/* A command begins; it has ended, with one whole answer. */
void fuzz_answer_begin(void);
void fuzz_answer_end(void);

/* What a call from within the module gives: freed by it. */
struct RedisModuleCallReply *fuzz_reply_integer(long long v);
struct RedisModuleCallReply *fuzz_reply_text(const char *p, size_t n);
struct RedisModuleCallReply *fuzz_reply_array(void);
void fuzz_reply_add(struct RedisModuleCallReply *array, struct RedisModuleCallReply *element);
unsigned fuzz_replies(void); /* that are not freed yet */

/* ---- commands of redis itself ---------------------------------------------------------------- */

#define FUZZ_WORDS 40

/* What the module has the server tell it of. */
void fuzz_call_filter(mfs_redis_filter *f);
void fuzz_call_on_key(mfs_redis_on_key *on_key);

/* Runs a command that has that many words. NULL: an error. */
struct RedisModuleCallReply *fuzz_call(struct RedisModuleCtx *ctx, struct RedisModuleString **word,
                                       int n);
/* Shows a command of the module to the filters. */
void fuzz_call_show(struct RedisModuleString **word, int n);
/* Tells of all keys, as if each had been changed. */
void fuzz_call_touch_all(struct RedisModuleCtx *ctx);

#endif

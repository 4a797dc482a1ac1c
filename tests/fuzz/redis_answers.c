/* What commands of the module answer, of which each must give one whole answer, and what calls from
 * within the module get. */
#include <stdlib.h>
#include <string.h>

#include "redis_parts.h"

/* ---- answers --------------------------------------------------------------------------------- */

#define DEPTH 4

/* The answer under way: arrays that are not whole yet, the outermost first, with how many values
 * each still needs. */
static struct {
    bool begun;
    unsigned depth;
    struct {
        bool postponed;
        long due, given;
    } array[DEPTH];
} answer;

void fuzz_answer_begin(void)
{
    memset(&answer, 0, sizeof answer);
}

void fuzz_answer_end(void)
{
    FUZZ_CHECK(answer.begun && !answer.depth);
}

/* Arrays that have all of their values are whole. */
static void close_arrays(void)
{
    while (answer.depth && !answer.array[answer.depth - 1].postponed &&
           !answer.array[answer.depth - 1].due)
        answer.depth--;
}

/* One value: all of the answer, or an element of the innermost array. */
static void add_value(void)
{
    unsigned at = answer.depth - 1;

    FUZZ_CHECK(!answer.begun || answer.depth);
    answer.begun = true;
    if (!answer.depth)
        return;
    FUZZ_CHECK(answer.array[at].postponed || answer.array[at].due > 0);
    answer.array[at].given++;
    if (answer.array[at].due > 0)
        answer.array[at].due--;
}

static int give(void)
{
    add_value();
    close_arrays();
    return MFS_REDIS_OK;
}

static int reply_string(struct RedisModuleCtx *ctx, const char *p, size_t n)
{
    (void)ctx;
    if (n) /* a sanitizer sees whether they are there */
        FUZZ_CHECK(p && memchr(p, p[n - 1], n));
    return give();
}

static int reply_null(struct RedisModuleCtx *ctx)
{
    (void)ctx;
    return give();
}

static int reply_error(struct RedisModuleCtx *ctx, const char *text)
{
    (void)ctx;
    FUZZ_CHECK(*text && !answer.begun);
    return give();
}

static int reply_integer(struct RedisModuleCtx *ctx, long long v)
{
    (void)ctx;
    (void)v;
    return give();
}

static int reply_array(struct RedisModuleCtx *ctx, long n)
{
    bool postponed = n == MFS_REDIS_POSTPONED;

    (void)ctx;
    FUZZ_CHECK(answer.depth < DEPTH);
    add_value();
    answer.array[answer.depth].postponed = postponed;
    answer.array[answer.depth].due = postponed ? 0 : n;
    answer.array[answer.depth++].given = 0;
    close_arrays();
    return MFS_REDIS_OK;
}

static void reply_array_length(struct RedisModuleCtx *ctx, long n)
{
    unsigned at = answer.depth - 1;

    (void)ctx;
    FUZZ_CHECK(answer.depth && answer.array[at].postponed && answer.array[at].given == n);
    answer.array[at].postponed = false;
    close_arrays();
}

/* ---- replies to calls ------------------------------------------------------------------------ */

struct RedisModuleCallReply {
    enum { INTEGER, TEXT, ARRAY } kind;
    long long integer;
    struct RedisModuleString *text;
    struct RedisModuleCallReply **element; /* n of them */
    size_t n;
};

static unsigned replies;

static struct RedisModuleCallReply *reply(int kind)
{
    struct RedisModuleCallReply *r = calloc(1, sizeof *r);

    FUZZ_CHECK(r);
    r->kind = kind;
    replies++;
    return r;
}

struct RedisModuleCallReply *fuzz_reply_integer(long long v)
{
    struct RedisModuleCallReply *r = reply(INTEGER);

    r->integer = v;
    return r;
}

struct RedisModuleCallReply *fuzz_reply_text(const char *p, size_t n)
{
    struct RedisModuleCallReply *r = reply(TEXT);

    r->text = fuzz_string(p, n);
    return r;
}

struct RedisModuleCallReply *fuzz_reply_array(void)
{
    return reply(ARRAY);
}

void fuzz_reply_add(struct RedisModuleCallReply *array, struct RedisModuleCallReply *element)
{
    array->element = reallocarray(array->element, array->n + 1, sizeof(void *));
    FUZZ_CHECK(array->element);
    array->element[array->n++] = element;
}

unsigned fuzz_replies(void)
{
    return replies;
}

static void free_reply(struct RedisModuleCallReply *r)
{
    if (!r)
        return;
    for (size_t i = 0; i < r->n; i++)
        free_reply(r->element[i]);
    free(r->element);
    fuzz_string_free(r->text);
    free(r);
    replies--;
}

static struct RedisModuleCallReply *reply_element(struct RedisModuleCallReply *r, size_t i)
{
    return r->kind == ARRAY && i < r->n ? r->element[i] : NULL;
}

static size_t reply_length(struct RedisModuleCallReply *r)
{
    return r->kind == ARRAY ? r->n : r->text ? r->text->n : 0;
}

static const char *reply_text(struct RedisModuleCallReply *r, size_t *n)
{
    if (!r->text)
        return NULL;
    *n = r->text->n;
    return r->text->p;
}

/* Errors are NULL. */
static int reply_type(struct RedisModuleCallReply *r)
{
    return r->kind == INTEGER ? 2 : r->kind == ARRAY ? 3 : 0;
}

static int reply_reply(struct RedisModuleCtx *ctx, struct RedisModuleCallReply *r)
{
    (void)ctx;
    FUZZ_CHECK(r->kind != ARRAY);
    return give();
}

static long long integer_of(struct RedisModuleCallReply *r)
{
    return r->kind == INTEGER ? r->integer : -1;
}

void fuzz_answers_give(struct fuzz_redis_api *api)
{
    api->redis.ReplyWithStringBuffer = reply_string;
    api->redis.ReplyWithNull = reply_null;
    api->redis.ReplyWithError = reply_error;
    api->redis.ReplyWithLongLong = reply_integer;
    api->redis.ReplyWithArray = reply_array;
    api->redis.ReplySetArrayLength = reply_array_length;
    api->redis.FreeCallReply = free_reply;
    api->redis.CallReplyArrayElement = reply_element;
    api->redis.CallReplyLength = reply_length;
    api->redis.CallReplyStringPtr = reply_text;
    api->redis.CallReplyInteger = integer_of;
    api->redis.CallReplyType = reply_type;
    api->redis.ReplyWithCallReply = reply_reply;
}

/* Structs with schemas, tables and messages to JSON and back, and from texts of ill will. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "proto/frame.h"
#include "proto/messages.h"
#include "proto/metrics_schemas.h"

static struct mfs_table *some_table(uint32_t n)
{
    struct mfs_table *t = mfs_table_new(n);

    strcpy(t->name, "test \"quoted\" \\ deployment");
    t->epoch = 9007199254740991ULL;
    t->stripe_size = 1 << 20;
    t->growing = true;
    for (uint32_t i = 0; i < n; i++) {
        t->part[i].node = i % 4;
        t->part[i].port = (uint16_t)(7000 + i);
        snprintf(t->part[i].host, MFS_HOST_MAX, "127.0.0.%u", i % 4 + 1);
        snprintf(t->part[i].unix_path, MFS_UNIXPATH_MAX, "/run/x/node-%u/redis-%u.sock", i % 4, i);
        snprintf(t->part[i].password, MFS_SECRET_MAX, "%064u", i);
    }
    return t;
}

static void *decode_message(struct mfs_buf *frame, enum mfs_msg type, struct mfs_envelope *e,
                            void *to)
{
    const struct mfs_schema *r;
    struct mfs_err err;
    char *body;
    size_t len;

    assert_int_equal(mfs_frame_next(frame, MFS_FRAME_MAX, &body, &len), 1);
    assert_int_equal(mfs_envelope_open(e, body, len), 0);
    r = e->is_reply ? mfs_messages[type].reply : mfs_messages[type].body;
    assert_int_equal(mfs_envelope_body(e, r, to, &err), 0);
    mfs_frame_done(frame, len);
    return to;
}

static void table_round_trip(void **state)
{
    struct mfs_msg_table m = {.table = some_table(300)}, back;
    struct mfs_envelope e;
    struct mfs_buf b;

    (void)state;
    mfs_buf_init(&b);
    assert_int_equal(mfs_message_put_request(&b, MFS_MSG_TABLE, 5, &m), 0);
    decode_message(&b, MFS_MSG_TABLE, &e, &back);
    assert_int_equal(e.type, MFS_MSG_TABLE);
    assert_int_equal(e.id, 5);
    assert_false(e.is_reply);
    assert_true(back.table->growing);
    assert_memory_equal(back.table, m.table, sizeof *m.table + 300 * sizeof m.table->part[0]);
    mfs_schema_clear(mfs_messages[MFS_MSG_TABLE].body, &back);
    assert_null(back.table);
    mfs_envelope_clear(&e);
    mfs_buf_fini(&b);
    free(m.table);
}

static void lists_round_trip(void **state)
{
    struct mfs_assigned_part parts[] = {{3, 7003, "/run/a"}, {4, 65535, ""}};
    struct mfs_msg_join m = {.version = 1, .node = 2, .epoch = 7, .memory = 1ULL << 40}, back;
    struct mfs_envelope e;
    struct mfs_buf b;

    (void)state;
    m.nassigned = 2;
    m.assigned = parts;
    strcpy(m.name, "n");
    strcpy(m.address, "127.0.0.3");
    strcpy(m.mount, "/mnt/with \n newline and \xc3\xa4");
    mfs_buf_init(&b);
    assert_int_equal(mfs_message_put_request(&b, MFS_MSG_JOIN, 1, &m), 0);
    decode_message(&b, MFS_MSG_JOIN, &e, &back);
    assert_int_equal(back.nassigned, 2);
    assert_memory_equal(back.assigned, parts, sizeof parts);
    assert_string_equal(back.mount, m.mount);
    assert_true(back.memory == m.memory);
    mfs_schema_clear(mfs_messages[MFS_MSG_JOIN].body, &back);
    mfs_envelope_clear(&e);
    mfs_buf_fini(&b);
}

static void every_message_has_room(void **state)
{
    (void)state;
    for (int i = 0; i < MFS_MSG_COUNT; i++) {
        assert_non_null(mfs_messages[i].name);
        assert_true(mfs_messages[i].body->size <= MFS_MSG_SIZE_MAX);
        assert_true(mfs_messages[i].reply->size <= MFS_MSG_SIZE_MAX);
    }
}

static void errors_and_replies(void **state)
{
    struct mfs_msg_epoch epoch = {42}, back;
    struct mfs_envelope e;
    struct mfs_buf b;
    char *body;
    size_t len;

    (void)state;
    mfs_buf_init(&b);
    assert_int_equal(mfs_message_put_reply(&b, MFS_MSG_TABLE, 8, &epoch), 0);
    decode_message(&b, MFS_MSG_TABLE, &e, &back);
    assert_true(e.is_reply);
    assert_int_equal(back.epoch, 42);
    mfs_envelope_clear(&e);
    assert_int_equal(mfs_message_put_error(&b, 9, -ENOSPC, "no room"), 0);
    assert_int_equal(mfs_frame_next(&b, MFS_FRAME_MAX, &body, &len), 1);
    assert_int_equal(mfs_envelope_open(&e, body, len), 0);
    assert_int_equal(e.id, 9);
    assert_int_equal(e.error.code, -ENOSPC);
    assert_string_equal(e.error.msg, "no room");
    mfs_envelope_clear(&e);
    mfs_buf_fini(&b);
}

static void rubbish_is_no_message(void **state)
{
    static const char *const bad[] = {
        "",
        "null",
        "[]",
        "{}",
        "{\"type\":7,\"id\":1}",
        "{\"type\":\"join\"}",
        "{\"type\":\"join\",\"id\":-1}",
        "{\"type\":\"join\",\"id\":1e300}",
        "{\"type\":\"join\",\"id\":\"1\"}",
        "{\"reply\":\"x\"}",
        "{\"type\":\"join\",\"id\":1} {}",
        "{\"type\":\"join\",\"id\":1",
        "\xff\xfe\x00\x01",
    };
    struct mfs_envelope e;

    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_int_equal(mfs_envelope_open(&e, bad[i], strlen(bad[i])), -EPROTO);
    assert_int_equal(mfs_envelope_open(&e, "{\"type\":\"new one\",\"id\":3}", 25), 0);
    assert_int_equal(e.type, MFS_MSG_COUNT);
    mfs_envelope_clear(&e);
}

#define PART "{\"node\":0,\"host\":\"127.0.0.1\",\"port\":7000,\"unix\":\"\",\"password\":\"p\"}"
#define TABLE(epoch, size, parts)                                                                  \
    "{\"name\":\"t\",\"epoch\":" epoch ",\"stripe_size\":" size ",\"partitions\":" parts "}"

static void hostile_tables(void **state)
{
    static const char *const bad[] = {
        "7",
        "{}",
        TABLE("1", "1048576", "[]"),
        TABLE("0", "1048576", "[" PART "]"),
        TABLE("-1", "1048576", "[" PART "]"),
        TABLE("1.5", "1048576", "[" PART "]"),
        TABLE("1e20", "1048576", "[" PART "]"),
        TABLE("1", "0", "[" PART "]"),
        TABLE("1", "4294967296", "[" PART "]"),
        TABLE("1", "1048576", "{}"),
        TABLE("1", "1048576", "[" PART ",3]"),
        TABLE("1", "1048576", "[{\"node\":0,\"host\":\"\",\"port\":1}]"),
        TABLE("1", "1048576", "[{\"node\":0,\"host\":\"h\",\"port\":65536}]"),
        TABLE("1", "1048576", "[{\"node\":0,\"host\":\"h\"}]"),
        TABLE("1", "1048576", "[{\"node\":0,\"host\":7,\"port\":1}]"),
        TABLE("1", "1048576",
              "[{\"node\":0,\"port\":1,\"host\":\"0123456789012345678901234567890123456789"
              "012345678901234567890123456789\"}]"),
    };
    struct mfs_msg_table m;
    struct mfs_err err;
    char text[1024];

    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        int len = snprintf(text, sizeof text, "{\"table\":%s}", bad[i]);

        assert_int_equal(
            mfs_schema_decode(mfs_messages[MFS_MSG_TABLE].body, text, (size_t)len, &m, &err),
            -EINVAL);
        assert_null(m.table);
    }
    snprintf(text, sizeof text, "{\"unknown\":[1,{}],\"table\":%s}",
             TABLE("1", "1048576", "[" PART "]"));
    assert_int_equal(
        mfs_schema_decode(mfs_messages[MFS_MSG_TABLE].body, text, strlen(text), &m, &err), 0);
    mfs_schema_clear(mfs_messages[MFS_MSG_TABLE].body, &m);
}

static void deep_nesting_ends(void **state)
{
    size_t depth = 100000;
    char *text = malloc(depth + 1);
    struct mfs_envelope e;

    (void)state;
    memset(text, '[', depth);
    assert_int_equal(mfs_envelope_open(&e, text, depth), -EPROTO);
    free(text);
}

static int collect(void *arg, const char *key, const char *value, struct mfs_err *err)
{
    struct mfs_buf *b = arg;

    (void)err;
    return mfs_buf_printf(b, "%s=%s;", key, value);
}

static void flat_objects(void **state)
{
    static const char text[] = "{\"name\": \"x\", \"nodes\": 4, \"beta\": 2.5, \"json\": true}\n";
    struct mfs_err err;
    struct mfs_buf b;

    (void)state;
    mfs_buf_init(&b);
    assert_int_equal(mfs_json_pairs(text, sizeof text - 1, collect, &b, &err), 0);
    assert_memory_equal(mfs_buf_data(&b), "name=x;nodes=4;beta=2.5;json=true;", mfs_buf_len(&b));
    assert_int_equal(mfs_json_pairs("[1]", 3, collect, &b, &err), -EINVAL);
    assert_int_equal(mfs_json_pairs("{\"a\":[1]}", 9, collect, &b, &err), -EINVAL);
    assert_string_equal(err.msg, "a: neither a text, a number, true nor false");
    assert_int_equal(mfs_json_pairs("{\"a\":\"b\\u0000c\"}", 16, collect, &b, &err), -EINVAL);
    assert_int_equal(mfs_json_pairs("{\"a\\u0000c\":\"b\"}", 16, collect, &b, &err), -EINVAL);
    mfs_buf_clear(&b);
    assert_int_equal(mfs_json_pairs("{\"a\":\"\\\\u0000\"}", 15, collect, &b, &err), 0);
    mfs_buf_fini(&b);
}

static int metrics_from(const char *text, struct mfs_metric_snapshot *s)
{
    struct mfs_err err;

    return mfs_schema_decode(&mfs_metrics_schema, text, strlen(text), s, &err);
}

static void words_round_trip(void **state)
{
    struct mfs_metric_sample sample[] = {{.name = "a", .kind = MFS_METRIC_GAUGE},
                                         {.name = "b", .kind = MFS_METRIC_HISTOGRAM}};
    struct mfs_metric_snapshot s = {2, sample}, back;
    struct mfs_buf b;

    (void)state;
    mfs_buf_init(&b);
    assert_int_equal(mfs_schema_encode(&mfs_metrics_schema, &s, false, &b), 0);
    assert_int_equal(mfs_buf_append(&b, "", 1), 0);
    assert_non_null(strstr(mfs_buf_data(&b), "\"kind\":\"gauge\""));
    assert_int_equal(metrics_from(mfs_buf_data(&b), &back), 0);
    assert_int_equal(back.sample[0].kind, MFS_METRIC_GAUGE);
    assert_int_equal(back.sample[1].kind, MFS_METRIC_HISTOGRAM);
    mfs_schema_clear(&mfs_metrics_schema, &back);
    assert_int_equal(metrics_from("{\"figures\":[{\"name\":\"a\",\"kind\":\"Gauge\"}]}", &back),
                     -EINVAL);
    assert_int_equal(metrics_from("{\"figures\":[{\"name\":\"a\",\"kind\":1}]}", &back), -EINVAL);
    assert_int_equal(metrics_from("{\"figures\":[{\"name\":\"a\"}]}", &back), -EINVAL);
    mfs_buf_fini(&b);
}

/* A text of any length, with whatever bytes JSON has to write otherwise. */
static void long_texts_round_trip(void **state)
{
    static const char odd[] = "{\"quoted\": \"\\\\ \t\n \x01 \xc3\xa4\"}";
    size_t len = 3U << 20;
    char *text = malloc(len + 1);
    struct mfs_msg_state m = {.term = 1ULL << 40, .revision = 2, .candidate = 3, .base = 4}, back;
    struct mfs_envelope e;
    struct mfs_buf b;

    (void)state;
    for (size_t i = 0; i < len; i++)
        text[i] = odd[i % (sizeof odd - 1)];
    text[len] = '\0';
    m.text = text;
    mfs_buf_init(&b);
    assert_int_equal(mfs_message_put_request(&b, MFS_MSG_STATE, 5, &m), 0);
    decode_message(&b, MFS_MSG_STATE, &e, &back);
    assert_true(back.term == m.term && back.revision == 2 && back.candidate == 3 && back.base == 4);
    assert_string_equal(back.text, text);
    mfs_schema_clear(mfs_messages[MFS_MSG_STATE].body, &back);
    assert_null(back.text);
    mfs_envelope_clear(&e);
    free(text);

    m.text = NULL; /* as no text at all */
    assert_int_equal(mfs_message_put_request(&b, MFS_MSG_STATE, 6, &m), 0);
    decode_message(&b, MFS_MSG_STATE, &e, &back);
    assert_string_equal(back.text, "");
    mfs_schema_clear(mfs_messages[MFS_MSG_STATE].body, &back);
    mfs_envelope_clear(&e);
    mfs_buf_fini(&b);
}

/* Null in JSON is what is not known, where it may be so, and no number. */
static void what_is_not_known_is_null(void **state)
{
    static const char text[] = "{\"partition\":1,\"node\":\"n\",\"bytes\":null}",
                      wrong[] = "{\"partition\":null,\"node\":\"n\"}";
    struct mfs_status_node n = {.memory_used = MFS_UNKNOWN_U64,
                                .bandwidth_in = MFS_UNKNOWN_F64,
                                .clients_behind = MFS_UNKNOWN_U32},
                           back;
    struct mfs_status_place place;
    struct mfs_buf b;
    struct mfs_err err;

    (void)state;
    mfs_buf_init(&b);
    assert_int_equal(mfs_schema_encode(&mfs_status_node_schema, &n, false, &b), 0);
    assert_int_equal(
        mfs_schema_decode(&mfs_status_node_schema, mfs_buf_data(&b), mfs_buf_len(&b), &back, &err),
        0);
    assert_true(back.memory_used == MFS_UNKNOWN_U64 && isnan(back.bandwidth_in));
    assert_true(back.clients_behind == MFS_UNKNOWN_U32 && back.bandwidth_out == 0);
    assert_int_equal(mfs_status_clients_behind(&back), 0);
    back.clients_behind = 3;
    assert_int_equal(mfs_status_clients_behind(&back), 3);
    mfs_buf_fini(&b);
    assert_int_equal(
        mfs_schema_decode(&mfs_status_place_schema, text, sizeof text - 1, &place, &err), 0);
    assert_true(place.bytes == MFS_UNKNOWN_U64);
    assert_int_equal(
        mfs_schema_decode(&mfs_status_place_schema, wrong, sizeof wrong - 1, &place, &err),
        -EINVAL);
}

static void what_is_no_text_is_refused(void **state)
{
    static const char *const texts[] = {
        "{\"term\":1,\"revision\":1,\"text\":5}", "{\"term\":1,\"revision\":1,\"text\":null}",
        "{\"term\":1,\"revision\":1}", "{\"term\":-1,\"revision\":1,\"text\":\"\"}"};
    struct mfs_msg_state m;
    struct mfs_err err;

    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        assert_int_equal(mfs_schema_decode(mfs_messages[MFS_MSG_STATE].body, texts[i],
                                           strlen(texts[i]), &m, &err),
                         -EINVAL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(table_round_trip),
        cmocka_unit_test(lists_round_trip),
        cmocka_unit_test(words_round_trip),
        cmocka_unit_test(every_message_has_room),
        cmocka_unit_test(errors_and_replies),
        cmocka_unit_test(rubbish_is_no_message),
        cmocka_unit_test(hostile_tables),
        cmocka_unit_test(deep_nesting_ends),
        cmocka_unit_test(flat_objects),
        cmocka_unit_test(long_texts_round_trip),
        cmocka_unit_test(what_is_not_known_is_null),
        cmocka_unit_test(what_is_no_text_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

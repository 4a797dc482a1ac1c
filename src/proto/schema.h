/* Schemas: C structs described by a table of their fields, to and from JSON.
 *
 * Messages, the state on disk and the JSON that programs read all have schemas, so that each
 * field's name, type and bound stands in one place. Decoding takes text from any source: it checks
 * types, ranges and lengths, ignores fields it does not know, and leaves absent ones zero. Numbers
 * are exact up to 2^53. Only this module (with json.c) knows the JSON library. */
#ifndef MFS_PROTO_SCHEMA_H
#define MFS_PROTO_SCHEMA_H

#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"

enum mfs_field_type {
    MFS_FIELD_BOOL,   /* bool */
    MFS_FIELD_U32,    /* uint32_t, at most .max when .max > 0 */
    MFS_FIELD_U64,    /* uint64_t, likewise */
    MFS_FIELD_F64,    /* double, finite */
    MFS_FIELD_STR,    /* char[.size] */
    MFS_FIELD_TEXT,   /* char *, of any length, NULL for absent */
    MFS_FIELD_WORD,   /* uint32_t, shown as the word of that place in .words */
    MFS_FIELD_OBJECT, /* a struct inline, .sub */
    MFS_FIELD_ARRAY,  /* .sub structs behind a pointer; their number is the uint32_t at .count;
                         at most .max of them, 65536 when .max is 0 */
    MFS_FIELD_TABLE,  /* struct mfs_table *, null for NULL */
};

/* What a number is that is not known, where its field may be so: null in JSON. */
#define MFS_UNKNOWN_U32 UINT32_MAX
#define MFS_UNKNOWN_U64 UINT64_MAX
#define MFS_UNKNOWN_F64 ((double)NAN)

struct mfs_schema;

struct mfs_field {
    const char *name; /* NULL ends the table */
    enum mfs_field_type type;
    bool required, unknown; /* unknown: a U32, U64 or F64 may be so */
    size_t offset, size, count;
    uint64_t max;
    const struct mfs_schema *sub;
    const char *const *words; /* NULL ends them */
};

struct mfs_schema {
    const char *name; /* for messages about errors */
    size_t size;
    const struct mfs_field *fields;
};

/* {.name = "port", MFS_FIELD(U32, struct x, port), .max = 65535} */
#define MFS_FIELD(kind, type_, member)                                                             \
    .type = MFS_FIELD_##kind, .offset = offsetof(type_, member),                                   \
    .size = sizeof(((type_ *)0)->member)
#define MFS_FIELD_LIST(type_, member, counter, schema)                                             \
    .type = MFS_FIELD_ARRAY, .offset = offsetof(type_, member), .count = offsetof(type_, counter), \
    .sub = (schema)

/* Appends one JSON object; pretty: over several lines, for files and people. 0 or -ENOMEM. */
int mfs_schema_encode(const struct mfs_schema *schema, const void *from, bool pretty,
                      struct mfs_buf *out);

/* Likewise; each member of the object and of each list is on a line of its own, and what is zero,
 * empty or false may be missing: texts of two states differ in the lines of what is not the same.
 */
int mfs_schema_encode_lines(const struct mfs_schema *schema, const void *from, struct mfs_buf *out);

/* Fills the struct (which need not be initialised) from a JSON object. 0, -EINVAL with the reason,
 * or -ENOMEM; on failure nothing is left to free. */
int mfs_schema_decode(const struct mfs_schema *schema, const char *text, size_t len, void *to,
                      struct mfs_err *err);

/* Frees the arrays, texts and tables that decoding made (not the struct) and zeroes it. */
void mfs_schema_clear(const struct mfs_schema *schema, void *from);

/* Goes through the members of a flat JSON object (a config file): texts as they are, numbers and
 * booleans as text. Stops at the first negative return of `each`. 0 or -EINVAL. */
int mfs_json_pairs(const char *text, size_t len,
                   int (*each)(void *arg, const char *key, const char *value, struct mfs_err *err),
                   void *arg, struct mfs_err *err);

#endif

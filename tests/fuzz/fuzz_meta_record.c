/* Bytes that a partition hands out as records, entries and transactions: any may come, none may
 * crash a client, and what is accepted is written again as it was. ctest: timeout=60 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "meta/internal.h"
#include "meta/record.h"
#include "meta/txn/txn.h"

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n);

static void check(bool right)
{
    if (!right)
        abort();
}

static void try_record(const uint8_t *p, size_t n)
{
    char again[MFS_RECORD_FIXED];
    struct mfs_attr attr, twice;
    const char *tail;
    size_t tail_len;

    if (mfs_meta_record_decode(p, n, 7, &attr, &tail, &tail_len))
        return;
    check(tail_len == n - MFS_RECORD_FIXED && (const uint8_t *)tail == p + MFS_RECORD_FIXED);
    check((int64_t)attr.size >= 0 && attr.mtime.tv_nsec >= 0 && attr.mtime.tv_nsec < 1000000000);
    if (S_ISDIR(attr.mode)) {
        size_t dir = MFS_RECORD_DIR - MFS_RECORD_FIXED;

        check(tail_len >= dir);
        for (uint32_t part = 0; part < 70000; part += 997)
            mfs_bits_test((const unsigned char *)tail + dir, tail_len - dir, part);
        return;
    }
    if (S_ISLNK(attr.mode))
        return;
    mfs_meta_record_encode(&attr, again);
    check(!mfs_meta_record_decode(again, sizeof again, 7, &twice, &tail, &tail_len));
    check(!memcmp(&attr, &twice, sizeof attr));
}

static void try_entry(const uint8_t *p, size_t n)
{
    char again[MFS_ENTRY_LEN];
    struct mfs_entry e;

    if (mfs_entry_decode(p, n, &e))
        return;
    check(e.intent == (n == MFS_INTENT_LEN));
    mfs_entry_encode(e.ino, e.type, again);
    check(!memcmp(again, p, 8));
}

static void try_todo(const uint8_t *p, size_t n)
{
    struct mfs_todo todo;
    char *again;
    size_t len;

    if (mfs_todo_decode(p, n, &todo))
        return;
    check(todo.bits + todo.nbits == p + n);
    check(strlen(todo.name) <= MFS_NAME_LEN_MAX);
    again = mfs_todo_encode(&todo, &len);
    if (again && strlen(todo.name) == p[MFS_TODO_NAME_AT])
        check(len == n && !memcmp(again, p, n));
    free(again);
}

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
    try_record(p, n);
    try_entry(p, n);
    try_todo(p, n);
    return 0;
}

/* What is read of a partition's journal: batches, of which any may be torn, and the records in one.
 * The input is both, a journal and the records of a batch. What is taken lies within it; records
 * that are taken are written as the same bytes again. ctest: timeout=60 */
#include <stdlib.h>
#include <string.h>

#include "input.h"
#include "partition/journal/format.h"

static void check_within(struct mfs_span part, struct mfs_span all)
{
    FUZZ_CHECK(part.p >= all.p && part.n <= all.n && (size_t)(part.p - all.p) <= all.n - part.n);
}

/* Returns where it ends: at a record that is none, or behind the last. */
static size_t read_records(struct mfs_span all, struct mfs_answer *again)
{
    struct mfs_span rest = all;
    struct mfs_journal_record r;

    mfs_journal_batch_begin(again);
    while (mfs_journal_next(&rest, &r) > 0) {
        check_within(r.key, all);
        check_within(r.field, all);
        check_within(r.value, all);
        mfs_journal_batch_add(again, &r);
    }
    return all.n - rest.n;
}

static void read_journal(struct mfs_span all, struct mfs_answer *again)
{
    struct mfs_span rest = all, batch;

    while (mfs_journal_next_batch(&rest, &batch) > 0) {
        check_within(batch, all);
        read_records(batch, again);
    }
    FUZZ_CHECK(rest.n <= all.n && rest.p == all.p + (all.n - rest.n));
}

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
    struct mfs_span all = {(const char *)p, n}, rest, batch;
    struct mfs_answer again = {0}, unused = {0};
    size_t taken = read_records(all, &again);

    FUZZ_CHECK(again.n == MFS_JOURNAL_BATCH + taken &&
               (!taken || !memcmp(again.p + MFS_JOURNAL_BATCH, p, taken)));
    mfs_journal_batch_seal(&again);
    rest = (struct mfs_span){again.p, again.n};
    FUZZ_CHECK(mfs_journal_next_batch(&rest, &batch) == 1 && batch.n == taken && !rest.n);
    read_journal(all, &unused);
    free(again.p);
    free(unused.p);
    return 0;
}

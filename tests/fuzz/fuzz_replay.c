/* What a process takes up that takes the place of one that died: a journal of any content, once as
 * it comes, once as the records of a batch that was sealed. What is taken up is the same when it is
 * journalled and taken up again. ctest: timeout=60 */
#include <stdlib.h>
#include <string.h>

#include "redis_host.h"

static void take_up(const void *p, size_t n)
{
    struct mfs_journal_found found;
    int rc = fuzz_redis_replay((struct mfs_span){p, n}, &found);

    if (!rc) {
        FUZZ_CHECK(found.whole && found.whole <= n &&
                   strlen(found.point.stream) <= MFS_POINT_STREAM);
        fuzz_redis_journal_all();
        fuzz_redis_check_journal();
    }
    fuzz_redis_flush();
}

/* A batch with the journal's head, then what the input has. */
static void take_up_records(const uint8_t *p, size_t n)
{
    struct mfs_journal_record head = {.kind = MFS_JOURNAL_HEAD,
                                      .key = {MFS_JOURNAL_NAME, sizeof MFS_JOURNAL_NAME - 1}};
    struct mfs_answer batch = {0};

    mfs_journal_batch_begin(&batch);
    mfs_journal_batch_add(&batch, &head);
    mfs_answer_add(&batch, p, n);
    mfs_journal_batch_seal(&batch);
    take_up(batch.p, batch.n);
    free(batch.p);
}

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
    fuzz_redis_load();
    take_up(p, n);
    take_up_records(p, n);
    return 0;
}

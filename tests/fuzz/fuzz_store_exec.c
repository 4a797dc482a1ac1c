/* Calls of several commands to several partitions that answer with any bytes: each command gets its
 * result, the connections that are kept are in step, and nothing is tried again for ever.
 * ctest: timeout=60 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "partitions.h"
#include "store/reply.h"

#define COMMANDS 6
#define CALLS    2
#define WAIT     3000000 /* ns: for replies that the input does not hold */

struct question {
    struct mfs_cmd cmd[COMMANDS];
    char into[COMMANDS][64];
    size_t n;
};

static void ask(struct fuzz_input *in, struct question *q)
{
    static const struct mfs_arg argv[] = {{"GET", 3}, {"key", 3}};

    q->n = 1 + fuzz_u8(in) % COMMANDS;
    for (size_t i = 0; i < q->n; i++) {
        uint8_t how = fuzz_u8(in);

        q->cmd[i] = (struct mfs_cmd){.part = how % FUZZ_PARTITIONS,
                                     .argc = 2,
                                     .argv = argv,
                                     .into = how & 16 ? q->into[i] : NULL,
                                     .into_cap = how & 16 ? how / 4 : 0,
                                     .idempotent = how & 32,
                                     .full_at_once = how & 64};
    }
}

static void judge(const struct question *q, int rc)
{
    int first = 0;

    for (size_t i = 0; i < q->n; i++) {
        const struct mfs_cmd *cmd = &q->cmd[i];

        FUZZ_CHECK(cmd->rc <= 0 && cmd->rc > -4096);
        FUZZ_CHECK(!cmd->reply || !cmd->rc);
        FUZZ_CHECK(cmd->rc || cmd->reply || cmd->into);
        FUZZ_CHECK(cmd->rc || !cmd->into || cmd->into_len <= (ssize_t)cmd->into_cap);
        first = first ? first : cmd->rc;
    }
    FUZZ_CHECK(rc == first);
}

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
    static struct fuzz_partitions f;
    struct fuzz_input in = {p, n};
    struct question q;

    fuzz_quiet();
    if (!f.store)
        fuzz_partitions_init(&f, "/nowhere", WAIT);
    fuzz_partitions_renew(&f);
    for (int call = 0; call < CALLS; call++) {
        ask(&in, &q);
        for (uint32_t i = 0; i < FUZZ_PARTITIONS; i++) {
            struct fuzz_input said = fuzz_take(&in, fuzz_u16(&in) % 512);

            fuzz_partition_say(&f, i, said.p, said.n);
            if (call == CALLS - 1 || fuzz_u8(&in) % 2)
                shutdown(f.fd[i], SHUT_WR);
        }
        judge(&q, mfs_store_exec(f.store, q.cmd, q.n));
        mfs_cmds_fini(q.cmd, q.n);
    }
    return 0;
}

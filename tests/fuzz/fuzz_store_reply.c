/* Replies as a connection reads them: the bulk path's own parser and hiredis' under our limits. Any
 * bytes; read at once or in pieces they come to the same; a buffer is never overrun; what is
 * allocated stays within the reply's budget. ctest: timeout=60 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "partitions.h"
#include "store/reply.h"

#define COMMANDS 4
#define BUDGET   (1U << 20) /* instead of MFS_CHANNEL_REPLY_MAX, which takes long to be spent */

struct result {
    int rc; /* how it ended */
    size_t n;
    struct mfs_cmd cmd[COMMANDS];
    struct mfs_buf text[COMMANDS]; /* the replies, as walked; errors' texts */
};

/* Writes down all of a reply by way of the interface that everybody uses. */
static void walk(const struct mfs_reply *r, struct mfs_buf *out)
{
    size_t len, n = mfs_reply_count(r);
    const char *text = mfs_reply_str(r, &len);

    FUZZ_CHECK(!mfs_buf_printf(out, "%d %lld %zu %zu ", (int)mfs_reply_type(r),
                               (long long)mfs_reply_int(r), len, n));
    FUZZ_CHECK(!text ==
               (mfs_reply_type(r) != MFS_REPLY_STR && mfs_reply_type(r) != MFS_REPLY_ERROR));
    FUZZ_CHECK(!text || !text[len]);
    FUZZ_CHECK(!text || !mfs_buf_append(out, text, len));
    for (size_t i = 0; i < n; i++)
        walk(mfs_reply_at(r, i), out);
    FUZZ_CHECK(!mfs_reply_at(r, n));
}

static void judge(const struct mfs_cmd *cmd, const struct mfs_err *err, struct mfs_buf *text)
{
    FUZZ_CHECK(cmd->rc <= 0 && cmd->rc > -4096);
    FUZZ_CHECK(err->code == cmd->rc);
    FUZZ_CHECK(!cmd->reply || !cmd->rc);
    FUZZ_CHECK(cmd->into_len >= -1 && cmd->into_len <= (ssize_t)cmd->into_cap);
    if (cmd->rc)
        FUZZ_CHECK(!mfs_buf_append(text, err->msg, strlen(err->msg)));
    else if (cmd->reply)
        walk(cmd->reply, text);
}

/* Reads what there is for the commands; 0 when it would block. */
static int receive(struct mfs_channel *conn, struct result *r, size_t ncmds, bool wait)
{
    while (r->n < ncmds) {
        struct mfs_err err = {0};
        int rc;

        if (conn->in == MFS_IN_HEAD)
            conn->budget = BUDGET;
        rc = mfs_channel_recv(conn, &r->cmd[r->n], wait, &err);
        if (rc <= 0)
            return rc;
        judge(&r->cmd[r->n], &err, &r->text[r->n]);
        r->n++;
    }
    return 1;
}

/* The commands' buffers, as the input says: one in two wants its payload there. */
static void plan(struct fuzz_input in, struct result *r)
{
    for (size_t i = 0; i < COMMANDS; i++) {
        uint8_t want = fuzz_u8(&in);
        size_t cap = want & 2 ? 65536U + want : want / 4;

        mfs_buf_init(&r->text[i]);
        r->cmd[i] = (struct mfs_cmd){.into = want & 1 ? malloc(cap ? cap : 1) : NULL};
        FUZZ_CHECK(r->cmd[i].into || !(want & 1));
        r->cmd[i].into_cap = want & 1 ? cap : 0;
    }
    r->n = 0;
}

static void run(struct fuzz_input in, size_t ncmds, size_t piece, struct result *r)
{
    struct mfs_channel *conn;
    int fd;

    fuzz_heap_begin();
    conn = fuzz_channel(&fd, FUZZ_WAIT);
    r->rc = 0;
    while (in.n && !r->rc) {
        struct fuzz_input some = fuzz_take(&in, piece);

        if (send(fd, some.p, some.n, MSG_NOSIGNAL | MSG_DONTWAIT) != (ssize_t)some.n)
            break;
        r->rc = receive(conn, r, ncmds, false);
    }
    shutdown(fd, SHUT_WR);
    if (!r->rc)
        r->rc = receive(conn, r, ncmds, true);
    mfs_channel_close(conn);
    close(fd);
}

static void compare(const struct result *a, const struct result *b)
{
    FUZZ_CHECK(a->rc == b->rc && a->n == b->n);
    for (size_t i = 0; i < a->n; i++) {
        const struct mfs_cmd *x = &a->cmd[i], *y = &b->cmd[i];

        FUZZ_CHECK(x->rc == y->rc && x->into_len == y->into_len && !x->reply == !y->reply);
        FUZZ_CHECK(fuzz_same(&a->text[i], &b->text[i]));
        FUZZ_CHECK(x->rc || x->into_len <= 0 || !memcmp(x->into, y->into, (size_t)x->into_len));
    }
}

static void clear(struct result *r)
{
    mfs_cmds_fini(r->cmd, COMMANDS);
    for (size_t i = 0; i < COMMANDS; i++) {
        free(r->cmd[i].into);
        mfs_buf_fini(&r->text[i]);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
    struct fuzz_input in = {p, n}, wants;
    size_t ncmds = 1 + fuzz_u8(&in) % COMMANDS, piece = 1 + fuzz_u8(&in);
    struct result whole, pieces;
    size_t most;

    wants = fuzz_take(&in, COMMANDS);
    plan(wants, &whole);
    plan(wants, &pieces);
    run(in, ncmds, 1U << 16, &whole);
    run(in, ncmds, piece, &pieces);
    most = fuzz_heap_end();
    compare(&whole, &pieces);
    FUZZ_CHECK(most <= COMMANDS * (size_t)BUDGET + (1U << 17) + 16 * n);
    clear(&whole);
    clear(&pieces);
    return 0;
}

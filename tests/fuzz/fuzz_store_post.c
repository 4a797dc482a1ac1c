/* A lane of posted commands whose partition answers with any bytes: refused by fences, answered,
 * broken. Every command is over once, and the queue is what it says that it is. ctest: timeout=60
 */
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "partitions.h"
#include "store/args.h"
#include "store/post.h"

#define COMMANDS 8

static void append(struct mfs_post *post, struct mfs_post_lane *lane, bool idempotent)
{
    struct mfs_post_entry *e;
    struct mfs_args args;
    struct mfs_cmd cmd;

    mfs_args_init(&args, "SET");
    mfs_args_str(&args, "key");
    mfs_args_str(&args, "value");
    cmd = mfs_args_cmd(&args, 0);
    cmd.idempotent = idempotent;
    e = mfs_post_entry(&cmd);
    FUZZ_CHECK(e);
    mfs_post_append(lane, e);
    post->pending++;
}

/* What is in the queue is what was posted and is not over. */
static void check_queue(const struct mfs_post *post, const struct mfs_post_lane *lane)
{
    uint64_t n = 0, bytes = 0;
    const struct mfs_post_entry *last = NULL;

    for (const struct mfs_post_entry *e = lane->head; e; last = e, e = e->next) {
        n++;
        bytes += e->len;
    }
    FUZZ_CHECK(n == lane->posted - lane->answered && n == post->pending);
    FUZZ_CHECK(bytes == lane->bytes && last == lane->tail);
}

static void connect_lane(struct fuzz_partitions *f, struct mfs_post_lane *lane, int *fd)
{
    mfs_channel_close(lane->conn);
    lane->conn = fuzz_channel(fd, FUZZ_WAIT);
    lane->conn->gen = f->store->part[0].gen;
    lane->broken = false;
}

static void converse(struct fuzz_input *in, struct mfs_post *post, struct mfs_post_lane *lane,
                     int fd)
{
    uint8_t ncmds = fuzz_u8(in);
    struct fuzz_input said;
    size_t piece;

    for (uint8_t i = 0; i < ncmds % COMMANDS; i++)
        append(post, lane, ncmds >> 3 >> i & 1);
    mfs_post_service(post, 0, false);
    check_queue(post, lane);
    said = fuzz_take(in, fuzz_u16(in) % 512);
    piece = 1 + fuzz_u8(in);
    while (said.n) {
        struct fuzz_input some = fuzz_take(&said, piece);

        if (send(fd, some.p, some.n, MSG_NOSIGNAL | MSG_DONTWAIT) != (ssize_t)some.n)
            return;
        mfs_post_service(post, 0, true);
        check_queue(post, lane);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
    static struct fuzz_partitions f;
    struct fuzz_input in = {p, n};
    struct mfs_post_lane *lane;
    struct mfs_post *post;
    int fd;

    fuzz_quiet();
    if (!f.store)
        fuzz_partitions_init(&f, "/nowhere", FUZZ_WAIT);
    post = f.store->post;
    lane = &post->lane[0];
    for (int round = 0; round < 3; round++) {
        connect_lane(&f, lane, &fd);
        mfs_post_rewind(post, 0, false);
        check_queue(post, lane);
        converse(&in, post, lane, fd);
        close(fd);
    }
    mfs_post_rewind(post, 0, true);
    check_queue(post, lane);
    FUZZ_CHECK(!lane->head && !post->pending);
    mfs_channel_close(lane->conn);
    *lane = (struct mfs_post_lane){.lock = PTHREAD_MUTEX_INITIALIZER};
    f.store->part[0].fenced = false;
    f.store->part[0].down_since = 0;
    return 0;
}

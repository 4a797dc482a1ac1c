/* What a partition sends to who listens to it, and what other clients send through it: any bytes on
 * the connection of a client's subscriber. A notice is answered at most once; nothing else is said.
 * ctest: timeout=60 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/bytes.h"
#include "world.h"

#define MESSAGE 33 /* bytes of a notice */

static struct fuzz_world w;
static atomic_uint answers;

/* Called by the subscriber's thread, and those to which it leaves the answering. */
static int heard(void *arg, uint32_t part, const struct mfs_arg *argv, uint32_t argc)
{
    (void)arg;
    if (argc == 3 && argv[0].len == 7 && !memcmp(argv[0].p, "PUBLISH", 7)) {
        FUZZ_CHECK(part == mfs_get_be64((const char *)argv[1].p + 1) % FUZZ_PARTITIONS);
        FUZZ_CHECK(argv[2].len == MESSAGE && ((const char *)argv[2].p)[0] == 'A');
        atomic_fetch_add(&answers, 1);
    }
    return -EIO;
}

/* Frames a message; an odd length byte leaves the bytes as they are. The upper bits of the first
 * byte cut notices to their length. */
static void put_message(struct fuzz_input *in, struct mfs_buf *out, unsigned *notices)
{
    uint8_t how = fuzz_u8(in);
    struct fuzz_input text = fuzz_take(in, how & 1 ? how / 2 : how & 2 ? MESSAGE : how / 4);

    if (how & 1) {
        FUZZ_CHECK(!mfs_buf_append(out, text.p, text.n));
        *notices += 1000; /* there may be any in it */
        return;
    }
    FUZZ_CHECK(!mfs_buf_printf(out, "*3\r\n$7\r\nmessage\r\n$1\r\nN\r\n$%zu\r\n", text.n));
    FUZZ_CHECK(!mfs_buf_append(out, text.p, text.n) && !mfs_buf_append(out, "\r\n", 2));
    *notices += text.n == MESSAGE;
}

/* The subscriber has heard all when it hangs up. */
static void say(int fd, const struct mfs_buf *b)
{
    char rest[256];

    if (mfs_buf_len(b))
        FUZZ_CHECK(TEMP_FAILURE_RETRY(send(fd, mfs_buf_data(b), mfs_buf_len(b), MSG_NOSIGNAL)) > 0);
    shutdown(fd, SHUT_WR);
    while (TEMP_FAILURE_RETRY(recv(fd, rest, sizeof rest, 0)) > 0)
        ;
    close(fd);
}

static void leave(void)
{
    fuzz_listener_close(&w.listener);
}

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
    static int fd = -1;
    struct fuzz_input in = {p, n < 65536 ? n : 65536};
    unsigned notices = 0;
    struct mfs_buf b;

    if (!w.meta) {
        fuzz_world_init(&w, &fd);
        FUZZ_CHECK(!atexit(leave));
        mfs_store_set_fault(w.parts.store, heard, NULL);
    }
    mfs_buf_init(&b);
    answers = 0;
    while (in.n)
        put_message(&in, &b, &notices);
    say(fd, &b);
    mfs_buf_fini(&b);
    fd = fuzz_world_subscriber(&w);
    FUZZ_CHECK(answers <= notices);
    return 0;
}

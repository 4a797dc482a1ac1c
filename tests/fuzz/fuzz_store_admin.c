/* What a redis process says of itself to its Local Manager: INFO, any text. ctest: timeout=60 */
#include <errno.h>
#include <string.h>
#include <sys/socket.h>

#include "input.h"
#include "listener.h"
#include "store/admin/admin.h"

#define TIMEOUT_NS 60000000000 /* nothing is waited for */

static struct mfs_admin *admin;
static int fd = -1;

static void connect_once(void)
{
    struct fuzz_listener l;
    struct mfs_err err = {0};

    if (admin)
        return;
    fuzz_listener_open(&l);
    fuzz_listener_expect(&l, NULL);
    FUZZ_CHECK(!mfs_admin_open(&admin, l.path, NULL, 0, "password", TIMEOUT_NS, &err));
    fd = fuzz_listener_accepted(&l);
    fuzz_listener_close(&l);
}

/* Sent before it is asked for, which comes to the same. */
static void say(struct fuzz_input text, bool twice)
{
    struct mfs_buf b;

    mfs_buf_init(&b);
    if (twice)
        FUZZ_CHECK(!mfs_buf_append(&b, "+OK\r\n", 5));
    FUZZ_CHECK(!mfs_buf_printf(&b, "$%zu\r\n", text.n));
    FUZZ_CHECK(!mfs_buf_append(&b, text.p, text.n) && !mfs_buf_append(&b, "\r\n", 2));
    FUZZ_CHECK(send(fd, mfs_buf_data(&b), mfs_buf_len(&b), MSG_NOSIGNAL) > 0);
    mfs_buf_fini(&b);
}

static void forget_questions(void)
{
    char asked[4096];

    while (recv(fd, asked, sizeof asked, MSG_DONTWAIT) > 0)
        ;
}

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
    struct fuzz_input text = {p, n < 65536 ? n : 65536};
    struct mfs_admin_replication replication;
    struct mfs_admin_info info;
    struct mfs_err err = {0};
    uint64_t offset;
    int rc;

    connect_once();
    say(text, false);
    FUZZ_CHECK(!mfs_admin_info(admin, &info, &err));
    say(text, false);
    rc = mfs_admin_replication(admin, true, &replication, &err);
    FUZZ_CHECK(rc == 0 || (rc == -EPROTO && err.code == rc));
    say(text, true);
    FUZZ_CHECK(!mfs_admin_halt(admin, "-@all", &offset, &err));
    FUZZ_CHECK(rc || offset == replication.offset);
    forget_questions();
    return 0;
}

/* What answers instead of a partition's process when a client demands its proof: nothing but the
 * proof itself is one, and what is quoted of an answer can be shown. ctest: timeout=60 */
#include <arpa/inet.h>
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "input.h"
#include "net/proof.h"

#define WAIT (2 * MFS_MSEC) /* for an answer that is not whole, of a caller who hangs up not */

static int listen_here(struct sockaddr_in *at)
{
    socklen_t len = sizeof *at;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    *at = (struct sockaddr_in){.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    FUZZ_CHECK(fd >= 0 && !bind(fd, (struct sockaddr *)at, sizeof *at) && !listen(fd, 1));
    FUZZ_CHECK(!getsockname(fd, (struct sockaddr *)at, &len));
    return fd;
}

/* A connection, as proofs name both its ends: the caller's end and the other one. */
static void connect_pair(int *caller, int *other)
{
    static int listener = -1;
    static struct sockaddr_in at;

    if (listener < 0)
        listener = listen_here(&at);
    *caller = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    FUZZ_CHECK(*caller >= 0 && !connect(*caller, (struct sockaddr *)&at, sizeof at));
    *other = accept(listener, NULL, NULL);
    FUZZ_CHECK(*other >= 0);
}

/* Leaves no port behind that waits. */
static void reset(int fd)
{
    const struct linger at_once = {.l_onoff = 1};

    FUZZ_CHECK(!setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once));
    close(fd);
}

static void check(int rc, const char *says)
{
    FUZZ_CHECK(rc == -EACCES || rc == -ECONNRESET || rc == -ETIMEDOUT);
    FUZZ_CHECK(strlen(says) < MFS_PROOF_SAYS && (rc == -EACCES || !*says));
    for (; *says; says++)
        FUZZ_CHECK(*says >= ' ' && *says <= '~');
}

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
    struct fuzz_input in = {p, n}, answer;
    bool hangs_up = fuzz_u8(&in) % 8;
    char says[MFS_PROOF_SAYS];
    int caller, other;

    connect_pair(&caller, &other);
    answer = fuzz_take(&in, 4096);
    if (answer.n)
        FUZZ_CHECK(send(other, answer.p, answer.n, MSG_NOSIGNAL) == (ssize_t)answer.n);
    if (hangs_up)
        shutdown(other, SHUT_WR);
    check(mfs_proof_demand(caller, "session1", "a password", WAIT, says), says);
    reset(caller);
    reset(other);
    return 0;
}

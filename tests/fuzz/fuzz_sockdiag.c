/* What the kernel answers about TCP connections (host/sockdiag.h), taken apart: whatever the bytes,
 * it ends, reads nothing behind them, and a socket has the ends that its own id tells. ctest:
 * timeout=60 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "input.h"
#include "host/sockdiag.h"

static void check_socket(const struct mfs_sock *s)
{
    FUZZ_CHECK(s->family == AF_INET || s->family == AF_INET6);
    FUZZ_CHECK(s->family == AF_INET6 || IN6_IS_ADDR_V4MAPPED(&s->local.address));
    FUZZ_CHECK(s->family == AF_INET6 || IN6_IS_ADDR_V4MAPPED(&s->remote.address));
    FUZZ_CHECK(s->remote.port == ntohs(s->id.idiag_dport));
}

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
    char *exact = malloc(n ? n : 1); /* so that a sanitizer sees what is read behind */
    struct mfs_sockdiag_reader r = {exact, n};
    struct mfs_sock s;
    size_t found = 0;
    int rc;

    FUZZ_CHECK(exact);
    if (n)
        memcpy(exact, p, n);
    while ((rc = mfs_sockdiag_next(&r, &s)) == 1) {
        FUZZ_CHECK(r.at <= exact + n && r.left == (size_t)(exact + n - r.at));
        check_socket(&s);
        found++;
    }
    FUZZ_CHECK(rc <= 0 && rc > -4096 && found <= n / 72);
    free(exact);
    return 0;
}

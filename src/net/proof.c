#include "net/proof.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "base/inet.h"
#include "base/text.h"

#define QUESTION_MAX (sizeof MFS_PROOF_COMMAND + MFS_PROOF_USER + MFS_PROOF_NONCE + 8)
#define HEAD         "$64\r\n"
#define HEAD_LEN     (sizeof HEAD - 1)
#define ANSWER       (HEAD_LEN + (MFS_MAC_TEXT - 1) + 2) /* then the digits, and "\r\n" */

int mfs_proof_key(const char *password, char key[MFS_MAC_TEXT])
{
    const char *const fields[] = {"memefs1", "partition key"};

    return mfs_mac(password, strlen(password), fields, 2, key);
}

static int end_text(const union mfs_inet *a, char out[MFS_PROOF_END_MAX])
{
    char host[INET6_ADDRSTRLEN];
    uint16_t port;
    int rc = mfs_inet_format(a, host, &port);

    if (!rc)
        snprintf(out, MFS_PROOF_END_MAX, "%s %u", host, port);
    return rc;
}

int mfs_proof_end(const char *host, uint16_t port, char out[MFS_PROOF_END_MAX])
{
    union mfs_inet a;
    int rc = mfs_inet_parse(host, port, &a);

    return rc ? rc : end_text(&a, out);
}

int mfs_proof_make(const char *key, const char *user, const char *caller, const char *partition,
                   const char *nonce, char out[MFS_MAC_TEXT])
{
    const char *const fields[] = {"memefs1", "partition", user, caller, partition, nonce};

    return mfs_mac(key, strlen(key), fields, sizeof fields / sizeof *fields, out);
}

/* ---- the caller ------------------------------------------------------------------------------ */

typedef int name_fn(int fd, struct sockaddr *restrict a, socklen_t *restrict len);

static int end_of(int fd, name_fn *name, char out[MFS_PROOF_END_MAX])
{
    union mfs_inet a = {.v6 = {0}};
    socklen_t len = sizeof a;

    return name(fd, &a.any, &len) ? -errno : end_text(&a, out);
}

static int make_nonce(char out[MFS_PROOF_NONCE + 1])
{
    unsigned char bytes[MFS_PROOF_NONCE / 2];

    if (getrandom(bytes, sizeof bytes, 0) != (ssize_t)sizeof bytes)
        return -EIO;
    mfs_text_hex(bytes, sizeof bytes, out);
    return 0;
}

/* The proof that is to come, and the nonce that it is for. */
static int expect(int fd, const char *user, const char *password, char nonce[MFS_PROOF_NONCE + 1],
                  char proof[MFS_MAC_TEXT])
{
    char own[MFS_PROOF_END_MAX], peer[MFS_PROOF_END_MAX], key[MFS_MAC_TEXT];
    int rc = end_of(fd, getsockname, own);

    if (!rc)
        rc = end_of(fd, getpeername, peer);
    if (!rc)
        rc = make_nonce(nonce);
    if (!rc)
        rc = mfs_proof_key(password, key);
    return rc ? rc : mfs_proof_make(key, user, own, peer, nonce, proof);
}

/* Until there is something to read: 0, -ETIMEDOUT or what poll gave. */
static int await(int fd, int64_t until)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};
    int rc;

    do {
        int64_t ms = (until - mfs_clock_mono() + 999999) / 1000000;

        rc = ms <= 0 ? 0 : poll(&p, 1, ms > 60000 ? 60000 : (int)ms);
    } while ((rc < 0 && errno == EINTR) || (!rc && mfs_clock_mono() < until));
    return rc > 0 ? 0 : rc ? -errno : -ETIMEDOUT;
}

/* As many bytes as a proof has, or fewer when it is none. */
static int hear(int fd, int64_t until, char *answer, size_t *n)
{
    bool over = false;

    *n = 0;
    while (*n < ANSWER && !over) {
        int rc = await(fd, until);
        ssize_t got = rc ? 0 : recv(fd, answer + *n, ANSWER - *n, MSG_DONTWAIT);

        if (rc)
            return rc;
        if (got < 0 && (errno == EAGAIN || errno == EINTR))
            continue;
        if (got <= 0)
            return -ECONNRESET;
        *n += (size_t)got;
        over = memcmp(answer, HEAD, *n < HEAD_LEN ? *n : HEAD_LEN) != 0 && memchr(answer, '\n', *n);
    }
    return 0;
}

static bool is_proof(const char *answer, size_t n, const char *right)
{
    char given[MFS_MAC_TEXT] = {0};

    if (n != ANSWER || memcmp(answer, HEAD, HEAD_LEN) != 0 ||
        memcmp(answer + n - 2, "\r\n", 2) != 0)
        return false;
    memcpy(given, answer + HEAD_LEN, sizeof given - 1);
    return mfs_mac_equal(given, right);
}

/* The first line, as far as it can be shown. */
static void quote(const char *answer, size_t n, char says[MFS_PROOF_SAYS])
{
    size_t len = 0;

    while (len < n && len < MFS_PROOF_SAYS - 1 && answer[len] >= ' ' && answer[len] <= '~') {
        says[len] = answer[len];
        len++;
    }
    says[len] = '\0';
}

int mfs_proof_demand(int fd, const char *user, const char *password, int64_t timeout_ns,
                     char says[MFS_PROOF_SAYS])
{
    char nonce[MFS_PROOF_NONCE + 1], right[MFS_MAC_TEXT], question[QUESTION_MAX], answer[ANSWER];
    int64_t until = mfs_clock_mono() + timeout_ns;
    int len, rc = expect(fd, user, password, nonce, right);
    size_t n;

    if (says)
        says[0] = '\0';
    if (rc)
        return rc;
    len = snprintf(question, sizeof question, MFS_PROOF_COMMAND " %s %s\r\n", user, nonce);
    if (len < 0 || (size_t)len >= sizeof question)
        return -EINVAL;
    /* So little fits into the empty socket of a new connection. */
    if (send(fd, question, (size_t)len, MSG_NOSIGNAL | MSG_DONTWAIT) != len)
        return errno == EPIPE || errno == ECONNRESET ? -ECONNRESET : -EIO;
    rc = hear(fd, until, answer, &n);
    if (rc || is_proof(answer, n, right))
        return rc;
    if (says)
        quote(answer, n, says);
    return -EACCES;
}

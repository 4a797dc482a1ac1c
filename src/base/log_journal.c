/* The socket is opened by the first entry, and kept. */
#include "base/log_journal.h"

#include <errno.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#define JOURNAL "/run/systemd/journal/socket"

static atomic_int journal_fd = -1;

bool mfs_log_journal_is(int fd)
{
    const char *stream = getenv("JOURNAL_STREAM");
    uintmax_t device, inode;
    struct stat st;

    return stream && sscanf(stream, "%ju:%ju", &device, &inode) == 2 && !fstat(fd, &st) &&
           st.st_dev == device && st.st_ino == inode;
}

/* Of two threads that begin, the second closes its own. */
static int socket_of_ours(void)
{
    int fd = atomic_load(&journal_fd), none = -1;

    if (fd >= 0)
        return fd;
    fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return -errno;
    if (atomic_compare_exchange_strong(&journal_fd, &none, fd))
        return fd;
    close(fd);
    return none;
}

int mfs_log_journal_stream(int fd, const struct mfs_log_entry *e)
{
    char line[MFS_LOG_LINE_MAX];
    size_t len = mfs_log_line_stream(e, line);
    ssize_t n = send(fd, line, len, MSG_DONTWAIT | MSG_NOSIGNAL);

    if (n < 0 && errno == ENOTSOCK)
        n = write(fd, line, len);
    return n < 0 ? -errno : 0;
}

int mfs_log_journal_send(const struct mfs_log_entry *e)
{
    static const struct sockaddr_un to = {.sun_family = AF_UNIX, .sun_path = JOURNAL};
    char fields[MFS_LOG_LINE_MAX];
    size_t len = mfs_log_line_journal(e, fields);
    int fd = socket_of_ours();

    if (fd < 0)
        return fd;
    if (sendto(fd, fields, len, MSG_DONTWAIT | MSG_NOSIGNAL, (const struct sockaddr *)&to,
               sizeof to) < 0)
        return -errno;
    return 0;
}

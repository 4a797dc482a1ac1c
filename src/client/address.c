#include "client/address.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/text.h"
#include "store/store.h"

/* Partitions of the node whose lm serves the client have their sockets here: ".../node-7/lm.sock".
 */
static uint32_t node_of(const char *socket)
{
    const char *last = strrchr(socket, '/'), *from = last;
    unsigned id;
    int end = 0;

    if (last == NULL)
        return MFS_NO_NODE;
    while (from > socket && from[-1] != '/')
        from--;
    if (sscanf(from, "node-%u/%n", &id, &end) == 1 && from + end == last + 1)
        return id;
    return MFS_NO_NODE;
}

/* Does somebody listen at the node's socket? One whose lm was killed has its socket still. */
static bool listens(const struct mfs_paths *paths, uint32_t node)
{
    struct sockaddr_un to = {.sun_family = AF_UNIX};
    bool does = false;
    int fd;

    if (mfs_text_format(to.sun_path, sizeof to.sun_path, "%s/node-%u/lm.sock", paths->dir, node))
        return false;
    fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return false;
    does = !connect(fd, (const struct sockaddr *)&to, sizeof to) || errno == EAGAIN;
    close(fd);
    return does;
}

/* Any node may have left, the first one, too. */
static uint32_t first_that_listens(const struct mfs_paths *paths)
{
    DIR *dir = opendir(paths->dir);
    const struct dirent *e;
    uint32_t best = UINT32_MAX;
    unsigned id;
    int end;

    while (dir && (e = readdir(dir)))
        if (sscanf(e->d_name, "node-%u%n", &id, &end) == 1 && !e->d_name[end] && id < best &&
            listens(paths, id))
            best = id;
    if (dir)
        closedir(dir);
    return best == UINT32_MAX ? 0 : best;
}

int mfs_client_address(const struct mfs_paths *paths, const char *lm, const char *cm,
                       char out[MFS_ADDRESS_MAX], uint32_t *node)
{
    int rc;

    *node = MFS_NO_NODE;
    if (cm != NULL)
        return mfs_text_copy(out, MFS_ADDRESS_MAX, cm);
    if (lm == NULL)
        rc = mfs_text_format(out, MFS_ADDRESS_MAX, "unix:%s/node-%u/lm.sock", paths->dir,
                             first_that_listens(paths));
    else
        rc = mfs_text_format(out, MFS_ADDRESS_MAX, "unix:%s",
                             strncmp(lm, "unix:", 5) == 0 ? lm + 5 : lm);
    *node = node_of(out);
    return rc;
}

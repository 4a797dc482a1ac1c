/* --ship: the programs are carried over to a directory on the host, which is made there for the
 * node and removed when the node is given back. Its name is what is noted of the node. */
#include <errno.h>
#include <string.h>

#include "base/text.h"
#include "cm/provider/run.h"
#include "cm/provider/ssh/impl.h"

#define PLACE "/var/tmp/memefs-"
#define MARKS 10 /* that mktemp fills in */

/* What a shell here runs: the programs, redis-server and the libraries that are not the C library's
 * go through a pipe to a shell there. $0 is the host, $1 the command there, $2 our directory. */
static const char carry[] =
    "cd \"$2\" && redis=$(command -v redis-server) || {\n"
    "    echo redis-server is not in PATH here >&2; exit 4; }\n"
    "programs='cm lm memefs memefs-partition.so'\n"
    "libraries=$(ldd $programs \"$redis\" | sed -n 's|.* => \\(/[^ ]*\\) .*|\\1|p' | sort -u |\n"
    "    grep -vE '/(libc|libm|libdl|librt|libpthread|libresolv|ld-linux[^/]*)\\.so[^/]*$')\n"
    "tar -chP --transform 's|^/.*/\\(redis-server\\)$|\\1|;s|^/.*/|lib/|' -f - $programs "
    "\"$redis\" "
    "$libraries | (%s)";

static const char unpack[] =
    "sh -c 'd=$(mktemp -d " PLACE "XXXXXXXXXX) || exit 3; "
    "if tar -xf - -C \"$d\"; then echo \"$d\"; else rm -rf \"$d\"; exit 3; "
    "fi'";

bool mfs_ssh_is_shipped(const char *handle)
{
    size_t len = strlen(PLACE);

    return !strncmp(handle, PLACE, len) && strlen(handle + len) == MARKS &&
           strspn(handle + len, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789") ==
               MARKS;
}

int mfs_ssh_carry(const char *ssh_line, const char *host, struct mfs_ssh_shipping *out)
{
    int rc = mfs_run_sibling("", out->programs, sizeof out->programs);

    if (!rc)
        rc = mfs_text_format(out->command, sizeof out->command, carry, ssh_line);
    memcpy(out->argv,
           (const char *[]){"/bin/sh", "-c", out->command, host, unpack, out->programs, NULL},
           sizeof out->argv);
    return rc;
}

int mfs_ssh_shipped(const char *output, char *dir, size_t n)
{
    char last[64];

    mfs_run_last_line(output, last, sizeof last);
    return mfs_ssh_is_shipped(last) ? mfs_text_copy(dir, n, last) : -EPROTO;
}

int mfs_ssh_put_environment(const char *dir, struct mfs_buf *out)
{
    int rc = mfs_buf_printf(out, "env LD_LIBRARY_PATH=%s/lib PATH=%s:$PATH ", dir, dir);

    return rc < 0 ? rc : 0;
}

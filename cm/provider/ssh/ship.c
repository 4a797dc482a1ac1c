/* --ship: the programs are carried over to a directory on the host, which is made there for the
 * node and removed when the node is given back. Its name is what is noted of the node, before
 * anything goes there. */
#include <errno.h>
#include <string.h>

#include "base/file.h"
#include "base/text.h"
#include "cm/provider/run.h"
#include "cm/provider/ssh/impl.h"

#define PLACE "/var/tmp/memefs-"
#define MARKS 10 /* by chance: nobody else can have made it */

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

/* Likewise there. One that was cut off before may still be at it, in the same directory: it takes
 * nothing away when it fails, as it might be this one's. */
static const char unpack[] = "sh -c 'rm -rf %s && mkdir -m 700 %s && tar -xf - -C %s && echo %s'";

#define LETTERS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"

int mfs_ssh_name_place(char *out, size_t n)
{
    unsigned char random[MARKS];
    char marks[MARKS + 1] = "";
    int rc = mfs_random(random, sizeof random);

    for (size_t i = 0; i < MARKS; i++)
        marks[i] = LETTERS[random[i] % (sizeof LETTERS - 1)];
    return rc ? rc : mfs_text_format(out, n, PLACE "%s", marks);
}

bool mfs_ssh_is_begun(const char *handle)
{
    return !strncmp(handle, MFS_SSH_BEGUN, strlen(MFS_SSH_BEGUN)) &&
           mfs_ssh_is_shipped(handle + strlen(MFS_SSH_BEGUN));
}

bool mfs_ssh_is_shipped(const char *handle)
{
    size_t len = strlen(PLACE);

    return !strncmp(handle, PLACE, len) && strlen(handle + len) == MARKS &&
           strspn(handle + len, LETTERS) == MARKS;
}

int mfs_ssh_carry(const char *ssh_line, const char *host, const char *dir,
                  struct mfs_ssh_shipping *out)
{
    int rc = mfs_run_sibling("", out->programs, sizeof out->programs);

    if (!rc)
        rc = mfs_text_format(out->unpack, sizeof out->unpack, unpack, dir, dir, dir, dir);
    if (!rc)
        rc = mfs_text_format(out->command, sizeof out->command, carry, ssh_line);
    memcpy(out->argv,
           (const char *[]){"/bin/sh", "-c", out->command, host, out->unpack, out->programs, NULL},
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

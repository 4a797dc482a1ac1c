/* A directory of checkpoints as cm finds it: what leads to a checkpoint, its manifest, its images
 * and what else is there. What is found lies in the directory and is whole; what is none of cm's is
 * still there after it has written a checkpoint of its own. ctest: timeout=60 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/hash.h"
#include "cm/state/manifest.h"
#include "input.h"

#define IMAGES 4 /* at most, that are there */

static char top[32]; /* the directory */
static pid_t maker;

static void leave(void)
{
    if (getpid() == maker)
        mfs_file_remove_tree(top);
}

static void begin(void)
{
    if (top[0]) {
        FUZZ_CHECK(!mfs_file_remove_tree(top) && !mkdir(top, 0700));
        return;
    }
    snprintf(top, sizeof top, "/dev/shm/fuzz.XXXXXX");
    FUZZ_CHECK(mkdtemp(top));
    maker = getpid();
    FUZZ_CHECK(!atexit(leave));
}

static void put(const char *name, const void *p, size_t n)
{
    char path[PATH_MAX];
    int fd;

    snprintf(path, sizeof path, "%s/%s", top, name);
    fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    FUZZ_CHECK(fd >= 0 && !mfs_file_write_all(fd, p, n));
    close(fd);
}

/* Images of the size that the manifest says, as far as it can be read. */
static void put_images(struct fuzz_input manifest, const char *dir)
{
    char name[PATH_MAX];
    struct mfs_err err;
    struct mfs_manifest m;

    if (mfs_manifest_parse(&m, (const char *)manifest.p, manifest.n, &err))
        return;
    for (uint32_t i = 0; i < m.nparts && i < IMAGES; i++) {
        snprintf(name, sizeof name, "%s/partition-%u.rdb", dir, i);
        put(name, "", 0);
        snprintf(name, sizeof name, "%s/%s/partition-%u.rdb", top, dir, i);
        if (truncate(name, (off_t)(m.part[i].bytes & 0xffffff)))
            break;
    }
    mfs_manifest_clear(&m);
}

/* A name that the input gives, of a directory; "": none could be made. */
static void put_other(struct fuzz_input text, char name[64])
{
    char path[PATH_MAX];

    snprintf(name, 64, "%.*s", (int)text.n, (const char *)text.p);
    snprintf(path, sizeof path, "%s/%s", top, name);
    if (!*name || strchr(name, '/') || !strcmp(name, "current") || !strcmp(name, "manifest.json") ||
        mkdir(path, 0700))
        name[0] = '\0';
}

/* checkpoint-N or checkpoint-N.part */
static bool is_cms(const char *name)
{
    size_t digits;

    if (strncmp(name, "checkpoint-", 11) != 0)
        return false;
    digits = strspn(name + 11, "0123456789");
    return digits && (!name[11 + digits] || !strcmp(name + 11 + digits, ".part"));
}

static void find(void)
{
    char path[PATH_MAX];
    struct mfs_err err = {0};
    struct mfs_manifest m;
    int rc = mfs_manifest_find(top, path, &m, &err);

    FUZZ_CHECK(rc == 0 || (rc < 0 && err.code == rc && err.msg[0]));
    if (rc)
        return;
    FUZZ_CHECK(!strncmp(path, top, strlen(top)) && m.nparts);
    mfs_manifest_clear(&m);
}

static void write_own(const char *other)
{
    struct mfs_manifest m = {.format = MFS_MANIFEST_FORMAT, .name = "fuzz", .stripe_size = 4096};
    struct mfs_manifest_draft d;
    char path[PATH_MAX];
    struct mfs_err err = {0};
    struct stat st;

    if (!mfs_manifest_begin(&d, top, "fuzz", &err)) {
        FUZZ_CHECK(!mfs_manifest_commit(&d, &m, path, &err));
        mfs_manifest_end(&d);
    }
    snprintf(path, sizeof path, "%s/%s", top, other);
    FUZZ_CHECK(is_cms(other) || !stat(path, &st));
}

/* How, the other name, what `current` holds after a number, then the manifest. */
int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
    struct fuzz_input in = {p, n};
    uint8_t how = fuzz_u8(&in);
    struct fuzz_input name = fuzz_take(&in, fuzz_u8(&in) % 40), current;
    char other[64], line[64], dir[PATH_MAX];

    current = fuzz_take(&in, fuzz_u8(&in));
    begin();
    put_other(name, other);
    if (how & 1) { /* it leads to the manifest that is there */
        snprintf(line, sizeof line, "checkpoint-7 %016" PRIx64 "\n", mfs_hash64(in.p, in.n, 0));
        put("current", line, strlen(line));
    } else if (current.n) {
        put("current", current.p, current.n);
    }
    snprintf(dir, sizeof dir, "%s/checkpoint-7", top);
    mkdir(dir, 0700);
    put(how & 2 ? "manifest.json" : "checkpoint-7/manifest.json", in.p, in.n);
    if (how & 4)
        put_images(in, how & 2 ? "." : "checkpoint-7");
    find();
    if (how & 8)
        write_own(other);
    return 0;
}

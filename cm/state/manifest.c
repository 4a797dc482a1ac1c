/* Manifests, and the directory that they stand in. */
#include "cm/state/manifest.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/file.h"
#include "base/hash.h"
#include "host/mountinfo.h"
#include "base/text.h"
#include "base/trusted_dir.h"
#include "cluster/placement.h"
#include "proto/image_sum.h"

#define SIZE_MOST  (64U << 20)
#define LINE_MOST  128
#define STEM       "checkpoint-"
#define PART       ".part"
#define MANIFEST   "manifest.json"
#define INO_FORMAT 3 /* the first whose inode numbers are like ours */
#define FIELDS     (const struct mfs_field[])

static const struct mfs_schema option_schema = {
    "option", sizeof(struct mfs_manifest_option),
    FIELDS{{.name = "key", .required = true, MFS_FIELD(STR, struct mfs_manifest_option, key)},
           {.name = "value", .required = true, MFS_FIELD(STR, struct mfs_manifest_option, value)},
           {0}}};

const struct mfs_schema mfs_manifest_schema = {
    "manifest.json", sizeof(struct mfs_manifest),
    FIELDS{
        {.name = "format", .required = true, MFS_FIELD(U32, struct mfs_manifest, format)},
        {.name = "version", MFS_FIELD(STR, struct mfs_manifest, version)},
        {.name = "name", .required = true, MFS_FIELD(STR, struct mfs_manifest, name)},
        {.name = "time", MFS_FIELD(STR, struct mfs_manifest, time)},
        {.name = "number", MFS_FIELD(U32, struct mfs_manifest, number)},
        {.name = "epoch", .required = true, MFS_FIELD(U64, struct mfs_manifest, epoch)},
        {.name = "nodes", MFS_FIELD(U32, struct mfs_manifest, nodes)},
        {.name = "stripe_size", .required = true, MFS_FIELD(U32, struct mfs_manifest, stripe_size)},
        {.name = "partitions",
         .required = true,
         MFS_FIELD_LIST(struct mfs_manifest, part, nparts, &mfs_image_part_schema)},
        {.name = "options", MFS_FIELD_LIST(struct mfs_manifest, option, noptions, &option_schema)},
        {0}}};

uint64_t mfs_manifest_bytes(const struct mfs_manifest *m)
{
    uint64_t sum = 0;

    for (uint32_t i = 0; i < m->nparts; i++)
        sum += m->part[i].bytes;
    return sum;
}

uint64_t mfs_manifest_memory(const struct mfs_manifest *m)
{
    uint64_t sum = 0;

    for (uint32_t i = 0; i < m->nparts; i++)
        sum += m->part[i].memory;
    return sum;
}

uint64_t mfs_manifest_losses(const struct mfs_manifest *m)
{
    uint64_t sum = 0;

    for (uint32_t i = 0; i < m->nparts; i++)
        sum += m->part[i].losses;
    return sum;
}

/* ---- reading --------------------------------------------------------------------------------- */

static int check(const struct mfs_manifest *m, struct mfs_err *err)
{
    if (m->format < MFS_MANIFEST_FORMAT_LEAST || m->format > MFS_MANIFEST_FORMAT)
        return mfs_err_set(err, -EINVAL, "it has format %u, this program knows %d to %d%s",
                           m->format, MFS_MANIFEST_FORMAT_LEAST, MFS_MANIFEST_FORMAT,
                           m->format < INO_FORMAT ? ": inode numbers were of another layout then"
                           : m->format < MFS_MANIFEST_FORMAT_LEAST ? ": checksums had no keys then"
                                                                   : "");
    if (!m->nparts || m->nparts > MFS_PARTITIONS_MAX || !m->stripe_size || !m->name[0])
        return mfs_err_set(err, -EINVAL, "its numbers make no sense");
    for (uint32_t i = 0; i < m->nparts; i++)
        if (m->part[i].index != i || !mfs_image_sum_valid(m->part[i].sum))
            return mfs_err_set(err, -EINVAL, "its partition %u makes no sense", i);
    return 0;
}

int mfs_manifest_parse(struct mfs_manifest *m, const char *text, size_t len, struct mfs_err *err)
{
    int rc = mfs_schema_decode(&mfs_manifest_schema, text, len, m, err);

    if (rc)
        return rc;
    rc = check(m, err);
    if (rc)
        mfs_manifest_clear(m);
    return rc;
}

void mfs_manifest_clear(struct mfs_manifest *m)
{
    mfs_schema_clear(&mfs_manifest_schema, m);
}

/* What is behind the number in a name of ours; NULL: it is none. Digits and nothing else are a
 * number, as what only resembles a name of ours is not ours to remove. */
static const char *take_number(const char *name, uint32_t *number)
{
    const char *digits = name + sizeof STEM - 1;
    unsigned long n;
    char *end;

    if (strncmp(name, STEM, sizeof STEM - 1) != 0 || !isdigit((unsigned char)*digits))
        return NULL;
    n = strtoul(digits, &end, 10);
    *number = (uint32_t)n;
    return n <= UINT32_MAX ? end : NULL;
}

/* "checkpoint-7 SUM\n" and nothing behind it. */
static int parse_current(const char *line, size_t len, uint32_t *number, uint64_t *sum)
{
    char raw[sizeof *sum], digits[2 * sizeof raw + 1] = "";
    const char *rest = take_number(line, number);

    if (!rest || strlen(line) != len || strlen(rest) != sizeof digits + 1 || *rest != ' ' ||
        line[len - 1] != '\n')
        return -EINVAL;
    memcpy(digits, rest + 1, sizeof digits - 1);
    if (mfs_text_unhex(digits, raw, sizeof raw))
        return -EINVAL;
    *sum = mfs_get_be64(raw);
    return 0;
}

static int say_file(int rc, const char *dir, const char *name, struct mfs_err *err)
{
    bool not_ours = rc == -EPERM || rc == -ELOOP;

    return mfs_err_set(err, rc == -ENOENT ? -EIO : rc, "%s/%s: %s", dir, name,
                       not_ours ? MFS_TRUSTED_NO_FILE : strerror(-rc));
}

/* A file of that directory, which others can't have written. */
static int read_file(int dir, const char *name, size_t most, struct mfs_buf *b)
{
    int fd = mfs_trusted_open_file(dir, name), rc;

    if (fd < 0)
        return fd;
    rc = mfs_file_read_fd(fd, most, b);
    close(fd);
    return rc;
}

/* The line in `current`; `at` names the directory. -ENOENT: there is none. */
static int read_current(int dir, const char *at, char name[64], uint64_t *sum, struct mfs_err *err)
{
    struct mfs_buf b;
    uint32_t number = 0;
    int rc;

    *sum = 0;
    mfs_buf_init(&b);
    rc = read_file(dir, "current", LINE_MOST, &b);
    if (!rc)
        rc = mfs_buf_append(&b, "", 1);
    if (rc == -ENOENT)
        mfs_err_set(err, rc, "%s holds no checkpoint", at);
    else if (rc)
        say_file(rc, at, "current", err);
    else if (parse_current(mfs_buf_data(&b), mfs_buf_len(&b) - 1, &number, sum))
        rc = mfs_err_set(err, -EINVAL, "%s/current is damaged", at);
    mfs_buf_fini(&b);
    return rc ? rc : mfs_text_format(name, 64, STEM "%u", number);
}

/* sum NULL: whatever it is. */
static int read_manifest(int dir, const char *at, const uint64_t *sum, struct mfs_manifest *m,
                         struct mfs_err *err)
{
    struct mfs_buf b;
    int rc;

    mfs_buf_init(&b);
    rc = read_file(dir, MANIFEST, SIZE_MOST, &b);
    if (rc)
        rc = say_file(rc, at, MANIFEST, err);
    else if (sum && mfs_hash64(mfs_buf_data(&b), mfs_buf_len(&b), 0) != *sum)
        rc = mfs_err_set(err, -EINVAL,
                         "%s/" MANIFEST " is damaged: its checksum is not the one in "
                         "current",
                         at);
    else if ((rc = mfs_manifest_parse(m, mfs_buf_data(&b), mfs_buf_len(&b), err)))
        mfs_err_prefix(err, "%s/" MANIFEST, at);
    mfs_buf_fini(&b);
    return rc;
}

static int check_image(int dir, const char *at, const struct mfs_image_part *p, struct mfs_err *err)
{
    char name[32];
    struct stat st;
    int fd;

    snprintf(name, sizeof name, "partition-%u.rdb", p->index);
    fd = mfs_trusted_open_file(dir, name);
    if (fd < 0)
        return say_file(fd, at, name, err);
    if (fstat(fd, &st))
        say_file(-errno, at, name, err);
    else if ((uint64_t)st.st_size != p->bytes)
        mfs_err_set(err, -EIO, "%s/%s is damaged: it has %lld bytes, not %llu", at, name,
                    (long long)st.st_size, (unsigned long long)p->bytes);
    else
        err->code = 0;
    close(fd);
    return err->code;
}

static int check_images(int dir, const char *at, const struct mfs_manifest *m, struct mfs_err *err)
{
    int rc = 0;

    for (uint32_t i = 0; i < m->nparts && !rc; i++)
        rc = check_image(dir, at, &m->part[i], err);
    return rc;
}

/* A directory that holds a manifest is a checkpoint itself; else `current` leads to one. */
static int open_checkpoint(const char *dir, char path[PATH_MAX], struct mfs_manifest *m,
                           struct mfs_err *err)
{
    int top = mfs_trusted_dir_open(dir, 0, path, err), fd, rc;
    char name[64], real[PATH_MAX];
    struct stat st;
    uint64_t sum;

    if (top < 0)
        return top;
    if (!fstatat(top, MANIFEST, &st, AT_SYMLINK_NOFOLLOW)) {
        rc = read_manifest(top, path, NULL, m, err);
        fd = top;
    } else {
        rc = read_current(top, path, name, &sum, err);
        close(top);
        if (!rc && mfs_text_format(real, sizeof real, "%s/%s", path, name))
            rc = mfs_err_set(err, -ENAMETOOLONG, "%s: too long", path);
        fd = rc ? -1 : mfs_trusted_dir_open(real, 0, path, err);
        if (!rc)
            rc = fd < 0 ? fd : read_manifest(fd, path, &sum, m, err);
    }
    if (!rc)
        return fd;
    if (fd >= 0)
        close(fd);
    return rc;
}

int mfs_manifest_find(const char *dir, char path[PATH_MAX], struct mfs_manifest *m,
                      struct mfs_err *err)
{
    int fd = open_checkpoint(dir, path, m, err), rc;

    if (fd < 0)
        return fd;
    rc = check_images(fd, path, m, err);
    close(fd);
    if (rc)
        mfs_manifest_clear(m);
    return rc;
}

int mfs_manifest_restore(const char *dir, char path[PATH_MAX], struct mfs_manifest *m,
                         struct mfs_err *err)
{
    int rc = mfs_manifest_find(dir, path, m, err);

    if (rc == -EINVAL)
        err->code = -EBADMSG;
    return rc ? mfs_err_prefix(err, "restore") : 0;
}

/* ---- writing --------------------------------------------------------------------------------- */

/* Writing into the deployment's own mount, which stands still meanwhile, would wait for itself. */
static int check_place(const char *dir, const char *deployment, struct mfs_err *err)
{
    char cwd[PATH_MAX] = "", full[PATH_MAX], real[PATH_MAX];
    struct mfs_mountinfo over;
    char *slash;

    if (dir[0] != '/' && !getcwd(cwd, sizeof cwd))
        return mfs_err_set(err, -errno, "%s: %s", dir, strerror(errno));
    if (mfs_text_format(full, sizeof full, "%s/%s", cwd, dir))
        return mfs_err_set(err, -ENAMETOOLONG, "%s: too long", dir);
    while (!realpath(full, real) && (slash = strrchr(full, '/')) && slash > full)
        *slash = '\0'; /* it is yet to be made: below whatever there is */
    if (!mfs_mountinfo_over(real, &over) && !strcmp(over.fstype, "fuse.memefs") &&
        !strcmp(over.source, deployment))
        return mfs_err_set(err, -ENOTSUP,
                           "%s is in the file system that is to be saved; choose a directory "
                           "outside of %s",
                           dir, over.point);
    return 0;
}

/* Is the name one that we give? */
static bool is_ours(const char *name)
{
    uint32_t number;
    const char *rest = take_number(name, &number);

    return rest && (!*rest || !strcmp(rest, PART));
}

/* Others call their checkpoints so, too. Of ours nothing is ever anything but these files; NFS
 * keeps those that are open while they are removed. */
static int check_ours(int dir, const char *at, const char *name, struct mfs_err *err)
{
    static const char *const ours[] = {".", "..", "manifest.json*", "partition-*.rdb", ".nfs*"};
    const size_t n = sizeof ours / sizeof *ours;
    int fd = mfs_trusted_open(dir, name, O_RDONLY | O_DIRECTORY, 0), rc = fd < 0 ? fd : 0;
    DIR *d = fd < 0 ? NULL : fdopendir(fd);
    struct dirent *e;

    while (d && !rc && (e = readdir(d))) {
        size_t i = 0;

        while (i < n && fnmatch(ours[i], e->d_name, FNM_PERIOD))
            i++;
        rc = i < n ? 0 : -EEXIST;
    }
    if (d)
        closedir(d);
    if (rc == -EEXIST || rc == -ENOTDIR || rc == -ELOOP)
        return mfs_err_set(err, -EEXIST, "%s/%s is none of MemEFS; choose another directory", at,
                           name);
    return rc == -ENOENT ? 0 : rc ? mfs_err_set(err, rc, "%s/%s: %s", at, name, strerror(-rc)) : 0;
}

/* What cut-short checkpoints and the clean-up after a commit have left. `keep` "": nothing. */
static int remove_others(const struct mfs_manifest_draft *draft, const char *keep,
                         struct mfs_err *err)
{
    int fd = openat(draft->lock, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC), rc;
    DIR *d = fd < 0 ? NULL : fdopendir(fd);
    struct dirent *e;

    rc = d ? 0 : mfs_err_set(err, -errno, "%s: %s", draft->dir, strerror(errno));
    while (d && !rc && (e = readdir(d))) {
        if (!is_ours(e->d_name) || !strcmp(e->d_name, keep))
            continue;
        rc = check_ours(draft->lock, draft->dir, e->d_name, err);
        if (!rc && (rc = mfs_file_remove_tree_at(draft->lock, e->d_name)))
            mfs_err_set(err, rc, "%s/%s: %s", draft->dir, e->d_name, strerror(-rc));
    }
    if (d)
        closedir(d);
    return rc;
}

static int take_lock(struct mfs_manifest_draft *d, struct mfs_err *err)
{
    /* A file system that has no locks for directories goes without. */
    if (flock(d->lock, LOCK_EX | LOCK_NB) && errno == EWOULDBLOCK)
        return mfs_err_set(err, -EBUSY, "another cm checkpoint is writing to %s", d->dir);
    return 0;
}

/* Which one is valid, and that it is ours to replace. */
static int look_at_former(struct mfs_manifest_draft *d, const char *deployment, struct mfs_err *err)
{
    struct mfs_manifest m;
    char path[PATH_MAX];
    uint64_t sum;
    int rc = read_current(d->lock, d->dir, d->former, &sum, err), fd = -1;

    if (rc == -ENOENT) {
        d->former[0] = '\0';
        d->number = 1;
        return 0;
    }
    if (!rc)
        rc = mfs_text_format(path, sizeof path, "%s/%s", d->dir, d->former);
    if (!rc)
        rc = fd = mfs_trusted_open(d->lock, d->former, O_RDONLY | O_DIRECTORY, 0);
    if (fd >= 0) {
        rc = read_manifest(fd, path, &sum, &m, err);
        close(fd);
    }
    if (rc)
        return mfs_err_prefix(err, "what is there is no checkpoint; choose another directory");
    if (strcmp(m.name, deployment))
        rc = mfs_err_set(err, -EEXIST,
                         "%s holds a checkpoint of deployment %s; choose another directory", d->dir,
                         m.name);
    take_number(d->former, &d->number);
    d->number++;
    d->losses = mfs_manifest_losses(&m);
    mfs_manifest_clear(&m);
    return rc;
}

static const char *name_in(const char *path)
{
    return strrchr(path, '/') + 1;
}

int mfs_manifest_begin(struct mfs_manifest_draft *d, const char *dir, const char *deployment,
                       struct mfs_err *err)
{
    int rc = check_place(dir, deployment, err);

    *d = (struct mfs_manifest_draft){.lock = -1};
    if (rc)
        return rc;
    d->lock = mfs_trusted_dir_open(dir, MFS_TRUSTED_MAKE, d->dir, err);
    if (d->lock < 0)
        return d->lock;
    rc = take_lock(d, err);
    if (!rc)
        rc = look_at_former(d, deployment, err);
    if (!rc)
        rc = remove_others(d, d->former, err);
    if (rc)
        goto out;
    rc = mfs_text_format(d->part, sizeof d->part, "%s/" STEM "%u" PART, d->dir, d->number);
    if (!rc && strlen(d->part) >= MFS_PATH_MAX)
        rc = -ENAMETOOLONG;
    if (!rc && mkdirat(d->lock, name_in(d->part), 0700))
        rc = -errno;
    if (rc) {
        d->part[0] = '\0';
        mfs_err_set(err, rc, "%s: %s", d->dir, strerror(-rc));
    }
out:
    if (rc)
        mfs_manifest_end(d);
    return rc;
}

int mfs_manifest_check(const char *dir, const char *deployment, struct mfs_err *err)
{
    struct mfs_manifest_draft d = {.lock = -1};
    int rc = check_place(dir, deployment, err);

    if (rc)
        return rc;
    d.lock = mfs_trusted_dir_open(dir, 0, d.dir, err);
    if (d.lock < 0)
        return d.lock == -ENOENT ? 0 : d.lock;
    rc = look_at_former(&d, deployment, err);
    mfs_manifest_end(&d);
    return rc;
}

static int write_manifest(int dir, const struct mfs_manifest *m, uint64_t *sum)
{
    struct mfs_buf b;
    int rc;

    mfs_buf_init(&b);
    rc = mfs_schema_encode(&mfs_manifest_schema, m, true, &b);
    if (!rc)
        rc = mfs_buf_append(&b, "\n", 1);
    if (!rc) {
        *sum = mfs_hash64(mfs_buf_data(&b), mfs_buf_len(&b), 0);
        rc = mfs_file_write_at(dir, MANIFEST, mfs_buf_data(&b), mfs_buf_len(&b), 0600);
    }
    mfs_buf_fini(&b);
    return rc;
}

static int make_current(const struct mfs_manifest_draft *d, uint64_t sum)
{
    char line[LINE_MOST];
    int rc = mfs_text_format(line, sizeof line, STEM "%u %016" PRIx64 "\n", d->number, sum);

    return rc ? rc : mfs_file_write_at(d->lock, "current", line, strlen(line), 0600);
}

/* The manifest, beside the images. */
static int complete(struct mfs_manifest_draft *d, const struct mfs_manifest *m, uint64_t *sum,
                    struct mfs_err *err)
{
    int fd = mfs_trusted_dir_private(d->lock, name_in(d->part)), rc;

    if (fd < 0)
        return mfs_err_set(err, fd, "%s: %s", d->part, strerror(-fd));
    rc = check_images(fd, d->part, m, err);
    if (rc)
        mfs_err_prefix(err, "what the nodes wrote is not all here: checkpoints need a file system "
                            "that all nodes share");
    else if ((rc = write_manifest(fd, m, sum)))
        mfs_err_set(err, rc, "%s: %s", d->part, strerror(-rc));
    close(fd);
    return rc;
}

int mfs_manifest_commit(struct mfs_manifest_draft *d, struct mfs_manifest *m, char path[PATH_MAX],
                        struct mfs_err *err)
{
    struct mfs_err ignored;
    uint64_t sum = 0;
    int rc;

    m->number = d->number;
    if (d->former[0] && mfs_manifest_losses(m) > d->losses)
        return mfs_err_set(err, -ENODATA,
                           "bytes were lost since %s/%s was made, which may have them, so it "
                           "stays; memefs lost lists the files. To save what there is, choose "
                           "another directory",
                           d->dir, d->former);
    rc = complete(d, m, &sum, err);
    if (rc)
        return rc;
    rc = mfs_text_format(path, PATH_MAX, "%s/" STEM "%u", d->dir, d->number);
    if (!rc && renameat(d->lock, name_in(d->part), d->lock, name_in(path)))
        rc = -errno;
    if (!rc)
        rc = mfs_file_sync_dir(d->lock);
    if (!rc) {
        d->part[0] = '\0';
        rc = make_current(d, sum);
    }
    if (rc)
        return mfs_err_set(err, rc, "%s: %s", d->dir, strerror(-rc));
    remove_others(d, name_in(path), &ignored); /* else the next one does it */
    return 0;
}

void mfs_manifest_end(struct mfs_manifest_draft *d)
{
    if (d->part[0])
        mfs_file_remove_tree_at(d->lock, name_in(d->part));
    d->part[0] = '\0';
    if (d->lock >= 0)
        close(d->lock);
    d->lock = -1;
}

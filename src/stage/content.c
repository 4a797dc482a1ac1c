#include "stage/content.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <openssl/evp.h>

#include "base/hash.h"
#include "proto/reading.h"
#include "stage/impl.h"

void mfs_stage_is_no_reading(int fd)
{
    if (fd >= 0)
        ioctl(fd, MFS_NO_READING); /* elsewhere than on a mount nobody counts */
}

/* What becomes of the bytes that pass by. */
struct sums {
    struct mfs_hash *hash; /* NULL: not wanted */
    EVP_MD_CTX *sha;       /* likewise */
};

static int sums_init(struct sums *s, bool hash, bool sha)
{
    *s = (struct sums){.hash = hash ? mfs_hash_create() : NULL,
                       .sha = sha ? EVP_MD_CTX_new() : NULL};
    if ((hash && !s->hash) || (sha && !s->sha))
        return -ENOMEM;
    return s->sha && EVP_DigestInit_ex(s->sha, EVP_sha256(), NULL) != 1 ? -EIO : 0;
}

static void sums_fini(struct sums *s)
{
    mfs_hash_destroy(s->hash);
    EVP_MD_CTX_free(s->sha);
}

static int sums_add(const struct sums *s, const void *p, size_t n)
{
    if (s->hash)
        mfs_hash_add(s->hash, p, n);
    return s->sha && EVP_DigestUpdate(s->sha, p, n) != 1 ? -EIO : 0;
}

/* As many as there are, n at most; a negative errno. */
static ssize_t read_at(int fd, char *to, size_t n, uint64_t at)
{
    size_t done = 0;

    while (done < n) {
        ssize_t got = pread(fd, to + done, n - done, (off_t)(at + done));

        if (got == 0)
            break;
        if (got < 0 && errno != EINTR)
            return -errno;
        done += got > 0 ? (size_t)got : 0;
    }
    return (ssize_t)done;
}

static int write_at(int fd, const char *from, size_t n, uint64_t at)
{
    while (n) {
        ssize_t put = pwrite(fd, from, n, (off_t)at);

        if (put < 0 && errno != EINTR)
            return -errno;
        from += put > 0 ? put : 0;
        at += put > 0 ? (uint64_t)put : 0;
        n -= put > 0 ? (size_t)put : 0;
    }
    return 0;
}

static bool is_zero(const char *p, size_t n)
{
    return n && !*p && !memcmp(p, p + 1, n - 1);
}

static size_t part_of(uint64_t at, uint64_t end)
{
    return end - at < MFS_STAGE_BUFFER ? (size_t)(end - at) : MFS_STAGE_BUFFER;
}

static size_t step_of(const struct mfs_stage_range *r, uint64_t end)
{
    return r->step && r->step < end - r->at ? r->step : part_of(r->at, end);
}

/* The next bytes that are no hole, from r->at on: [*lo, *hi). 0; 1: there are none. */
static int next_data(const struct mfs_stage_range *r, bool seek, uint64_t *lo, uint64_t *hi)
{
    off_t data, hole;

    *lo = r->at;
    *hi = r->end;
    if (!seek)
        return r->at >= r->end;
    data = lseek(r->from, (off_t)r->at, SEEK_DATA);
    if (data < 0 && errno == ENXIO)
        return 1;
    if (data < 0)
        return r->at >= r->end; /* it knows no holes */
    hole = lseek(r->from, data, SEEK_HOLE);
    *lo = (uint64_t)data;
    if (hole > data && (uint64_t)hole < *hi)
        *hi = (uint64_t)hole;
    return *lo >= r->end;
}

static int copy_part(struct mfs_stage_range *r, const struct sums *sums, char *buf, size_t n)
{
    ssize_t got;
    int rc;

    r->reading = true;
    got = read_at(r->from, buf, n, r->at);
    if (got < 0)
        return (int)got;
    if ((size_t)got < n)
        return -ENODATA;
    r->reading = false;
    rc = sums_add(sums, buf, n);
    if (!rc && !(r->sparse && is_zero(buf, n))) {
        rc = write_at(r->to, buf, n, r->at);
        r->copied += rc ? 0 : n;
    }
    r->at += n;
    return rc;
}

static int copy_all(struct mfs_stage_range *r, const struct sums *sums, bool seek, char *buf)
{
    uint64_t lo, hi;
    int rc = 0;

    while (!rc && !next_data(r, seek, &lo, &hi)) {
        r->at = lo;
        while (!rc && r->at < hi)
            rc = *r->stop ? -EINTR : copy_part(r, sums, buf, step_of(r, hi));
    }
    return rc;
}

/* What the kernel has is dropped first. */
int mfs_stage_read_back(int to, uint64_t at, uint64_t end, uint64_t hash)
{
    char *buf = malloc(MFS_STAGE_BUFFER);
    struct sums sums;
    int rc = sums_init(&sums, true, false);

    if (!rc)
        rc = !buf ? -ENOMEM : fdatasync(to) < 0 ? -errno : 0;
    posix_fadvise(to, (off_t)at, (off_t)(end - at), POSIX_FADV_DONTNEED);
    while (!rc && at < end) {
        ssize_t got = read_at(to, buf, part_of(at, end), at);

        rc = got < 0 ? (int)got : got == 0 ? -EUCLEAN : sums_add(&sums, buf, (size_t)got);
        at += got > 0 ? (uint64_t)got : 0;
    }
    if (!rc && mfs_hash_sum(sums.hash) != hash)
        rc = -EUCLEAN;
    sums_fini(&sums);
    free(buf);
    return rc;
}

int mfs_stage_copy_range(struct mfs_stage_range *r)
{
    uint64_t from = r->at;
    bool seek = r->sparse && !r->verify && !r->sum;
    char *buf = malloc(part_of(r->at, r->end) + 1);
    struct sums sums;
    int rc = sums_init(&sums, r->verify, r->sum != NULL);

    if (!buf)
        rc = -ENOMEM;
    if (!rc)
        rc = copy_all(r, &sums, seek, buf);
    if (!rc && r->sum && EVP_DigestFinal_ex(sums.sha, r->sum, NULL) != 1)
        rc = -EIO;
    if (!rc && r->verify && r->end > from)
        rc = mfs_stage_read_back(r->to, from, r->end, mfs_hash_sum(sums.hash));
    sums_fini(&sums);
    free(buf);
    return rc;
}

int mfs_stage_same_content(int a, int b, uint64_t size)
{
    char *p = malloc(2UL * MFS_STAGE_BUFFER);
    int same = p ? 1 : -ENOMEM;

    for (uint64_t at = 0; same == 1 && at < size; at += MFS_STAGE_BUFFER) {
        size_t n = part_of(at, size);
        ssize_t x = read_at(a, p, n, at), y = read_at(b, p + MFS_STAGE_BUFFER, n, at);

        same = x < 0   ? (int)x
               : y < 0 ? (int)y
                       : x == y && (size_t)x == n && !memcmp(p, p + MFS_STAGE_BUFFER, n);
    }
    free(p);
    return same;
}

int mfs_stage_sum(int fd, uint64_t at, uint64_t end, unsigned char sum[32])
{
    char *buf = malloc(MFS_STAGE_BUFFER);
    struct sums sums;
    int rc = sums_init(&sums, false, true);

    rc = buf ? rc : -ENOMEM;
    for (; !rc && at < end; at += MFS_STAGE_BUFFER) {
        ssize_t n = read_at(fd, buf, part_of(at, end), at);

        rc = n < 0 ? (int)n : sums_add(&sums, buf, (size_t)n);
    }
    if (!rc && EVP_DigestFinal_ex(sums.sha, sum, NULL) != 1)
        rc = -EIO;
    sums_fini(&sums);
    free(buf);
    return rc;
}

/* Two files: PATH counts, PATH.new exists only while the journal is written anew. Batches go to
 * both, until PATH.new has all and is renamed over PATH. A write that fails gives up the file that
 * it was for: PATH.new is deleted, and PATH emptied (`broken`), so that a part is never taken for
 * the whole; journal.c begins it anew. `bytes` and `next` are their lengths, `least` what the next
 * rewriting is measured by. */
#include "partition/journal/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "partition/journal/format.h"

#define SLACK (4U << 20) /* bytes that are not worth being written anew */

static int write_all(int fd, const char *p, size_t n)
{
    while (n) {
        ssize_t done = write(fd, p, n);

        if (done < 0 && errno == EINTR)
            continue;
        if (done <= 0)
            return done < 0 ? -errno : -EIO;
        p += done;
        n -= (size_t)done;
    }
    return 0;
}

int mfs_journal_file_open(struct mfs_journal_file *f, struct mfs_span path, bool keep)
{
    off_t end;

    *f = (struct mfs_journal_file){.fd = -1, .next_fd = -1};
    if (path.n + sizeof ".new" > sizeof f->path)
        return -ENAMETOOLONG;
    memcpy(f->path, path.p, path.n);
    snprintf(f->next_path, sizeof f->next_path, "%.*s.new", (int)path.n, path.p);
    unlink(f->next_path);
    f->fd = open(f->path, O_WRONLY | O_APPEND | O_CLOEXEC | (keep ? 0 : O_CREAT | O_TRUNC), 0600);
    if (f->fd < 0)
        return -errno;
    end = lseek(f->fd, 0, SEEK_END);
    if (end < 0)
        return -errno;
    f->bytes = f->least = (uint64_t)end;
    return 0;
}

int mfs_journal_file_reset(struct mfs_journal_file *f)
{
    mfs_journal_next_drop(f);
    if (ftruncate(f->fd, 0))
        return -errno;
    f->bytes = f->least = 0;
    f->broken = false;
    return 0;
}

void mfs_journal_file_write(struct mfs_journal_file *f, const struct mfs_answer *batch)
{
    if (f->next_fd >= 0)
        mfs_journal_next_write(f, batch);
    if (f->broken)
        return;
    if (!write_all(f->fd, batch->p, batch->n)) {
        f->bytes += batch->n;
        return;
    }
    /* A part of the truth is none: empty, it can't be taken for the whole. */
    f->broken = true;
    f->bytes = 0;
    if (ftruncate(f->fd, 0))
        unlink(f->path);
}

bool mfs_journal_file_long(const struct mfs_journal_file *f)
{
    return f->next_fd < 0 && f->bytes > 2 * f->least + SLACK;
}

void mfs_journal_next_drop(struct mfs_journal_file *f)
{
    if (f->next_fd < 0)
        return;
    close(f->next_fd);
    f->next_fd = -1;
    unlink(f->next_path);
    f->least = f->bytes; /* not at once again */
}

int mfs_journal_next_open(struct mfs_journal_file *f)
{
    f->next = 0;
    f->next_fd = open(f->next_path, O_WRONLY | O_APPEND | O_CLOEXEC | O_CREAT | O_TRUNC, 0600);
    return f->next_fd < 0 ? -errno : 0;
}

int mfs_journal_next_write(struct mfs_journal_file *f, const struct mfs_answer *batch)
{
    int rc = write_all(f->next_fd, batch->p, batch->n);

    if (rc)
        mfs_journal_next_drop(f);
    else
        f->next += batch->n;
    return rc;
}

int mfs_journal_next_replace(struct mfs_journal_file *f)
{
    if (rename(f->next_path, f->path)) {
        int rc = -errno;

        mfs_journal_next_drop(f);
        return rc;
    }
    close(f->fd);
    f->fd = f->next_fd;
    f->next_fd = -1;
    f->bytes = f->least = f->next;
    f->broken = false;
    return 0;
}

#include "stage/record.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/xattr.h>

#define NAME "user.memefs-stage"

/* "SOURCE\n" and a digit for each piece; the kernel allows 64 KiB. */
static size_t size_of(const struct mfs_stage_record *r)
{
    return strlen(r->of) + 1 + r->n;
}

int mfs_stage_record_init(struct mfs_stage_record *r, uint32_t n)
{
    *r = (struct mfs_stage_record){.n = n, .done = calloc(n ? n : 1, 1)};
    return r->done ? 0 : -ENOMEM;
}

void mfs_stage_record_fini(struct mfs_stage_record *r)
{
    free(r->done);
    r->done = NULL;
}

bool mfs_stage_record_load(struct mfs_stage_record *r, int fd)
{
    size_t size = size_of(r), head = strlen(r->of);
    char *text = malloc(size + 1);
    bool ours = false;

    if (text)
        ours = fgetxattr(fd, NAME, text, size + 1) == (ssize_t)size && !memcmp(text, r->of, head) &&
               text[head] == '\n';
    for (uint32_t i = 0; ours && i < r->n; i++)
        r->done[i] = text[head + 1 + i] == '1';
    free(text);
    return ours;
}

void mfs_stage_record_save(const struct mfs_stage_record *r, int fd)
{
    size_t size = size_of(r), head = strlen(r->of);
    char *text = malloc(size);

    if (!text)
        return;
    memcpy(text, r->of, head);
    text[head] = '\n';
    for (uint32_t i = 0; i < r->n; i++)
        text[head + 1 + i] = r->done[i] ? '1' : '0';
    fsetxattr(fd, NAME, text, size, 0);
    free(text);
}

void mfs_stage_record_drop(int fd)
{
    fremovexattr(fd, NAME);
}

/* A list of faults, each with its evidence as a digest. Two passes' lists are compared after
 * sorting: a fault counts only when both have it with the same evidence, as one pass alone sees
 * changes under way as faults. */
#include "fsck/census/findings.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"

static const struct {
    const char *word;
    bool leak;
} faults[] = {
#define FAULT(fault, word, leak) {word, leak},
    MFS_FAULTS(FAULT)};

const char *mfs_fault_word(enum mfs_fault fault)
{
    return faults[fault].word;
}

bool mfs_fault_leak(enum mfs_fault fault)
{
    return faults[fault].leak;
}

void mfs_findings_init(struct mfs_findings *f)
{
    mfs_flat_init(&f->list, sizeof(struct mfs_found));
}

static void drop(struct mfs_found *found)
{
    free(found->name);
    free(found->text);
}

void mfs_findings_fini(struct mfs_findings *f)
{
    for (size_t i = 0; i < f->list.n; i++)
        drop(mfs_flat_at(&f->list, i));
    mfs_flat_fini(&f->list);
}

static int take_text(struct mfs_found *found, const char *fmt, va_list ap)
{
    return vasprintf(&found->text, fmt, ap) < 0 ? -1 : 0;
}

struct mfs_found *mfs_findings_add(struct mfs_findings *f, enum mfs_fault fault, uint32_t part,
                                   uint64_t ino, uint64_t dir, uint64_t digest, const char *name,
                                   size_t name_len, const char *fmt, ...)
{
    struct mfs_found *found = mfs_flat_add(&f->list);
    va_list ap;
    int rc;

    if (!found)
        return NULL;
    *found = (struct mfs_found){.fault = fault, .part = part, .ino = ino, .dir = dir};
    found->digest = name ? mfs_hash64(name, name_len, digest) : digest;
    va_start(ap, fmt);
    rc = take_text(found, fmt, ap);
    va_end(ap);
    if (rc < 0)
        found->text = NULL;
    if (name && found->text) {
        found->name = malloc(name_len + 1);
        if (found->name) {
            memcpy(found->name, name, name_len);
            found->name[name_len] = 0;
            found->name_len = name_len;
        }
    }
    if (found->text && (!name || found->name))
        return found;
    drop(found);
    f->list.n--;
    return NULL;
}

static int by_subject(const void *x, const void *y)
{
    const struct mfs_found *a = x, *b = y;
    int rc = mfs_flat_order(a->fault, b->fault);

    if (!rc)
        rc = mfs_flat_order(a->ino, b->ino);
    if (!rc)
        rc = mfs_flat_order(a->dir, b->dir);
    return rc ? rc : mfs_flat_order(a->part, b->part);
}

static int by_identity(const void *x, const void *y)
{
    const struct mfs_found *a = x, *b = y;
    int rc = by_subject(x, y);

    return rc ? rc : mfs_flat_order(a->digest, b->digest);
}

void mfs_findings_sort(struct mfs_findings *f)
{
    size_t kept = 0;

    if (f->list.n < 2)
        return;
    qsort(f->list.p, f->list.n, f->list.size, by_identity);
    for (size_t i = 1; i < f->list.n; i++) {
        struct mfs_found *last = mfs_flat_at(&f->list, kept), *next = mfs_flat_at(&f->list, i);

        if (by_identity(last, next) == 0)
            drop(next);
        else if (++kept != i)
            *(struct mfs_found *)mfs_flat_at(&f->list, kept) = *next;
    }
    f->list.n = kept + 1;
}

size_t mfs_findings_keep_common(struct mfs_findings *f, const struct mfs_findings *other)
{
    size_t kept = 0, all = f->list.n;

    for (size_t i = 0; i < all; i++) {
        struct mfs_found *found = mfs_flat_at(&f->list, i);

        if (!mfs_flat_find(&other->list, found, by_identity))
            drop(found);
        else
            *(struct mfs_found *)mfs_flat_at(&f->list, kept++) = *found;
    }
    f->list.n = kept;
    return all - kept;
}

size_t mfs_findings_unsettled(const struct mfs_findings *f, const struct mfs_findings *other)
{
    size_t n = 0;

    for (size_t i = 0; i < f->list.n; i++) {
        const struct mfs_found *found = mfs_flat_at(&f->list, i);

        n += mfs_flat_find(&other->list, found, by_subject) &&
             !mfs_flat_find(&other->list, found, by_identity);
    }
    return n;
}

const char *mfs_findings_show(const char *p, size_t len, char *out, size_t n)
{
    size_t at = 0;

    for (size_t i = 0; i < len && at + 5 < n; i++) {
        unsigned char c = (unsigned char)p[i];

        if (c < 0x20 || c == 0x7f || c == '\\' || c >= 0x80)
            at += (size_t)snprintf(out + at, n - at, "\\x%02x", c);
        else
            out[at++] = (char)c;
    }
    out[at] = 0;
    return out;
}

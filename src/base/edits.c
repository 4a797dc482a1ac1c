/* Lines that are the same are passed over; where they differ the nearest place is looked for from
 * which on they are the same again: so many lines were replaced, put in, or taken away. */
#include "base/edits.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define SHIFT_MOST 16U   /* lines more, or fewer, than there were: found again */
#define LOOK_AHEAD 4096U /* lines replaced, likewise */
#define BLOCK      4096U

/* A text that is gone through. */
struct side {
    const char *at, *end;
};

struct maker {
    struct mfs_edit *list;
    uint32_t n, room;
    uint64_t at; /* of what comes next, in the text as it is by then */
};

static struct side side_of(const struct mfs_buf *b)
{
    const char *at = mfs_buf_len(b) ? mfs_buf_data(b) : "";

    return (struct side){at, at + mfs_buf_len(b)};
}

static const char *line_end(const char *at, const char *end)
{
    const char *nl = memchr(at, '\n', (size_t)(end - at));

    return nl ? nl + 1 : end;
}

/* Passes over lines that both have. */
static void skip_equal(struct side *a, struct side *b, struct maker *m)
{
    size_t least = (size_t)(a->end - a->at < b->end - b->at ? a->end - a->at : b->end - b->at);
    size_t n = 0;

    while (least - n >= BLOCK && memcmp(a->at + n, b->at + n, BLOCK) == 0)
        n += BLOCK;
    while (n < least && a->at[n] == b->at[n])
        n++;
    if (n < least || a->end - a->at != b->end - b->at)
        while (n && a->at[n - 1] != '\n')
            n--;
    a->at += n;
    b->at += n;
    m->at += n;
}

static bool same_line(const struct side *a, const struct side *b)
{
    const char *x = line_end(a->at, a->end), *y = line_end(b->at, b->end);

    return a->at < a->end && b->at < b->end && x - a->at == y - b->at &&
           memcmp(a->at, b->at, (size_t)(x - a->at)) == 0;
}

static void next_line(struct side *s)
{
    s->at = line_end(s->at, s->end);
}

/* Where both go on alike, if they do after n lines of one and n to n + SHIFT_MOST of the other. */
static bool find_after(struct side *a, struct side *b, const struct side *of_a,
                       const struct side *of_b)
{
    struct side x = *of_a, y = *of_b;

    for (unsigned k = 0; k < SHIFT_MOST; k++) {
        if (same_line(&x, of_b)) {
            *a = x;
            *b = *of_b;
            return true;
        }
        if (same_line(of_a, &y)) {
            *a = *of_a;
            *b = y;
            return true;
        }
        next_line(&x);
        next_line(&y);
    }
    return false;
}

/* *a and *b are moved to where both go on alike. */
static void find_again(struct side *a, struct side *b)
{
    struct side of_a = *a, of_b = *b;

    for (unsigned k = 0; k < LOOK_AHEAD && (of_a.at < of_a.end || of_b.at < of_b.end); k++) {
        if (find_after(a, b, &of_a, &of_b))
            return;
        next_line(&of_a);
        next_line(&of_b);
    }
    a->at = a->end;
    b->at = b->end;
}

static int add(struct maker *m, const char *text, size_t len, size_t cut)
{
    struct mfs_edit *e;

    if (m->n == m->room) {
        struct mfs_edit *more = reallocarray(m->list, m->room ? 2 * m->room : 8, sizeof *more);

        if (!more)
            return -ENOMEM;
        m->list = more;
        m->room = m->room ? 2 * m->room : 8;
    }
    e = &m->list[m->n];
    *e = (struct mfs_edit){m->at, cut, strndup(text, len)};
    if (!e->text)
        return -ENOMEM;
    m->n++;
    m->at += len;
    return 0;
}

int mfs_edits_make(const struct mfs_buf *from, const struct mfs_buf *to, struct mfs_edit **list,
                   uint32_t *n)
{
    struct side a = side_of(from), b = side_of(to);
    struct maker m = {0};
    int rc = 0;

    while (!rc && (a.at < a.end || b.at < b.end)) {
        const char *old, *new;

        skip_equal(&a, &b, &m);
        old = a.at;
        new = b.at;
        if (a.at == a.end && b.at == b.end)
            break;
        find_again(&a, &b);
        rc = add(&m, new, (size_t)(b.at - new), (size_t)(a.at - old));
    }
    if (rc) {
        mfs_edits_free(m.list, m.n);
        m = (struct maker){0};
    }
    *list = m.list;
    *n = m.n;
    return rc;
}

/* Edits that lie behind each other, from the *i-th on: the text is copied once for all of them. */
static int apply_ascending(struct mfs_buf *text, const struct mfs_edit *list, uint32_t n,
                           uint32_t *i)
{
    const char *from = mfs_buf_data(text);
    size_t left = mfs_buf_len(text);
    struct mfs_buf out;
    int rc = 0;

    mfs_buf_init(&out);
    for (; *i < n && !rc && list[*i].at >= mfs_buf_len(&out); ++*i) {
        const struct mfs_edit *e = &list[*i];
        size_t kept = e->at - mfs_buf_len(&out);

        if (kept > left || e->cut > left - kept) {
            rc = -EINVAL;
            break;
        }
        rc = mfs_buf_append(&out, from, kept);
        if (!rc && e->text)
            rc = mfs_buf_append(&out, e->text, strlen(e->text));
        from += kept + e->cut;
        left -= kept + e->cut;
    }
    if (!rc)
        rc = mfs_buf_append(&out, from, left);
    mfs_buf_fini(rc ? &out : text);
    if (!rc)
        *text = out;
    return rc;
}

int mfs_edits_apply(struct mfs_buf *text, const struct mfs_edit *list, uint32_t n)
{
    uint32_t i = 0;
    int rc = 0;

    while (i < n && !rc)
        rc = apply_ascending(text, list, n, &i);
    return rc;
}

size_t mfs_edits_size(const struct mfs_edit *list, uint32_t n)
{
    size_t sum = 0;

    for (uint32_t i = 0; i < n; i++)
        sum += sizeof *list + strlen(list[i].text);
    return sum;
}

void mfs_edits_free(struct mfs_edit *list, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        free(list[i].text);
    free(list);
}

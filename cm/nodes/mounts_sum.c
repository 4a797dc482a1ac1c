/* What all mounts do together. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cm/nodes/mounts.h"

#define OPS_MOST 128U

/* ---- operations ------------------------------------------------------------------------------ */

static struct mfs_mounts_op *op_of(struct mfs_mounts *list, const char *labels)
{
    char name[sizeof list->op->name] = "";

    if (sscanf(labels, "operation=\"%23[^\"]", name) != 1)
        return NULL;
    for (uint32_t i = 0; i < list->nops; i++)
        if (!strcmp(list->op[i].name, name))
            return &list->op[i];
    if (list->nops == OPS_MOST)
        return NULL;
    memcpy(list->op[list->nops].name, name, sizeof name);
    return &list->op[list->nops++];
}

static void add_figure(struct mfs_mounts *list, const struct mfs_metric_sample *s)
{
    struct mfs_mounts_op *op;

    if (!strcmp(s->name, "memefs_operation_duration_seconds")) {
        op = op_of(list, s->labels);
        if (!op)
            return;
        op->operations += s->value;
        op->seconds += s->sum;
        op->max = s->max > op->max ? s->max : op->max;
    } else if (!strcmp(s->name, "memefs_operation_errors_total") &&
               strcmp(s->labels, "operation=\"lookup\",errno=\"ENOENT\"") != 0) {
        op = op_of(list, s->labels);
        if (op)
            op->errors += s->value;
    }
}

/* ---- files and directories ------------------------------------------------------------------- */

static int by_name(const void *a, const void *b)
{
    const struct mfs_mounts_hot *x = a, *y = b;

    return strcmp(x->name, y->name);
}

static int by_rate(const void *a, const void *b)
{
    const struct mfs_mounts_hot *x = a, *y = b;

    if (x->rate > y->rate || x->rate < y->rate)
        return x->rate > y->rate ? -1 : 1;
    return strcmp(x->name, y->name);
}

/* Those of one name become one; then the first of them by their rates. */
static uint32_t merge(struct mfs_mounts_hot *list, uint32_t n)
{
    uint32_t kept = 0;

    if (!n)
        return 0;
    qsort(list, n, sizeof *list, by_name);
    for (uint32_t i = 1; i < n; i++) {
        if (strcmp(list[kept].name, list[i].name) != 0) {
            list[++kept] = list[i];
            continue;
        }
        list[kept].rate += list[i].rate;
        list[kept].mounts += list[i].mounts;
    }
    qsort(list, ++kept, sizeof *list, by_rate);
    return kept < MFS_MOUNTS_HOT ? kept : MFS_MOUNTS_HOT;
}

static void add_hot(const struct mfs_mount *m, const struct mfs_hot_item *item, uint32_t n,
                    struct mfs_mounts_hot *list, uint32_t *count)
{
    for (uint32_t i = 0; i < n && m->rate > 0 && m->hot.requests > 0; i++) {
        struct mfs_mounts_hot *to = &list[(*count)++];

        memcpy(to->name, item[i].name, sizeof to->name);
        to->rate = m->rate * item[i].requests / m->hot.requests;
        to->mounts = 1;
    }
}

int mfs_mounts_sum_up(struct mfs_mounts *list)
{
    uint32_t files = 0, dirs = 0;

    for (uint32_t i = 0; i < list->n; i++) {
        files += list->mount[i].hot.nfiles;
        dirs += list->mount[i].hot.ndirs;
    }
    list->op = calloc(OPS_MOST, sizeof *list->op);
    list->file = calloc(files + 1, sizeof *list->file);
    list->dir = calloc(dirs + 1, sizeof *list->dir);
    if (!list->op || !list->file || !list->dir)
        return -ENOMEM;
    for (uint32_t i = 0; i < list->n; i++) {
        const struct mfs_mount *m = &list->mount[i];

        for (uint32_t k = 0; k < m->figures.n; k++)
            add_figure(list, &m->figures.sample[k]);
        add_hot(m, m->hot.file, m->hot.nfiles, list->file, &list->nfiles);
        add_hot(m, m->hot.dir, m->hot.ndirs, list->dir, &list->ndirs);
    }
    list->nfiles = merge(list->file, list->nfiles);
    list->ndirs = merge(list->dir, list->ndirs);
    return 0;
}

void mfs_mounts_list_free(struct mfs_mounts *list)
{
    free(list->mount);
    free(list->op);
    free(list->file);
    free(list->dir);
    *list = (struct mfs_mounts){0};
}

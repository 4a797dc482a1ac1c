/* A file that becomes one: written under a temporary name, in pieces when it is large, renamed when
 * it is whole. Where the bytes come from is the source's matter. */
#ifndef MFS_STAGE_FILE_H
#define MFS_STAGE_FILE_H

#include <pthread.h>

#include "stage/content.h"
#include "stage/impl.h"
#include "stage/record.h"

struct mfs_stage_file;

struct mfs_stage_source {
    uint32_t pieces; /* of one file, copied at a time; 0: as many as there are threads */
    /* Copies a range into r->to. 0, or a negative errno; a source may set the reason. */
    int (*copy)(struct mfs_stage_file *f, struct mfs_stage_range *r, struct mfs_err *err);
    /* 0; -ESTALE: it is not any more what it was; or another negative errno. */
    int (*unchanged)(struct mfs_stage_file *f);
    int (*keep)(struct mfs_stage_file *f); /* attributes, on f->to. 0 or a negative errno */
    /* What is there has the size and time of the source. Does it have its content? 1, 0, or a
     * negative errno; asked with plan.verify. */
    int (*same)(struct mfs_stage_file *f, int there);
    void (*mend)(struct mfs_stage_file *f, int there); /* its mode and owner; NULL: nothing */
    void (*close)(struct mfs_stage_file *f);
    bool local; /* `from` is a file, whose attributes are those of the copy */
};

struct mfs_stage_file {
    struct mfs_stage_item *item;
    const struct mfs_stage_source *source;
    void *remote;   /* the source's; */
    int from;       /* likewise */
    struct stat st; /* size, times, mode and owner of the copy to be */
    uint64_t tag;   /* what tells other content apart beside size and time; 0: nothing */
    bool whole;     /* not in pieces */
    bool sparse;

    int to;
    int claim; /* keeps the lock of the temporary file until it has its name; -1 */
    char temporary[MFS_STAGE_TEMPORARY_MAX];
    mode_t created;
    bool resumed;     /* an earlier run has left some of it */
    atomic_uint next; /* piece that nobody has taken */
    atomic_uint left; /* that copy pieces of it */
    atomic_int rc;    /* of the first that failed, which has told it */
    pthread_mutex_t mutex;
    struct mfs_stage_record record; /* under mutex */
};

/* Takes a block of malloc's, with the first group filled in, and the item; both are ended when the
 * file is. */
void mfs_stage_file_begin(struct mfs_stage_file *f);

/* small.c: makes the whole copy by one request, where the target is a deployment and the file is
 * small. 0; -EEXIST: the name is there; another negative errno: it is to be copied as other files
 * are, which tells what is wrong. */
int mfs_stage_copy_small(struct mfs_stage_file *f);

#endif

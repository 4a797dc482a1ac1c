/* Checkpoints on disk. In the operator's directory:
 *
 *     current                      "checkpoint-7 SUM": the valid one, and its manifest's XXH64
 *     checkpoint-7/manifest.json   0600: it holds the keys of the images' checksums
 *     checkpoint-7/partition-P.rdb one image for each partition
 *     checkpoint-8.part/           one that is being written, or was cut short
 *
 * `current` is replaced last, atomically, when all it leads to is on the disk: a crash at any
 * moment leaves it leading to a whole checkpoint. Directories and files are those of this user or
 * of root, and no other user may change them (base/trusted_dir.h). Everything blocks. */
#ifndef MFS_CM_STATE_MANIFEST_H
#define MFS_CM_STATE_MANIFEST_H

#include <limits.h>

#include "base/err.h"
#include "proto/messages.h"

/* 3: inode numbers below 2^53 (base/ino.h); 4: checksums with keys (proto/image_sum.h); 5: numbers
 * that say where all stripes are (cluster/placement.h), 6: and how large, which a program of before
 * takes for others */
#define MFS_MANIFEST_FORMAT       6
#define MFS_MANIFEST_FORMAT_LEAST 4 /* that is read, too: 5 and 6 only add to it */

/* Of `cm start`, that the deployment had. */
struct mfs_manifest_option {
    char key[32];
    char value[MFS_TEXT_MAX];
};

struct mfs_manifest {
    uint32_t format;
    char version[32];        /* of MemEFS */
    char name[MFS_NAME_MAX]; /* of the deployment */
    char time[32];           /* 2026-01-31T12:00:00Z */
    uint32_t number;
    uint64_t epoch;
    uint32_t nodes, stripe_size;
    uint32_t nparts;
    struct mfs_image_part *part; /* in order */
    uint32_t noptions;           /* 0, too, where a former version has written it */
    struct mfs_manifest_option *option;
};

extern const struct mfs_schema mfs_manifest_schema;

uint64_t mfs_manifest_bytes(const struct mfs_manifest *m);  /* of all files */
uint64_t mfs_manifest_memory(const struct mfs_manifest *m); /* that all partitions take */
uint64_t mfs_manifest_losses(const struct mfs_manifest *m); /* of all partitions */

/* From text: 0, -EINVAL with the reason when it makes no sense, or -ENOMEM. */
int mfs_manifest_parse(struct mfs_manifest *m, const char *text, size_t len, struct mfs_err *err);
void mfs_manifest_clear(struct mfs_manifest *m);

/* Finds the valid checkpoint of a directory, or takes the directory for one if it holds a manifest
 * itself. *m: its manifest; `path`: where it is, absolute. -ENOENT: there is none. Images that are
 * not there, or not of the size that the manifest says, are an error, too (-EIO). */
int mfs_manifest_find(const char *dir, char path[PATH_MAX], struct mfs_manifest *m,
                      struct mfs_err *err);
/* The same for --restore, which the error names. One that makes no sense is no wrong usage:
 * -EBADMSG. */
int mfs_manifest_restore(const char *dir, char path[PATH_MAX], struct mfs_manifest *m,
                         struct mfs_err *err);

/* A checkpoint that is being written. */
struct mfs_manifest_draft {
    char dir[PATH_MAX]; /* the operator's */
    char name[MFS_NAME_MAX];
    char part[PATH_MAX]; /* for the images */
    char former[64];     /* the valid one so far, "" for none */
    uint64_t losses;     /* of that */
    uint32_t number;
    int lock; /* on the directory; everything is reached by this descriptor */
};

/* Makes the directories and takes the lock on them; removes what earlier calls left. -EBUSY:
 * another call is writing there; -EEXIST: it belongs to another deployment, or another user has
 * something there that is called like a checkpoint. */
/* Could one begin there later? What is not there can be made then. Changes nothing. 0 or a negative
 * errno with the reason.
 */
int mfs_manifest_check(const char *dir, const char *deployment, struct mfs_err *err);

int mfs_manifest_begin(struct mfs_manifest_draft *d, const char *dir, const char *deployment,
                       struct mfs_err *err);
/* Commits, with the images in place: they are looked at. m->number is set. `path`: the checkpoint.
 * Then removes the former one. -ENODATA: that has bytes which were lost since; it stays. */
int mfs_manifest_commit(struct mfs_manifest_draft *d, struct mfs_manifest *m, char path[PATH_MAX],
                        struct mfs_err *err);
/* Lets go; what was not committed is removed. */
void mfs_manifest_end(struct mfs_manifest_draft *d);

#endif

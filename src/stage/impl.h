/* What the parts of a run share. */
#ifndef MFS_STAGE_IMPL_H
#define MFS_STAGE_IMPL_H

#include <dirent.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <string.h>
#include <sys/stat.h>

#include "stage/pool.h"
#include "stage/stage.h"

#define MFS_STAGE_BUFFER                                                                           \
    ((size_t)512 << 10) /* bytes of a read and a write: more do not fit into the second cache of   \
                           usual processors, and fewer are more requests */
#define MFS_STAGE_PIECE ((uint64_t)64 << 20) /* of a large file, copied at a time */

/* A key of tables, of which each byte counts. */
struct mfs_stage_inode {
    dev_t dev;
    ino_t ino;
};

static inline void mfs_stage_inode_init(struct mfs_stage_inode *key, dev_t dev, ino_t ino)
{
    memset(key, 0, sizeof *key);
    key->dev = dev;
    key->ino = ino;
}

struct mfs_stage_left;
struct mfs_stage_links;
struct mfs_stage_places;
struct mfs_stage_small;
struct mfs_stage_remains;
struct mfs_stage_remote;
struct mfs_stage_tally;

struct mfs_stage {
    const struct mfs_stage_plan *plan;
    struct mfs_stage_pool *pool;
    struct mfs_stage_tally *tally;
    struct mfs_stage_links *links;
    struct mfs_stage_remains *remains;
    struct mfs_stage_places *places; /* NULL: no two sources can meet */
    struct mfs_stage_remote *remote; /* the key and place of S3 */
    mode_t mask;                     /* of the process, before */
    uint32_t nparts;                 /* of the deployment that the target is in; 0: in none */
    uint32_t stripe_size;            /* likewise, bytes */
    uint64_t longest;                /* bytes of a file that this process may write */
    uint64_t id;                     /* of what this call is to do: the same in each repetition */
    unsigned turn;                   /* any number: where this process begins among names */
    dev_t dev;                       /* of the target, … */
    ino_t ino;                       /* … which a source may lie around */
    struct stat self;                /* st_uid and st_gid: that files of this process have */
    atomic_bool full;                /* no room */
    int leader;            /* -1: this process is not the one that does what only one may */
    int target;            /* the target's descriptor */
    pthread_mutex_t mutex; /* guards leader and deferred */
    struct mfs_stage_item *deferred;      /* another process is at it */
    _Atomic(struct mfs_stage_dir *) late; /* finished when the lock is gone; a use each */
};

/* A directory that is copied, or what stands for one above the entries. Open as long as it has
 * uses: its own, until all in it is known, and one for each task about a child. */
struct mfs_stage_dir {
    struct mfs_stage *stage;
    struct mfs_stage_dir *parent; /* NULL: above the entries */
    char *from_name, *to_name;    /* in the parent's; of one without a parent, for messages alone */
    int from, to;                 /* descriptors; AT_FDCWD: where the process is */
    struct stat st;               /* of the source */
    dev_t to_dev;
    ino_t to_ino;
    bool fresh;                    /* nobody had anything in it */
    bool acl;                      /* what is made in it inherits an ACL */
    bool takes;                    /* attributes from the source, when all is done */
    gid_t gid;                     /* of what is made in it */
    struct mfs_stage_queue queue;  /* of what is to be copied into it */
    struct mfs_stage_small *small; /* of small files */
    struct mfs_stage_left *left;   /* by earlier runs */
    atomic_uint uses;
    struct mfs_stage_dir *late; /* the stage's */
};

/* Something to copy. */
struct mfs_stage_item {
    struct mfs_stage_task task;
    struct mfs_stage_dir *dir; /* a use of it */
    bool has_sum;
    bool placed; /* its place in the target is its own */
    unsigned char sum[MFS_STAGE_SUM];
    struct mfs_stage_item *next; /* that waits for the same link */
    char *to;                    /* behind `from` in the same block, or `from` itself */
    char from[];
};

/* NULL: out of memory, which has been reported. Takes a use of the directory. */
struct mfs_stage_item *mfs_stage_item_create(struct mfs_stage_dir *dir, const char *from,
                                             const char *to);
void mfs_stage_item_destroy(struct mfs_stage_item *i);

/* ---- walk.c ---------------------------------------------------------------------------------- */

/* Adds an item whose kind is not known yet, or a directory. */
void mfs_stage_walk_item(struct mfs_stage_item *i);
void mfs_stage_walk_directory(struct mfs_stage_item *i);

/* Later, when nothing else is left. */
void mfs_stage_defer(struct mfs_stage_item *i);
/* Adds all that was deferred. False: there was nothing. */
bool mfs_stage_walk_deferred(struct mfs_stage *s);

/* ---- directory.c ----------------------------------------------------------------------------- */

/* Calls for each name in the directory but "." and "..", until that returns false. 0 or a negative
 * errno. */
int mfs_stage_each_name(int dir, bool (*each)(void *arg, const struct dirent *e), void *arg);

struct mfs_stage_dir *mfs_stage_dir_create(struct mfs_stage *s, struct mfs_stage_dir *parent,
                                           const char *from, const char *to); /* NULL: ENOMEM */
void mfs_stage_dir_get(struct mfs_stage_dir *d);
/* The last use: attributes are set, and the parent's use ends. */
void mfs_stage_dir_put(struct mfs_stage_dir *d);
/* Looks at what its `to` is. 0 or a negative errno. */
int mfs_stage_dir_learn(struct mfs_stage_dir *d);
/* Its path, or that of `name` in it, in the source or the target. Cut when it is too long. */
void mfs_stage_path(const struct mfs_stage_dir *d, const char *name, bool target, char *out,
                    size_t n);

/* ---- file.c, other.c, link.c ----------------------------------------------------------------- */

/* Each ends the item. */
void mfs_stage_copy_file(struct mfs_stage_item *i, const struct stat *st);
void mfs_stage_copy_other(struct mfs_stage_item *i, const struct stat *st);

/* What has several names is copied once. True: the caller is to copy it, and to tell the end of
 * it; else the item is taken care of. */
bool mfs_stage_link_begin(struct mfs_stage_item *i, const struct stat *st);
void mfs_stage_link_end(struct mfs_stage_item *i, const struct stat *st, bool done);
struct mfs_stage_links *mfs_stage_links_create(void); /* NULL: ENOMEM */
void mfs_stage_links_destroy(struct mfs_stage_links *l);

/* ---- small.c: the mount's request that makes a small file (proto/put.h) ---- */

struct mfs_stage_small *mfs_stage_small_create(void);    /* NULL: ENOMEM */
void mfs_stage_small_destroy(struct mfs_stage_small *p); /* takes NULL */

/* ---- left.c ---------------------------------------------------------------------------------- */

struct mfs_stage_left *mfs_stage_left_create(void);    /* NULL: ENOMEM */
void mfs_stage_left_destroy(struct mfs_stage_left *l); /* takes NULL */

/* Has an earlier run left an unfinished copy of the item? */
bool mfs_stage_has_left(const struct mfs_stage_item *i);
/* The copy is there: what was left is removed. */
void mfs_stage_drop_left(const struct mfs_stage_item *i);

/* ---- place.c --------------------------------------------------------------------------------- */

/* False: another source has the item's place, which is told, or the same source once more; the item
 * is ended. */
bool mfs_stage_place_take(struct mfs_stage_item *i);
int mfs_stage_places_create(struct mfs_stage_places **to,
                            const struct mfs_stage_list *l); /* 0 or -ENOMEM */
void mfs_stage_places_destroy(struct mfs_stage_places *p);

/* ---- temporary.c ----------------------------------------------------------------------------- */

#define MFS_STAGE_TEMPORARY     ".memefs-stage."
#define MFS_STAGE_TEMPORARY_MAX 64

/* The name beside `name` that it is written under: always the same in repetitions of a call, and in
 * the partition of `name`, so that renaming it is one step there and looking it up is, too. */
void mfs_stage_temporary(const struct mfs_stage_dir *d, const char *name,
                         char out[MFS_STAGE_TEMPORARY_MAX]);

/* Is it such a name, of whichever call? */
bool mfs_stage_is_temporary(const char *name);

/* Two that are the same call must not run at a time. A descriptor to keep open, or a negative errno
 * with the reason. */
int mfs_stage_lock(struct mfs_stage *s, int target, struct mfs_err *err);
void mfs_stage_unlock(const struct mfs_stage *s, int target, int lock);

/* With plan.shared, of all processes one at a time makes links and special files. Is it this one?
 */
bool mfs_stage_leads(struct mfs_stage *s);

/* Makes the file, which is new or what a dead process has left, this process' own. 0; -EALREADY:
 * another one is at it, or just was; or another negative errno. */
int mfs_stage_claim(int dir, const char *name, int fd);
/* Is what has the name the open file? */
bool mfs_stage_is_there(int dir, const char *name, int fd);
/* Has this user made the open file? Others may have planted one, as its name is no secret. */
bool mfs_stage_is_own(const struct mfs_stage *s, int fd);

/* ---- remains.c ------------------------------------------------------------------------------- */

struct mfs_stage_remains *mfs_stage_remains_create(void);    /* NULL: ENOMEM */
void mfs_stage_remains_destroy(struct mfs_stage_remains *r); /* takes NULL */
/* With plan.shared: the directory, in which all is done, is to be looked through in the end. */
void mfs_stage_remains_note(const struct mfs_stage_dir *d);
/* In these and the uppermost one, when nothing has failed and no task runs: of processes that died.
 */
void mfs_stage_remove_remains(struct mfs_stage *s, const struct mfs_stage_dir *top);

/* How long nothing is to be seen of those that have begun what is deferred. */
struct mfs_stage_others {
    int64_t looked, since;
    uint64_t sum;
    bool told;
};
/* A line tells of one that has not gone on for long. While no task runs. */
void mfs_stage_watch_others(const struct mfs_stage *s, struct mfs_stage_others *o);

/* ---- attributes.c ---------------------------------------------------------------------------- */

/* Owner, mode, extended attributes and ACLs, times: in this order. `created` is the mode that the
 * copy was made with. What this user may not keep is left, as cp -a does. 0 or a negative errno. */
int mfs_stage_keep_fd(const struct mfs_stage_dir *d, int from, int to, const struct stat *st,
                      mode_t created);
/* Are there any that a copy has to have, but for a label that the system gives by itself? True also
 * where that can't be told. */
bool mfs_stage_has_xattrs(int fd);
/* The hints that files of a directory are made by (docs/reference/hints.md): before any is. */
void mfs_stage_keep_hints(const struct mfs_stage_dir *d);
int mfs_stage_keep_name(const struct mfs_stage_dir *d, const char *from, const char *to,
                        const struct stat *st);
int mfs_stage_keep_owner(const struct mfs_stage_dir *d, int to, const struct stat *st);

/* ---- tally.c: counts, failures, progress; any thread ----------------------------------------- */

enum mfs_stage_count {
    MFS_STAGE_FILES,
    MFS_STAGE_DIRECTORIES,
    MFS_STAGE_OTHERS,
    MFS_STAGE_BYTES,
    MFS_STAGE_SKIPPED,
    MFS_STAGE_SKIPPED_BYTES,
    MFS_STAGE_FOUND,    /* names in the sources, whatever became of them */
    MFS_STAGE_LEFT_OUT, /* unfinished copies in the sources; to a server, empty directories, too */
    MFS_STAGE_COUNTS
};

/* To the terminal, or to the watch, or not at all. NULL: ENOMEM. */
struct mfs_stage_tally *mfs_stage_tally_create(bool progress, const struct mfs_stage_watch *watch);
void mfs_stage_tally_destroy(struct mfs_stage_tally *t);
void mfs_stage_tally_add(struct mfs_stage_tally *t, enum mfs_stage_count what, uint64_t n);
/* What there is to do, as far as it is known. */
void mfs_stage_tally_expect(struct mfs_stage_tally *t, uint64_t files, uint64_t bytes);
void mfs_stage_tally_expected(struct mfs_stage_tally *t); /* all of it is known */
void mfs_stage_tally_result(struct mfs_stage_tally *t, struct mfs_stage_result *result);
/* What others have counted, in place of all that was. */
void mfs_stage_tally_set(struct mfs_stage_tally *t, const struct mfs_stage_counts *c);
uint64_t mfs_stage_tally_failed(struct mfs_stage_tally *t);
/* A line on stderr, above the progress. */
void mfs_stage_tally_say(struct mfs_stage_tally *t, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

/* One has failed: "PATH: why". */
void mfs_stage_fail(struct mfs_stage *s, const struct mfs_stage_dir *d, const char *name,
                    bool target, int code, const char *fmt, ...)
    __attribute__((format(printf, 6, 7)));

/* The path of the directory that the copies come into. 0 or a negative errno. */
int mfs_stage_target_directory(const struct mfs_stage_plan *plan, char *out, size_t n);

/* Is the run to end: it was stopped, or there is no room? */
bool mfs_stage_ends(const struct mfs_stage *s);

#endif

/* Names, inodes, locks and sessions: every metadata operation of the file system, each as few round
 * trips as docs/design/architecture.md states, without a metadata server.
 *
 * All functions return 0 or a negative errno as Linux would give it for the system call; they may
 * be called by any thread and block for round trips, bounded by the store's I/O timeout. -ESTALE
 * means that the inode (not the name) is gone. Permissions are the caller's matter (the kernel's,
 * with default_permissions). Times are taken by the caller's clock, in this library, at the call.
 *
 * A parent directory's times go out merged, at most MFS_META_PARENT_DELAY late on other mounts, and
 * are exact on this one: a program that reads a directory's attributes through this library sees
 * them. */
#ifndef MFS_META_META_H
#define MFS_META_META_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/clock.h"
#include "base/ranges.h"
#include "meta/attr.h"
#include "store/store.h"

#define MFS_NAME_LEN_MAX      255
#define MFS_SYMLINK_MAX       4095
#define MFS_XATTR_SIZE_MAX    65536
#define MFS_LINK_MAX          65000
#define MFS_META_PARENT_DELAY (500 * MFS_MSEC)

struct mfs_meta;

/* Called when the last name and the last opener of a file are gone and its inode with them: removes
 * the stripes 1 … of `ino` below data_end and returns 0; anything else leaves the file on the
 * partition's #reap list, where housekeeping tries again. Any thread, no lock held. */
typedef int mfs_meta_reap_fn(void *arg, uint64_t ino, uint64_t data_end);

/* Another client has changed the content of `ino`, which this one has open, to `version` (ino 0:
 * any content may have changed, unnoticed). Whatever is kept of it has to go; `done` (may be NULL)
 * is to be called, by any thread, when it is gone. Must not wait itself. */
typedef void mfs_meta_changed_fn(void *arg, uint64_t ino, uint64_t version,
                                 void (*done)(void *done_arg), void *done_arg);

/* Another client has given `ino` privileges (MFS_DROP_*) with that version. As for a change, and
 * before `done` is called what was written here by then is committed, so that it takes them away if
 * it has to. NULL: nothing is ever written behind. */
typedef mfs_meta_changed_fn mfs_meta_granted_fn;

/* Another client wants to open the file, or to append to it, and this one has a lease of its end:
 * what has been gathered is to be stored, and the lease given back, by another thread. */
typedef void mfs_meta_end_wanted_fn(void *arg, uint64_t ino);

/* A lease: this client may go on to show what it was told of a directory, its name in its parent or
 * its attributes, without asking again, for MFS_META_LEASE. A client that changes these revokes the
 * leases before its call returns, here: another client, or this one (`own`, `done` is NULL), has
 * moved or removed directory `ino` (`name`), or changed its attributes (0: any may have changed,
 * unnoticed). On return old attributes are shown no more. True: nor is the name; false: `done` will
 * be called when that is so, by any thread. Must not wait itself.
 *
 * Link counts and times that follow from names coming and going are not changes in this sense:
 * others see them within MFS_META_LEASE_TIMES and MFS_META_PARENT_DELAY together. */
typedef bool mfs_meta_revoked_fn(void *arg, uint64_t ino, bool name, bool own,
                                 void (*done)(void *done_arg), void *done_arg);

/* Another client has changed the file: its attributes that are shown as mfs_meta_may_show allowed
 * are to be shown no more; `done` is to be called, by any thread, when that is so. Must not wait
 * itself. Without `done` it was this client, and is so on return. */
typedef void mfs_meta_recalled_fn(void *arg, uint64_t ino, void (*done)(void *done_arg),
                                  void *done_arg);

/* Names of which `revoked` has said false are to be shown no more now, `done` or not: the system
 * waits with that for a call of this client, which waits for another client, and that one for this.
 * Must not wait itself. */
typedef void mfs_meta_distrust_fn(void *arg);

/* A replica has taken the place of a partition's process. What that had executed last, and had
 * answered to no client, may be lost; other clients may have seen it, and the same version of a
 * file may come again with another content. On return nothing is kept because of its version. Must
 * not wait itself. */
typedef void mfs_meta_replaced_fn(void *arg);

#define MFS_META_LEASE       (10 * MFS_SEC) /* less than the life of a silent session */
#define MFS_META_LEASE_TIMES (250 * MFS_MSEC)
#define MFS_META_LEASE_FILE  (30 * MFS_SEC) /* within this library only */

struct mfs_meta_opts {
    mfs_meta_reap_fn *reap;
    mfs_meta_changed_fn *changed;       /* NULL: nothing is ever kept */
    mfs_meta_end_wanted_fn *end_wanted; /* NULL: it never has a lease of a file's end */
    mfs_meta_granted_fn *granted;       /* NULL: as `changed` */
    mfs_meta_revoked_fn *revoked;       /* NULL: no leases are taken */
    mfs_meta_distrust_fn *distrust;     /* NULL: `revoked` never says false */
    mfs_meta_recalled_fn *recalled;     /* NULL: mfs_meta_may_show is not asked */
    mfs_meta_replaced_fn *replaced;     /* NULL: nothing is kept by version */
    void *arg;                          /* of all */
    int64_t session_ttl;                /* ns after which a silent client counts as dead; 0: 20 s */
    size_t contents;                    /* bytes of small files that are kept; 0: 128 MiB */
    uint32_t files, names;       /* that are kept of those under leases, of directories that are
                                  * filled here; 0: 65,536 and 2^18 */
    struct mfs_metrics *metrics; /* to register figures with; NULL: none */
    bool dir_names; /* names of directories are kept here for as long as they are leased, as the
                     * caller, unlike a kernel, does not keep them */
};

/* Opens a session (a random id, kept alive by a thread of its own) and starts housekeeping: merged
 * parent times, #reap lists, orphans of dead sessions, renames that died half-way. Destroy ends the
 * session, its opens and locks. The store must outlive it. */
int mfs_meta_create(struct mfs_meta **meta, struct mfs_store *store,
                    const struct mfs_meta_opts *opts);
void mfs_meta_destroy(struct mfs_meta *meta);

/* Have clients died since the last call of this that may have left what only a search of all
 * partitions finds (fsck/tidy.h)? Only one client at a time learns of it. Does not block. */
bool mfs_meta_search_wanted(struct mfs_meta *meta);
uint64_t mfs_meta_session(const struct mfs_meta *meta);

/* A replica may have taken a process' place, by the table that has just been set: forgets all that
 * is known under leases, and has it forgotten outside; returns when that is done or `most` ns are
 * over, at once if there was no such table, or the call before could not wait for it. One thread.
 */
void mfs_meta_failed_over(struct mfs_meta *meta, int64_t most);

/* Would another client's change of what is open here have reached this client? Else nothing that it
 * remembers of that counts. Any thread, does not block. */
bool mfs_meta_in_contact(struct mfs_meta *meta);

/* --- inodes ------------------------------------------------------------------------------- */

int mfs_meta_getattr(struct mfs_meta *meta, uint64_t ino, struct mfs_attr *attr); /* 1 */

/* The same; of a directory that is known by now perhaps under a lease, then without asking:
 * `leased` says whether these attributes may be shown for MFS_META_LEASE_TIMES. */
int mfs_meta_getattr_leased(struct mfs_meta *meta, uint64_t ino, struct mfs_attr *attr);

/* A directory's attributes as they passed through this library within the last max_age ns (by
 * lookup, getattr, …), or fetched now. What create needs to know of the parent (set-group-ID,
 * default ACL). -ENOTDIR when it is none. */
int mfs_meta_dir(struct mfs_meta *meta, uint64_t ino, int64_t max_age, struct mfs_attr *attr);

/* Which owner an inode has to have for a call to change it: the kernel, which looks at rights, may
 * go by what was before another client's chown. Else -EPERM, or -ECANCELED if it is only of another
 * group. NULL: to any. */
struct mfs_owned {
    bool user, group; /* what of the following matters */
    uint32_t uid, gid;
};

/* Sets what mask names from *attr and leaves the new attributes there. A new mode keeps an access
 * ACL in step, in the same atomic step; a new owner takes privileges away, and so do MFS_DROP_* in
 * the mask. When it gives any, other clients that have the file open know on return. */
int mfs_meta_setattr(struct mfs_meta *meta, uint64_t ino, uint32_t mask, struct mfs_attr *attr,
                     const struct mfs_owned *owned);

/* Relatime-like: sets atime to now if it is not newer than mtime or ctime or is a day old; does not
 * wait. `attr` is what the caller last knew and is brought up to date. */
void mfs_meta_touch_atime(struct mfs_meta *meta, uint64_t ino, struct mfs_attr *attr);

int mfs_meta_readlink(struct mfs_meta *meta, uint64_t ino, char *buf,
                      size_t cap); /* length; no NUL */

/* --- names -------------------------------------------------------------------------------- */

/* What this client knows of before it asks partitions, for its figures: what a name is of; that
 * there is no such name; attributes; bytes of small files; what was read ahead of larger ones. */
enum mfs_cache {
    MFS_CACHE_NAMES,
    MFS_CACHE_ABSENT,
    MFS_CACHE_ATTRIBUTES,
    MFS_CACHE_CONTENTS,
    MFS_CACHE_READ_AHEAD,
    MFS_CACHES
};
void mfs_meta_cached(struct mfs_meta *meta, enum mfs_cache cache, bool hit); /* counts one */

/* Also "." and "..". `leased`: a directory, whose name may be shown for MFS_META_LEASE. Likewise of
 * a directory that mfs_meta_mknod has just made, and of one that was leased and that
 * mfs_meta_rename has moved. */
int mfs_meta_lookup(struct mfs_meta *meta, uint64_t parent, const char *name,
                    struct mfs_attr *attr);

/* Is the lease that these came with not revoked, and would a failover be noticed? To be asked by a
 * caller that lets the kernel show them, after it has noted that, so that a revocation either finds
 * the note or is seen here. */
bool mfs_meta_is_leased(struct mfs_meta *meta, const struct mfs_attr *attr);

/* One of the names of a file that is under a lease, for people: name[256] in *parent. */
bool mfs_meta_a_name(struct mfs_meta *meta, uint64_t ino, uint64_t *parent, char *name);

struct mfs_xattr {
    const char *name;
    const void *value;
    size_t len;
};

struct mfs_new {
    uint32_t mode; /* type and final permissions: umask, ACL and set-group-ID are applied already */
    uint32_t uid, gid, rdev;
    int64_t ttl;    /* of a directory */
    uint32_t hints; /* MFS_HINT_*; of a regular file with MFS_HINT_TOGETHER … */
    uint32_t home; /* … the partition that gets all of it: wherever its name is, it costs two round
                    * trips more if that is elsewhere */
    const char *target;             /* of a symlink */
    const struct mfs_xattr *xattrs; /* e.g. inherited ACLs, stored with the inode */
    size_t nxattrs;
};

/* Which of the node's partitions is to be the home of a file of that name (NULL: of none): that of
 * the name, if it is one of them. False: the node has none, or had no memory lately. Does not
 * block. */
bool mfs_meta_home_at(struct mfs_meta *meta, uint32_t node, uint64_t parent, const char *name,
                      uint32_t *home);

/* Creates anything. -EEXIST when the name exists; -ENOENT when the parent is (being) removed. */
int mfs_meta_mknod(struct mfs_meta *meta, uint64_t parent, const char *name,
                   const struct mfs_new *new, struct mfs_attr *attr);

/* open(O_CREAT) of a regular file in one step: creates or, without `exclusive`, finds it; when it
 * is a regular file it is open for this session on return. *created tells which. */
int mfs_meta_create_open(struct mfs_meta *meta, uint64_t parent, const char *name,
                         const struct mfs_new *new, bool exclusive, struct mfs_attr *attr,
                         bool *created);

/* New files with all of their content, each in place of what is under its name, in one step: whole
 * for whoever looks. As many as go together in one round trip, and further ones for what others
 * have to be told of replaced files. Each one's rc: 0; -EEXIST (exclusive), -EISDIR, …; -EAGAIN:
 * not in one step, nothing was done (a rename under way, what is there has its inode elsewhere,
 * more content than a stripe of the deployment has, there is no memory just now). `new` has no
 * TOGETHER hint for another partition than the name's.
 */
#define MFS_META_PUT_MOST 256U
struct mfs_put {
    uint64_t parent;
    const char *name;
    const struct mfs_new *new;
    const void *buf;
    size_t len;                   /* MFS_META_CONTENT at most */
    const struct timespec *times; /* of access and change of the content; NULL: now */
    bool exclusive;
    int rc;
};
void mfs_meta_put(struct mfs_meta *meta, struct mfs_put *puts, size_t n);

/* O_TMPFILE: a regular file of no name, open for this session on return. mfs_meta_link may give it
 * one, if it is `linkable`; it is made where `name` is, if that is known already (else NULL). */
int mfs_meta_tmpfile(struct mfs_meta *meta, uint64_t parent, const char *name,
                     const struct mfs_new *new, bool linkable, struct mfs_attr *attr);

int mfs_meta_link(struct mfs_meta *meta, uint64_t ino, uint64_t parent, const char *name,
                  struct mfs_attr *attr);
int mfs_meta_unlink(struct mfs_meta *meta, uint64_t parent, const char *name);
/* Only if it is the inode seen->ino; and if that is where its name is, only if it has not changed
 * since seen->ctime. Else -ENOENT. */
int mfs_meta_unlink_seen(struct mfs_meta *meta, uint64_t parent, const char *name,
                         const struct mfs_attr *seen);
int mfs_meta_rmdir(struct mfs_meta *meta, uint64_t parent, const char *name);

/* flags as renameat2(2): RENAME_NOREPLACE, RENAME_EXCHANGE; others are -EINVAL. */
int mfs_meta_rename(struct mfs_meta *meta, uint64_t parent, const char *name, uint64_t new_parent,
                    const char *new_name, unsigned flags);

/* RENAME_WHITEOUT, with RENAME_NOREPLACE or without: `whiteout`, a device without extended
 * attributes, takes the source's place in the same moment. */
int mfs_meta_rename_leaving(struct mfs_meta *meta, uint64_t parent, const char *name,
                            uint64_t new_parent, const char *new_name, unsigned flags,
                            const struct mfs_new *whiteout);

/* --- open files --------------------------------------------------------------------------- */

/* The beginning of a small file's content, fetched along with its inode. */
struct mfs_head {
    void *buf;
    size_t cap;  /* asks for the content when the size is at most this; 0: never */
    ssize_t len; /* bytes that stripe 0 holds; -1: not fetched */
};

struct mfs_cut {
    uint64_t trimmed;
    uint32_t drop; /* MFS_DROP_* */
};

/* Counts one more open of this session, so that the inode outlives its last name. With `cut` the
 * content is cut to nothing in the same step, as by mfs_meta_truncate; *head may be NULL. -ESTALE
 * when the inode is gone. */
int mfs_meta_open(struct mfs_meta *meta, uint64_t ino, const struct mfs_cut *cut,
                  struct mfs_attr *attr, struct mfs_head *head);

/* Copies [off, off+len) of a small file's content at that version, if this client keeps it: what it
 * has just written, or what came along with a look-up. Zeros where the file has a hole or ends. */
#define MFS_META_CONTENT (64U << 10) /* bytes of the largest file that is kept so */
bool mfs_meta_content(struct mfs_meta *meta, uint64_t ino, uint64_t version, uint64_t off,
                      size_t len, void *buf);
/* What is looked up next will be read: a look-up that asks brings the content along. */
void mfs_meta_want_content(struct mfs_meta *meta);

/* One open less. With `wait` false the call does not wait for it, and an unlinked file that this
 * ends is freed by housekeeping, else it is freed before return. */
int mfs_meta_close(struct mfs_meta *meta, uint64_t ino, bool wait);

/* Returns when every other client that had the file open during a change of this one's (open with
 * `truncate`, commit, truncate, append) has dropped what the change made untrue; at once when there
 * is none. Bounded: a client that is dead is not waited for, nor one whose node is lost, as it
 * relies on nothing (mfs_store_lost); one that is alive but silent is for two lives of a session.
 */
void mfs_meta_settle(struct mfs_meta *meta, uint64_t ino);

struct mfs_part {
    uint32_t off; /* in stripe 0 */
    uint32_t len;
    const void *p;
};

struct mfs_commit {
    uint64_t end;                   /* the size becomes at least this (0: it stays) */
    const struct mfs_range *stored; /* what has been stored in the stripes since the last commit: */
    size_t nstored;                 /* ascending; it is content from now on, as the parts are */
    uint64_t data_end;              /* that becomes at least this (0: it stays); what comes below it
                                     * so, and is not stored, is void */
    struct timespec mtime;          /* mtime and ctime become this (zeros: they stay) */
    const uint64_t *cuts;           /* what attr.cuts was before the first of that was stored; NULL:
                                     * whatever it is */
    const struct mfs_part *parts;   /* written to stripe 0 in the same step; small: copied */
    size_t nparts;
    uint32_t drop; /* MFS_DROP_* */

    /* By fallocate: '+' counts the blocks of `allocated` as taken, '-' no more (0: neither), and
     * what of `zeroed` is below data_end is no content any more, whatever stripes hold. */
    char room;
    struct mfs_range allocated, zeroed;
};

/* Makes written data known: size, times, version + 1. *old_version (when not NULL) is the version
 * that this one followed. Data in other stripes must be stored before. -ENOSPC writes nothing, nor
 * does -ECANCELED: the file was cut since they were, and some of them may be gone. */
int mfs_meta_commit(struct mfs_meta *meta, uint64_t ino, const struct mfs_commit *c,
                    uint64_t *old_version, struct mfs_attr *attr);

/* Of a file with MFS_ATTR_VOIDS, the ranges that were empty when a commit put them below data_end,
 * and of which none has said since that something is stored there (decisions/0020): they read as
 * zeros, whatever stripes hold. Added to *voids. Ask before reading the stripes, not after. */
int mfs_meta_voids(struct mfs_meta *meta, uint64_t ino, struct mfs_ranges *voids);

/* Sets the size: cuts stripe 0, data_end shrinks to `size` if above, version + 1, mtime and ctime
 * now. The caller has trimmed stripes 1 … after it had fetched the attributes, whose version was
 * `trimmed`. -ECANCELED, with nothing changed: another client has
 * written since, be it below data_end, maybe to a stripe that was trimmed by then: it has to be
 * trimmed again. Not with MFS_TRIMMED_ENOUGH: then data_end stays, and what is below it is void.
 * Waits for another session's appender, as mfs_meta_append does. Works when memory is full. */
#define MFS_TRIMMED_ENOUGH 0U /* no version */
int mfs_meta_truncate(struct mfs_meta *meta, uint64_t ino, uint64_t size, uint64_t trimmed,
                      uint32_t drop, uint64_t *old_version, struct mfs_attr *attr);

/* O_APPEND. The bytes go behind the end of the file, whichever clients append; *off tells where.
 * When they fit into stripe 0 they are stored in one step and *number is 0. Otherwise the place is
 * this caller's alone: it writes them to the stripes now and says so by mfs_meta_append_end, which
 * must be called in any case and makes them known (with `stored` false nothing was); other
 * appenders wait that long, and so do other sessions that cut the file, unless this one dies. With
 * `data` NULL the place is only taken. -EBUSY when it was not free in time. */
int mfs_meta_append(struct mfs_meta *meta, uint64_t ino, const void *data, size_t len,
                    uint32_t drop, uint64_t *off, uint64_t *number, uint64_t *old_version,
                    struct mfs_attr *attr);
/* A lease of the file's end: the place is this caller's also when nothing is on its way, so that no
 * other session opens, cuts or appends to the file before it has been given back. Whoever gathers
 * appends under it asks mfs_meta_append_holds before each. */
struct mfs_end_lease {
    uint64_t number;       /* 0: none */
    int64_t since;         /* when it was asked for; mono */
    bool wanted;           /* to be had, or kept, when the bytes are stored */
    struct timespec mtime; /* of the bytes; zeros: now */
};
/* As mfs_meta_append and mfs_meta_append_end, under *lease if there is one. What it is then stands
 * in *lease; there is none when another session has the file open or under a lease, nor after an
 * error, when it has been given back. */
int mfs_meta_append_leased(struct mfs_meta *meta, uint64_t ino, const void *data, size_t len,
                           uint32_t drop, struct mfs_end_lease *lease, uint64_t *off,
                           uint64_t *number, uint64_t *old_version, struct mfs_attr *attr);
int mfs_meta_append_end_leased(struct mfs_meta *meta, uint64_t ino, uint64_t number, bool stored,
                               const struct mfs_range *place, uint32_t drop,
                               struct mfs_end_lease *lease, uint64_t *old_version,
                               struct mfs_attr *attr);
/* Gives it back. Blocks for a round trip. */
void mfs_meta_end_give_back(struct mfs_meta *meta, uint64_t ino, struct mfs_end_lease *lease);
/* Is a place that was asked for at mono time `since` or later still this caller's, and for a while?
 * Not when the session could not be prolonged, or is another by now: then the place may be another
 * session's, which has stored there. Ask right before the bytes are written. Does not block. */
bool mfs_meta_append_holds(const struct mfs_meta *meta, int64_t since);
/* -ECANCELED: the place was taken away, nothing was made known. */
int mfs_meta_append_end(struct mfs_meta *meta, uint64_t ino, uint64_t number, bool stored,
                        const struct mfs_range *place, uint32_t drop, uint64_t *old_version,
                        struct mfs_attr *attr);

/* --- files that go when they have been read (decisions/0045) ------------------------------- */

/* A reading of a file, of the content that it had when it was opened. NULL stands for one that does
 * not count. Any thread; none of these blocks. */
struct mfs_read;
/* To be asked before the file is opened or looked up: what a replica that takes over has may be
 * other content of the same version. */
uint64_t mfs_meta_read_mark(const struct mfs_meta *meta);
/* The file has just been opened, with these attributes, that were asked for after `mark`, by that
 * name of directory `parent`; NULL: the one that is known of it, if any, is taken away if it was
 * the last time. NULL if it is no file of which readings are counted (as all but those with
 * mfs_hint_reads), or an empty one, of which the content may be yet to come, or a replica is taking
 * over, or ENOMEM. */
struct mfs_read *mfs_meta_read_begin(struct mfs_meta *meta, uint64_t mark,
                                     const struct mfs_attr *attr, uint64_t parent,
                                     const char *name);
/* It is closed: its partition learns of it a moment later, if this client lives that long, and once
 * at most. When it has been read as often as its hint says it loses that name, within a second or
 * so, and others in directories with such a hint within a minute. Frees *read. */
void mfs_meta_read_end(struct mfs_meta *meta, struct mfs_read *read);
/* It does not count. Frees *read. */
void mfs_meta_read_forget(struct mfs_read *read);

/* --- directories -------------------------------------------------------------------------- */

/* All entries of a directory at one time (names that exist throughout are there exactly once), with
 * "." and ".." first. Fetched from the directory's partitions in parallel. About 40 bytes and the
 * name per entry. */
struct mfs_listing;
struct mfs_dirent {
    const char *name; /* NUL-terminated, lives as long as the listing */
    size_t len;
    uint64_t ino;
    uint32_t type; /* S_IFMT bits */
};
int mfs_meta_list(struct mfs_meta *meta, uint64_t ino, struct mfs_listing **listing);
/* About how many names the directory has, by the shard in which `name` would be: one round trip of
 * one command. -errno. */
int64_t mfs_meta_names_about(struct mfs_meta *meta, uint64_t dir, const char *name);
/* One more reference; each is given back by mfs_listing_free. Any thread. */
struct mfs_listing *mfs_listing_ref(struct mfs_listing *l);
size_t mfs_listing_count(const struct mfs_listing *l);
struct mfs_dirent mfs_listing_at(const struct mfs_listing *l, size_t i);
/* Where the name is; one thread at a time. */
bool mfs_listing_find(struct mfs_listing *l, const char *name, size_t *at);
void mfs_listing_free(struct mfs_listing *l); /* NULL is fine */

/* Looks up, in one round trip, those of the directory's entries [from, from + n) that are regular
 * files and not known under leases; n is MFS_META_LEARN at most. One round trip more for those
 * whose inode is elsewhere. `order`, or NULL: places in the listing, one for each entry. Partitions
 * that do not answer others are left out. 0, or the first error of one that was asked. */
#define MFS_META_LEARN 256U
int mfs_meta_learn(struct mfs_meta *meta, uint64_t dir, const struct mfs_listing *l,
                   const uint32_t *order, size_t from, size_t n);
/* The same of names in any directories, whatever they are: those that are small files with their
 * content, which mfs_meta_content then has. n is MFS_META_LEARN at most. */
struct mfs_name {
    uint64_t dir;
    const char *name; /* NULL: none */
};
int mfs_meta_learn_names(struct mfs_meta *meta, const struct mfs_name *names, size_t n);
/* Small files of these names as they are now, in any directories: calls `fn` for those that the
 * partitions have told, with rc 0, attributes and the first `n` bytes of the content (zeros up to
 * attr->size follow), or with -ENOENT; all the others are to be looked up. Neither is remembered,
 * so names that are known, or were asked for before, are left out. One round trip, as a rule; n is
 * MFS_META_GLANCES at most. The space for that is one thread's, and may be used again. `fn` is
 * called while other partitions are waited for, and must not ask any. */
#define MFS_META_GLANCES 1024U
struct mfs_glances;
typedef void mfs_glance_fn(void *arg, size_t i, int rc, const struct mfs_attr *attr,
                           const void *content, size_t n);
struct mfs_glances *mfs_glances_create(struct mfs_meta *meta); /* NULL: ENOMEM */
void mfs_glances_destroy(struct mfs_glances *g);               /* takes NULL */
void mfs_meta_glance(struct mfs_glances *g, const struct mfs_name *names, size_t n,
                     mfs_glance_fn *fn, void *arg);
/* Would mfs_meta_lookup say at once what the name is, or that it is not there? */
bool mfs_meta_knows(struct mfs_meta *meta, uint64_t dir, const char *name);

/* What is known under leases of an entry, for the kernel to use for MFS_META_SHOWN from when it
 * takes the answer: until then other clients that change the file wait. True: mfs_meta_shown has to
 * follow, when the kernel has taken the answer. */
#define MFS_META_SHOWN (50 * MFS_MSEC)
bool mfs_meta_show(struct mfs_meta *meta, uint64_t dir, const struct mfs_dirent *e,
                   struct mfs_attr *attr);
/* Before the first of a directory's names is shown: it counts as shown itself, likewise. */
bool mfs_meta_show_names(struct mfs_meta *meta, uint64_t dir);
/* May the kernel use names of the directory without asking? And waits until it does not, a little
 * more than a second at most. */
bool mfs_meta_shows_names(struct mfs_meta *meta, uint64_t dir);
void mfs_meta_wait_for_names(struct mfs_meta *meta, uint64_t dir);
void mfs_meta_shown(struct mfs_meta *meta, const uint64_t *inos, size_t n, int64_t life);

/* What is known under leases of a file, for the kernel to use for MFS_META_SHOWN, or until
 * `recalled` is called, which it may be from before this returns. */
bool mfs_meta_may_show(struct mfs_meta *meta, uint64_t ino, struct mfs_attr *attr);

/* Would a read now change the access time (relatime)? */
bool mfs_meta_atime_is_due(const struct mfs_attr *attr);

/* --- extended attributes and ACLs --------------------------------------------------------- */

/* Length of the value (of the list: names, each with its NUL); with cap 0 only the length; -ERANGE,
 * -ENODATA. system.posix_acl_* are stored as the kernel gives them. */
ssize_t mfs_meta_getxattr(struct mfs_meta *meta, uint64_t ino, const char *name, void *buf,
                          size_t cap);
ssize_t mfs_meta_listxattr(struct mfs_meta *meta, uint64_t ino, char *buf, size_t cap);

/* Sets one hint (meta/hints.h), as `mask` says: MFS_SET_TTL (attr->ttl) or one of those that are
 * bits of attr->hints; 0: none. Leaves the new attributes there. `flags` as setxattr(2),
 * XATTR_REPLACE to take it away. -EOPNOTSUPP: a file can't get it. */
int mfs_meta_set_hint(struct mfs_meta *meta, uint64_t ino, uint32_t mask, int flags,
                      struct mfs_attr *attr);

/* flags: XATTR_CREATE, XATTR_REPLACE. Setting system.posix_acl_access changes the mode with it (an
 * ACL that says no more than the mode is not kept); drop_sgid clears set-group-ID in that step. */
int mfs_meta_setxattr(struct mfs_meta *meta, uint64_t ino, const char *name, const void *value,
                      size_t len, int flags, bool drop_sgid, const struct mfs_owned *owned);
int mfs_meta_removexattr(struct mfs_meta *meta, uint64_t ino, const char *name,
                         const struct mfs_owned *owned);

/* --- locks -------------------------------------------------------------------------------- */

struct mfs_lock {
    int type;            /* F_RDLCK, F_WRLCK, F_UNLCK */
    uint64_t start, end; /* inclusive; end INT64_MAX: to the end of any file */
    uint64_t owner;      /* within this session */
    uint32_t pid;
};

struct mfs_lock_holder {
    uint64_t session, owner;
    uint32_t pid; /* as that session's kernel told it; 0: it did not */
    bool closing; /* this owner, and any other in the way, has just closed (mfs_meta_closing) */
};

/* fcntl locks. setlk: -EAGAIN when another owner is in the way (waiting is the caller's matter) and
 * *holder (may be NULL) tells which; locks of dead sessions are not in the way. On success *attr
 * are the inode's attributes after the lock was taken, which tell whether cached content is still
 * true. */
int mfs_meta_getlk(struct mfs_meta *meta, uint64_t ino, struct mfs_lock *lock,
                   struct mfs_lock_holder *holder);
int mfs_meta_setlk(struct mfs_meta *meta, uint64_t ino, const struct mfs_lock *lock,
                   struct mfs_attr *attr, struct mfs_lock_holder *holder);
/* flock(2): type as above. */
int mfs_meta_flock(struct mfs_meta *meta, uint64_t ino, uint64_t owner, uint32_t pid, int type,
                   struct mfs_attr *attr, struct mfs_lock_holder *holder);

/* A descriptor of an open file was closed, perhaps the last: locks of these owners, of either kind,
 * are marked as about to go. A mark is true for MFS_META_CLOSING, or until the owner's locks on the
 * inode change. One round trip. */
#define MFS_META_CLOSING (2 * MFS_SEC)
int mfs_meta_closing(struct mfs_meta *meta, uint64_t ino, const uint64_t *owners, size_t n);

/* An owner waits for an fcntl lock. What it waits for is noted where all clients look, so that
 * waits which are for each other are found (docs/design/metadata.md). A note that is not renewed is
 * gone after MFS_META_WAIT_TTL. One thread at a time uses a wait. */
#define MFS_META_WAIT_TTL (15 * MFS_SEC)
struct mfs_meta_wait {
    uint64_t ino;
    struct mfs_lock lock;
    struct mfs_lock_holder holder; /* in the way, as setlk said */
    struct mfs_lock_holder noted;  /* as the note says */
    uint64_t session, number;      /* which the note is of; number 0: there is none */
};

/* Notes it, or notes it anew. -EDEADLK: it is one of a ring of waits that will never end, and the
 * one that has to give up; the note is gone then. Any other error means that nothing was found. */
int mfs_meta_wait_note(struct mfs_meta *meta, struct mfs_meta_wait *wait);

/* The wait is over; to be called before the waiting call returns. At once when nothing is noted.
 * When the partition can't be reached the note stays for its time. */
void mfs_meta_wait_over(struct mfs_meta *meta, struct mfs_meta_wait *wait);

/* --- the whole ---------------------------------------------------------------------------- */

struct mfs_meta_space {
    uint64_t total, used; /* bytes of memory, over all partitions */
    uint64_t files;       /* inodes, estimated */
};
int mfs_meta_statfs(struct mfs_meta *meta, struct mfs_meta_space *space); /* at most 1 s old */

#endif

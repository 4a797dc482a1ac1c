/* What opens.c has for session.c, of what survives the change from one session to the next, and for
 * close.c. */
#ifndef MFS_META_SESSION_OPENS_H
#define MFS_META_SESSION_OPENS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

struct mfs_attr;
struct mfs_meta;

struct mfs_open_state {
    uint64_t ino;
    uint32_t count;
    uint64_t number; /* by which they are to be registered */
    bool locked;
};

/* Makes `sid` the session of all that follows. What the old one had open is not registered any
 * more, and due at once; its locks are forgotten, and what it had closed died with it. *list (heap,
 * NULL when out of memory) is what it had, but for what is being registered just now. Returns its
 * length. */
size_t mfs_opens_renew(struct mfs_meta *meta, uint64_t sid, struct mfs_open_state **list);

/* One open less, which the partition learns later if the open was registered; false: it was not
 * counted. */
bool mfs_opens_closed(struct mfs_meta *meta, uint64_t ino);

/* Its partition says that this session has the inode, which has no name any more, open. True: that
 * is stale: the session has not, nor had it limits.stale_open ago, when this was asked first; so
 * the answer to an open, or a close, was lost. */
bool mfs_opens_stale(struct mfs_meta *meta, uint64_t ino);

/* A registration of opens that are not registered. */
struct mfs_open_count {
    uint64_t ino;
    uint32_t count;  /* how many times */
    uint64_t number; /* done once however often it is tried; grows from one to the next */
    bool reopened;   /* the session before had it open; no notice of changes has come since then */
    bool registered; /* set by the thread that tries it: the partition has counted them */
};

/* Counts an open that is not registered; false: out of memory. */
bool mfs_opens_add_unregistered(struct mfs_meta *meta, uint64_t ino);

/* Is all that is open of the inode registered? Busy: some thread is trying. */
enum mfs_opens_registration { MFS_OPENS_REGISTERED, MFS_OPENS_BUSY, MFS_OPENS_UNREGISTERED };
enum mfs_opens_registration mfs_opens_registration(struct mfs_meta *meta, uint64_t ino);
/* Is there anything in the partition that is not registered, or being registered? */
bool mfs_opens_any_unregistered(struct mfs_meta *meta, uint32_t part);

/* The caller is to register, for session *sid, what it takes, and then to call
 * mfs_opens_end_registering. What failed stays unregistered and is taken again with the same
 * number. */

/* Of one inode, but not what was tried in vain at mono time `before` or later. False: nothing. */
bool mfs_opens_take_unregistered_of(struct mfs_meta *meta, uint64_t ino, int64_t before,
                                    struct mfs_open_count *one, uint64_t *sid);
/* Of up to `most` inodes of one partition (MFS_OPENS_ANY: whichever has the oldest), those that
 * have been unregistered, or were last tried, since before mono time `before`. Returns how many. */
#define MFS_OPENS_ANY UINT32_MAX
size_t mfs_opens_take_unregistered(struct mfs_meta *meta, uint32_t part, int64_t before,
                                   struct mfs_open_count *list, size_t most, uint64_t *sid);
bool mfs_opens_any_to_register(struct mfs_meta *meta); /* that no thread is registering */
void mfs_opens_end_registering(struct mfs_meta *meta, const struct mfs_open_count *list, size_t n);

/* The inode was read at that time; its partition learns it later. */
void mfs_opens_read(struct mfs_meta *meta, uint64_t ino, struct timespec atime);
void mfs_opens_merge_read(struct mfs_meta *meta, struct mfs_attr *attr);

struct mfs_later {
    uint64_t ino;
    uint32_t closed;       /* how many times */
    struct timespec atime; /* zeros: none */
};

/* The caller is to tell the partitions, of session *sid, of what it takes: of one inode, whether
 * there is anything; of up to `most` inodes, the oldest first, how many there are. */
bool mfs_opens_take_later_of(struct mfs_meta *meta, uint64_t ino, struct mfs_later *later,
                             uint64_t *sid);
size_t mfs_opens_take_later(struct mfs_meta *meta, struct mfs_later *list, size_t most,
                            uint64_t *sid);
bool mfs_opens_any_later(struct mfs_meta *meta); /* is there anything, taken now or not? */

#endif

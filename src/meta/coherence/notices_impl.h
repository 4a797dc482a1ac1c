/* Inside the notices: what notices.c (being told, and their life) and notices_tell.c (telling, and
 * waiting for the answers) share. */
#ifndef MFS_META_COHERENCE_NOTICES_IMPL_H
#define MFS_META_COHERENCE_NOTICES_IMPL_H

#include "meta/coherence/notices.h"

#define MFS_NOTICE_CONTENT    'N'
#define MFS_NOTICE_GRANTED    'P' /* as of content; and the file has got privileges */
#define MFS_NOTICE_NAME       'D' /* a directory's name */
#define MFS_NOTICE_ATTRIBUTES 'T' /* a directory's attributes */
#define MFS_NOTICE_FILE       'F' /* a file's name or attributes */
#define MFS_NOTICE_SHARD      'S' /* names were added; the partition is in `version` */
#define MFS_NOTICE_END        'E' /* the lease of a file's end is to be given back; no answer */
#define MFS_NOTICE_ANSWER     'A'
#define MFS_NOTICE_KEEP       'K' /* likewise, but its partition does not know that it is open */

#define MFS_NOTICE_CROSSED (30 * MFS_MSEC) /* two may be waiting for each other */
#define MFS_NOTICE_CHANNEL 9               /* bytes: CONTENT, session */
#define MFS_NOTICES_DEAD   32              /* sessions remembered */

/* A notice that has not been answered. */
struct pending {
    char kind;
    uint64_t number, ino, version, sid;
    int64_t since;
    struct pending *prev, *next;
};

struct mfs_notices {
    struct mfs_subscriber *subscriber;
    struct mfs_shown *shown;
    pthread_mutex_t lock; /* guards what follows; a leaf */
    pthread_cond_t answered;
    struct pending *list;
    struct incoming *names; /* of directories, that the kernel is asked to drop */
    uint64_t numbers;
    uint64_t dead[MFS_NOTICES_DEAD]; /* sessions, a ring */
    unsigned ndead;
    struct mfs_notices_where {
        uint64_t sid;
        uint32_t node;
    } away[MFS_NOTICES_DEAD]; /* sessions of nodes that were lost, likewise */
    unsigned naway;
    struct mfs_notices_unconfirmed {
        uint64_t ino;
        int64_t since;
    } unconfirmed[MFS_NOTICES_DEAD]; /* notices given up without the answer that all is registered
                                      */
    unsigned nunconfirmed;
    int64_t forgotten; /* of those that the ring has no room for, when the last was made */
};

/* An answer on its way: the other's changes are being dropped here. */
struct incoming {
    struct mfs_meta *meta;
    char kind;
    uint64_t ino, version, sid, number;
    bool answered; /* already (mfs_notices_answer_names) */
    bool keep;     /* the file, as MFS_NOTICE_KEEP says */
    int64_t since;
    struct incoming *prev, *next;
};

/* notices.c: the channel of a session's notices; sends one. */
void mfs_notice_channel(uint64_t sid, char out[MFS_NOTICE_CHANNEL]);
void mfs_notice_post(struct mfs_meta *meta, char kind, const struct incoming *m);
/* Answers ahead for names that the kernel has been asked to drop for too long. */
void mfs_notices_answer_names(struct mfs_meta *meta);

/* notices_tell.c: the answer to that number has come; or none that says that it was told is waited
 * for. */
void mfs_notices_answered(struct mfs_notices *n, uint64_t number);
void mfs_notices_unconfirmed(struct mfs_notices *n, uint64_t number);

#endif

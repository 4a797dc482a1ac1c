/* The configuration file of one redis process. Pure: text out of values. Why each setting is as it
 * is stands beside it in redis_conf.c and, where measured, in docs/decisions. */
#ifndef MFS_LM_REDIS_REDIS_CONF_H
#define MFS_LM_REDIS_REDIS_CONF_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"

struct mfs_redis_conf {
    const char *dir;           /* absolute; redis-PART.{sock,log} go there */
    const char *journal;       /* absolute; NULL: none is kept */
    bool replay;               /* of it: take up what it says */
    const char *dump_dir;      /* absolute; its working directory: redis-PART.rdb goes there */
    const char *module;        /* absolute: src/partition, as it is built */
    const char *address;       /* the only one it listens on */
    const char *user_password; /* of MFS_REDIS_USER; only its SHA-256 and a key get into the file */
    const char *admin_password; /* of MFS_REDIS_ADMIN; likewise */
    uint64_t maxmemory;         /* bytes, > 0 */
    uint32_t part;
    uint16_t port;
    bool protect; /* lower its chance to be chosen when the machine is out of memory */
    bool fenced;  /* MFS_REDIS_USER may do nothing yet */
};

/* Appends the file's text. 0, -EINVAL when a value could not be written as one word of the file
 * (control characters, no maxmemory, no password), or -ENOMEM. */
int mfs_redis_conf_render(const struct mfs_redis_conf *c, struct mfs_buf *out);

/* What MFS_REDIS_USER may do, as ACL rules separated by blanks that replace those it has: all that
 * clients need, or, fenced, nothing: each of its commands is refused before it is executed. */
const char *mfs_redis_user_rules(bool fenced);

#endif

/* Clients of one deployment for tests of src/meta: partitions by redis_fixture, each client with a
 * store and a session of its own. */
#ifndef MFS_TESTS_META_FIXTURE_H
#define MFS_TESTS_META_FIXTURE_H

#include "meta/meta.h"
#include "redis_fixture.h"
#include "store/store.h"

struct meta_client {
    struct mfs_store *store;
    struct mfs_meta *meta;
    uint64_t reaped; /* inodes whose stripes it was asked to remove */
};

/* What most groups of tests share, by cmocka's setup and teardown of a group. */
#define META_REDIS_PARTS 4
extern struct redis_fixture *meta_redis;
int meta_redis_start(void **state);
int meta_redis_stop(void **state);

/* 0 or a negative errno. session_ttl as in struct mfs_meta_opts. */
int meta_client_start(struct meta_client *c, struct redis_fixture *f, int64_t session_ttl);
/* The same with leases; what they let a kernel keep, nobody does. */
int meta_client_start_leased(struct meta_client *c, struct redis_fixture *f, int64_t session_ttl);
/* One with leases, whose table says that memory may come: it waits for that for so many ns. */
int meta_client_start_growing(struct meta_client *c, struct redis_fixture *f, int64_t full_wait);
/* Two of them, in partitions of meta_redis that are empty. */
int meta_pair_start(struct meta_client *a, struct meta_client *b, int64_t session_ttl);
void meta_pair_stop(struct meta_client *a, struct meta_client *b);
uint64_t meta_client_round_trips(const struct meta_client *c);
/* Those that the calling thread has waited for, of all clients: not what a client's own threads ask
 * for meanwhile, which on a busy machine comes between. */
uint32_t meta_own_round_trips(void);
void meta_client_stop(struct meta_client *c);
/* As if the client had been killed: its session ends without giving anything back. */
void meta_client_kill(struct meta_client *c);

/* Whether its session counts as alive. */
void meta_client_alive(struct meta_client *c, bool alive);

/* A regular file, a directory, with mode 0644 or 0755, of uid 1 and gid 2. */
int meta_client_file(struct meta_client *c, uint64_t dir, const char *name, uint64_t *ino);
int meta_client_mkdir(struct meta_client *c, uint64_t dir, const char *name, uint64_t *ino);

/* renameat2; what RENAME_WHITEOUT leaves is of this uid. */
#define META_WHITEOUT_UID 8
int meta_client_rename(struct meta_client *c, uint64_t dir, const char *name, uint64_t to_dir,
                       const char *to_name, unsigned flags);

/* The ino of a name, or a negative errno. */
int64_t meta_client_ino(struct meta_client *c, uint64_t dir, const char *name);

/* A name like `prefix` + number whose entry in `dir` is at `part`. */
void meta_name_at(struct meta_client *c, uint64_t dir, uint32_t part, const char *prefix, char *out,
                  size_t n);

/* The number of partitions that have this key. */
int64_t meta_client_exists(struct meta_client *c, const char *key);

/* Numbers of keys of a kind ("I*", "T*") over all partitions. */
int64_t meta_client_keys(struct meta_client *c, const char *pattern);

#endif

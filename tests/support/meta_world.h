/* A small tree and operations on it, for tests that run every operation against every other, or
 * kill a client in the middle of each: what happened is compared as text. */
#ifndef MFS_TESTS_META_WORLD_H
#define MFS_TESTS_META_WORLD_H

#include "base/buf.h"
#include "meta_fixture.h"

/* In a directory of its own: d1/{f,g,s/}, d2/{h,t/}, f linked as d2/l; s was used by all partitions
 * and is empty; the inodes of h and t have their homes elsewhere than their entries. Names are such
 * that entries of one directory are at different partitions as well as at one. */
int meta_world_make(struct meta_client *c);
/* Takes an existing, empty directory for the world. */
void meta_world_root(struct meta_client *c, uint64_t dir);
/* Removes what is in it; 0, or a negative errno when that failed or left more than so many inodes.
 */
int meta_world_remove(struct meta_client *c, int64_t nameless);

/* What an operation works on, found before it begins. */
struct meta_where {
    int rc; /* of finding it */
    uint64_t dir, ino, to_dir;
    char name[32], to_name[32];
};

struct meta_op {
    const char *name;
    int (*run)(struct meta_client *c, const struct meta_op *op, const struct meta_where *w);
    const char *from, *to; /* paths; `to` may be NULL */
    unsigned arg;          /* mode or flags */
};
extern const struct meta_op meta_ops[]; /* those that change something */
extern const size_t meta_nops;
extern const struct meta_op meta_looks[]; /* those that look at several names */
extern const size_t meta_nlooks;
extern const struct meta_op meta_glances[]; /* those that look at one */
extern const size_t meta_nglances;

void meta_op_find(struct meta_client *c, const struct meta_op *op, struct meta_where *w);
/* 0 or -errno; of those that look: what they saw. */
int meta_op_run(struct meta_client *c, const struct meta_op *op, const struct meta_where *w);

/* The tree as text: path, type, identity, one line each, sorted; with link counts of files, or of
 * directories, too. Complains on stderr about listings that do not agree with look-ups. */
enum meta_links { META_NO_LINKS, META_FILE_LINKS, META_ALL_LINKS };
int meta_world_dump(struct meta_client *c, enum meta_links links, struct mfs_buf *out);

/* Checks what must hold always: link counts of files are their names', ".." is where a directory is
 * found, no inode without a name (nameless: how many are allowed), each file of the beginning has a
 * name as long as nobody removed it. Number of violations, told on stderr. */
int meta_world_check(struct meta_client *c, int64_t nameless);

#endif

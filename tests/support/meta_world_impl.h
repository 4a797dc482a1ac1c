/* Inside the small tree: what its parts share. */
#ifndef MFS_TESTS_META_WORLD_IMPL_H
#define MFS_TESTS_META_WORLD_IMPL_H

#include "meta_world.h"

extern uint64_t meta_world_top; /* the directory that it is in */

int meta_world_add(struct meta_client *c, uint64_t dir, const char *name, uint32_t mode,
                   uint32_t id, uint64_t *ino);

/* Finds a way down; a path is at most three names. */
int meta_world_walk(struct meta_client *c, const char *path, uint64_t *dir, char *last, size_t n);

#endif

/* Every kind of damage to the tree of fsck_world.h, and what is to be said and done about it. */
#ifndef MFS_TESTS_FSCK_DAMAGE_H
#define MFS_TESTS_FSCK_DAMAGE_H

#include <stddef.h>

struct fsck_damage {
    const char *name;
    void (*plant)(void);
    const char *found;    /* kinds, sorted */
    size_t left;          /* that can't be mended */
    void (*mended)(void); /* checks what is there then; NULL: nothing in particular */
};

extern const struct fsck_damage fsck_damages[];
extern const size_t fsck_ndamages;

const struct fsck_damage *fsck_damage_named(const char *name); /* fails the test: there is none */

#endif

/* What the programs in tests/lib share: programs that use libmemefs beside two mounts (argv[1],
 * argv[2]) of the deployment that MEMEFS_TEST_NAME and MEMEFS_TEST_STATE name. Checks as those of
 * fs_check.h, for calls that return a negative errno. */
#ifndef MFS_TESTS_LIB_CHECK_H
#define MFS_TESTS_LIB_CHECK_H

#include <memefs/memefs.h>

#include "fs_check.h"

/* The call must not fail. */
#define GOOD(call)                                                                                 \
    do {                                                                                           \
        if ((call) < 0)                                                                            \
            fs_fail(__FILE__, __LINE__, "failed: %s: %s", #call, memefs_error());                  \
    } while (0)

/* Options for the deployment of the test. */
static inline struct memefs_options lib_options(void)
{
    struct memefs_options o = MEMEFS_OPTIONS_INIT;

    o.deployment = getenv("MEMEFS_TEST_NAME");
    o.state_dir = getenv("MEMEFS_TEST_STATE");
    return o;
}

static inline struct memefs *lib_connect(void)
{
    struct memefs_options o = lib_options();
    struct memefs *fs;

    GOOD(memefs_connect(&o, &fs));
    return fs;
}

/* Likewise on behalf of that user, who has no further groups. */
static inline struct memefs *lib_connect_as(uint32_t uid, uint32_t gid)
{
    const struct memefs_ids ids = {.uid = uid, .gid = gid};
    struct memefs_options o = lib_options();
    struct memefs *fs;

    o.ids = &ids;
    o.umask = 022;
    GOOD(memefs_connect(&o, &fs));
    return fs;
}

/* libcrypto's random generator is in the secure heap, where LeakSanitizer does not look: what only
 * that points to it takes for leaked, as the library has libcrypto not clean up at exit(3). */
const char *__lsan_default_suppressions(void); /* NOLINT(bugprone-reserved-identifier) */
__attribute__((weak)) const char *
__lsan_default_suppressions(void) /* NOLINT(bugprone-reserved-identifier) */
{
    return "leak:libcrypto\n";
}

#endif

/* Mount options, which any user may write: what is accepted is within bounds, and what is handed to
 * the kernel is made of words that are meant for it. ctest: timeout=60 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "fuse/mount/options.h"
#include "input.h"

/* Parsed once more, it is handed on as it is. */
static void check_kernel(const struct mfs_mount_options *o)
{
    struct mfs_mount_options again;
    struct mfs_err err = {0};
    char *text = fuzz_text(
        (struct fuzz_input){(const uint8_t *)mfs_buf_data(&o->kernel), mfs_buf_len(&o->kernel)});

    FUZZ_CHECK(!*text || *text == ',');
    FUZZ_CHECK(!mfs_mount_options_parse(&again, text, &err));
    FUZZ_CHECK(fuzz_same(&o->kernel, &again.kernel));
    FUZZ_CHECK(!again.relaxed && !again.no_atime && !again.no_diratime && again.workers == 32);
    mfs_mount_options_fini(&again);
    free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
    char *list = fuzz_text((struct fuzz_input){p, n});
    struct mfs_mount_options o;
    struct mfs_err err = {0};
    int rc;

    fuzz_heap_begin();
    rc = mfs_mount_options_parse(&o, list, &err);
    FUZZ_CHECK(fuzz_heap_end() <= 4096 + 8 * n);
    FUZZ_CHECK(rc == 0 || (rc == -EINVAL && err.code == rc && err.msg[0]));
    if (rc) {
        mfs_mount_options_fini(&o);
        free(list);
        return 0;
    }
    FUZZ_CHECK(o.workers >= 2 && o.workers <= 1024 && o.threads >= 1 && o.threads <= 64);
    FUZZ_CHECK(o.memory >= 24U << 20 && o.memory <= 64ULL << 30);
    FUZZ_CHECK(!o.write_window || (o.write_window >= 4U << 20 && o.write_window <= 64ULL << 30));
    FUZZ_CHECK(!o.read_window || (o.read_window >= 4U << 20 && o.read_window <= 64ULL << 30));
    FUZZ_CHECK(o.full_wait <= 86400 && o.log_level <= MFS_LOG_DEBUG);
    check_kernel(&o);
    mfs_mount_options_fini(&o);
    free(list);
    return 0;
}

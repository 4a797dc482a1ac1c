#include "store/admin/module.h"

#include <errno.h>
#include <unistd.h>

#include "host/proc.h"

#define MODULE "memefs-partition.so"

int mfs_module_path(char *out, size_t n)
{
    /* Installed; beside the program; of a test, which has a directory of its own. */
    static const char *const places[] = {MEMEFS_MODULE_DIR "/" MODULE, MODULE, "../bin/" MODULE};

    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        int rc = mfs_proc_sibling(places[i], out, n);

        if (!rc && access(out, X_OK) == 0)
            return 0;
    }
    return -ENOENT;
}

#include "cm/state/traits.h"

#include <stddef.h>
#include <string.h>

const struct mfs_provider_traits mfs_traits_local = {"local", true, true};
const struct mfs_provider_traits mfs_traits_exec = {"exec", false, false};

const struct mfs_provider_traits *mfs_provider_traits(const char *name)
{
    static const struct mfs_provider_traits *const all[] = {&mfs_traits_local, &mfs_traits_exec};
    static const struct mfs_provider_traits unknown = {"", false, false};

    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (!strcmp(all[i]->name, name))
            return all[i];
    return &unknown;
}

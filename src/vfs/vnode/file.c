#include "vfs/vnode/file.h"

#include <stdlib.h>

void mfs_file_free(struct mfs_file *f)
{
    mfs_readahead_destroy(f->ra);
    mfs_meta_read_forget(f->read);
    free(f->head);
    free(f);
}

bool mfs_vfs_has_created(const struct mfs_file *f)
{
    return f->created;
}

uint64_t mfs_file_ino(const struct mfs_file *f)
{
    return f->node->ino;
}

void mfs_vfs_bypasses(struct mfs_file *f)
{
    f->bypasses = true;
}

void mfs_file_answer_taken(struct mfs_file *f)
{
    if (atomic_load_explicit(&f->unadopted, memory_order_relaxed) &&
        atomic_exchange(&f->unadopted, false))
        mfs_pages_adopt(f->node->vfs->pages, f->node->ino, &f->ticket);
}

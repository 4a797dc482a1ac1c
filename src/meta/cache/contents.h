/* Content of small files that this client has just written, or that came along with a look-up, and
 * the texts of symbolic links.
 *
 * It is kept by inode and version, which say what the bytes are; whether that version is the file's
 * present one only a lease tells. Bounded; the oldest goes first. Any thread. */
#ifndef MFS_META_CACHE_CONTENTS_H
#define MFS_META_CACHE_CONTENTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct mfs_contents;

struct mfs_contents *mfs_contents_create(size_t most); /* bytes altogether; 0: 128 MiB */
void mfs_contents_destroy(struct mfs_contents *c);     /* takes NULL */

void mfs_contents_clear(struct mfs_contents *c);

void mfs_contents_put(struct mfs_contents *c, uint64_t ino, uint64_t version, const void *p,
                      size_t n);

/* Copies [off, off+len), zeros where nothing is stored. False: it is not kept. */
bool mfs_contents_get(struct mfs_contents *c, uint64_t ino, uint64_t version, uint64_t off,
                      size_t len, void *buf);

/* All that is stored of it, cap bytes at most; -1: it is not kept. */
ssize_t mfs_contents_whole(struct mfs_contents *c, uint64_t ino, uint64_t version, void *buf,
                           size_t cap);

/* How much content a look-up should bring: 0 unless files were lately read after they had been
 * looked up. */
size_t mfs_contents_wanted(struct mfs_contents *c);
/* Some will be read after the next look-up. */
void mfs_contents_want(struct mfs_contents *c);
/* A look-up has brought some. */
void mfs_contents_brought(struct mfs_contents *c);

#endif

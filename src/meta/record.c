/* Inode records and entries to and from bytes. */
#include "meta/record.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "base/bytes.h"

#define NSEC_MAX 999999999U

void mfs_time_encode(struct timespec ts, char out[MFS_TIME_LEN])
{
    mfs_put_le64(out, (uint64_t)ts.tv_sec);
    mfs_put_le32(out + 8, (uint32_t)ts.tv_nsec);
}

struct timespec mfs_time_decode(const char *p)
{
    uint32_t nsec = mfs_get_le32(p + 8);

    return (struct timespec){
        .tv_sec = (int64_t)mfs_get_le64(p),
        .tv_nsec = nsec > NSEC_MAX ? NSEC_MAX : nsec,
    };
}

int mfs_meta_record_decode(const void *p, size_t n, uint64_t ino, struct mfs_attr *attr,
                           const char **tail, size_t *tail_len)
{
    const char *r = p;

    if (n < MFS_RECORD_FIXED || r[0] != MFS_RECORD_FORMAT)
        return -EIO;
    *attr = (struct mfs_attr){
        .ino = ino,
        .flags = (unsigned char)r[1],
        .cuts = mfs_get_le16(r + 2),
        .mode = mfs_get_le32(r + 4),
        .uid = mfs_get_le32(r + 8),
        .gid = mfs_get_le32(r + 12),
        .nlink = mfs_get_le32(r + 16),
        .rdev = mfs_get_le32(r + 20),
        .size = mfs_get_le64(r + 24),
        .data_end = mfs_get_le64(r + 32),
        .alloc = (int64_t)mfs_get_le64(r + 40),
        .version = mfs_get_le64(r + 48),
        .atime = mfs_time_decode(r + 56),
        .mtime = mfs_time_decode(r + 68),
        .ctime = mfs_time_decode(r + 80),
    };
    if ((int64_t)attr->size < 0 || (int64_t)attr->data_end < 0)
        return -EIO;
    if (S_ISDIR(attr->mode)) {
        if (n < MFS_RECORD_DIR)
            return -EIO;
        attr->parent = mfs_get_be64(r + MFS_RECORD_FIXED);
    }
    if (S_ISLNK(attr->mode))
        attr->size = n - MFS_RECORD_FIXED;
    *tail = r + MFS_RECORD_FIXED;
    *tail_len = n - MFS_RECORD_FIXED;
    return 0;
}

void mfs_meta_record_encode(const struct mfs_attr *attr, char out[MFS_RECORD_FIXED])
{
    memset(out, 0, MFS_RECORD_FIXED);
    out[0] = MFS_RECORD_FORMAT;
    out[1] = (char)attr->flags;
    mfs_put_le16(out + 2, (uint16_t)attr->cuts);
    mfs_put_le32(out + 4, attr->mode);
    mfs_put_le32(out + 8, attr->uid);
    mfs_put_le32(out + 12, attr->gid);
    mfs_put_le32(out + 16, attr->nlink);
    mfs_put_le32(out + 20, attr->rdev);
    mfs_put_le64(out + 24, attr->size);
    mfs_put_le64(out + 32, attr->data_end);
    mfs_put_le64(out + 40, (uint64_t)attr->alloc);
    mfs_put_le64(out + 48, attr->version);
    mfs_time_encode(attr->atime, out + 56);
    mfs_time_encode(attr->mtime, out + 68);
    mfs_time_encode(attr->ctime, out + 80);
}

int mfs_entry_decode(const void *p, size_t n, struct mfs_entry *e)
{
    const char *b = p;

    memset(e, 0, sizeof *e);
    if (n != MFS_ENTRY_LEN && n != MFS_INTENT_LEN)
        return -EIO;
    e->ino = mfs_get_be64(b);
    e->type = (uint32_t)(unsigned char)b[8] << 12 & S_IFMT;
    if (n == MFS_INTENT_LEN) {
        e->intent = true;
        memcpy(e->txn, b + MFS_ENTRY_LEN, MFS_TXN_LEN);
        e->decider = mfs_get_be16(b + MFS_ENTRY_LEN + MFS_TXN_LEN);
    }
    return 0;
}

void mfs_entry_encode(uint64_t ino, uint32_t mode, char out[MFS_ENTRY_LEN])
{
    mfs_put_be64(out, ino);
    out[8] = (char)(mode >> 12);
}

bool mfs_bits_test(const unsigned char *bits, size_t n, uint32_t part)
{
    return part / 8 < n && (bits[part / 8] >> (part % 8) & 1);
}

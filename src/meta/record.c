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

    if (n < MFS_RECORD_FIXED || r[MFS_REC_FORMAT] != MFS_RECORD_FORMAT)
        return -EIO;
    *attr = (struct mfs_attr){
        .ino = ino,
        .flags = (unsigned char)r[MFS_REC_FLAGS],
        .cuts = mfs_get_le16(r + MFS_REC_CUTS),
        .mode = mfs_get_le32(r + MFS_REC_MODE),
        .uid = mfs_get_le32(r + MFS_REC_UID),
        .gid = mfs_get_le32(r + MFS_REC_GID),
        .nlink = mfs_get_le32(r + MFS_REC_NLINK),
        .rdev = mfs_get_le32(r + MFS_REC_RDEV),
        .size = mfs_get_le64(r + MFS_REC_SIZE),
        .data_end = mfs_get_le64(r + MFS_REC_END),
        .alloc = (int64_t)mfs_get_le64(r + MFS_REC_STORED),
        .version = mfs_get_le64(r + MFS_REC_VERSION),
        .atime = mfs_time_decode(r + MFS_REC_ATIME),
        .mtime = mfs_time_decode(r + MFS_REC_MTIME),
        .ctime = mfs_time_decode(r + MFS_REC_CTIME),
    };
    if ((int64_t)attr->size < 0 || (int64_t)attr->data_end < 0)
        return -EIO;
    if (S_ISDIR(attr->mode)) {
        if (n < MFS_RECORD_DIR)
            return -EIO;
        attr->parent = mfs_get_be64(r + MFS_REC_PARENT);
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
    out[MFS_REC_FORMAT] = MFS_RECORD_FORMAT;
    out[MFS_REC_FLAGS] = (char)attr->flags;
    mfs_put_le16(out + MFS_REC_CUTS, (uint16_t)attr->cuts);
    mfs_put_le32(out + MFS_REC_MODE, attr->mode);
    mfs_put_le32(out + MFS_REC_UID, attr->uid);
    mfs_put_le32(out + MFS_REC_GID, attr->gid);
    mfs_put_le32(out + MFS_REC_NLINK, attr->nlink);
    mfs_put_le32(out + MFS_REC_RDEV, attr->rdev);
    mfs_put_le64(out + MFS_REC_SIZE, attr->size);
    mfs_put_le64(out + MFS_REC_END, attr->data_end);
    mfs_put_le64(out + MFS_REC_STORED, (uint64_t)attr->alloc);
    mfs_put_le64(out + MFS_REC_VERSION, attr->version);
    mfs_time_encode(attr->atime, out + MFS_REC_ATIME);
    mfs_time_encode(attr->mtime, out + MFS_REC_MTIME);
    mfs_time_encode(attr->ctime, out + MFS_REC_CTIME);
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

/* Leases of others, called back before a change returns. Any thread. */
#ifndef MFS_META_COHERENCE_REVOKE_H
#define MFS_META_COHERENCE_REVOKE_H

#include "meta/call.h"
#include "meta/internal.h"

/* A call for the holders of leases, at a partition that knows of them; its key is to stay. */
void mfs_leases_ask(struct mfs_call *c, uint64_t ino, char key[MFS_KEY_INO_LEN]);

/* What this client has changed of a directory. */
struct mfs_lease_change {
    uint64_t ino;
    uint32_t part; /* that knows of the leases: where the entry was, or its home */
    bool name;     /* it has lost the name that it had, else its attributes have changed */
};
#define MFS_LEASE_CHANGES 4
/* On return no client shows it as it was. Calls that are in *calls already go along; the caller
 * frees those. NULL: none. */
void mfs_leases_revoke(struct mfs_meta *meta, const struct mfs_lease_change *changes, size_t n,
                       struct mfs_calls *calls);
/* This client has removed a directory; `holders` of leases (8 bytes each), as of then. Does not
 * wait for them: mfs_meta_settle does. */
void mfs_leases_removed(struct mfs_meta *meta, uint64_t ino, struct mfs_bytes holders);
/* This client has changed a directory's attributes. On return no client shows them as they were. */
void mfs_leases_changed(struct mfs_meta *meta, uint64_t ino);

/* Asks which other sessions have the file open or a lease of it; the caller frees *c. */
int mfs_leases_ask_openers(struct mfs_meta *meta, uint64_t ino, struct mfs_call *c);
/* This client has given a file privileges, with that version. On return all clients that have it
 * open know, and what they had written before is committed. -errno: they can't be asked for. */
int mfs_leases_granted(struct mfs_meta *meta, uint64_t ino, uint64_t version);
/* The same when it is known who they are (8 bytes each). */
void mfs_leases_granted_to(struct mfs_meta *meta, uint64_t ino, uint64_t version,
                           struct mfs_bytes openers);
/* This client has changed a file's attributes, or taken a name of it; n lists of holders of a lease
 * (8 bytes each): of the name where that was, of the attributes at home. On return no client shows
 * it as it was; false: some have not been waited for (mfs_meta_settle). */
bool mfs_leases_file_changed(struct mfs_meta *meta, uint64_t ino, const struct mfs_bytes *holders,
                             size_t n);
/* The same of attributes that this client goes on to know: *attr is what they are now, by the
 * answer to what was asked for at mono time `asked`. */
void mfs_leases_file_set(struct mfs_meta *meta, const struct mfs_attr *attr, int64_t asked,
                         const struct mfs_bytes *holders, size_t n);
/* As mfs_leases_file_changed when the holders have to be asked for; 0, or -errno when they can't
 * be. *all (or NULL): all have been told, and waited for. */
int mfs_leases_file_changed_at_home(struct mfs_meta *meta, uint64_t ino, bool *all);
/* The same, also of those that have a lease of its name at `part`. */
int mfs_leases_file_changed_at(struct mfs_meta *meta, uint64_t ino, uint32_t part);

/* This client has added a name; `keeper` of the shard (8 bytes, or none). On return no client says
 * that it is not there. */
void mfs_leases_name_added(struct mfs_meta *meta, uint64_t dir, uint32_t part,
                           struct mfs_bytes keeper);

#endif

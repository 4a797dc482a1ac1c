/* Asking the Local Managers of a deployment whether a cm of a new term may begin. */
#ifndef MFS_CM_ASK_VOTE_H
#define MFS_CM_ASK_VOTE_H

#include "base/err.h"
#include "cm/state/state.h"
#include "net/auth.h"

struct mfs_ballot {
    uint32_t asked, granted, refused; /* nodes that have ever joined; the others of these have not
                                         answered */
    struct mfs_voters {
        uint32_t all, granted;
    } now, before;               /* the same of voters, and of those before their last change */
    bool *granted_by;            /* by index in the state that was given */
    struct mfs_err refusal;      /* the gravest: that a cm answers, before all others */
    struct mfs_err silent;       /* of one that has not answered */
    uint64_t term;               /* the highest that any of them knows of */
    char cm[MFS_ADDRESS_MAX];    /* that such a one follows */
    struct mfs_msg_state newest; /* of the copies of those that have answered; text NULL: none,
                                    or none newer than the state that was given */
};

/* Asks those of all nodes of the state at once; term 0: for what they have alone. Blocks until all
 * have answered, or for the time. 0 or a negative errno with the reason; then, too,
 * mfs_ballot_clear. */
int mfs_vote_ask(const struct mfs_cm_state *s, const struct mfs_secret *secret,
                 const struct mfs_msg_vote *vote, int64_t timeout, struct mfs_ballot *out,
                 struct mfs_err *err);
/* More than half of the voters, and of those before them, have granted it. */
bool mfs_ballot_won(const struct mfs_ballot *b);
void mfs_ballot_clear(struct mfs_ballot *b);

#endif

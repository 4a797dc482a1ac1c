#include "cm/cli/verbs.h"

/* `cm doctor` says itself what is wrong with the state directory, `cm simulate` and `cm list` have
 * none. */
static int trust(struct mfs_verb_call *call, struct mfs_err *err)
{
    if (call->verb == &mfs_cm_doctor || call->verb == &mfs_cm_simulate ||
        call->verb == &mfs_cm_list)
        return 0;
    return mfs_paths_trust(&call->paths, err);
}

const struct mfs_program mfs_cm_program = {
    .name = "cm",
    .summary = "Starts, watches and stops a MemEFS deployment.",
    .verbs = (const struct mfs_verb *const[]){&mfs_cm_start,    &mfs_cm_status,
                                              &mfs_cm_describe, &mfs_cm_top,
                                              &mfs_cm_list,     &mfs_cm_clients,
                                              &mfs_cm_scale,    &mfs_cm_rebalance,
                                              &mfs_cm_drain,    &mfs_cm_replace,
                                              &mfs_cm_forget,   &mfs_cm_policy,
                                              &mfs_cm_events,   &mfs_cm_checkpoint,
                                              &mfs_cm_doctor,   &mfs_cm_report,
                                              &mfs_cm_mark,     &mfs_cm_leave,
                                              &mfs_cm_stop,     &mfs_cm_simulate,
                                              &mfs_cm_daemon,   NULL},
    .prepare = trust};

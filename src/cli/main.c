/* memefs: the file system client and the user's tools. */
#include "cli/verbs.h"

static const struct mfs_program program = {
    .name = "memefs",
    .summary = "Mounts a MemEFS deployment and looks into it.",
    .verbs = (const struct mfs_verb *const[]){
        &mfs_verb_mount, &mfs_verb_umount, &mfs_verb_fsck, &mfs_verb_lost, &mfs_verb_layout,
        &mfs_verb_stats, &mfs_verb_trace, &mfs_verb_profile, &mfs_verb_top, &mfs_verb_stage_in,
        &mfs_verb_stage_out, &mfs_verb_bench, &mfs_verb_renew, NULL}};

int main(int argc, char **argv)
{
    return mfs_program_run(&program, argc, argv);
}

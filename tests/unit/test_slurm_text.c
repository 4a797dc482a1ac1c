/* What the Slurm provider reads of squeue and sbatch, and what it says of it. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "cm/provider/run.h"
#include "cm/provider/slurm/text.h"

static struct mfs_slurm_job parse(const char *line)
{
    struct mfs_slurm_job j;

    assert_int_equal(mfs_slurm_parse(line, strlen(line), &j), 0);
    return j;
}

static void lines_of_squeue(void **state)
{
    struct mfs_slurm_job j = parse("12|memefs-x-node-3|RUNNING|None|2026-11-26T14:05:00|tux3|0f|e");
    char why[MFS_PROVIDER_REASON_MAX];

    (void)state;
    assert_string_equal(j.id, "12");
    assert_string_equal(j.name, "memefs-x-node-3");
    assert_string_equal(j.host, "tux3");
    assert_string_equal(j.comment, "0f|e");
    assert_int_equal(mfs_slurm_phase(j.state), MFS_SLURM_RUNNING);
    j = parse("13|a|PENDING|Resources|2026-11-26T14:05:00|");
    assert_int_equal(mfs_slurm_phase(j.state), MFS_SLURM_PENDING);
    mfs_slurm_why(&j, why);
    assert_string_equal(why, "job 13: Resources; expected at 2026-11-26T14:05:00");
    j = parse("13|a|CONFIGURING|None|N/A|");
    mfs_slurm_why(&j, why);
    assert_string_equal(why, "job 13: CONFIGURING");
    j = parse("13|a|COMPLETING|None|N/A|tux1");
    assert_int_equal(mfs_slurm_phase(j.state), MFS_SLURM_ENDED);
    j = parse("13|a|A STATE OF TOMORROW|None|N/A|tux1");
    assert_int_equal(mfs_slurm_phase(j.state), MFS_SLURM_UNKNOWN);
}

static void lines_that_are_none(void **state)
{
    static const char *const lines[] = {
        "", "slurm_load_jobs error: Unable to contact slurm controller", "|||||", "12||||||",
        "1234567890123456789012345|a|RUNNING|None|N/A|tux1"};
    struct mfs_slurm_job j;

    (void)state;
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++)
        assert_int_equal(mfs_slurm_parse(lines[i], strlen(lines[i]), &j), -EINVAL);
}

static void answers_of_sbatch(void **state)
{
    char job[MFS_SLURM_JOB_MAX], last[64];

    (void)state;
    assert_int_equal(mfs_slurm_number("12\n", job), 0);
    assert_string_equal(job, "12");
    assert_int_equal(mfs_slurm_number("13;cluster\n", job), 0);
    assert_string_equal(job, "13");
    assert_int_equal(mfs_slurm_number("", job), -EPROTO);
    assert_int_equal(mfs_slurm_number("12 jobs", job), -EPROTO);
    assert_int_equal(mfs_slurm_number("123456789012345678901234567", job), -EPROTO);
    mfs_run_last_line("a\nsbatch: error: Invalid account\n\n", last, sizeof last);
    assert_string_equal(last, "sbatch: error: Invalid account");
    mfs_run_last_line("", last, sizeof last);
    assert_string_equal(last, "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(lines_of_squeue),
                                       cmocka_unit_test(lines_that_are_none),
                                       cmocka_unit_test(answers_of_sbatch)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* In which order the threads of stage-in carry out what they are given: content before directories,
 * of several directories in turn, and directories while too few of them have content. One thread,
 * so that the order shows. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <semaphore.h>
#include <string.h>

#include <cmocka.h>

#include "stage/pool.h"

struct step {
    struct mfs_stage_task task;
    char name;
};

static sem_t go;
static char done[64];

static void note(struct mfs_stage_task *task)
{
    const struct step *s = (struct step *)task;

    done[strlen(done)] = s->name;
}

static void wait_for_go(struct mfs_stage_task *task)
{
    (void)task;
    while (sem_wait(&go) != 0)
        ;
}

/* The tasks named by the texts, of two queues and of none, and of directories; in which order are
 * they done? */
static const char *order(unsigned spread, const char *a, const char *b, const char *none,
                         const char *directories)
{
    struct mfs_stage_queue queue[2] = {{0}, {0}};
    struct mfs_stage_task first = {.run = wait_for_go};
    struct step step[32];
    struct mfs_stage_pool *pool;
    const char *texts[] = {a, b, none, directories};
    size_t n = 0;

    memset(done, 0, sizeof done);
    sem_init(&go, 0, 0);
    assert_int_equal(0, mfs_stage_pool_create(&pool, 1));
    mfs_stage_pool_spread(pool, spread);
    mfs_stage_pool_add(pool, &first);
    for (int kind = 0; kind < 4; kind++)
        for (const char *name = texts[kind]; *name; name++) {
            step[n] = (struct step){{.run = note, .queue = kind < 2 ? &queue[kind] : NULL}, *name};
            if (kind < 3)
                mfs_stage_pool_add(pool, &step[n++].task);
            else
                mfs_stage_pool_add_directory(pool, &step[n++].task);
        }
    sem_post(&go);
    mfs_stage_pool_wait(pool);
    mfs_stage_pool_destroy(pool);
    sem_destroy(&go);
    return done;
}

static void content_before_directories(void **state)
{
    (void)state;
    assert_string_equal("abcdefYX", order(1, "abcdef", "", "", "XY"));
    assert_string_equal("abYX", order(1, "", "", "ab", "XY"));
    assert_string_equal("", order(1, "", "", "", ""));
}

static void queues_in_turn(void **state)
{
    (void)state;
    assert_string_equal("a1xb2c3d", order(1, "abcd", "123", "x", ""));
}

static void directories_while_few_have_content(void **state)
{
    (void)state;
    /* Three are wanted, two have some: the directories, which bring none here, come first. */
    assert_string_equal("YXa1b", order(3, "ab", "1", "", "XY"));
    /* Two are wanted, and are there until the second one has none any more. */
    assert_string_equal("a1YXb", order(2, "ab", "1", "", "XY"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(content_before_directories),
                                       cmocka_unit_test(queues_in_turn),
                                       cmocka_unit_test(directories_while_few_have_content)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}

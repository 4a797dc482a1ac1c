/* How long a partition's move takes, and how long it is without service: move_bench [-c] [-r
 * ROUNDS]
 * [-v BYTES] MIB …
 *
 * A Local Manager receives and takes a partition of so many MiB (in values of 1 MiB), hot (-c:
 * cold), while one client writes values of BYTES (0: none) at full speed until it is refused. Both
 * redis processes, the Local Manager and the client share this machine. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "lm_world.h"

#include "base/clock.h"
#include "base/file.h"
#include "base/text.h"
#include "lm/redis/redis_proc.h"
#include "store/admin/admin.h"
#include "store/args.h"
#include "store/channel.h"

#define MIB  (1ULL << 20)
#define PART 1U

struct bench {
    struct lm_world *w;
    char dir[96];
    struct mfs_redis_node node;
    struct mfs_redis redis;
    bool cold;
    size_t value; /* bytes per write */
    pthread_t thread;
    uint64_t writes;
    int64_t longest; /* ns that one write took */
};

static void give_up(const struct mfs_err *err)
{
    fprintf(stderr, "move_bench: %s\n", err->msg);
    exit(1);
}

static void start_source(struct bench *b, uint64_t mib)
{
    struct mfs_err err;

    snprintf(b->dir, sizeof b->dir, "%s/source", b->w->dir);
    b->node =
        (struct mfs_redis_node){b->dir, b->dir, "127.0.0.1", LM_WORLD_NAME, LM_WORLD_PARTS, MIB};
    b->redis =
        (struct mfs_redis){.part = PART, .format = true, .maxmemory = (mib + mib / 2 + 256) * MIB};
    mfs_random_hex(b->redis.password, 32);
    mfs_random_hex(b->redis.admin_password, 32);
    if (mfs_redis_start(&b->node, &b->redis, 1, &err))
        give_up(&err);
}

static void fill(struct bench *b, uint64_t mib)
{
    struct mfs_admin *admin;
    struct mfs_args args;
    struct mfs_err err;
    struct mfs_cmd cmd;

    mfs_args_init(&args, "EVAL");
    mfs_args_str(&args, "local v = string.rep('x', 1048576) "
                        "for i = 1, ARGV[1] do redis.call('SET', 'fill' .. i, v) end");
    mfs_args_int(&args, 0);
    mfs_args_int(&args, (int64_t)mib);
    cmd = mfs_args_cmd(&args, PART);
    if (mfs_admin_open(&admin, b->redis.unix_path, NULL, 0, b->redis.admin_password, 60 * MFS_SEC,
                       &err) ||
        mfs_admin_call(admin, &cmd, &err))
        give_up(&err);
    mfs_cmds_fini(&cmd, 1);
    mfs_admin_close(admin);
}

static void *write_on(void *arg)
{
    struct bench *b = arg;
    struct mfs_endpoint ep = {NULL, "127.0.0.1", b->redis.port, MFS_REDIS_USER, b->redis.password};
    char *value = calloc(1, b->value), key[16];
    struct mfs_channel *c;
    struct mfs_args args;
    struct mfs_cmd cmd;
    struct mfs_err err;
    int rc;

    if (mfs_channel_open(&c, &ep, 5 * MFS_SEC, 30 * MFS_SEC, &err))
        give_up(&err);
    do {
        int64_t start = mfs_clock_mono(), took;

        snprintf(key, sizeof key, "w%u", (unsigned)(b->writes % 64));
        mfs_args_init(&args, "SET");
        mfs_args_str(&args, key);
        mfs_args_bin(&args, value, b->value);
        cmd = mfs_args_cmd(&args, PART);
        rc = mfs_channel_call(c, &cmd, 30 * MFS_SEC, NULL);
        if (!rc)
            rc = cmd.rc;
        mfs_cmds_fini(&cmd, 1);
        took = mfs_clock_mono() - start;
        if (!rc && took > b->longest)
            b->longest = took;
        b->writes += !rc;
    } while (!rc);
    if (rc != -EACCES)
        fprintf(stderr, "move_bench: the writer ended with %s\n", strerror(-rc));
    mfs_channel_close(c);
    free(value);
    return NULL;
}

static void move(struct bench *b, uint64_t mib)
{
    struct mfs_msg_receive ask = {.index = PART,
                                  .nparts = LM_WORLD_PARTS,
                                  .stripe_size = MIB,
                                  .memory = (2 * mib + 512) * MIB,
                                  .source_host = "127.0.0.1",
                                  .source_port = b->redis.port,
                                  .cold = b->cold};
    struct mfs_msg_take take = {.index = PART};

    mfs_random_hex(ask.password, 32);
    mfs_random_hex(ask.admin_password, 32);
    mfs_text_copy(ask.source_admin_password, sizeof ask.source_admin_password,
                  b->redis.admin_password);
    mfs_text_copy(take.password, sizeof take.password, ask.password);
    if (lm_world_ask(b->w, MFS_MSG_RECEIVE, &ask) || lm_world_ask(b->w, MFS_MSG_TAKE, &take))
        give_up(&b->w->err);
}

static void run_round(struct bench *b, uint64_t mib)
{
    void *world;
    double seconds;

    if (lm_world_setup(&world))
        exit(1);
    b->w = world;
    b->writes = 0;
    b->longest = 0;
    start_source(b, mib);
    fill(b, mib);
    if (b->value && pthread_create(&b->thread, NULL, write_on, b))
        exit(1);
    mfs_clock_sleep(200 * MFS_MSEC);
    move(b, mib);
    if (b->value)
        pthread_join(b->thread, NULL);
    seconds = (double)b->w->received.duration_us / 1e6;
    printf(
        "%6llu MiB: copied in %8.1f ms (%6.0f MB/s), without service %8.3f ms, %7llu writes, the "
        "longest %6.1f ms\n",
        (unsigned long long)mib, seconds * 1e3, (double)b->w->received.bytes / 1e6 / seconds,
        (double)b->w->taken.blocked_us / 1e3, (unsigned long long)b->writes,
        (double)b->longest / 1e6);
    fflush(stdout);
    mfs_redis_stop(&b->node, &b->redis, 1);
    lm_world_teardown(&world);
}

int main(int argc, char **argv)
{
    struct bench b = {.value = 8192};
    int opt, rounds = 3;

    while ((opt = getopt(argc, argv, "cr:v:")) != -1) {
        if (opt == 'c')
            b.cold = true;
        else if (opt == 'r')
            rounds = atoi(optarg);
        else if (opt == 'v')
            b.value = (size_t)atol(optarg);
        else
            return 2;
    }
    for (int i = optind; i < argc; i++) {
        for (int k = 0; k < rounds; k++)
            run_round(&b, strtoull(argv[i], NULL, 10));
    }
    return 0;
}

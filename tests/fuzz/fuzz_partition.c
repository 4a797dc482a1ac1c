/* The commands of the module in redis, on keys of any content, with any arguments: each gives one
 * whole answer, and neither reads nor writes beyond a value. The input makes some keys, then runs
 * some commands on them, of redis itself among them; then the journal must say what is there.
 * ctest: timeout=60 */
#include "redis_host.h"

#define KEYS     6
#define COMMANDS 4
#define OTHERS   0xe0 /* from here on a command is one of redis itself */

static const uint8_t inos[2][8] = {{0, 0, 0, 0, 0, 0, 0, 5}, {0, 0, 0, 0x20, 0, 0, 0, 6}};
static const uint8_t homes[2][2] = {{0, 0}, {0, 1}};
static const uint8_t sids[2][8] = {"session1", "session2"};

/* What arguments and values are made of: a kind, then what it needs. The kinds are an inode, a
 * session, a partition, a time, a record with any mode and size, a small number, a letter, "", and
 * so many bytes as they come. */
static struct fuzz_input take(struct fuzz_input *in, uint8_t record[92 + 16])
{
    uint8_t kind = fuzz_u8(in), which = kind >> 7;
    struct fuzz_input some;

    switch (kind % 9) {
    case 0:
        return (struct fuzz_input){inos[which], 8};
    case 1:
        return (struct fuzz_input){sids[which], 8};
    case 2:
        return (struct fuzz_input){homes[which], 2};
    case 3:
        return fuzz_take(in, 12);
    case 4:
        some = fuzz_take(in, 92);
        for (size_t i = 0; i < 92; i++)
            record[i] = i < some.n ? some.p[i] : 0;
        return (struct fuzz_input){record, 92};
    case 5:
        return fuzz_take(in, 1 + kind / 9 % 3);
    case 6:
        return fuzz_take(in, 1);
    case 7:
        return (struct fuzz_input){record, 0};
    default:
        return fuzz_take(in, fuzz_u8(in));
    }
}

/* A letter and an inode, as most keys are named, stripe 0, or one of the others. */
static struct fuzz_input name_key(struct fuzz_input *in, uint8_t name[16])
{
    uint8_t letter = fuzz_u8(in), which = letter >> 7;
    static const char letters[] = "IDOAYKLPSV", others[] = "#seq";

    if (letter % 11 == 10)
        return (struct fuzz_input){(const uint8_t *)others, 4};
    name[0] = (uint8_t)letters[letter % 11];
    for (int i = 0; i < 8; i++)
        name[1 + i] = inos[which][i];
    for (int i = 9; i < 13; i++)
        name[i] = 0;
    return (struct fuzz_input){name, name[0] == 'S' ? 13 : 9};
}

static void make_keys(struct fuzz_input *in)
{
    uint8_t n = fuzz_u8(in) % KEYS, name[16], value[92 + 16], field[92 + 16];

    for (uint8_t i = 0; i < n; i++) {
        struct fuzz_input key = name_key(in, name);

        if (fuzz_u8(in) % 2) {
            struct fuzz_input f = take(in, field);

            fuzz_redis_hset(key, f, take(in, value));
        } else {
            fuzz_redis_set(key, take(in, value));
        }
    }
}

static void run_command(struct fuzz_input *in)
{
    static uint8_t records[FUZZ_REDIS_ARGS][92 + 16];
    struct fuzz_input args[FUZZ_REDIS_ARGS];
    uint8_t which = fuzz_u8(in);
    int n = fuzz_u8(in) % (FUZZ_REDIS_ARGS + 1);

    for (int i = 0; i < n; i++)
        args[i] = take(in, records[i]);
    if (which >= OTHERS)
        fuzz_redis_other(which, args, n);
    else
        fuzz_redis_command(which, args, n);
}

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
    struct fuzz_input in = {p, n};

    fuzz_redis_load();
    make_keys(&in);
    for (int i = 0; i < COMMANDS && in.n; i++)
        run_command(&in);
    fuzz_redis_check_journal();
    fuzz_redis_flush();
    return 0;
}

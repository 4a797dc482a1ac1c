/* The module's locks beside a model that knows each byte's holders; across a process that dies, one
 * that is moved, and changes of the hash by others. Offsets are those that Connectathon's 64-bit
 * locks and samba's smb2.lock.range try, which numbers in doubles can't tell apart.
 * ctest: single timeout=120 */
#include "store_test.h"

#include "seeded.h"

#define INO    "\0\0\0\0\0\0\0\7"
#define OWNERS 6 /* of each kind; three of them of each session */
#define KINDS  2
#define ROUNDS 6000
#define PIDS   2
#define MAX    16384 /* ranges of one owner */

static const char kinds[KINDS] = {'P', 'F'};

static struct store_test t;

/* ---- offsets: a range begins at one of them and ends before another, or at the end of all ------
 */

#define POINTS 20
#define SPANS  POINTS /* from one to the next; the last one to the end of everything */

static const uint64_t points[POINTS] = {0,
                                        1,
                                        2,
                                        100,
                                        (1ULL << 31) - 1,
                                        1ULL << 31,
                                        1ULL << 32,
                                        (1ULL << 53) - 1,
                                        1ULL << 53,
                                        (1ULL << 53) + 1,
                                        (1ULL << 53) + 2,
                                        1ULL << 60,
                                        (1ULL << 60) + 1,
                                        1ULL << 61,
                                        (1ULL << 61) + 1,
                                        1ULL << 62,
                                        (1ULL << 62) + 1,
                                        INT64_MAX - 2,
                                        INT64_MAX - 1,
                                        INT64_MAX};

static int64_t first_of(unsigned span)
{
    return (int64_t)points[span];
}

static int64_t last_of(unsigned span)
{
    return span + 1 < POINTS ? (int64_t)points[span + 1] - 1 : INT64_MAX;
}

/* ---- the model ---------------------------------------------------------------------------------
 */

struct held {
    uint8_t type, pid; /* 0: nothing */
};

struct owner {
    struct held span[SPANS];
    int64_t marked; /* when, 0: not since the last change */
};

static struct owner owners[KINDS][OWNERS];

struct want {
    unsigned kind, owner, type, from, to, pid;
};

static bool stands(const struct owner *o, const struct want *w)
{
    for (unsigned s = w->from; s <= w->to; s++) {
        if (o->span[s].type && (w->type == 2 || o->span[s].type == 2))
            return true;
    }
    return false;
}

/* 1: it is closing, 0: it is not, -1: nobody knows, as the mark may be just too old. */
static int closing(const struct owner *o)
{
    int64_t age = mfs_clock_mono() - o->marked;

    if (!o->marked || age > 3 * MFS_SEC)
        return 0;
    return age < MFS_SEC ? 1 : -1;
}

static void change(const struct want *w)
{
    struct owner *o = &owners[w->kind][w->owner];

    for (unsigned s = w->from; s <= w->to; s++)
        o->span[s] = (struct held){(uint8_t)w->type, (uint8_t)(w->type ? w->pid : 0)};
    o->marked = 0;
}

/* ---- commands ----------------------------------------------------------------------------------
 */

static void owner_name(char name[17], unsigned kind, unsigned owner)
{
    char text[20];

    snprintf(text, sizeof text, "%cSESSION%cOWNER--%c", kinds[kind], '0' + (int)owner / 3,
             '0' + (int)owner % 3);
    memcpy(name, text, 17);
}

static struct mfs_cmd run(struct mfs_args *a)
{
    struct mfs_cmd cmd = mfs_args_cmd(a, 0);

    assert_int_equal(mfs_store_exec(t.store, &cmd, 1), cmd.rc);
    return cmd;
}

static struct mfs_cmd run_for(const char *command, const struct want *w, const char *holder)
{
    struct mfs_args a;
    char name[17];

    owner_name(name, w->kind, w->owner);
    mfs_args_init(&a, command);
    mfs_args_bin(&a, INO, 8);
    mfs_args_bin(&a, name, sizeof name);
    mfs_args_int(&a, w->type);
    mfs_args_int(&a, first_of(w->from));
    mfs_args_int(&a, last_of(w->to));
    if (holder)
        mfs_args_bin(&a, holder, 17);
    else
        mfs_args_int(&a, w->pid);
    return run(&a);
}

static void raw(const char *verb, const void *key, size_t nkey, const char *field,
                const char *value)
{
    struct mfs_args a;
    struct mfs_cmd cmd;

    mfs_args_init(&a, verb);
    mfs_args_bin(&a, key, nkey);
    if (field)
        mfs_args_str(&a, field);
    if (value)
        mfs_args_str(&a, value);
    cmd = run(&a);
    assert_int_equal(cmd.rc, 0);
    mfs_cmds_fini(&cmd, 1);
}

/* ---- comparing ---------------------------------------------------------------------------------
 */

/* Of what the model has in the way: where it begins first, or nobody; whether all of it is about to
 * go (-1: nobody knows). */
static bool expected(const struct want *w, int *going)
{
    bool any = false;

    *going = 1;
    for (unsigned o = 0; o < OWNERS; o++) {
        int goes = closing(&owners[w->kind][o]);

        if (o == w->owner || !stands(&owners[w->kind][o], w))
            continue;
        any = true;
        if (*going)
            *going = goes == 0 ? 0 : *going < 0 ? -1 : goes;
    }
    return any;
}

/* The range from span to span that the owner holds there as one. */
static void check_range(const struct owner *o, int64_t first, int64_t last, int64_t type,
                        int64_t pid)
{
    unsigned from = 0, to;

    while (from < SPANS && first_of(from) != first)
        from++;
    assert_true(from < SPANS);
    for (to = from; to + 1 < SPANS && last_of(to) != last; to++) {
    }
    assert_int_equal(last_of(to), last);
    for (unsigned s = from; s <= to; s++)
        assert_true(o->span[s].type == type && o->span[s].pid == pid);
    if (from > 0)
        assert_false(o->span[from - 1].type == type && o->span[from - 1].pid == pid);
    if (to + 1 < SPANS)
        assert_false(o->span[to + 1].type == type && o->span[to + 1].pid == pid);
}

static void check_blocker(const struct want *w, const struct mfs_reply *r, int going)
{
    size_t nsession, nowner;
    const char *session = mfs_reply_str(mfs_reply_at(r, 0), &nsession);
    const char *name = mfs_reply_str(mfs_reply_at(r, 1), &nowner);
    int64_t says = mfs_reply_int(mfs_reply_at(r, 6));
    unsigned owner;

    assert_true(session && nsession == 8 && name && nowner == 8);
    owner = (unsigned)(session[7] - '0') * 3 + (unsigned)(name[7] - '0');
    assert_true(owner < OWNERS && owner != w->owner);
    assert_true(stands(&owners[w->kind][owner], w));
    check_range(&owners[w->kind][owner], mfs_reply_int(mfs_reply_at(r, 4)),
                mfs_reply_int(mfs_reply_at(r, 5)), mfs_reply_int(mfs_reply_at(r, 2)),
                mfs_reply_int(mfs_reply_at(r, 3)));
    if (going >= 0)
        assert_int_equal(says, going);
    if (going == 0)
        assert_int_not_equal(closing(&owners[w->kind][owner]), 1);
}

static struct want any_want(void)
{
    unsigned from = below(SPANS), to = from + below(below(4) ? 3 : SPANS - from);

    return (struct want){below(KINDS),   below(OWNERS), below(3), from, to < SPANS ? to : SPANS - 1,
                         1 + below(PIDS)};
}

static void set_any(void)
{
    struct want w = any_want();
    int going;
    bool refused = w.type && expected(&w, &going);
    struct mfs_cmd cmd = run_for("mfs_setlk", &w, NULL);

    assert_int_equal(cmd.rc, 0);
    if (refused)
        check_blocker(&w, cmd.reply, going);
    else
        assert_non_null(mfs_reply_str(cmd.reply, &(size_t){0}));
    mfs_cmds_fini(&cmd, 1);
    if (!refused)
        change(&w);
}

static void ask_any(void)
{
    struct want w = any_want();
    struct mfs_cmd cmd;
    int going;
    bool any;

    w.type = 1 + w.type % 2;
    any = expected(&w, &going);
    cmd = run_for("mfs_getlk", &w, NULL);
    assert_int_equal(cmd.rc, 0);
    assert_int_equal(mfs_reply_count(cmd.reply) > 0, any);
    if (any)
        check_blocker(&w, cmd.reply, going);
    mfs_cmds_fini(&cmd, 1);
}

static void ask_of_a_holder(void)
{
    struct want w = any_want();
    unsigned holder = below(OWNERS);
    struct mfs_cmd cmd;
    char name[17];

    w.type = 1 + w.type % 2;
    owner_name(name, w.kind, holder);
    cmd = run_for("mfs_in_way", &w, name);
    assert_int_equal(cmd.rc, 0);
    assert_int_equal(mfs_reply_int(cmd.reply),
                     holder != w.owner && stands(&owners[w.kind][holder], &w));
    mfs_cmds_fini(&cmd, 1);
}

static void close_some(void)
{
    unsigned owner = below(OWNERS);
    struct mfs_args a;
    struct mfs_cmd cmd;
    char name[17];

    owner_name(name, 0, owner);
    mfs_args_init(&a, "mfs_closing");
    mfs_args_bin(&a, INO, 8);
    mfs_args_bin(&a, name + 1, sizeof name - 1);
    cmd = run(&a);
    assert_int_equal(cmd.rc, 0);
    mfs_cmds_fini(&cmd, 1);
    for (unsigned k = 0; k < KINDS; k++)
        owners[k][owner].marked = mfs_clock_mono();
}

static void end_a_session(void)
{
    unsigned session = below(OWNERS / 3);
    struct mfs_args a;
    struct mfs_cmd cmd;
    char name[17];

    owner_name(name, 0, session * 3);
    mfs_args_init(&a, "mfs_unlock_session");
    mfs_args_bin(&a, INO, 8);
    mfs_args_bin(&a, name + 1, 8);
    cmd = run(&a);
    assert_int_equal(cmd.rc, 0);
    mfs_cmds_fini(&cmd, 1);
    for (unsigned k = 0; k < KINDS; k++)
        memset(&owners[k][session * 3], 0, 3 * sizeof owners[k][0]);
}

static void others_change_the_hash(void)
{
    raw("HSET", "L" INO, 9, "not a lock", "x");
    raw("HDEL", "L" INO, 9, "not a lock", NULL);
}

static void dies(void)
{
    redis_fixture_kill(t.fixture, 0);
    assert_int_equal(redis_fixture_revive(t.fixture, 0), 0);
}

static void moves(void)
{
    assert_int_equal(redis_fixture_migrate(t.fixture, 0), 0);
    assert_int_equal(mfs_store_set_table(t.store, redis_fixture_table(t.fixture)), 0);
    redis_fixture_release(t.fixture);
}

static void make_inode(void)
{
    char record[93];

    memset(record, 'r', sizeof record - 1);
    record[sizeof record - 1] = '\0';
    raw("SET", "I" INO, 9, record, NULL);
}

static int setup(void **state)
{
    choose_seed(state);
    store_test_open(
        &t, &(struct redis_fixture_opts){.nparts = 1, .tcp = true, .journal = true},
        &(struct mfs_store_opts){.io_timeout = 10 * MFS_SEC, .table_wait = 10 * MFS_SEC});
    memset(owners, 0, sizeof owners);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    store_test_close(&t);
    return 0;
}

static void as_the_model(void **state)
{
    (void)state;
    make_inode();
    for (int i = 1; i <= ROUNDS; i++) {
        unsigned what = below(100);

        if (what < 60)
            set_any();
        else if (what < 80)
            ask_any();
        else if (what < 92)
            ask_of_a_holder();
        else if (what < 97)
            close_some();
        else if (what < 99)
            others_change_the_hash();
        else
            end_a_session();
        if (i == ROUNDS / 4 || i == ROUNDS / 2)
            dies();
        if (i == ROUNDS * 3 / 4)
            moves(); /* what it leaves on the disk would be in the way of a revival */
    }
}

/* ---- limits ------------------------------------------------------------------------------------
 */

static int set_byte(unsigned owner, unsigned type, int64_t first, int64_t last)
{
    struct mfs_args a;
    struct mfs_cmd cmd;
    char name[17];
    int rc;

    owner_name(name, 0, owner);
    mfs_args_init(&a, "mfs_setlk");
    mfs_args_bin(&a, INO, 8);
    mfs_args_bin(&a, name, sizeof name);
    mfs_args_int(&a, type);
    mfs_args_int(&a, first);
    mfs_args_int(&a, last);
    mfs_args_int(&a, 1);
    cmd = mfs_args_cmd(&a, 0);
    mfs_store_exec(t.store, &cmd, 1);
    rc = cmd.rc;
    mfs_cmds_fini(&cmd, 1);
    return rc;
}

/* ENOLCK is for an owner who has too many, who may give them back, exchange them, and have others
 * go on. */
static void too_many_ranges(void **state)
{
    (void)state;
    make_inode();
    for (int i = 0; i < MAX; i++)
        assert_int_equal(set_byte(0, 2, 10 * i, 10 * i + 4), 0);
    assert_int_equal(set_byte(0, 2, 10 * MAX, 10 * MAX), -ENOLCK);
    assert_int_equal(set_byte(0, 0, 2, 2), -ENOLCK); /* it would be two */
    assert_int_equal(set_byte(0, 1, 2, 2), -ENOLCK);
    assert_int_equal(set_byte(0, 1, 0, 4), 0);
    assert_int_equal(set_byte(0, 2, 12, 15), 0);
    assert_int_equal(set_byte(1, 2, 10 * MAX, 10 * MAX), 0);
    assert_int_equal(set_byte(0, 0, 0, 4), 0);
    assert_int_equal(set_byte(0, 0, 22, 22), 0);
    assert_int_equal(set_byte(0, 0, 0, INT64_MAX), 0);
    assert_int_equal(set_byte(1, 0, 0, INT64_MAX), 0);
    assert_int_equal(set_byte(0, 2, 0, INT64_MAX), 0);
    assert_int_equal(set_byte(0, 0, 0, INT64_MAX), 0);
}

/* Locks are given while memory is full, but do not fill what is left. */
static void full_memory(void **state)
{
    int64_t i = 0;

    (void)state;
    make_inode();
    assert_int_equal(redis_fixture_admin(t.fixture, 0, "CONFIG SET maxmemory 1"), 0);
    while (i < 1000 && !set_byte(0, 2, 10 * i, 10 * i + 4))
        i++;
    assert_in_range(i, 10, 100);
    assert_int_equal(set_byte(0, 2, 10 * i, 10 * i + 4), -ENOLCK);
    assert_int_equal(set_byte(1, 2, 10 * i, 10 * i + 4), 0);
    assert_int_equal(set_byte(0, 0, 2, 2), 0);
    assert_int_equal(set_byte(0, 0, 0, INT64_MAX), 0);
    assert_int_equal(redis_fixture_admin(t.fixture, 0, "CONFIG SET maxmemory 0"), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(as_the_model, setup, teardown),
        cmocka_unit_test_setup_teardown(too_many_ranges, setup, teardown),
        cmocka_unit_test_setup_teardown(full_memory, setup, teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

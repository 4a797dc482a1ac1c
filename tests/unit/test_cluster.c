/* Placement is even and fixed for ever; the Y0 rule gives every node its due. */
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "cluster/placement.h"
#include "cluster/table.h"
#include "cluster/y0.h"

static void number_of_partitions(void **state)
{
    (void)state;
    assert_int_equal(mfs_y0_partitions(1, 4, 0), 4);
    assert_int_equal(mfs_y0_partitions(2, 4, 0), 8);
    assert_int_equal(mfs_y0_partitions(4, 4, 0), 32);
    assert_int_equal(mfs_y0_partitions(64, 4, 0), 1536);
    assert_int_equal(mfs_y0_partitions(4, 4, 100), 100);
    assert_int_equal(mfs_y0_partitions(4, 0.01, 0), 4);
    assert_int_equal(mfs_y0_partitions(60000, 16, 0), MFS_PARTITIONS_MAX);
}

static void check_counts(const double *cap, size_t n, uint32_t parts)
{
    uint32_t *counts = calloc(n, sizeof *counts);
    double sum = 0;
    uint64_t total = 0;

    for (size_t i = 0; i < n; i++)
        sum += cap[i];
    assert_int_equal(mfs_y0_counts(cap, n, parts, counts), 0);
    for (size_t i = 0; i < n; i++) {
        double due = cap[i] / sum * parts;

        assert_true(counts[i] >= 1);
        total += counts[i];
        /* Largest remainder; nodes that got their least of 1 take it from the others. */
        assert_true(counts[i] <= fmax(1, ceil(due + 1e-9)));
    }
    assert_int_equal(total, parts);
    free(counts);
}

static void counts_are_in_proportion(void **state)
{
    static const double even[] = {1, 1, 1, 1}, steep[] = {1, 2, 4, 9}, tiny[] = {1000, 1, 1, 1};
    uint32_t counts[4];

    (void)state;
    assert_int_equal(mfs_y0_counts(even, 4, 32, counts), 0);
    for (int i = 0; i < 4; i++)
        assert_int_equal(counts[i], 8);
    assert_int_equal(mfs_y0_counts(steep, 4, 32, counts), 0);
    assert_int_equal(counts[0], 2);
    assert_int_equal(counts[3], 18);
    assert_int_equal(mfs_y0_counts(tiny, 4, 32, counts), 0);
    assert_int_equal(counts[0], 29);
    assert_int_equal(counts[1], 1);
    assert_true(fabs(mfs_y0_share(8, 32, 1, 4) - 1) < 1e-12);
    assert_true(fabs(mfs_y0_share(16, 32, 1, 4) - 2) < 1e-12);

    srand(7);
    for (int round = 0; round < 2000; round++) {
        size_t n = (size_t)(rand() % 40) + 1;
        double cap[40];

        for (size_t i = 0; i < n; i++)
            cap[i] = exp((double)(rand() % 200) / 20);
        check_counts(cap, n, (uint32_t)n + (uint32_t)(rand() % 500));
    }
}

static void impossible_counts(void **state)
{
    double cap[3] = {1, 1, 1};
    uint32_t counts[3];

    (void)state;
    assert_int_equal(mfs_y0_counts(cap, 0, 3, counts), -EINVAL);
    assert_int_equal(mfs_y0_counts(cap, 3, 2, counts), -EINVAL);
    cap[1] = 0;
    assert_int_equal(mfs_y0_counts(cap, 3, 9, counts), -EINVAL);
    cap[1] = NAN;
    assert_int_equal(mfs_y0_counts(cap, 3, 9, counts), -EINVAL);
    cap[1] = INFINITY;
    assert_int_equal(mfs_y0_counts(cap, 3, 9, counts), -EINVAL);
}

/* Chi-square over 64 partitions: 63 degrees of freedom, 120 is beyond the 99.99th percentile. */
static void assert_even(const uint32_t *hits, uint32_t n, uint32_t total)
{
    double due = (double)total / n, chi = 0;

    for (uint32_t i = 0; i < n; i++)
        chi += (hits[i] - due) * (hits[i] - due) / due;
    assert_true(chi < 120);
}

static void names_are_even(void **state)
{
    uint32_t names[64] = {0};
    char name[32];

    (void)state;
    assert_int_equal(mfs_placement_home(MFS_ROOT_INO), 0);
    for (uint32_t n = 0; n < 64000; n++) {
        int len = snprintf(name, sizeof name, "file-%u.dat", n);

        names[mfs_placement_entry(MFS_ROOT_INO, name, (size_t)len, 64)]++;
    }
    assert_even(names, 64, 64000);
}

/* Numbers that doubles tell apart, as long as there are no more than 2^32 in a partition; beyond
 * that still each once. */
static void numbers_of_inodes(void **state)
{
    static const uint32_t homes[] = {0, 1, 31, 32, 255, 65534};
    static const uint64_t seqs[] = {
        1, 2, (1ULL << 32) - 1, 1ULL << 32, (1ULL << 32) + 1, (3ULL << 32) + 5, MFS_INO_SEQ_MAX};
    static const uint64_t all =
        MFS_INO_TOGETHER | MFS_INO_ALONE | (uint64_t)MFS_INO_STRIPE << MFS_INO_STRIPE_AT;
    static const uint64_t kinds[] = {0, MFS_INO_TOGETHER, 5ULL << MFS_INO_STRIPE_AT, all};
    uint64_t seen[6 * 7 * 4];
    size_t n = 0;

    (void)state;
    for (size_t h = 0; h < 6; h++)
        for (size_t s = 0; s < 7; s++) {
            for (size_t k = 0; k < 4; k++) {
                uint64_t ino = mfs_ino_make(homes[h], seqs[s]) | kinds[k];

                assert_int_equal(mfs_ino_home(ino), homes[h]);
                assert_true(mfs_ino_seq(ino) == seqs[s]);
                assert_true((ino & all) == kinds[k]);
                assert_true((ino < 1ULL << 53) == (seqs[s] < 1ULL << 32));
                assert_true(!(ino & MFS_INO_LARGE) == (ino < 1ULL << 53));
                for (size_t i = 0; i < n; i++)
                    assert_true(seen[i] != ino);
                seen[n++] = ino;
            }
        }
    assert_true(mfs_ino_make(0, 1) == MFS_ROOT_INO);
    assert_true(mfs_ino_make(2, 3) == (2ULL << 37 | 3));
}

/* Each P stripes of a file are in P partitions. */
static void stripes_visit_all(void **state)
{
    static const uint32_t sizes[] = {1, 2, 3, 4, 6, 7, 12, 32, 96, 1000, 4093, 65535};

    (void)state;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        uint32_t nparts = sizes[i], home = nparts / 3;
        uint64_t ino = mfs_ino_make(home, 77);
        char *seen = calloc(nparts, 1);

        assert_non_null(seen);
        assert_int_equal(mfs_placement_stripe(ino, 0, nparts), home);
        for (uint32_t n = 0; n < 3 * nparts; n++) {
            uint32_t part = mfs_placement_stripe(ino, n, nparts);

            assert_true(part < nparts);
            assert_int_equal(seen[part]++, n / nparts);
        }
        free(seen);
    }
}

/* Or all in one. */
static void stripes_together(void **state)
{
    uint64_t ino = mfs_ino_make(5, 77) | MFS_INO_TOGETHER;

    (void)state;
    for (uint32_t n = 0; n < 100; n++)
        assert_int_equal(mfs_placement_stripe(ino, n, 32), 5);
    assert_int_equal(mfs_placement_stripe(ino, UINT32_MAX, 32), 5);
}

/* Few stripes in sequence spread over nodes, i.e. ranges of partitions, as evenly as many do: the
 * most that one of n nodes is beyond its due, anywhere in a file. */
static double worst_excess(uint32_t nodes, uint32_t nparts, uint32_t stripes)
{
    double due = (double)stripes / nodes, worst = 0;

    for (uint32_t from = 0; from + stripes <= nparts; from++) {
        uint32_t held[64] = {0};

        for (uint32_t n = from; n < from + stripes; n++)
            held[mfs_placement_stripe(9, n, nparts) / (nparts / nodes)]++;
        for (uint32_t v = 0; v < nodes; v++)
            if (held[v] - due > worst)
                worst = held[v] - due;
    }
    return worst;
}

static void stripes_spread_over_nodes(void **state)
{
    (void)state;
    for (uint32_t nodes = 2; nodes <= 64; nodes *= 2)
        for (uint32_t each = 4; each <= 24; each += 4)
            for (uint32_t stripes = nodes; stripes <= nodes * each; stripes += nodes)
                assert_true(worst_excess(nodes, nodes * each, stripes) < 2.01);
}

/* Tasks that each work on a piece of one file do not meet in one partition, whatever the pieces'
 * length. */
static void pieces_begin_apart(void **state)
{
    uint32_t begin[64] = {0};

    (void)state;
    for (uint32_t n = 0; n < 6400; n++)
        begin[mfs_placement_stripe(mfs_ino_make(5, 9), n * 64, 64)]++;
    assert_even(begin, 64, 6400);
}

/* A deployment's data would be lost to a client that places otherwise. */
static void placement_is_fixed(void **state)
{
    (void)state;
    assert_int_equal(mfs_placement_entry(MFS_ROOT_INO, "hello", 5, 65535), 15403);
    assert_int_equal(mfs_placement_stripe(mfs_ino_make(5, 9), 1, 65535), 40507);
    assert_int_equal(mfs_placement_stripe(mfs_ino_make(5, 9), 65536, 65535), 12235);
}

static void tables(void **state)
{
    struct mfs_table *t = mfs_table_new(2), *copy;

    (void)state;
    assert_non_null(t);
    assert_int_equal(mfs_table_check(t), -EINVAL);
    t->epoch = 1;
    t->stripe_size = 1 << 20;
    for (int i = 0; i < 2; i++) {
        strcpy(t->part[i].host, "127.0.0.1");
        t->part[i].port = 7000;
    }
    assert_int_equal(mfs_table_check(t), 0);
    copy = mfs_table_dup(t);
    assert_memory_equal(copy, t, sizeof *t + 2 * sizeof t->part[0]);
    copy->part[1].port = 0;
    assert_int_equal(mfs_table_check(copy), -EINVAL);
    memset(copy->part[1].host, 'x', sizeof copy->part[1].host);
    assert_int_equal(mfs_table_check(copy), -EINVAL);
    free(copy);
    free(t);
}

static struct mfs_table *table_of(uint32_t nparts)
{
    struct mfs_table *t = mfs_table_new(nparts);

    assert_non_null(t);
    t->epoch = 7;
    t->stripe_size = MFS_STRIPE_SIZE_DEFAULT;
    strcpy(t->name, "name");
    for (uint32_t i = 0; i < nparts; i++) {
        t->part[i].port = 1000 + i;
        strcpy(t->part[i].host, "10.0.0.1");
        strcpy(t->part[i].password, "secret");
    }
    return t;
}

static void changes_of_tables(void **state)
{
    struct mfs_table *old = table_of(10), *new = mfs_table_dup(old), *got;
    struct mfs_table_change c;

    (void)state;
    new->epoch = 8;
    new->growing = true;
    new->part[3].node = 4;
    strcpy(new->part[9].host, "10.0.0.22");
    assert_int_equal(mfs_table_difference(old, new, &c), 0);
    assert_int_equal(c.npatches, 2);
    assert_int_equal(mfs_table_apply(old, &c, &got), 0);
    assert_true(mfs_table_digest(got) == mfs_table_digest(new));
    assert_true(mfs_table_digest(got) != mfs_table_digest(old));
    free(got);
    assert_int_equal(mfs_table_apply(NULL, &c, &got), -ESTALE);
    assert_int_equal(mfs_table_apply(new, &c, &got), -ESTALE);
    /* Another one of the same epoch. */
    old->part[0].era = 1;
    assert_int_equal(mfs_table_apply(old, &c, &got), -ESTALE);
    old->part[0].era = 0;
    /* What was behind the end of a text makes no difference. */
    old->part[0].host[20] = 'x';
    assert_int_equal(mfs_table_apply(old, &c, &got), 0);
    free(got);
    c.patch[0].index = 10;
    assert_int_equal(mfs_table_apply(old, &c, &got), -EINVAL);
    c.patch[0].index = 0;
    c.patch[0].part.host[0] = '\0';
    assert_int_equal(mfs_table_apply(old, &c, &got), -EINVAL);
    assert_null(got);
    free(c.patch);
    for (uint32_t i = 0; i < 6; i++)
        new->part[i].node = 9;
    assert_int_equal(mfs_table_difference(old, new, &c), 1);
    assert_int_equal(c.base, 0);
    free(old);
    free(new);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_of_inodes),
        cmocka_unit_test(number_of_partitions),
        cmocka_unit_test(counts_are_in_proportion),
        cmocka_unit_test(impossible_counts),
        cmocka_unit_test(names_are_even),
        cmocka_unit_test(stripes_visit_all),
        cmocka_unit_test(stripes_together),
        cmocka_unit_test(stripes_spread_over_nodes),
        cmocka_unit_test(pieces_begin_apart),
        cmocka_unit_test(placement_is_fixed),
        cmocka_unit_test(tables),
        cmocka_unit_test(changes_of_tables),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

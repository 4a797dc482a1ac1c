/* What an operator writes: the config file and the command line of cm start, and the deployment
 * that they ask for. What is accepted is within its option's bounds, and makes a state that can be
 * saved and loaded. The input is a config file and, behind a NUL, arguments that end with NUL.
 * ctest: timeout=60 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "args/paths.h"
#include "base/text.h"
#include "cluster/placement.h"
#include "cm/cli/config_file.h"
#include "cm/cli/options.h"
#include "cm/provider/options.h"
#include "cm/state/spec.h"
#include "input.h"

#define ARGS  8
#define PARTS 64 /* more only take longer: each has two passwords */

static const struct mfs_conf_option *const groups[] = {mfs_deployment_options, mfs_cm_start_options,
                                                       MFS_PROVIDER_OPTIONS, NULL};

static int read_file(struct mfs_conf *conf, struct fuzz_input text)
{
    struct mfs_err err = {0};
    struct fuzz_file f;
    int rc;

    fuzz_file_open(&f, text.p, text.n);
    rc = mfs_config_file_load(f.path, conf, &err);
    fuzz_file_close(&f);
    FUZZ_CHECK(rc == 0 || (rc < 0 && err.code < 0 && err.msg[0]));
    return rc;
}

/* Up to the next NUL, which is consumed. */
static struct fuzz_input take_word(struct fuzz_input *in)
{
    const uint8_t *end = in->n ? memchr(in->p, 0, in->n) : NULL;
    struct fuzz_input word = fuzz_take(in, end ? (size_t)(end - in->p) : in->n);

    fuzz_u8(in);
    return word;
}

static int read_args(struct mfs_conf *conf, struct fuzz_input *in)
{
    char *argv[ARGS], *given[ARGS];
    struct mfs_err err = {0};
    int argc = 0, rc;

    for (; argc < ARGS && in->n; argc++)
        given[argc] = argv[argc] = fuzz_text(take_word(in));
    rc = mfs_conf_argv(conf, argc, argv, 1, &err);
    FUZZ_CHECK(rc <= 1 && (rc >= 0 || (rc == -EINVAL && err.msg[0])));
    for (int i = 0; i < argc; i++)
        free(given[i]);
    return rc < 0 ? rc : 0;
}

static void check_bounds(const struct mfs_conf *conf, const struct mfs_conf_option *o)
{
    double v = o->type == MFS_CONF_REAL ? mfs_conf_real(conf, o->key)
                                        : (double)mfs_conf_uint(conf, o->key);
    size_t len = mfs_conf_str(conf, o->key) ? strlen(mfs_conf_str(conf, o->key)) : 0;

    if (!mfs_conf_given(conf, o->key) || o->max <= 0)
        return;
    if (o->type == MFS_CONF_STRING)
        v = (double)len;
    FUZZ_CHECK(v >= o->min && v <= o->max);
}

/* Saved and loaded again, a deployment is the same. */
static void check_state(const struct mfs_cm_state *s)
{
    struct mfs_err err = {0};
    struct mfs_cm_state again;
    struct mfs_buf first, second;
    struct fuzz_file f;

    mfs_buf_init(&first);
    mfs_buf_init(&second);
    FUZZ_CHECK(!mfs_schema_encode(&mfs_cm_state_schema, s, true, &first));
    fuzz_file_open(&f, mfs_buf_data(&first), mfs_buf_len(&first));
    FUZZ_CHECK(!mfs_cm_state_load(&again, f.path, &err));
    fuzz_file_close(&f);
    FUZZ_CHECK(!mfs_schema_encode(&mfs_cm_state_schema, &again, true, &second));
    FUZZ_CHECK(fuzz_same(&first, &second));
    mfs_cm_state_clear(&again);
    mfs_buf_fini(&first);
    mfs_buf_fini(&second);
}

static void make(const struct mfs_conf *conf)
{
    struct mfs_err err = {0};
    struct mfs_cm_state s;
    int rc;

    if (mfs_conf_uint(conf, "partitions") > PARTS || mfs_conf_uint(conf, "max-nodes") > PARTS ||
        mfs_conf_uint(conf, "nodes") > PARTS / 8)
        return;
    rc = mfs_spec_make(conf, &s, &err);
    FUZZ_CHECK(rc == 0 || (err.code == rc && err.msg[0]));
    if (rc)
        return;
    FUZZ_CHECK(s.nnodes >= 1 && s.nparts >= s.nnodes && s.nparts <= MFS_PARTITIONS_MAX);
    check_state(&s);
    mfs_cm_state_clear(&s);
}

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
    struct fuzz_input in = {p, n};
    struct mfs_conf *conf = mfs_conf_create(groups);
    int rc;

    FUZZ_CHECK(conf);
    fuzz_heap_begin();
    rc = read_file(conf, take_word(&in));
    FUZZ_CHECK(fuzz_heap_end() <= 65536 + 256 * n);
    if (!rc || rc == -EINVAL)
        rc = read_args(conf, &in);
    for (size_t g = 0; groups[g]; g++)
        for (const struct mfs_conf_option *o = groups[g]; o->key; o++)
            check_bounds(conf, o);
    if (!rc)
        make(conf);
    mfs_conf_destroy(conf);
    return 0;
}

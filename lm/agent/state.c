/* The schema of the state file: each field once, see proto/schema.h. */
#include "lm/agent/state.h"

#include <errno.h>
#include <string.h>

#include "base/file.h"
#include "base/text.h"
#include "base/trusted_dir.h"

#define STATE_MAX (64U << 20)

static const struct mfs_field proc_fields[] = {
    {.name = "pid", MFS_FIELD(U32, struct mfs_state_proc, pid)},
    {.name = "start", MFS_FIELD(U64, struct mfs_state_proc, start)},
    {.name = "comm", MFS_FIELD(STR, struct mfs_state_proc, comm)},
    {0},
};
static const struct mfs_schema proc_schema = {"process", sizeof(struct mfs_state_proc),
                                              proc_fields};

static const struct mfs_field redis_fields[] = {
    {.name = "index", .required = true, MFS_FIELD(U32, struct mfs_state_redis, index)},
    {.name = "port", MFS_FIELD(U32, struct mfs_state_redis, port), .max = 65535},
    {.name = "lost", MFS_FIELD(BOOL, struct mfs_state_redis, lost)},
    {.name = "termed", MFS_FIELD(BOOL, struct mfs_state_redis, termed)},
    {.name = "unix_path", MFS_FIELD(STR, struct mfs_state_redis, unix_path)},
    {.name = "password", MFS_FIELD(STR, struct mfs_state_redis, password)},
    {.name = "admin_password", MFS_FIELD(STR, struct mfs_state_redis, admin_password)},
    {.name = "process", MFS_FIELD(OBJECT, struct mfs_state_redis, proc), .sub = &proc_schema},
    {0},
};
static const struct mfs_schema redis_schema = {"redis", sizeof(struct mfs_state_redis),
                                               redis_fields};

static const struct mfs_field copy_fields[] = {
    {.name = "redis", MFS_FIELD(OBJECT, struct mfs_state_copy, redis), .sub = &redis_schema},
    {.name = "source_host", MFS_FIELD(STR, struct mfs_state_copy, source_host)},
    {.name = "source_port", MFS_FIELD(U32, struct mfs_state_copy, source_port), .max = 65535},
    {.name = "source_admin_password", MFS_FIELD(STR, struct mfs_state_copy, source_admin_password)},
    {.name = "expected", MFS_FIELD(U64, struct mfs_state_copy, expected)},
    {.name = "whole", MFS_FIELD(BOOL, struct mfs_state_copy, whole)},
    {0},
};
static const struct mfs_schema copy_schema = {"copy", sizeof(struct mfs_state_copy), copy_fields};

static const struct mfs_field client_fields[] = {
    {.name = "mount", MFS_FIELD(STR, struct mfs_state_client, mount)},
    {.name = "session", MFS_FIELD(STR, struct mfs_state_client, session)},
    {.name = "process", MFS_FIELD(OBJECT, struct mfs_state_client, proc), .sub = &proc_schema},
    {.name = "instance", MFS_FIELD(U32, struct mfs_state_client, instance)},
    {0},
};
static const struct mfs_schema client_schema = {"client", sizeof(struct mfs_state_client),
                                                client_fields};

static const struct mfs_field state_fields[] = {
    {.name = "name", .required = true, MFS_FIELD(STR, struct mfs_state, name)},
    {.name = "node", .required = true, MFS_FIELD(U32, struct mfs_state, node)},
    {.name = "nparts", MFS_FIELD(U32, struct mfs_state, nparts)},
    {.name = "stripe_size", MFS_FIELD(U32, struct mfs_state, stripe_size)},
    {.name = "memory", MFS_FIELD(U64, struct mfs_state, memory)},
    {.name = "control", MFS_FIELD(U32, struct mfs_state, control), .max = 65535},
    {.name = "term", MFS_FIELD(U64, struct mfs_state, term)},
    {.name = "candidate", MFS_FIELD(U32, struct mfs_state, candidate)},
    {.name = "vote_term", MFS_FIELD(U64, struct mfs_state, vote_term)},
    {.name = "vote_for", MFS_FIELD(U32, struct mfs_state, vote_for)},
    {.name = "mount", MFS_FIELD(STR, struct mfs_state, mount)},
    {.name = "options", MFS_FIELD(STR, struct mfs_state, options)},
    {.name = "mounter", MFS_FIELD(OBJECT, struct mfs_state, mounter), .sub = &client_schema},
    {.name = "redis", MFS_FIELD_LIST(struct mfs_state, redis, nredis, &redis_schema)},
    {.name = "copies", MFS_FIELD_LIST(struct mfs_state, copy, ncopies, &copy_schema)},
    {.name = "clients", MFS_FIELD_LIST(struct mfs_state, client, nclients, &client_schema)},
    {.name = "table", MFS_FIELD(TABLE, struct mfs_state, table)},
    {0},
};
const struct mfs_schema mfs_state_schema = {"lm.json", sizeof(struct mfs_state), state_fields};

int mfs_state_save(const struct mfs_state *s, const char *path)
{
    struct mfs_buf text;
    int rc;

    mfs_buf_init(&text);
    rc = mfs_schema_encode(&mfs_state_schema, s, true, &text);
    /* What it names dies with the machine, and clients wait while partitions move: no fsync. */
    if (!rc)
        rc = mfs_file_note(path, mfs_buf_data(&text), mfs_buf_len(&text), 0600);
    mfs_buf_fini(&text);
    return rc;
}

int mfs_state_load(struct mfs_state *s, const char *path, struct mfs_err *err)
{
    struct mfs_buf text;
    int rc;

    mfs_buf_init(&text);
    rc = mfs_trusted_read(path, STATE_MAX, &text);
    if (rc == -EPERM)
        mfs_err_set(err, rc, "%s: " MFS_TRUSTED_NO_FILE, path);
    else if (rc)
        mfs_err_set(err, rc, "can't read %s: %s", path, strerror(-rc));
    else if ((rc = mfs_schema_decode(&mfs_state_schema, mfs_buf_data(&text), mfs_buf_len(&text), s,
                                     err)))
        mfs_err_prefix(err, "%s", path);
    mfs_buf_fini(&text);
    return rc;
}

void mfs_state_proc_set(struct mfs_state_proc *to, const struct mfs_proc *from)
{
    *to = (struct mfs_state_proc){.pid = (uint32_t)from->pid, .start = from->start};
    mfs_text_copy(to->comm, sizeof to->comm, from->comm);
}

struct mfs_proc mfs_state_proc_get(const struct mfs_state_proc *from)
{
    struct mfs_proc p = {.pid = (pid_t)from->pid, .start = from->start};

    mfs_text_copy(p.comm, sizeof p.comm, from->comm);
    return p;
}

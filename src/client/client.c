/* The order of the parts, see client.h. The control thread goes on while the vfs ends, and uses the
 * store: it is ended between the two. A table that it brings goes to the store, then to callers of
 * mfs_client_table, then, if a replica has taken a place, to the vfs, which forgets what it knows
 * under leases; only then lm hears that this client has the table. */
#include "client/client.h"

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "client/address.h"
#include "client/control.h"
#include "fsck/tidy.h"
#include "store/store.h"
#include "vfs/vfs.h"

/* How long a request may wait for a partition that is being moved (a cold move copies all of it
 * meanwhile), and for one that is not where it was, as the table may be late. */
#define MOVE_WAIT (120 * MFS_SEC)
#define LOST_WAIT (5 * MFS_SEC)
/* And how long a failover waits for a kernel to drop what it keeps: it may be waiting itself, for
 * locks of calls that wait for the failover. */
#define DROP_WAIT (200 * MFS_MSEC)

struct mfs_client {
    char address[MFS_ADDRESS_MAX];
    struct mfs_control_config config;
    struct mfs_control *control;
    struct mfs_store *store;
    struct mfs_vfs *vfs;
    struct mfs_tidy *tidy;
    pthread_mutex_t table_lock;     /* guards table; a leaf */
    struct mfs_table *table;        /* what the store has */
    pthread_mutex_t failover_lock;  /* guards failover_meta; held while that handles one */
    struct mfs_meta *failover_meta; /* NULL before the start, and when waiting has been stopped */
};

static void tell_failover(struct mfs_client *c)
{
    pthread_mutex_lock(&c->failover_lock);
    if (c->failover_meta != NULL)
        mfs_meta_failed_over(c->failover_meta, DROP_WAIT);
    pthread_mutex_unlock(&c->failover_lock);
}

static void tell_failovers_to(struct mfs_client *c, struct mfs_meta *meta)
{
    pthread_mutex_lock(&c->failover_lock);
    c->failover_meta = meta;
    pthread_mutex_unlock(&c->failover_lock);
}

static void new_table(void *arg, struct mfs_table *table)
{
    struct mfs_client *c = arg;
    struct mfs_table *copy = mfs_table_dup(table);
    unsigned long long epoch = table->epoch;
    int rc = mfs_store_set_table(c->store, table);

    if (rc < 0 && rc != -ESTALE)
        mfs_error("control", "table of epoch %llu not usable: %s", epoch, strerror(-rc));
    if (rc < 0 || copy == NULL) {
        free(copy);
        return;
    }
    pthread_mutex_lock(&c->table_lock);
    free(c->table);
    c->table = copy;
    pthread_mutex_unlock(&c->table_lock);
    tell_failover(c);
    mfs_info("control", "partition table of epoch %llu", epoch);
}

static void in_contact(void *arg, int64_t at, const struct mfs_lost_node *lost, size_t n)
{
    struct mfs_client *c = arg;

    mfs_store_set_contact(c->store, at, lost, n);
}

static int start_control(struct mfs_client *c, const struct mfs_client_opts *o, uint32_t *node,
                         struct mfs_err *err)
{
    int rc = mfs_client_address(o->paths, o->lm, o->cm, c->address, node);

    if (rc < 0)
        return mfs_err_set(err, rc, "the manager's address: %s", strerror(-rc));
    rc = mfs_paths_check(o->paths, err);
    if (rc < 0)
        return rc;
    c->config = (struct mfs_control_config){.address = c->address,
                                            .secret = o->paths->secret,
                                            .mount = o->label,
                                            .instance = o->instance,
                                            .metrics = o->metrics};
    return mfs_control_create(&c->control, &c->config, err);
}

static int start_store(struct mfs_client *c, const struct mfs_client_opts *o, uint32_t node,
                       struct mfs_err *err)
{
    struct mfs_store_opts opts = {.node = node,
                                  .io_timeout = o->io_timeout,
                                  .table_wait = LOST_WAIT,
                                  .fence_wait = MOVE_WAIT,
                                  .full_wait = o->full_wait,
                                  .metrics = o->metrics};
    struct mfs_table *table;
    int rc = mfs_control_wait_table(c->control, o->table_wait, &table, err);

    if (rc < 0)
        return rc;
    c->table = mfs_table_dup(table);
    rc = mfs_store_create(&c->store, table, &opts);
    if (rc < 0)
        return mfs_err_set(err, rc, "partition table: %s", strerror(-rc));
    mfs_control_on_table(c->control, new_table, o->vfs != NULL ? in_contact : NULL, c);
    return 0;
}

static int start_vfs(struct mfs_client *c, const struct mfs_vfs_opts *opts, struct mfs_err *err)
{
    int rc = mfs_vfs_create(&c->vfs, c->store, opts);

    return rc < 0 ? mfs_err_set(err, rc, "partitions: %s", strerror(-rc)) : 0;
}

int mfs_client_create(struct mfs_client **client, const struct mfs_client_opts *opts,
                      struct mfs_err *err)
{
    struct mfs_client *c = calloc(1, sizeof *c);
    uint32_t node;
    int rc;

    *client = NULL;
    if (c == NULL)
        return mfs_err_set(err, -ENOMEM, "out of memory");
    pthread_mutex_init(&c->table_lock, NULL);
    pthread_mutex_init(&c->failover_lock, NULL);
    rc = start_control(c, opts, &node, err);
    if (rc == 0)
        rc = start_store(c, opts, node, err);
    if (rc == 0 && opts->vfs != NULL)
        rc = start_vfs(c, opts->vfs, err);
    if (rc == 0)
        *client = c;
    else
        mfs_client_destroy(c);
    return rc;
}

int mfs_client_start(struct mfs_client *c, uint64_t memory, struct mfs_err *err)
{
    struct mfs_tidy_opts opts = {.memory = memory};
    struct mfs_meta *meta;
    int rc;

    assert(c->vfs != NULL && c->tidy == NULL);
    meta = mfs_vfs_meta(c->vfs);
    tell_failovers_to(c, meta);
    rc = mfs_tidy_start(&c->tidy, c->store, meta, &opts);
    return rc < 0 ? mfs_err_set(err, rc, "thread: %s", strerror(-rc)) : 0;
}

void mfs_client_stop_waiting(struct mfs_client *c)
{
    tell_failovers_to(c, NULL);
    mfs_vfs_stop_waiting(c->vfs);
}

void mfs_client_ending(struct mfs_client *c)
{
    mfs_store_ending(c->store);
}

void mfs_client_destroy(struct mfs_client *c)
{
    if (c == NULL)
        return;
    tell_failovers_to(c, NULL);
    mfs_tidy_stop(c->tidy);
    mfs_vfs_destroy(c->vfs);
    mfs_control_destroy(c->control); /* its thread uses the store */
    mfs_store_destroy(c->store);
    free(c->table);
    pthread_mutex_destroy(&c->table_lock);
    pthread_mutex_destroy(&c->failover_lock);
    free(c);
}

void mfs_client_ready(struct mfs_client *c)
{
    mfs_control_ready(c->control, mfs_meta_session(mfs_vfs_meta(c->vfs)));
}

int mfs_client_ask(struct mfs_client *c, enum mfs_msg type, int64_t ns,
                   void (*take)(void *arg, const void *reply), void *arg)
{
    static const struct mfs_msg_clients clients = {.most = MFS_CLIENTS_TOLD};

    return mfs_control_ask(c->control, type, type == MFS_MSG_CLIENTS ? &clients : NULL, ns, take,
                           arg);
}

void mfs_client_on_hot(struct mfs_client *c, bool (*hot)(void *arg, struct mfs_hot *to), void *arg)
{
    mfs_control_on_hot(c->control, hot, arg);
}

struct mfs_store *mfs_client_store(struct mfs_client *c)
{
    return c->store;
}

struct mfs_vfs *mfs_client_vfs(struct mfs_client *c)
{
    return c->vfs;
}

struct mfs_table *mfs_client_table(struct mfs_client *c)
{
    struct mfs_table *copy;

    pthread_mutex_lock(&c->table_lock);
    copy = c->table != NULL ? mfs_table_dup(c->table) : NULL;
    pthread_mutex_unlock(&c->table_lock);
    return copy;
}

#include "cm_stage.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/text.h"
#include "cm/life/service.h"
#include "cm/nodes/provision.h"

#define JOIN_LIMIT (20 * MFS_SEC)

void cm_stage_state(struct mfs_cm_state *s, uint32_t nnodes, uint32_t nparts)
{
    mfs_text_copy(s->name, sizeof s->name, "unit");
    mfs_text_copy(s->phase, sizeof s->phase, MFS_PHASE_RUNNING);
    mfs_text_copy(s->provider, sizeof s->provider, "local");
    s->stripe_size = MFS_STRIPE_SIZE_DEFAULT;
    s->nnodes = nnodes;
    s->node = calloc(nnodes, sizeof *s->node);
    s->nparts = nparts;
    s->part = calloc(nparts, sizeof *s->part);
    s->table = mfs_table_new(nparts);
    s->table->epoch = 5;
    s->table->stripe_size = s->stripe_size;
    for (uint32_t i = 0; i < nnodes; i++) {
        s->node[i].id = i;
        s->node[i].memory = 1 << 30;
        snprintf(s->node[i].name, sizeof s->node[i].name, "node-%u", i);
    }
}

static void joined(void *arg, const struct mfs_err *err, const void *reply)
{
    (void)arg;
    (void)reply;
    assert_true(!err || err->code == -ECONNABORTED);
}

void cm_stage_join(struct mfs_conn *c, uint32_t node, uint64_t epoch)
{
    struct mfs_msg_join m = {.version = MFS_PROTOCOL_VERSION, .node = node, .epoch = epoch};

    mfs_text_copy(m.name, sizeof m.name, "unit");
    assert_int_equal(mfs_conn_request(c, MFS_MSG_JOIN, &m, JOIN_LIMIT, joined, NULL), 0);
}

int cm_stage_open(struct cm_stage *stage)
{
    struct mfs_cm *cm = &stage->cm;
    struct mfs_err err;

    strcpy(stage->dir, "/tmp/memefs-unit-XXXXXX");
    if (!mkdtemp(stage->dir))
        return -1;
    mfs_text_copy(stage->paths.dir, sizeof stage->paths.dir, stage->dir);
    snprintf(stage->paths.state, sizeof stage->paths.state, "%s/cm.json", stage->dir);
    snprintf(stage->paths.events, sizeof stage->paths.events, "%s/events.jsonl", stage->dir);
    snprintf(stage->paths.secret, sizeof stage->paths.secret, "%s/secret", stage->dir);
    if (mfs_secret_create(stage->paths.secret) ||
        mfs_secret_load(stage->paths.secret, &cm->secret, &err))
        return -1;
    cm->paths = &stage->paths;
    if (!cm->provider)
        cm->provider = mfs_provider_find(cm->state.provider);
    cm->step = MFS_STEP_DONE;
    cm->lm_lost = mfs_service_lm_lost;
    cm->loop = mfs_loop_create();
    if (mfs_nodes_init(cm))
        return -1;
    cm->listener =
        mfs_listener_create(cm->loop, "127.0.0.1:0", &cm->secret, 16, &mfs_cm_service, cm, &err);
    if (!cm->listener)
        return -1;
    mfs_listener_address(cm->listener, stage->address);
    return mfs_provision_open(cm, &err) ? -1 : 0;
}

void cm_stage_deafen(struct cm_stage *stage)
{
    if (stage->cm.listener)
        mfs_listener_destroy(stage->cm.listener);
    stage->cm.listener = NULL;
}

void cm_stage_close(struct cm_stage *stage)
{
    cm_stage_deafen(stage);
    mfs_provision_close(&stage->cm);
    mfs_loop_destroy(stage->cm.loop);
    mfs_secret_free(&stage->cm.secret);
    mfs_nodes_fini(&stage->cm);
    mfs_cm_state_clear(&stage->cm.state);
    mfs_file_remove_tree(stage->dir);
}

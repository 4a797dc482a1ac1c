/* One lane of posted commands: its queue, and sending and receiving without ever waiting.
 *
 *   queue:  head ── refused by a fence ── refused->next ── sent, unanswered ── unsent ── rest …
 *
 * Once a fence has refused a command, nothing more is sent: with a new connection, to the new place
 * or to the same when the move was given up, the queue starts from its head again. */
#include "store/post.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/log.h"
#include "store/reply.h"

#define SEND_AT_ONCE 64 /* commands per system call */

/* n commands are over. */
static void settle(struct mfs_post *post, uint32_t n)
{
    if (!n)
        return;
    pthread_mutex_lock(&post->lock);
    assert(n <= post->pending);
    post->pending -= n;
    pthread_cond_broadcast(&post->done);
    pthread_mutex_unlock(&post->lock);
}

struct mfs_post_entry *mfs_post_entry(const struct mfs_cmd *cmd)
{
    size_t len = mfs_channel_cmd_size(cmd), word = cmd->argv[0].len;
    struct mfs_post_entry *e = malloc(sizeof *e + len);

    if (!e)
        return NULL;
    e->next = NULL;
    e->len = len;
    e->idempotent = cmd->idempotent;
    e->refusals = 0;
    if (word >= sizeof e->word)
        word = sizeof e->word - 1;
    memcpy(e->word, cmd->argv[0].p, word);
    e->word[word] = 0;
    mfs_channel_cmd_encode(cmd, e->bytes);
    return e;
}

void mfs_post_append(struct mfs_post_lane *lane, struct mfs_post_entry *e)
{
    if (!lane->head)
        lane->progress = mfs_clock_mono();
    if (lane->tail)
        lane->tail->next = e;
    else
        lane->head = e;
    lane->tail = e;
    if (!lane->unsent)
        lane->unsent = e;
    lane->bytes += e->len;
    lane->posted++;
}

/* The oldest command without an answer. */
static struct mfs_post_entry *oldest(const struct mfs_post_lane *lane)
{
    return lane->refused ? lane->refused->next : lane->head;
}

bool mfs_post_unanswered(const struct mfs_post_lane *lane)
{
    return oldest(lane) != lane->unsent;
}

/* Takes the oldest command without an answer, which has been sent, off the queue. */
static void remove_oldest(struct mfs_post_lane *lane)
{
    struct mfs_post_entry *e = oldest(lane);

    if (lane->refused)
        lane->refused->next = e->next;
    else
        lane->head = e->next;
    if (lane->tail == e)
        lane->tail = lane->refused;
    assert(e->len <= lane->bytes);
    lane->bytes -= e->len;
    lane->answered++;
    free(e);
}

/* The fence is up; what came before is settled, what comes is refused as well. */
static void hold(struct mfs_post *post, uint32_t part, bool lapsed)
{
    struct mfs_post_lane *lane = &post->lane[part];

    lane->refused = oldest(lane);
    lane->refused->refusals++;
    lane->leaving = true;
    if (!lane->held)
        lane->held = mfs_clock_mono();
    mfs_fence_seen(post->store, part, lane->conn->gen, lapsed);
}

void mfs_post_broken(struct mfs_post *post, uint32_t part, int rc)
{
    struct mfs_post_lane *lane = &post->lane[part];

    lane->broken = true;
    if (!lane->failing)
        lane->failing = mfs_clock_mono();
    if (!lane->conn)
        return;
    lane->conn->given_up = true;
    mfs_pool_down(post->store, part, lane->conn->gen, strerror(-rc));
}

static void sent_bytes(struct mfs_post_lane *lane, size_t n)
{
    while (lane->unsent && n >= lane->unsent->len - lane->offset) {
        n -= lane->unsent->len - lane->offset;
        lane->offset = 0;
        lane->unsent = lane->unsent->next;
    }
    lane->offset += n;
}

/* Sends what the socket takes. */
static int lane_send(struct mfs_post_lane *lane)
{
    while (lane->unsent) {
        struct iovec v[SEND_AT_ONCE];
        struct msghdr m = {.msg_iov = v};
        ssize_t n;

        for (struct mfs_post_entry *e = lane->unsent; e && m.msg_iovlen < SEND_AT_ONCE;
             e = e->next) {
            size_t skip = e == lane->unsent ? lane->offset : 0;

            v[m.msg_iovlen++] = (struct iovec){e->bytes + skip, e->len - skip};
        }
        n = sendmsg(lane->conn->ctx->fd, &m, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (n < 0 && errno != EINTR)
            return errno == EAGAIN || errno == EWOULDBLOCK ? 0 : -errno;
        if (n > 0)
            sent_bytes(lane, (size_t)n);
    }
    return 0;
}

/* Reads the replies that are there; *n is raised by the number of commands that are over. */
static int lane_receive(struct mfs_post *post, uint32_t part, uint32_t *n)
{
    struct mfs_post_lane *lane = &post->lane[part];

    while (mfs_post_unanswered(lane)) {
        struct mfs_cmd cmd = {.part = part};
        struct mfs_err err;
        int rc = mfs_channel_recv(lane->conn, &cmd, false, &err);

        if (rc <= 0)
            return rc;
        if (cmd.rc && mfs_fence_refuses(&cmd, &err) &&
            oldest(lane)->refusals < MFS_FENCE_REFUSALS) {
            hold(post, part, mfs_fence_is_lapse(&err));
            continue;
        }
        if (cmd.rc) {
            mfs_warn("store", "partition %u: posted %s: %s", part, oldest(lane)->word, err.msg);
            atomic_fetch_add(&post->store->posts_lost, 1);
        }
        mfs_cmds_fini(&cmd, 1);
        remove_oldest(lane);
        (*n)++;
    }
    return 0;
}

void mfs_post_service(struct mfs_post *post, uint32_t part, bool receive)
{
    struct mfs_post_lane *lane = &post->lane[part];
    uint32_t over = 0;
    int rc;

    if (!lane->conn || lane->broken)
        return;
    rc = lane->leaving ? 0 : lane_send(lane);
    if (!rc && receive)
        rc = lane_receive(post, part, &over);
    if (over) {
        lane->progress = mfs_clock_mono();
        lane->failing = 0;
        lane->fruitless = false;
        if (!lane->refused)
            lane->held = 0;
    }
    if (rc)
        mfs_post_broken(post, part, rc);
    settle(post, over);
}

void mfs_post_rewind(struct mfs_post *post, uint32_t part, bool all)
{
    struct mfs_post_lane *lane = &post->lane[part];
    struct mfs_post_entry **at = &lane->head, *unsent = lane->unsent;
    uint32_t dropped = 0;
    bool refused = lane->refused, sent = true;

    lane->tail = NULL;
    while (*at) {
        struct mfs_post_entry *e = *at;
        bool executed;

        sent = sent && e != unsent;
        executed = sent && !refused; /* perhaps */
        refused = refused && e != lane->refused;
        if (!all && (!executed || e->idempotent)) {
            lane->tail = e;
            at = &e->next;
            continue;
        }
        *at = e->next;
        assert(e->len <= lane->bytes);
        lane->bytes -= e->len;
        lane->answered++;
        dropped++;
        free(e);
    }
    lane->unsent = lane->head;
    lane->refused = NULL;
    lane->leaving = false;
    lane->offset = 0;
    if (dropped) {
        mfs_warn("store", "partition %u: %u posted commands without an answer", part, dropped);
        atomic_fetch_add(&post->store->posts_lost, dropped);
    }
    settle(post, dropped);
}

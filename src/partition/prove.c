#include "partition/prove.h"

#include <stdlib.h>
#include <string.h>

#include "partition/commands.h"
#include "net/proof.h"

#define USERS 2    /* clients', and Local Managers' */
#define ASKED 4096 /* connections that are remembered, as many as there may be */

static struct {
    char name[MFS_PROOF_USER + 1], key[MFS_MAC_TEXT];
} users[USERS];
static size_t nusers;
static char place[MFS_PROOF_END_MAX]; /* "": none */

/* Connections that have asked, each in the place that its number gives it. They are numbered in the
 * order in which they come, so one that takes another's place has come thousands later. */
static uint64_t asked[ASKED];

static bool copy(struct mfs_span from, char *to, size_t size)
{
    if (!from.n || from.n >= size || memchr(from.p, '\0', from.n))
        return false;
    memcpy(to, from.p, from.n);
    to[from.n] = '\0';
    return true;
}

int mfs_prove_at(struct mfs_span host, struct mfs_span port)
{
    char address[MFS_PROOF_END_MAX];
    long number = strtol(port.p, NULL, 10); /* the server's strings end with NUL */

    if (number <= 0 || number > UINT16_MAX || !copy(host, address, sizeof address))
        return MFS_REDIS_ERR;
    return mfs_proof_end(address, (uint16_t)number, place) ? MFS_REDIS_ERR : MFS_REDIS_OK;
}

int mfs_prove_key(struct mfs_span user, struct mfs_span key)
{
    if (nusers == USERS || key.n != MFS_MAC_TEXT - 1 ||
        !copy(user, users[nusers].name, sizeof users[nusers].name) ||
        !copy(key, users[nusers].key, sizeof users[nusers].key))
        return MFS_REDIS_ERR;
    nusers++;
    return MFS_REDIS_OK;
}

static const char *key_of(struct mfs_span user)
{
    for (size_t i = 0; i < nusers; i++)
        if (strlen(users[i].name) == user.n && !memcmp(users[i].name, user.p, user.n))
            return users[i].key;
    return NULL;
}

static bool is_nonce(struct mfs_span s)
{
    return s.n == MFS_PROOF_NONCE && strspn(s.p, "0123456789abcdef") == MFS_PROOF_NONCE;
}

static bool again(struct RedisModuleCtx *ctx, uint64_t id)
{
    uint64_t *seen = &asked[id % ASKED];

    if (*seen == id) {
        mfs_redis.DeauthenticateAndCloseClient(ctx, id);
        return true;
    }
    *seen = id;
    return false;
}

/* The other end of the connection, as it is seen from here. */
static bool caller_of(uint64_t id, char out[MFS_PROOF_END_MAX])
{
    struct mfs_redis_client info = {.version = 1};

    if (mfs_redis.GetClientInfoById(&info, id) != MFS_REDIS_OK ||
        (info.flags & MFS_REDIS_CLIENT_UNIX))
        return false;
    return !mfs_proof_end(info.address, info.port, out);
}

/* mfs_prove user nonce: the proof, as wire/proof.h has it. */
int mfs_command_prove(const struct mfs_request *r)
{
    uint64_t id = mfs_redis.GetClientId(r->ctx);
    struct mfs_span user = mfs_request_arg(r, 1), nonce = mfs_request_arg(r, 2);
    char caller[MFS_PROOF_END_MAX], proof[MFS_MAC_TEXT];
    const char *key;

    if (again(r->ctx, id))
        return mfs_redis.ReplyWithError(r->ctx, "ERR one question per connection");
    if (r->argc != 3 || !is_nonce(nonce))
        return mfs_redis.ReplyWithError(r->ctx, "ERR " MFS_PROOF_COMMAND " USER NONCE");
    key = key_of(user);
    if (!key || !*place)
        return mfs_redis.ReplyWithError(r->ctx, "ERR no proof for this user");
    if (!caller_of(id, caller))
        return mfs_redis.ReplyWithError(r->ctx, "ERR a proof is for connections over TCP");
    if (mfs_proof_make(key, user.p, caller, place, nonce.p, proof))
        return mfs_redis.ReplyWithError(r->ctx, "ERR the proof can't be computed");
    return mfs_redis.ReplyWithStringBuffer(r->ctx, proof, MFS_MAC_TEXT - 1);
}

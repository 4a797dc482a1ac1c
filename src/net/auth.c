/* The mutual proof. MACs are compared in constant time; a failed step says nothing about why. */
#include "net/auth.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/crypto/secure.h"
#include "base/text.h"
#include "proto/frame.h"
#include "base/crypto/mac.h"
#include "proto/messages.h"
#include "proto/schema.h"

#define SECRET_BYTES 32
#define SECRET_MAX   256 /* bytes of the file */

struct challenge {
    uint32_t version;
    char key[MFS_AUTH_KEY_TEXT];
};

struct proof {
    char role[MFS_AUTH_ROLE_MAX], key[MFS_AUTH_KEY_TEXT], mac[MFS_MAC_TEXT];
};

struct welcome {
    char mac[MFS_MAC_TEXT];
};

static const struct mfs_schema challenge_schema = {
    "challenge", sizeof(struct challenge),
    (const struct mfs_field[]){
        {.name = "version", .required = true, MFS_FIELD(U32, struct challenge, version)},
        {.name = "key", .required = true, MFS_FIELD(STR, struct challenge, key)},
        {0}}};

static const struct mfs_schema proof_schema = {
    "proof", sizeof(struct proof),
    (const struct mfs_field[]){
        {.name = "role", .required = true, MFS_FIELD(STR, struct proof, role)},
        {.name = "key", .required = true, MFS_FIELD(STR, struct proof, key)},
        {.name = "mac", .required = true, MFS_FIELD(STR, struct proof, mac)},
        {0}}};

static const struct mfs_schema welcome_schema = {
    "welcome", sizeof(struct welcome),
    (const struct mfs_field[]){
        {.name = "mac", .required = true, MFS_FIELD(STR, struct welcome, mac)}, {0}}};

int mfs_secret_create(const char *path)
{
    char text[2 * SECRET_BYTES + 2];
    int rc = mfs_random_hex(text, SECRET_BYTES);

    if (!rc) {
        text[2 * SECRET_BYTES] = '\n';
        rc = mfs_file_write(path, text, 2 * SECRET_BYTES + 1, 0600);
    }
    explicit_bzero(text, sizeof text);
    return rc;
}

/* Into `bytes`, SECRET_MAX of them. */
static int secret_read(int fd, const char *path, unsigned char *bytes, size_t *len,
                       struct mfs_err *err)
{
    struct stat st;
    ssize_t n;

    if (fstat(fd, &st))
        return mfs_err_set(err, -errno, "%s: %s", path, strerror(errno));
    if (st.st_uid && st.st_uid != geteuid())
        return mfs_err_set(
            err, -EPERM, "%s belongs to user %u, who knows it and may change it; act as that user",
            path, st.st_uid);
    if (st.st_mode & 077)
        return mfs_err_set(err, -EACCES,
                           "%s: others than its owner may read it; its mode must be 0600", path);
    n = read(fd, bytes, SECRET_MAX);
    if (n < 0)
        return mfs_err_set(err, -errno, "%s: %s", path, strerror(errno));
    while (n && (bytes[n - 1] == '\n' || bytes[n - 1] == '\r'))
        n--;
    *len = (size_t)n;
    if (n < 16 || n == SECRET_MAX)
        return mfs_err_set(err, -EINVAL, "%s: is no secret (16 to 255 bytes)", path);
    return 0;
}

int mfs_secret_load(const char *path, struct mfs_secret *s, struct mfs_err *err)
{
    unsigned char *bytes = mfs_secure_alloc(SECRET_MAX);
    int fd = open(path, O_RDONLY | O_CLOEXEC), rc;

    *s = (struct mfs_secret){.bytes = bytes};
    if (fd < 0)
        rc = mfs_err_set(err, -errno, "%s: %s", path, strerror(errno));
    else if (!bytes)
        rc = mfs_err_set(err, -ENOMEM, "%s: out of memory", path);
    else
        rc = secret_read(fd, path, bytes, &s->len, err);
    if (fd >= 0)
        close(fd);
    if (rc)
        mfs_secret_free(s);
    return rc;
}

void mfs_secret_free(struct mfs_secret *s)
{
    mfs_secure_free((void *)s->bytes, SECRET_MAX);
    *s = (struct mfs_secret){0};
}

/* The listener's key always comes first, whichever end computes. `shared` comes behind them, unless
 * it is NULL. */
static int mac(const struct mfs_auth *a, const char *of, const char *shared, char out[MFS_MAC_TEXT])
{
    const char *fields[] = {
        "memefs1", of, a->role, a->caller ? a->peer : a->own, a->caller ? a->own : a->peer, shared};

    return mfs_mac(a->secret->bytes, a->secret->len, fields,
                   sizeof fields / sizeof *fields - (shared ? 0 : 1), out);
}

static int mac_check(const struct mfs_auth *a, const char *of, const char *given,
                     struct mfs_err *err)
{
    char right[MFS_MAC_TEXT];
    int rc = mac(a, of, NULL, right);

    if (rc)
        return mfs_err_set(err, rc, "authentication: cannot compute");
    if (!mfs_mac_equal(given, right))
        return mfs_err_set(err, -EACCES, "authentication failed: another secret");
    return 0;
}

static int put(struct mfs_buf *out, const struct mfs_schema *r, const void *from)
{
    size_t mark;
    int rc = mfs_frame_begin(out, &mark);

    if (!rc)
        rc = mfs_schema_encode(r, from, false, out);
    return rc ? rc : mfs_frame_seal(out, mark);
}

int mfs_auth_begin(struct mfs_auth *a, const struct mfs_secret *secret, const char *role,
                   struct mfs_buf *out)
{
    struct challenge c = {.version = MFS_PROTOCOL_VERSION};
    int rc;

    *a = (struct mfs_auth){.secret = secret, .caller = role != NULL};
    if (role && mfs_text_copy(a->role, sizeof a->role, role))
        return -EINVAL;
    rc = mfs_exchange_create(&a->exchange);
    if (rc)
        return rc;
    mfs_text_hex(a->exchange.open, sizeof a->exchange.open, a->own);
    if (a->caller)
        return 0;
    memcpy(c.key, a->own, sizeof c.key);
    return put(out, &challenge_schema, &c);
}

void mfs_auth_end(struct mfs_auth *a)
{
    mfs_exchange_destroy(&a->exchange);
}

static int take_key(struct mfs_auth *a, const char *key, struct mfs_err *err)
{
    unsigned char raw[MFS_EXCHANGE_KEY];

    if (mfs_text_unhex(key, raw, sizeof raw))
        return mfs_err_set(err, -EPROTO, "authentication: not a key");
    memcpy(a->peer, key, sizeof a->peer);
    return 0;
}

/* Caller: the challenge has come; prove. */
static int answer_challenge(struct mfs_auth *a, const char *body, size_t len, struct mfs_buf *out,
                            struct mfs_err *err)
{
    struct challenge c;
    struct proof p = {0};
    int rc = mfs_schema_decode(&challenge_schema, body, len, &c, err);

    if (rc)
        return -EPROTO;
    if (c.version != MFS_PROTOCOL_VERSION)
        return mfs_err_set(err, -EPROTO,
                           "it speaks protocol version %u, this program, of MemEFS %s, version %u: "
                           "use %s programs and library, or start the deployment anew with these",
                           c.version, MEMEFS_VERSION, MFS_PROTOCOL_VERSION,
                           c.version < MFS_PROTOCOL_VERSION ? "older" : "newer");
    rc = take_key(a, c.key, err);
    if (!rc)
        rc = mac(a, "caller", NULL, p.mac);
    if (rc)
        return rc;
    memcpy(p.role, a->role, sizeof p.role);
    memcpy(p.key, a->own, sizeof p.key);
    rc = put(out, &proof_schema, &p);
    return rc ? rc : MFS_AUTH_WAITING;
}

/* Listener: the proof has come; check it and prove in turn. */
static int answer_proof(struct mfs_auth *a, const char *body, size_t len, struct mfs_buf *out,
                        struct mfs_err *err)
{
    struct welcome w = {0};
    struct proof p;
    int rc = mfs_schema_decode(&proof_schema, body, len, &p, err);

    if (rc)
        return -EPROTO;
    memcpy(a->role, p.role, sizeof a->role);
    rc = take_key(a, p.key, err);
    if (!rc)
        rc = mac_check(a, "caller", p.mac, err);
    if (!rc)
        rc = mac(a, "listener", NULL, w.mac);
    if (!rc)
        rc = put(out, &welcome_schema, &w);
    return rc ? rc : MFS_AUTH_DONE;
}

static int check_welcome(struct mfs_auth *a, const char *body, size_t len, struct mfs_err *err)
{
    struct welcome w;
    int rc = mfs_schema_decode(&welcome_schema, body, len, &w, err);

    if (rc)
        return -EPROTO;
    rc = mac_check(a, "listener", w.mac, err);
    return rc ? rc : MFS_AUTH_DONE;
}

int mfs_auth_step(struct mfs_auth *a, const char *body, size_t len, struct mfs_buf *out,
                  struct mfs_err *err)
{
    int step = a->step++;

    if (!a->caller && step == 0)
        return answer_proof(a, body, len, out, err);
    if (a->caller && step == 0)
        return answer_challenge(a, body, len, out, err);
    if (a->caller && step == 1)
        return check_welcome(a, body, len, err);
    return mfs_err_set(err, -EPROTO, "authentication: one message too many");
}

static int share(const struct mfs_auth *a, char text[MFS_AUTH_KEY_TEXT])
{
    unsigned char theirs[MFS_EXCHANGE_KEY], shared[MFS_EXCHANGE_KEY];
    int rc = mfs_text_unhex(a->peer, theirs, sizeof theirs) ? -EPROTO : 0;

    if (!rc)
        rc = mfs_exchange_shared(&a->exchange, theirs, shared);
    if (!rc)
        mfs_text_hex(shared, sizeof shared, text);
    explicit_bzero(shared, sizeof shared);
    return rc;
}

static struct mfs_cipher *cipher(const struct mfs_auth *a, const char *of, const char *shared,
                                 int *rc)
{
    unsigned char key[MFS_CIPHER_KEY];
    char text[MFS_MAC_TEXT];
    struct mfs_cipher *c = NULL;

    *rc = mac(a, of, shared, text);
    if (!*rc)
        *rc = mfs_text_unhex(text, key, sizeof key);
    if (!*rc && !(c = mfs_cipher_create(key)))
        *rc = -ENOMEM;
    explicit_bzero(key, sizeof key);
    explicit_bzero(text, sizeof text);
    return c;
}

int mfs_auth_ciphers(const struct mfs_auth *a, struct mfs_cipher **sends,
                     struct mfs_cipher **receives)
{
    const char *of_caller = "caller's frames", *of_listener = "listener's frames";
    char shared[MFS_AUTH_KEY_TEXT];
    int rc = share(a, shared);

    *sends = *receives = NULL;
    if (!rc)
        *sends = cipher(a, a->caller ? of_caller : of_listener, shared, &rc);
    if (!rc)
        *receives = cipher(a, a->caller ? of_listener : of_caller, shared, &rc);
    explicit_bzero(shared, sizeof shared);
    return rc;
}

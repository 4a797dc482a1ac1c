#include "cm/provider/slurm/token.h"

#include <errno.h>
#include <limits.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/crypto/secure.h"
#include "base/file.h"
#include "base/log.h"
#include "base/text.h"
#include "proto/schema.h"

#define EARLY 60 /* s before its end a token is looked for anew */

struct mfs_slurm_token {
    char file[PATH_MAX]; /* "": it comes from the environment */
    char text[MFS_SLURM_TOKEN_MAX];
    struct mfs_slurm_claims claims;
    char own_name[sizeof((struct mfs_slurm_claims *)0)->sun];
    bool warned; /* that it is about to end */
    char advice[PATH_MAX + 128];
};

/* ---- texts ----------------------------------------------------------------------------------- */

/* The alphabet of base64url, in its order. */
#define TOKEN_CHARS "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"

int mfs_slurm_token_read(const char *text, size_t len, char out[MFS_SLURM_TOKEN_MAX])
{
    static const char variable[] = "SLURM_JWT=";
    const char *end = text + len;

    if (len >= sizeof variable - 1 && !memcmp(text, variable, sizeof variable - 1))
        text += sizeof variable - 1;
    while (end > text && strchr(" \t\r\n", end[-1]) && end[-1])
        end--;
    len = (size_t)(end - text);
    out[0] = '\0';
    if (!len || len >= MFS_SLURM_TOKEN_MAX)
        return -EINVAL;
    memcpy(out, text, len);
    out[len] = '\0';
    if (strspn(out, TOKEN_CHARS ".=") == len)
        return 0;
    out[0] = '\0';
    return -EINVAL;
}

/* base64url without padding (RFC 4648). The bytes written; what is no such letter ends it. */
static size_t decode(const char *from, size_t len, char *to, size_t n)
{
    uint32_t bits = 0;
    unsigned have = 0;
    size_t at = 0;

    for (size_t i = 0; i < len && at < n; i++) {
        const char *letter = from[i] ? strchr(TOKEN_CHARS, from[i]) : NULL;

        if (!letter)
            break;
        bits = bits << 6 | (uint32_t)(letter - TOKEN_CHARS);
        have += 6;
        if (have < 8)
            continue;
        have -= 8;
        to[at++] = (char)(bits >> have & 0xff);
    }
    return at;
}

void mfs_slurm_token_claims(const char *token, struct mfs_slurm_claims *out)
{
    static const struct mfs_field fields[] = {
        {.name = "exp", MFS_FIELD(U64, struct mfs_slurm_claims, exp)},
        {.name = "sun", MFS_FIELD(STR, struct mfs_slurm_claims, sun)},
        {0}};
    static const struct mfs_schema schema = {"token", sizeof *out, fields};
    const char *dot = strchr(token, '.');
    char json[MFS_SLURM_TOKEN_MAX];
    struct mfs_err err;
    size_t len;

    memset(out, 0, sizeof *out);
    if (!dot)
        return;
    len = decode(dot + 1, strcspn(dot + 1, "."), json, sizeof json);
    if (mfs_schema_decode(&schema, json, len, out, &err))
        memset(out, 0, sizeof *out);
    if (out->sun[strcspn(out->sun, " \t\r\n:")])
        out->sun[0] = '\0';
}

/* ---- where it is kept ------------------------------------------------------------------------ */

/* For a token that does not say whose it is: some versions of slurmrestd ask for a name, too. */
static void take_own_name(struct mfs_slurm_token *t)
{
    struct passwd pw, *found = NULL;
    char text[4096];

    if (!getpwuid_r(geteuid(), &pw, text, sizeof text, &found) && found)
        mfs_text_copy(t->own_name, sizeof t->own_name, pw.pw_name);
}

static void set(struct mfs_slurm_token *t, const char *text)
{
    mfs_text_copy(t->text, sizeof t->text, text);
    mfs_slurm_token_claims(t->text, &t->claims);
    t->warned = false;
}

/* 0, or a negative errno: it is as it was. */
static int read_file(struct mfs_slurm_token *t, struct mfs_err *err)
{
    char text[MFS_SLURM_TOKEN_MAX];
    struct mfs_buf buf;
    int rc;

    mfs_buf_init(&buf);
    rc = mfs_file_read(t->file, 2 * sizeof text, &buf);
    if (rc)
        mfs_err_set(err, rc, "%.200s: %s", t->file, strerror(-rc));
    else if (mfs_slurm_token_read(mfs_buf_data(&buf), mfs_buf_len(&buf), text))
        rc = mfs_err_set(err, -EINVAL, "%.200s: is no token of Slurm's; `scontrol token` makes one",
                         t->file);
    if (!rc && strcmp(text, t->text) != 0)
        set(t, text);
    explicit_bzero(text, sizeof text);
    mfs_buf_wipe(&buf);
    return rc;
}

static void read_environment(struct mfs_slurm_token *t)
{
    const char *given = getenv("SLURM_JWT");
    char text[MFS_SLURM_TOKEN_MAX];

    if (given && !mfs_slurm_token_read(given, strlen(given), text))
        set(t, text);
    explicit_bzero(text, sizeof text);
    unsetenv("SLURM_JWT"); // NOLINT(concurrency-mt-unsafe): the only thread
}

struct mfs_slurm_token *mfs_slurm_token_create(const char *file, struct mfs_err *err)
{
    struct mfs_slurm_token *t = mfs_secure_alloc(sizeof *t);

    if (!t) {
        mfs_err_set(err, -ENOMEM, "out of memory");
        return NULL;
    }
    take_own_name(t);
    read_environment(t);
    if (!file) {
        mfs_text_copy(t->advice, sizeof t->advice,
                      "a cm that is given --slurm-token-file can take a new one while it runs");
        return t;
    }
    mfs_text_copy(t->file, sizeof t->file, file);
    mfs_text_format(t->advice, sizeof t->advice, "write a new one into %s (scontrol token)", file);
    set(t, "");
    if (!read_file(t, err))
        return t;
    mfs_slurm_token_destroy(t);
    return NULL;
}

void mfs_slurm_token_destroy(struct mfs_slurm_token *t)
{
    mfs_secure_free(t, sizeof *t);
}

/* ---- using it -------------------------------------------------------------------------------- */

static bool ends_within(const struct mfs_slurm_token *t, uint64_t seconds)
{
    return t->claims.exp && (uint64_t)mfs_clock_real().tv_sec + seconds >= t->claims.exp;
}

bool mfs_slurm_token_has_ended(const struct mfs_slurm_token *t)
{
    return ends_within(t, 0);
}

const char *mfs_slurm_token_text(struct mfs_slurm_token *t)
{
    struct mfs_err err;

    if (!ends_within(t, EARLY))
        return t->text;
    if (t->file[0] && read_file(t, &err) && !t->warned)
        mfs_warn("slurm", "the token for slurmrestd: %s", err.msg);
    if (ends_within(t, EARLY) && !t->warned)
        mfs_warn("slurm", "the token for slurmrestd ends soon, or has ended; %s", t->advice);
    t->warned = ends_within(t, EARLY);
    return t->text;
}

const char *mfs_slurm_token_user(const struct mfs_slurm_token *t)
{
    return !t->text[0] ? "" : t->claims.sun[0] ? t->claims.sun : t->own_name;
}

bool mfs_slurm_token_refused(struct mfs_slurm_token *t)
{
    char before[MFS_SLURM_TOKEN_MAX];
    struct mfs_err err;
    bool other;

    if (!t->file[0])
        return false;
    memcpy(before, t->text, sizeof before);
    other = !read_file(t, &err) && strcmp(before, t->text) != 0;
    explicit_bzero(before, sizeof before);
    return other;
}

const char *mfs_slurm_token_advice(const struct mfs_slurm_token *t)
{
    return t->advice;
}

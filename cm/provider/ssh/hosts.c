#include "cm/provider/ssh/hosts.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "base/file.h"
#include "base/inet.h"
#include "base/text.h"

#define LINE_MOST    1024 /* bytes */
#define MEMORY_LEAST (16U << 20)
#define NAME_CHARS   "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._:@%-"
#define BLANKS       " \t"

/* ---- one line -------------------------------------------------------------------------------- */

static int set_memory(const char *value, uint64_t *out, struct mfs_err *err)
{
    if (*out)
        return mfs_err_set(err, -EINVAL, "memory= is there twice");
    if (mfs_text_size(value, out) || *out < MEMORY_LEAST)
        return mfs_err_set(err, -EINVAL, "memory=%.40s is no size like 512M or 4G", value);
    return 0;
}

/* Can others connect to it? A link-local one means nothing without an interface. */
static bool is_reachable(const union mfs_inet *a)
{
    in_addr_t v4 = ntohl(a->v4.sin_addr.s_addr);

    if (a->any.sa_family == AF_INET)
        return v4 != INADDR_ANY && v4 != INADDR_BROADCAST && !IN_MULTICAST(v4);
    return !IN6_IS_ADDR_UNSPECIFIED(&a->v6.sin6_addr) && !IN6_IS_ADDR_MULTICAST(&a->v6.sin6_addr) &&
           !IN6_IS_ADDR_LINKLOCAL(&a->v6.sin6_addr);
}

/* Kept as others will write it, too. */
static int set_address(const char *value, char out[MFS_HOST_MAX], struct mfs_err *err)
{
    char text[INET6_ADDRSTRLEN];
    union mfs_inet a;
    uint16_t port;

    if (out[0])
        return mfs_err_set(err, -EINVAL, "address= is there twice");
    if (strlen(value) >= MFS_HOST_MAX || mfs_inet_parse(value, 0, &a) ||
        mfs_inet_format(&a, text, &port))
        return mfs_err_set(err, -EINVAL, "address=%.60s is no numeric address", value);
    if (!is_reachable(&a))
        return mfs_err_set(err, -EINVAL, "address=%.60s is none that other machines could reach",
                           value);
    return mfs_text_copy(out, MFS_HOST_MAX, text);
}

/* A number of 32 bits, which is 0 as long as it has not been given. */
static int set_small(const char *key, const char *value, uint32_t most, uint32_t *out,
                     struct mfs_err *err)
{
    uint64_t number;

    if (*out)
        return mfs_err_set(err, -EINVAL, "%s= is there twice", key);
    if (mfs_text_u64(value, &number) || !number || number > most)
        return mfs_err_set(err, -EINVAL, "%s=%.40s is no number from 1 to %u", key, value, most);
    *out = (uint32_t)number;
    return 0;
}

/* "key=value" */
static int set(struct mfs_host *h, char *word, struct mfs_err *err)
{
    char *value = strchr(word, '=');

    if (!value)
        return mfs_err_set(
            err, -EINVAL,
            "\"%.60s\" behind the host is not slots=N, memory=SIZE or address=ADDRESS", word);
    *value++ = '\0';
    if (!strcmp(word, "memory"))
        return set_memory(value, &h->memory, err);
    if (!strcmp(word, "address"))
        return set_address(value, h->address, err);
    if (!strcmp(word, "slots"))
        return set_small(word, value, MFS_HOSTS_SLOTS_MAX, &h->slots, err);
    if (h->place && !strcmp(word, "round"))
        return set_small(word, value, MFS_HOSTS_SLOTS_MAX, &h->round, err);
    return mfs_err_set(err, -EINVAL,
                       "\"%.40s=\" is not known; there are slots=, memory=, address=", word);
}

/* hostlist.h has looked at the rest. */
static int check_name(const char *name, struct mfs_err *err)
{
    const char *at = strchr(name, '@');

    if (strspn(name, NAME_CHARS) != strlen(name) || name[0] == '-' || at == name ||
        (at && (!at[1] || at[1] == '-' || strchr(at + 1, '@'))))
        return mfs_err_set(err, -EINVAL, "\"%.60s\" is no name of a host", name);
    return 0;
}

/* Cuts off the line's comment, blanks and the end that other systems write. */
static void trim(char *line)
{
    size_t len;

    line[strcspn(line, "#")] = '\0';
    for (len = strlen(line); len && isspace((unsigned char)line[len - 1]); len--)
        line[len - 1] = '\0';
}

/* What stands behind the first word, and that word. */
static int parse_words(char *line, char **first, struct mfs_host *h, struct mfs_err *err)
{
    char *rest = NULL, *word;
    int rc = 0;

    *first = strtok_r(line, BLANKS, &rest);
    while (!rc && (word = strtok_r(NULL, BLANKS, &rest)))
        rc = set(h, word, err);
    return rc;
}

/* ---- hosts ----------------------------------------------------------------------------------- */

static int add(struct mfs_hosts *h, const struct mfs_host *host, const char *name,
               struct mfs_err *err)
{
    struct mfs_host *more;

    if (check_name(name, err))
        return err->code;
    if (h->n == MFS_HOSTLIST_MOST)
        return mfs_err_set(err, -EINVAL, "more than %d hosts", MFS_HOSTLIST_MOST);
    more = reallocarray(h->host, h->n + 1, sizeof *more);
    if (!more)
        return mfs_err_set(err, -ENOMEM, "out of memory");
    h->host = more;
    more[h->n] = *host;
    return mfs_text_copy(more[h->n++].name, sizeof more->name, name);
}

/* All of a list, each with what `like` has. */
static int add_list(struct mfs_hosts *h, const char *list, const struct mfs_host *like,
                    struct mfs_err *err)
{
    struct mfs_hostlist l;
    int rc = mfs_hostlist_parse(list, &l, err);

    if (!rc && l.n > 1 && like->address[0])
        rc = mfs_err_set(err, -EINVAL, "address= behind %u hosts: give each a line", l.n);
    for (uint32_t i = 0; i < l.n && !rc; i++)
        rc = add(h, like, l.host[i], err);
    mfs_hostlist_clear(&l);
    return rc;
}

static int add_line(struct mfs_hosts *h, const char *text, size_t len, uint32_t number,
                    struct mfs_err *err)
{
    struct mfs_host like = {.line = number};
    char line[LINE_MOST], *first;
    int rc;

    if (len >= sizeof line)
        return mfs_err_set(err, -EINVAL, "it has more than %d characters", LINE_MOST - 1);
    for (size_t i = 0; i < len; i++)
        if (iscntrl((unsigned char)text[i]) && !isspace((unsigned char)text[i]))
            return mfs_err_set(err, -EINVAL, "byte 0x%02x is in it: this is no file of text",
                               (unsigned char)text[i]);
    memcpy(line, text, len);
    line[len] = '\0';
    trim(line);
    rc = parse_words(line, &first, &like, err);
    return rc || !first ? rc : add_list(h, first, &like, err);
}

/* ---- one host twice -------------------------------------------------------------------------- */

/* What a line has of which there may be one alone: a machine, or an address. */
struct sole {
    const struct mfs_host *host;
    char text[MFS_HOSTLIST_NAME]; /* of addresses, as all write them */
};

static int by_text(const void *a, const void *b)
{
    const struct sole *x = a, *y = b;
    int order = strcasecmp(x->text, y->text);

    return order ? order : (x->host > y->host) - (x->host < y->host);
}

static void set_sole(struct sole *s, const struct mfs_host *h, const char *text)
{
    char address[INET6_ADDRSTRLEN];
    union mfs_inet a;
    uint16_t port;

    s->host = h;
    if (!mfs_inet_parse(text, 0, &a) && !mfs_inet_format(&a, address, &port))
        text = address;
    mfs_text_copy(s->text, sizeof s->text, text);
}

static int twice(const struct sole *former, const struct sole *later, struct mfs_err *err)
{
    if (!later->host->line)
        return mfs_err_set(err, -EINVAL, "%s is there twice", later->text);
    return mfs_err_set(err, -EINVAL,
                       "line %u: %s is in line %u already; for several nodes on it, say slots=N",
                       later->host->line, later->text, former->host->line);
}

static int check_soles(struct sole *s, uint32_t n, struct mfs_err *err)
{
    qsort(s, n, sizeof *s, by_text);
    for (uint32_t i = 1; i < n; i++)
        if (!strcasecmp(s[i].text, s[i - 1].text))
            return twice(&s[i - 1], &s[i], err);
    return 0;
}

static int check_twice(const struct mfs_hosts *h, struct mfs_err *err)
{
    struct sole *s = calloc(h->n + 1, sizeof *s);
    uint32_t n = 0;
    int rc;

    if (!s)
        return mfs_err_set(err, -ENOMEM, "out of memory");
    for (uint32_t i = 0; i < h->n; i++)
        set_sole(&s[i], &h->host[i], mfs_host_machine(&h->host[i]));
    rc = check_soles(s, h->n, err);
    for (uint32_t i = 0; i < h->n; i++)
        if (h->host[i].address[0])
            set_sole(&s[n++], &h->host[i], h->host[i].address);
    if (!rc)
        rc = check_soles(s, n, err);
    free(s);
    return rc;
}

/* ---- a file, a list -------------------------------------------------------------------------- */

int mfs_hosts_parse(const char *text, size_t len, const char *file, struct mfs_hosts *out,
                    struct mfs_err *err)
{
    const char *at = text, *end = text + len;
    int rc = 0;

    *out = (struct mfs_hosts){0};
    for (uint32_t number = 1; at < end && !rc; number++) {
        const char *newline = memchr(at, '\n', (size_t)(end - at));
        const char *next = newline ? newline : end;

        rc = add_line(out, at, (size_t)(next - at), number, err);
        if (rc)
            mfs_err_prefix(err, "line %u", number);
        at = next + 1;
    }
    if (!rc && !out->n)
        rc = mfs_err_set(err, -EINVAL, "no host is in it");
    if (!rc)
        rc = check_twice(out, err);
    if (!rc)
        return 0;
    mfs_hosts_clear(out);
    mfs_err_prefix(err, "%.200s", file);
    return rc == -E2BIG ? (err->code = -EINVAL) : rc;
}

static int parse_list(const char *list, struct mfs_hosts *out, struct mfs_err *err)
{
    const struct mfs_host like = {0};
    int rc = add_list(out, list, &like, err);

    if (!rc)
        rc = check_twice(out, err);
    if (!rc)
        return 0;
    mfs_hosts_clear(out);
    return rc == -E2BIG ? (err->code = -EINVAL) : rc;
}

static int read_file(const char *name, struct mfs_hosts *out, struct mfs_err *err)
{
    bool input = !strcmp(name, "-");
    struct mfs_buf b;
    int rc;

    mfs_buf_init(&b);
    rc = input ? mfs_file_read_fd(STDIN_FILENO, MFS_HOSTS_FILE_MAX, &b)
               : mfs_file_read_given(name, MFS_HOSTS_FILE_MAX, &b);
    if (rc == -EFBIG)
        mfs_err_set(err, -EINVAL, "%.200s has more than %u KiB: this is no list of hosts", name,
                    MFS_HOSTS_FILE_MAX >> 10);
    else if (rc == -ETIMEDOUT)
        mfs_err_set(err, -EINVAL, "%.200s: it is a pipe, and nothing has been written to it", name);
    else if (rc)
        mfs_err_set(err, -EINVAL, "%.200s: %s", name, strerror(-rc));
    else
        mfs_hosts_parse(mfs_buf_data(&b), mfs_buf_len(&b), input ? "standard input" : name, out,
                        err);
    mfs_buf_fini(&b);
    return err->code;
}

int mfs_hosts_read(const char *given, struct mfs_hosts *out, struct mfs_err *err)
{
    *out = (struct mfs_hosts){0};
    *err = (struct mfs_err){0};
    if (!strcmp(given, "-") || strchr(given, '/') || !access(given, F_OK))
        return read_file(given, out, err);
    return parse_list(given, out, err);
}

void mfs_hosts_clear(struct mfs_hosts *h)
{
    free(h->host);
    *h = (struct mfs_hosts){0};
}

/* ---- places ---------------------------------------------------------------------------------- */

static uint32_t slots(const struct mfs_host *h)
{
    return h->slots ? h->slots : 1;
}

uint32_t mfs_hosts_places(const struct mfs_hosts *h)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < h->n; i++)
        n += slots(&h->host[i]);
    return n;
}

static int put_place(const struct mfs_host *h, uint32_t round, struct mfs_buf *out)
{
    int rc = mfs_buf_printf(out, "%s", h->name);

    if (rc >= 0 && round)
        rc = mfs_buf_printf(out, " round=%u", round);
    if (rc >= 0 && h->memory)
        rc = mfs_buf_printf(out, " memory=%llu", (unsigned long long)h->memory);
    if (rc >= 0 && h->address[0])
        rc = mfs_buf_printf(out, " address=%s", h->address);
    return rc < 0 ? rc : mfs_buf_printf(out, "\n");
}

int mfs_hosts_put_places(const struct mfs_hosts *h, struct mfs_buf *out)
{
    int rc = 0;

    for (uint32_t round = 0; round < MFS_HOSTS_SLOTS_MAX; round++)
        for (uint32_t i = 0; i < h->n && rc >= 0; i++)
            if (round < slots(&h->host[i]))
                rc = put_place(&h->host[i], round, out);
    return rc < 0 ? rc : 0;
}

int mfs_hosts_place(const char *text, struct mfs_host *out, struct mfs_err *err)
{
    char line[LINE_MOST], *first;
    int rc = mfs_text_copy(line, sizeof line, text);

    *out = (struct mfs_host){.place = true};
    if (rc)
        return mfs_err_set(err, rc, "%.60s: too long", text);
    rc = parse_words(line, &first, out, err);
    if (rc)
        return rc;
    if (!first)
        return mfs_err_set(err, -EINVAL, "a place has no host");
    rc = check_name(first, err);
    return rc ? rc : mfs_text_copy(out->name, sizeof out->name, first);
}

const char *mfs_host_machine(const struct mfs_host *h)
{
    const char *at = strchr(h->name, '@');

    return at ? at + 1 : h->name;
}

/* Lists the damaged files, so that their makers can make them again. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "host/mountinfo.h"
#include "base/text.h"
#include "cli/verbs.h"
#include "client/client.h"
#include "fsck/lost.h"

/* What is listed, and how it is shown: a file's path in the file system begins with `within`, and
 * `shown` takes the place of its first `cut` bytes. */
struct range {
    char within[PATH_MAX], shown[PATH_MAX];
    size_t cut;
};

struct search {
    const char *path;
    struct mfs_mountinfo best;
    size_t len; /* of its mount point; 0: none found */
};

static bool is_below(const char *path, const char *dir)
{
    size_t n = strlen(dir);

    return !strncmp(path, dir, n) && (!path[n] || path[n] == '/' || (n && dir[n - 1] == '/'));
}

/* The one made last, of those whose mount point is the longest. */
static int consider(void *arg, const struct mfs_mountinfo *m)
{
    struct search *s = arg;

    if (is_below(s->path, m->point) && strlen(m->point) >= s->len) {
        s->best = *m;
        s->len = strlen(m->point);
    }
    return 0;
}

static int find_range(struct range *r, const char *dir, const char *name, struct mfs_err *err)
{
    struct search *s = calloc(1, sizeof *s);
    char path[PATH_MAX];
    struct mfs_buf text;
    int rc = s ? 0 : -ENOMEM;

    mfs_buf_init(&text);
    if (!rc)
        rc = mfs_mountinfo_read(0, &text);
    if (!rc && !realpath(dir, path))
        rc = -errno;
    if (rc) {
        mfs_err_set(err, rc, "%s: %s", dir, strerror(-rc));
        goto out;
    }
    s->path = path;
    mfs_mountinfo_each(mfs_buf_data(&text), consider, s);
    if (!s->len || strncmp(s->best.fstype, "fuse", 4) || strcmp(s->best.source, name)) {
        rc = mfs_err_set(err, -EINVAL, "%s is not on a mount of deployment \"%s\" (see --name)",
                         dir, name);
        goto out;
    }
    /* root: the directory of the file system that is mounted there, "/" as a rule */
    rc = mfs_text_format(r->within, sizeof r->within, "%s%s",
                         strcmp(s->best.root, "/") ? s->best.root : "", path + s->len);
    r->cut = strcmp(s->best.root, "/") ? strlen(s->best.root) : 0;
    if (!rc)
        rc = mfs_text_copy(r->shown, sizeof r->shown, s->best.point);
    if (rc)
        mfs_err_set(err, rc, "%s: %s", dir, strerror(-rc));
out:
    mfs_buf_fini(&text);
    free(s);
    return rc;
}

static bool in_range(const struct range *r, const struct mfs_lost_file *f)
{
    return is_below(f->path, r->within) && (f->path[0] || !r->within[0]);
}

static void print_text(const struct mfs_lost_list *l, const struct range *r)
{
    for (size_t i = 0; i < l->n; i++) {
        const struct mfs_lost_file *f = &l->file[i];

        if (!in_range(r, f))
            continue;
        if (f->path[0]) {
            char path[2 * PATH_MAX];

            snprintf(path, sizeof path, "%s%s", r->shown, f->path + r->cut);
            mfs_verb_shell_text(path);
            putchar('\n');
        } else {
            printf("(inode %" PRIu64 ", without a name)\n", f->ino);
        }
    }
}

static void print_null(const struct mfs_lost_list *l, const struct range *r)
{
    for (size_t i = 0; i < l->n; i++)
        if (in_range(r, &l->file[i]) && l->file[i].path[0])
            printf("%s%s%c", r->shown, l->file[i].path + r->cut, '\0');
}

static void print_json(const struct mfs_lost_list *l, const struct range *r)
{
    bool any = false;

    printf("{\"files\": [");
    for (size_t i = 0; i < l->n; i++) {
        const struct mfs_lost_file *f = &l->file[i];

        if (!in_range(r, f))
            continue;
        printf("%s\n  {\"path\": ", any ? "," : "");
        any = true;
        if (f->path[0]) {
            char path[2 * PATH_MAX];

            snprintf(path, sizeof path, "%s%s", r->shown, f->path + r->cut);
            mfs_verb_json_text(path);
        } else {
            mfs_verb_json_text("");
        }
        printf(", \"inode\": \"%" PRIu64 "\", \"stripes\": %" PRIu64 ", \"bytes\": %" PRIu64
               ", \"partitions\": [",
               f->ino, f->stripes, f->bytes);
        for (uint32_t p = 0; p < f->nparts; p++)
            printf("%s%" PRIu32, p ? ", " : "", f->part[p]);
        printf("]}");
    }
    printf("%s], \"unread\": [", any ? "\n" : "");
    for (uint32_t i = 0; i < l->nunread; i++)
        printf("%s%" PRIu32, i ? ", " : "", l->unread[i]);
    printf("]}\n");
}

/* What is listed is not all. */
static int report_unread(const struct mfs_lost_list *l, struct mfs_err *err)
{
    char parts[128];
    size_t at = 0;

    if (!l->nunread)
        return 0;
    for (uint32_t i = 0; i < l->nunread && at < sizeof parts; i++)
        at += (size_t)snprintf(parts + at, sizeof parts - at, "%s%" PRIu32, i ? ", " : "",
                               l->unread[i]);
    if (at >= sizeof parts)
        memcpy(parts + sizeof parts - sizeof ", ...", ", ...", sizeof ", ...");
    return mfs_err_set(err, -EIO,
                       "%s can't be read (%s): lost bytes and names that are there are not listed; "
                       "cm doctor says what is wrong",
                       MFS_TEXT_COUNT(l->nunread, "partition"), parts);
}

static int run(struct mfs_verb_call *call, struct mfs_err *err)
{
    const struct mfs_conf *conf = call->conf;
    struct mfs_client *c = NULL;
    struct range *r = calloc(1, sizeof *r);
    struct mfs_lost_list *l = NULL;
    int rc = 0;

    if (!r)
        return mfs_err_set(err, -ENOMEM, "out of memory");
    mfs_log_set_level(MFS_LOG_ERROR);
    if (call->nargs > 0)
        rc = find_range(r, call->args[0], call->paths.name, err);
    if (!rc)
        rc = mfs_verb_join(&c, call, err);
    if (!rc)
        rc = mfs_fsck_lost(mfs_client_store(c), &l, err);
    if (!rc && mfs_conf_flag(conf, "json"))
        print_json(l, r);
    else if (!rc && mfs_conf_flag(conf, "null"))
        print_null(l, r);
    else if (!rc)
        print_text(l, r);
    if (!rc && fflush(stdout))
        rc = mfs_err_set(err, -errno, "output: %s", strerror(errno));
    if (!rc)
        rc = report_unread(l, err);
    mfs_lost_list_free(l);
    mfs_client_destroy(c);
    free(r);
    return rc;
}

static const struct mfs_conf_option options[] = {
    {"null", MFS_CONF_FLAG, NULL, NULL, 0, 0,
     "paths as they are, a NUL behind each; not those without a name"},
    {0}};

const struct mfs_verb mfs_verb_lost = {
    .name = "lost",
    .args = "[DIR]",
    .summary = "list the files of which data were lost",
    .about =
        "Lists the files of which data were lost when a redis-server died: what is left of\n"
        "them can be read, the rest gives EIO until the file is removed or written anew.\n"
        "Paths are those of the file system, or with DIR, which is on a mount of it, those of\n"
        "what is below DIR. Exit status: 0 whether there are any or not; 1 they can't be\n"
        "found out, or some partitions can't be read just now, and what those have is not\n"
        "listed; 2 wrong usage.",
    .most = 1,
    .options = MFS_OPTIONS(mfs_deployment_options, mfs_json_options, options),
    .run = run};

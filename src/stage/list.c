/* What a call is about, and the files that list it. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/text.h"
#include "stage/stage.h"

#define MANIFEST_MOST ((size_t)1 << 30) /* bytes */
#define DIGITS        (2 * MFS_STAGE_SUM)

int mfs_stage_list_add(struct mfs_stage_list *l, const char *from, const char *to)
{
    struct mfs_stage_entry e = {.from = strdup(from), .to = to ? strdup(to) : NULL};

    if (!(l->n & (l->n + 1))) { /* 0, 1, 3, 7, …: twice as many */
        struct mfs_stage_entry *longer =
            realloc(l->entry, 2 * ((size_t)l->n + 1) * sizeof *l->entry);

        if (!longer)
            goto nomem;
        l->entry = longer;
    }
    if (!e.from || (to && !e.to))
        goto nomem;
    l->entry[l->n++] = e;
    return 0;

nomem:
    free(e.from);
    free(e.to);
    return -ENOMEM;
}

void mfs_stage_list_fini(struct mfs_stage_list *l)
{
    for (uint32_t i = 0; i < l->n; i++) {
        free(l->entry[i].from);
        free(l->entry[i].to);
    }
    free(l->entry);
    *l = (struct mfs_stage_list){0};
}

/* Where a path of a list is copied to; NULL: there is no such place below the target. */
static const char *place_of(const char *path)
{
    if (strstr(path, "://")) /* the URL's last name */
        return "";
    while (*path == '/' || !strncmp(path, "./", 2))
        path += *path == '/' ? 1 : 2;
    return *path ? path : NULL;
}

/* As sha256sum writes names with newlines and the like: "\\HEX  a\\nb". */
static void unescape(char *name)
{
    char *out = name;

    for (; *name; name++) {
        if (*name == '\\' && name[1]) {
            name++;
            *out++ = (char)(*name == 'n' ? '\n' : *name == 'r' ? '\r' : *name);
        } else {
            *out++ = *name;
        }
    }
    *out = '\0';
}

/* "HEX  PATH", "HEX *PATH". */
static bool take_sum(char **line, unsigned char sum[MFS_STAGE_SUM])
{
    bool escaped = **line == '\\';
    char digits[DIGITS + 1], *p = *line + escaped;

    if (strlen(p) < DIGITS + 3 || p[DIGITS] != ' ' ||
        (p[DIGITS + 1] != ' ' && p[DIGITS + 1] != '*'))
        return false;
    memcpy(digits, p, DIGITS);
    digits[DIGITS] = '\0';
    if (mfs_text_unhex(digits, sum, MFS_STAGE_SUM))
        return false;
    *line = p + DIGITS + 2;
    if (escaped)
        unescape(*line);
    return true;
}

static int take_line(struct mfs_stage_list *l, char *line)
{
    unsigned char sum[MFS_STAGE_SUM];
    bool has_sum = take_sum(&line, sum);
    char *tab = strchr(line, '\t');
    const char *to;
    int rc;

    if (tab)
        *tab = '\0';
    to = place_of(tab ? tab + 1 : line);
    if (!*line || !to || (tab && !*to))
        return -EINVAL;
    rc = mfs_stage_list_add(l, line, *to ? to : NULL);
    if (!rc && has_sum) {
        l->entry[l->n - 1].has_sum = true;
        memcpy(l->entry[l->n - 1].sum, sum, sizeof sum);
    }
    return rc;
}

int mfs_stage_list_read(struct mfs_stage_list *l, const char *manifest, struct mfs_err *err)
{
    struct mfs_buf text;
    char *line, *rest;
    uint32_t n = 0;
    int rc;

    mfs_buf_init(&text);
    rc = mfs_file_read_given(manifest, MANIFEST_MOST, &text);
    if (!rc)
        rc = mfs_buf_append(&text, "", 1);
    if (rc) {
        mfs_buf_fini(&text);
        return mfs_err_set(err, rc, "%s: %s", manifest, strerror(-rc));
    }
    rest = mfs_buf_data(&text);
    while (!rc && (line = strsep(&rest, "\n"))) {
        size_t len = strlen(line);

        n++;
        if (len && line[len - 1] == '\r')
            line[len - 1] = '\0';
        if (*line)
            rc = take_line(l, line);
    }
    mfs_buf_fini(&text);
    if (rc == -EINVAL)
        return mfs_err_set(err, rc,
                           "%s: line %u names nothing: a line is PATH, SRC<TAB>DST, or one of "
                           "sha256sum's",
                           manifest, n);
    return rc ? mfs_err_set(err, rc, "%s: %s", manifest, strerror(-rc)) : 0;
}

/* Starting the client and its files; see the header. */
#include "lm/mount/client_proc.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "base/text.h"
#include "proto/schema.h"
#include "proto/times.h"

#define WORDS_MAX 200
#define LOG_MAX   (16U << 20)

static int node_file(const struct mfs_client_proc *c, const char *name, char path[PATH_MAX])
{
    return mfs_text_format(path, PATH_MAX, "%s/%s", c->dir, name);
}

/* The options that are ours to say. */
static void put_own(const struct mfs_client_proc *c, char *out, size_t n)
{
    char memory[32] = "";

    if (c->memory)
        snprintf(memory, sizeof memory, "memory=%" PRIu64 ",", c->memory);
    snprintf(out, n, "%s%s%s", memory, c->log_format ? "log_format=" : "",
             c->log_format ? c->log_format : "");
}

int mfs_client_proc_start(const struct mfs_client_proc *c, const char *path, const char *options,
                          struct mfs_proc *proc)
{
    char program[PATH_MAX], log[PATH_MAX], pid_file[PATH_MAX], own[96];
    /* The log by its name, too, so that it can be opened anew. */
    const char *argv[17] = {program,      "mount", "--foreground", "--name", c->name, "--state-dir",
                            c->state_dir, "--lm",  c->address,     "--log",  log};
    size_t argc = 11;
    int rc;

    rc = mfs_proc_sibling("memefs", program, sizeof program);
    if (!rc)
        rc = node_file(c, "client.log", log);
    if (!rc)
        rc = node_file(c, "client.pid", pid_file);
    if (rc)
        return rc;
    put_own(c, own, sizeof own);
    if (own[0]) {
        argv[argc++] = "-o";
        argv[argc++] = own;
    }
    if (options[0]) { /* later ones win */
        argv[argc++] = "-o";
        argv[argc++] = options;
    }
    argv[argc] = path;
    /* One that has ended already is found out by the watch. */
    return mfs_proc_spawn_noted(argv, log, pid_file, proc);
}

void mfs_client_proc_end_unlisted(const struct mfs_client_proc *c)
{
    char file[PATH_MAX];
    struct mfs_proc p;

    if (node_file(c, "client.pid", file) || mfs_proc_load(file, &p) || !mfs_proc_alive(&p))
        return;
    mfs_warn("mount", "ending client %d, which nobody knows of", (int)p.pid);
    if (mfs_proc_end(&p, MFS_CLIENT_END_TIME))
        mfs_error("mount", "client %d can't be killed", (int)p.pid);
    else
        unlink(file);
}

struct json_line {
    char *message;
};

static const struct mfs_schema json_line = {
    "line", sizeof(struct json_line),
    (const struct mfs_field[]){{.name = "message", MFS_FIELD(TEXT, struct json_line, message)},
                               {0}}};

/* A line, of which only the message tells something where it is JSON. */
static void put_words(const char *line, char *out, size_t n)
{
    struct json_line l = {0};

    if (mfs_schema_decode(&json_line, line, strlen(line), &l, NULL))
        l.message = NULL;
    mfs_text_plain(out, n < WORDS_MAX ? n : WORDS_MAX, l.message ? l.message : line);
    mfs_schema_clear(&json_line, &l);
}

void mfs_client_proc_last_words(const struct mfs_client_proc *c, char *out, size_t n)
{
    char file[PATH_MAX], *at, *line;
    struct mfs_buf text;

    snprintf(out, n, "see client.log");
    mfs_buf_init(&text);
    if (!node_file(c, "client.log", file) && !mfs_file_read(file, LOG_MAX, &text) &&
        !mfs_buf_append(&text, "", 1)) {
        line = mfs_buf_data(&text);
        at = line + strlen(line);
        while (at > line && at[-1] == '\n')
            *--at = '\0';
        at = strrchr(line, '\n');
        line = at ? at + 1 : line;
        if (*line)
            put_words(line, out, n);
    }
    mfs_buf_fini(&text);
}

int mfs_client_proc_note(const struct mfs_client_proc *c, const char *path)
{
    char file[PATH_MAX], line[PATH_MAX];
    int rc = node_file(c, "mount", file);

    if (!rc)
        rc = mfs_text_format(line, sizeof line, "%s\n", path);
    return rc ? rc : mfs_file_write(file, line, strlen(line), 0644);
}

void mfs_client_proc_forget(const struct mfs_client_proc *c)
{
    static const char *const names[] = {"mount", "client.pid"};
    char file[PATH_MAX];

    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (!node_file(c, names[i], file))
            unlink(file);
    }
}

/* A call goes from words to a verb (but in a program that has only one), from the verb's tables to
 * values, from these to the deployment's paths, and then to the verb; each step may end it with a
 * line and a status. What is wrong before the verb runs is wrong usage; from then on the verb says.
 * All that goes to the terminal on stderr goes through fail(). */
#include "args/program.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "base/text.h"

#define GROUPS_MAX 12

const struct mfs_conf_option mfs_json_options[] = {
    {"json", MFS_CONF_FLAG, NULL, NULL, 0, 0, "JSON instead of text"}, {0}};

static const struct mfs_conf_option every[] = {
    {"help", MFS_CONF_FLAG, NULL, NULL, 0, 0, "show this and exit"},
    {"version", MFS_CONF_FLAG, NULL, NULL, 0, 0, "show the version and exit"},
    {"h", MFS_CONF_ALIAS, "help", NULL, 0, 0, NULL},
    {0}};

static int fail(const struct mfs_program *p, const char *verb, const struct mfs_err *err,
                bool usage)
{
    char msg[sizeof err->msg];
    size_t n = 0;

    /* A name of a file may stand in it: nothing is for the terminal. */
    for (; err->msg[n]; n++)
        msg[n] = (unsigned char)err->msg[n] < ' ' || err->msg[n] == 0x7f ? '?' : err->msg[n];
    msg[n] = '\0';
    fprintf(stderr, "%s: %s%s%s\n", p->name, verb, *verb ? ": " : "", msg);
    return usage ? MFS_EXIT_USAGE : MFS_EXIT_FAILED;
}

/* ---- help ------------------------------------------------------------------------------------ */

static void show_version(const struct mfs_program *p)
{
    printf("%s (MemEFS) %s\n", p->name, MEMEFS_VERSION);
}

static void show_help(const struct mfs_program *p)
{
    printf("usage: %s COMMAND [OPTION]... [ARGUMENT]...\n\n%s\n\nCommands:\n", p->name, p->summary);
    for (const struct mfs_verb *const *v = p->verbs; *v; v++)
        if ((*v)->summary)
            printf("  %-10s %s\n", (*v)->name, (*v)->summary);
    printf("\n\"%s COMMAND --help\" shows a command's options; \"%s --version\" the version.\n",
           p->name, p->name);
}

static void show_verb(const struct mfs_program *p, const struct mfs_verb *v,
                      const struct mfs_conf_option *const *groups)
{
    const char *about = v->about ? v->about : v->summary ? v->summary : "for internal use";

    printf("usage: %s%s%s [OPTION]...%s%s\n\n%s\n\nOptions:\n", p->name, *v->name ? " " : "",
           v->name, v->args ? " " : "", v->args ? v->args : "", about);
    mfs_conf_help(groups, "--", ' ', stdout);
    if (v->help)
        v->help(stdout);
}

/* ---- running --------------------------------------------------------------------------------- */

/* The options of the verb and those of every one. */
static void gather(const struct mfs_verb *v, const struct mfs_conf_option *groups[GROUPS_MAX])
{
    size_t n = 0;

    for (; v->options && v->options[n]; n++) {
        assert(n + 2 < GROUPS_MAX);
        groups[n] = v->options[n];
    }
    groups[n++] = every;
    groups[n] = NULL;
}

static int parse(struct mfs_verb_call *call, int argc, char **argv, struct mfs_err *err)
{
    int n = mfs_conf_argv(call->conf, argc, argv, call->verb->most, err);

    if (n < 0)
        return n;
    argv[n] = NULL;
    call->args = argv;
    call->nargs = n;
    return 0;
}

/* With --help and --version the rest need not make sense. */
static int check(struct mfs_verb_call *call, struct mfs_err *err)
{
    if (call->nargs < call->verb->least)
        return mfs_err_set(err, -EINVAL, "%s is missing (see --help)", call->verb->args);
    /* A script's unset variable; as a path it would be the working directory. */
    for (int i = 0; i < call->nargs; i++)
        if (!*call->args[i])
            return mfs_err_set(err, -EINVAL, "%s is empty (see --help)", call->verb->args);
    return mfs_conf_knows(call->conf, "state-dir") ? mfs_paths_init(&call->paths, call->conf, err)
                                                   : 0;
}

static int call_it(const struct mfs_program *p, struct mfs_verb_call *call)
{
    struct mfs_err err = {0};
    int rc = check(call, &err);

    if (rc)
        return fail(p, call->verb->name, &err, true);
    if (p->prepare)
        rc = p->prepare(call, &err);
    if (!rc)
        rc = call->verb->run(call, &err);
    return rc < 0 ? fail(p, call->verb->name, &err, call->usage) : rc;
}

static int run(const struct mfs_program *p, const struct mfs_verb *v, int argc, char **argv)
{
    const struct mfs_conf_option *groups[GROUPS_MAX];
    struct mfs_verb_call call = {.verb = v};
    struct mfs_err err = {0};
    int status = MFS_EXIT_OK;

    gather(v, groups);
    call.conf = mfs_conf_create(groups);
    if (!call.conf) {
        mfs_err_set(&err, -ENOMEM, "out of memory");
        return fail(p, v->name, &err, false);
    }
    if (parse(&call, argc, argv, &err))
        status = fail(p, v->name, &err, true);
    else if (mfs_conf_flag(call.conf, "help"))
        show_verb(p, v, groups);
    else if (mfs_conf_flag(call.conf, "version"))
        show_version(p);
    else
        status = call_it(p, &call);
    mfs_conf_destroy(call.conf);
    return status;
}

const struct mfs_verb *mfs_program_find(const struct mfs_program *p, const char *name,
                                        struct mfs_err *err)
{
    unsigned best = (unsigned)strlen(name) / 2 + 1;
    const struct mfs_verb *near = NULL;

    for (const struct mfs_verb *const *v = p->verbs; *v; v++) {
        unsigned d = mfs_text_distance(name, (*v)->name);

        if (!d)
            return *v;
        if (d < best && (*v)->summary && !(*v)->destroys) {
            best = d;
            near = *v;
        }
    }
    if (near)
        mfs_err_set(err, -EINVAL, "unknown command \"" MFS_CONF_SHOWN "\", did you mean %s?", name,
                    near->name);
    else
        mfs_err_set(err, -EINVAL, "unknown command \"" MFS_CONF_SHOWN "\" (see %s --help)", name,
                    p->name);
    return NULL;
}

static bool is_word(const char *given, const char *word)
{
    return !strcmp(given, word);
}

/* Of a program with several verbs. */
static int choose(const struct mfs_program *p, int argc, char **argv)
{
    const struct mfs_verb *v;
    struct mfs_err err = {0};

    if (argc < 2) {
        mfs_err_set(&err, -EINVAL, "no command given (see %s --help)", p->name);
        return fail(p, "", &err, true);
    }
    if (is_word(argv[1], "--help") || is_word(argv[1], "-h") || is_word(argv[1], "help")) {
        show_help(p);
        return MFS_EXIT_OK;
    }
    if (is_word(argv[1], "--version")) {
        show_version(p);
        return MFS_EXIT_OK;
    }
    v = mfs_program_find(p, argv[1], &err);
    return v ? run(p, v, argc - 2, argv + 2) : fail(p, "", &err, true);
}

/* Standard descriptors that our parent closed would be given to the next file or socket, and output
 * would go there. What takes their place refuses it. */
static void occupy_standard(void)
{
    for (int fd = 0; fd <= STDERR_FILENO; fd++)
        if (fcntl(fd, F_GETFD) < 0)
            (void)open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY);
}

/* Output that was lost fails a call that has succeeded. */
static int finish(const struct mfs_program *p, int status)
{
    int rc = fflush(stdout) ? errno : ferror(stdout) ? EIO : 0;
    struct mfs_err err;

    if (!rc || status != MFS_EXIT_OK)
        return status;
    mfs_err_set(&err, -rc, "output: %s", strerror(rc));
    return fail(p, "", &err, false);
}

int mfs_program_run(const struct mfs_program *p, int argc, char **argv)
{
    const struct mfs_verb *only = p->verbs[0];

    signal(SIGCHLD, SIG_DFL); /* ignored by our parent, it would hide the ends of our children */
    occupy_standard();
    return finish(p, *only->name ? choose(p, argc, argv) : run(p, only, argc - 1, argv + 1));
}

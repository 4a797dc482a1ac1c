/* What ssh says, as a message that names the host and what to do. */
#include <errno.h>
#include <string.h>

#include "cm/provider/run.h"
#include "cm/provider/ssh/impl.h"

#define NOT_EXECUTABLE "exited with status 126" /* of a shell; what is there is no such program */
#define NOT_FOUND      "exited with status 127" /* likewise */
#define SSH_FAILED     "exited with status 255" /* its own trouble */

/* In what ssh says, and what helps then. */
static const struct {
    const char *words, *advice;
} known[] = {
    {"Permission denied", "cm answers no questions: allow a login by key, as 'ssh -o BatchMode=yes "
                          "HOST true' needs it"},
    {"Host key verification failed", "log in there once by hand, or add its key to known_hosts"},
    {"Could not resolve", "is it a host's name? A file of hosts is one that exists, or has a / in "
                          "its name"},
    {"refused", "does sshd run there?"},
    {"timed out", "does that machine run, and can this one reach it?"},
    {"No route to host", "does that machine run, and can this one reach it?"},
};

/* Of whatever was run there: a line that tells more than the last one. */
static bool explain_full(const char *host, const struct mfs_err *status, const char *output,
                         struct mfs_err *out)
{
    const char *found = strstr(output, "No space left"), *from = found;

    if (!found)
        return false;
    while (from > output && from[-1] != '\n')
        from--;
    mfs_err_set(out, status->code,
                "%s: %.*s (make room there; --ship needs some 20 MB in /var/tmp, and an lm some "
                "where its state is, which --node-state-dir says)",
                host, (int)strcspn(from, "\r\n"), from);
    return true;
}

static const char *advice(const char *output)
{
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (strstr(output, known[i].words))
            return known[i].advice;
    return NULL;
}

void mfs_ssh_explain(const char *host, const char *program, const struct mfs_err *status,
                     const char *output, struct mfs_err *out)
{
    const char *help = !strcmp(status->msg, SSH_FAILED) ? advice(output) : NULL;
    char last[256];

    mfs_run_last_line(output, last, sizeof last);
    last[strcspn(last, "\r")] = '\0';
    if (explain_full(host, status, output, out))
        return;
    if (!strcmp(status->msg, NOT_FOUND) && strstr(last, "exec: ")) /* our shell's own word */
        mfs_err_set(out, status->code, "%s: ssh can't be run on this machine (%s)", host, last);
    else if ((!strcmp(status->msg, NOT_FOUND) || !strcmp(status->msg, NOT_EXECUTABLE)) &&
             mfs_ssh_is_shipped(program))
        mfs_err_set(out, status->code,
                    "%s: what was carried over can't be run there: %s (is /var/tmp mounted noexec "
                    "there? Else install MemEFS, and say by --programs where)",
                    host, last);
    else if (!strcmp(status->msg, NOT_FOUND) || !strcmp(status->msg, NOT_EXECUTABLE))
        mfs_err_set(out, status->code,
                    "%s: %s can't be run there%s%s: install MemEFS there, say by --programs "
                    "where it is, or have it carried over by --ship",
                    host, program, last[0] ? ": " : "", last);
    else if (last[0])
        mfs_err_set(out, status->code, "%s: %s%s%s%s", host, last, help ? " (" : "",
                    help ? help : "", help ? ")" : "");
    else
        mfs_err_set(out, status->code, "%s: %s %s", host, program, status->msg);
}

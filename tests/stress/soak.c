/* Checksummed load on two or more mounts of one deployment while its parts are killed, stopped and
 * cut:
 *
 *   soak [--seconds N] [--seed N] [--bound S] [--pause US] [--now FILE] [--lost FILE] [--json FILE]
 *        MOUNT MOUNT…
 *
 * Each process of the load (soak.h has the kinds) checks what it reads against what it was told.
 * After so many seconds, or SIGTERM, all changes end, everything must answer again within a minute,
 * and all is read once more through every mount, past the kernel's cache. Exit status 1 when
 * anything was wrong: bytes, names, a lock held by two, an errno that no fault explains, a call
 * that lasted longer than S seconds.
 *
 * --now FILE: its first word says what fault there is; calls, errors and the longest call are
 * counted by it. --lost FILE: files may be lost (there are no replicas); those that can't be read
 * in the end, with EIO, are listed there for who knows which should be. --json FILE: the figures.
 */
#include <errno.h>
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "soak.h"

static struct soak *soak;
static pid_t children[SOAK_WORKERS];
static unsigned workers;

static void (*const kinds[])(struct soak_worker *) = {soak_files, soak_files, soak_names,
                                                      soak_counter, soak_appender};
#define KINDS (sizeof kinds / sizeof *kinds)

static void end_early(int signo)
{
    (void)signo;
    atomic_store(&soak->stop, true);
}

static void work(unsigned id)
{
    struct soak_worker w = {.s = soak, .id = id, .mount = id % 2};

    signal(SIGTERM, SIG_IGN); /* the parent tells */
    w.random = soak_mix(soak->seed + id);
    w.buf = aligned_alloc(SOAK_BLOCK, SOAK_BUF);
    if (!w.buf)
        abort();
    kinds[id / 2](&w);
    free(w.buf);
    exit(0);
}

static void launch(void)
{
    for (workers = 0; workers < 2 * KINDS; workers++) {
        children[workers] = fork();
        if (children[workers] == 0)
            work(workers);
        if (children[workers] < 0)
            abort();
    }
}

/* --- while it runs ---------------------------------------------------------------------------- */

static void note_fault(const char *file)
{
    char text[64] = "", name[32];
    unsigned n = atomic_load(&soak->faults), i;
    int fd = file ? open(file, O_RDONLY | O_CLOEXEC) : -1;

    if (fd < 0)
        return;
    if (read(fd, text, sizeof text - 1) < 1 || sscanf(text, "%31s", name) != 1)
        snprintf(name, sizeof name, "none");
    close(fd);
    for (i = 0; i < n && strcmp(soak->fault[i].name, name) != 0; i++)
        ;
    if (i == SOAK_FAULTS)
        return;
    if (i == n) {
        snprintf(soak->fault[i].name, sizeof name, "%s", name);
        atomic_store(&soak->faults, n + 1);
    }
    atomic_store(&soak->now, i);
}

/* A call that never returns is told while it lasts. */
static void note_hangs(void)
{
    static int64_t told[SOAK_WORKERS];

    for (unsigned i = 0; i < workers; i++) {
        int64_t since = atomic_load(&soak->under_way[i].since);

        if (since && since != told[i] && soak_now() - since > (int64_t)soak->bound * 1000000000) {
            told[i] = since;
            soak_wrong(soak, "%s %s: hangs", soak_call_name[atomic_load(&soak->under_way[i].call)],
                       soak->under_way[i].path);
        }
    }
}

static void reap(void)
{
    for (unsigned i = 0; i < workers; i++) {
        int status;

        if (children[i] && waitpid(children[i], &status, WNOHANG) == children[i]) {
            children[i] = 0;
            atomic_store(&soak->under_way[i].since, 0);
            if (status)
                soak_wrong(soak, "process %u of the load ended with %#x", i, (unsigned)status);
        }
    }
}

static bool all_ended(void)
{
    for (unsigned i = 0; i < workers; i++)
        if (children[i])
            return false;
    return true;
}

static void watch(const char *now_file)
{
    note_fault(now_file);
    note_hangs();
    reap();
    usleep(20000);
}

static void run(unsigned seconds, const char *now_file)
{
    int64_t start = soak_now(), last;

    while (!atomic_load(&soak->stop) && soak_now() - start < (int64_t)seconds * 1000000000)
        watch(now_file);
    atomic_store(&soak->stop, true);
    atomic_store(&soak->stopped, soak_now());
    last = soak_now() + (int64_t)(2 * soak->bound + 4 * SOAK_SETTLE) * 1000000000;
    while (!all_ended() && soak_now() < last)
        watch(now_file);
    for (unsigned i = 0; i < workers; i++)
        if (children[i]) {
            soak_wrong(soak, "process %u of the load does not end: %s", i, soak->under_way[i].path);
            kill(children[i], SIGKILL);
        }
}

/* --- figures ---------------------------------------------------------------------------------- */

static unsigned long long sum(atomic_ullong *of)
{
    unsigned long long n = 0;

    for (unsigned i = 0; i < SOAK_CALLS; i++)
        n += atomic_load(&of[i]);
    return n;
}

static void print_errnos(FILE *out)
{
    const char *comma = "";

    fprintf(out, "},\"errnos\":{");
    for (unsigned i = 0; i < SOAK_ERRNOS; i++)
        if (atomic_load(&soak->errnos[i])) {
            fprintf(out, "%s\"%s\":%llu", comma, strerrorname_np((int)i),
                    atomic_load(&soak->errnos[i]));
            comma = ",";
        }
}

static void print_json(FILE *out, double seconds)
{
    fprintf(out,
            "{\"seed\":%llu,\"seconds\":%.1f,\"bound\":%u,\"calls\":%llu,\"errors\":%llu,"
            "\"unsure\":%llu,\"verified\":%llu,\"written\":%llu,\"read\":%llu,"
            "\"wrong\":%llu,"
            "\"lost\":%llu,\"kinds\":{",
            (unsigned long long)soak->seed, seconds, soak->bound, sum(soak->calls),
            sum(soak->errors), atomic_load(&soak->unsure), atomic_load(&soak->verified),
            atomic_load(&soak->written), atomic_load(&soak->fetched), atomic_load(&soak->wrong),
            atomic_load(&soak->lost));
    for (unsigned i = 0; i < SOAK_CALLS; i++)
        fprintf(out, "%s\"%s\":{\"calls\":%llu,\"errors\":%llu,\"longest_ms\":%.1f}", i ? "," : "",
                soak_call_name[i], atomic_load(&soak->calls[i]), atomic_load(&soak->errors[i]),
                (double)atomic_load(&soak->longest[i]) / 1e6);
    print_errnos(out);
    fprintf(out, "},\"faults\":{");
    for (unsigned i = 0; i < atomic_load(&soak->faults); i++)
        fprintf(out, "%s\"%s\":{\"calls\":%llu,\"errors\":%llu,\"longest_ms\":%.1f}", i ? "," : "",
                soak->fault[i].name, atomic_load(&soak->fault[i].calls),
                atomic_load(&soak->fault[i].errors),
                (double)atomic_load(&soak->fault[i].longest) / 1e6);
    fprintf(out, "}}\n");
}

static void summary(const char *json, double seconds)
{
    FILE *out = json ? fopen(json, "w") : NULL;

    for (unsigned i = 0; i < atomic_load(&soak->faults); i++)
        printf("%-20s %8llu calls %6llu errors, longest %9.1f ms\n", soak->fault[i].name,
               atomic_load(&soak->fault[i].calls), atomic_load(&soak->fault[i].errors),
               (double)atomic_load(&soak->fault[i].longest) / 1e6);
    printf("%s: %.1f s, %llu calls, %llu errors, %llu changes unsure, %llu looks, %.1f MB written, "
           "%.1f MB read, %llu lost, %llu wrong\n",
           atomic_load(&soak->failed) ? "FAILED" : "OK", seconds, sum(soak->calls),
           sum(soak->errors), atomic_load(&soak->unsure), atomic_load(&soak->verified),
           (double)atomic_load(&soak->written) / 1e6, (double)atomic_load(&soak->fetched) / 1e6,
           atomic_load(&soak->lost), atomic_load(&soak->wrong));
    if (out) {
        print_json(out, seconds);
        fclose(out);
    } else if (json) {
        perror(json);
    }
}

/* --- the command line ------------------------------------------------------------------------- */

static int usage(void)
{
    fputs(
        "usage: soak [--seconds N] [--seed N] [--bound S] [--pause US] [--now FILE] [--lost FILE] "
        "[--json FILE] MOUNT MOUNT...\n",
        stderr);
    return 2;
}

static bool set_mounts(int n, char **mounts)
{
    if (n < 2 || n > (int)SOAK_MOUNTS)
        return false;
    for (int i = 0; i < n; i++)
        snprintf(soak->mount[i], sizeof soak->mount[i], "%s", mounts[i]);
    soak->mounts = (unsigned)n;
    return true;
}

int main(int argc, char **argv)
{
    static const struct option options[] = {{"seconds", 1, NULL, 's'}, {"seed", 1, NULL, 'r'},
                                            {"bound", 1, NULL, 'b'},   {"pause", 1, NULL, 'p'},
                                            {"now", 1, NULL, 'n'},     {"lost", 1, NULL, 'l'},
                                            {"json", 1, NULL, 'j'},    {NULL, 0, NULL, 0}};
    const char *now_file = NULL, *json = NULL;
    unsigned seconds = 30;
    int64_t start = soak_now();
    char path[SOAK_PATH];
    int c;

    soak = mmap(NULL, sizeof *soak, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (soak == MAP_FAILED)
        abort();
    soak->seed = 1;
    soak->bound = 60;
    soak->lost_fd = -1;
    soak->pause = 2000;
    while ((c = getopt_long(argc, argv, "", options, NULL)) != -1) {
        switch (c) {
        case 's':
            seconds = (unsigned)atoi(optarg);
            break;
        case 'r':
            soak->seed = strtoull(optarg, NULL, 10);
            break;
        case 'b':
            soak->bound = (unsigned)atoi(optarg);
            break;
        case 'p':
            soak->pause = (unsigned)atoi(optarg);
            break;
        case 'n':
            now_file = optarg;
            break;
        case 'l':
            soak->lost_fd = open(optarg, O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0644);
            break;
        case 'j':
            json = optarg;
            break;
        default:
            return usage();
        }
    }
    if (!set_mounts(argc - optind, argv + optind))
        return usage();
    snprintf(soak->fault[0].name, sizeof soak->fault[0].name, "none");
    atomic_store(&soak->faults, 1);
    snprintf(path, sizeof path, "%s/soak", soak->mount[0]);
    if (mkdir(path, 0755) && errno != EEXIST) {
        perror(path);
        return 1;
    }
    signal(SIGTERM, end_early);
    printf("seed %llu\n", (unsigned long long)soak->seed);
    fflush(stdout);
    launch();
    run(seconds, now_file);
    summary(json, (double)(soak_now() - start) / 1e9);
    return atomic_load(&soak->failed) ? 1 : 0;
}

/* Benchmarks that a user runs on a mount. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "cli/filecopy.h"
#include "cli/verbs.h"

#define MB 1e6

static void print_text(const struct mfs_filecopy *f, const struct mfs_filecopy_rates *r)
{
    printf("%u nodes, %u workers on each, files of %.0f MB, chunks of %.0f kB\n", f->nodes,
           f->workers, (double)f->file / MB, (double)f->chunk / 1e3);
    printf("write %.1f MB/s\nread  %.1f MB/s\n", r->write / MB, r->read / MB);
}

static void print_json(const struct mfs_filecopy *f, const struct mfs_filecopy_rates *r)
{
    printf("{\"workload\": \"filecopy\", \"nodes\": %u, \"workers\": %u, \"file_size\": %llu, "
           "\"chunk_size\": %llu, \"write\": %.0f, \"read\": %.0f}\n",
           f->nodes, f->workers, (unsigned long long)f->file, (unsigned long long)f->chunk,
           r->write, r->read);
}

static int run(struct mfs_verb_call *call, struct mfs_err *err)
{
    const struct mfs_conf *conf = call->conf;
    const struct mfs_filecopy f = {.dir = call->args[1],
                                   .nodes = (unsigned)mfs_conf_uint(conf, "nodes"),
                                   .workers = (unsigned)mfs_conf_uint(conf, "workers"),
                                   .file = mfs_conf_uint(conf, "file-size"),
                                   .chunk = mfs_conf_uint(conf, "chunk-size"),
                                   .patience = (unsigned)mfs_conf_uint(conf, "wait")};
    struct mfs_filecopy_rates rates;
    int rc;

    if (strcmp(call->args[0], "filecopy") != 0) {
        call->usage = true;
        return mfs_err_set(err, -EINVAL, "unknown workload \"%s\": there is filecopy",
                           call->args[0]);
    }
    rc = mfs_filecopy_run(&f, &rates, err);
    if (rc < 0 || rates.rank != 0)
        return rc;
    if (mfs_conf_flag(conf, "json"))
        print_json(&f, &rates);
    else
        print_text(&f, &rates);
    return fflush(stdout) == 0 ? 0 : mfs_err_set(err, -errno, "output: %s", strerror(errno));
}

static const struct mfs_conf_option options[] = {
    {"nodes", MFS_CONF_UINT, "N", "1", 1, 10000, "how many run this command with the same DIR"},
    {"workers", MFS_CONF_UINT, "N", "4", 1, 1024, "of each node"},
    {"file-size", MFS_CONF_SIZE, "SIZE", "256M", 1, 1e15, "of each worker"},
    {"chunk-size", MFS_CONF_SIZE, "SIZE", "1M", 16, 1 << 30, "of each write and read"},
    {"wait", MFS_CONF_UINT, "N", "600", 1, 86400, "seconds that a node waits for the others"},
    {0}};

const struct mfs_verb mfs_verb_bench = {
    .name = "bench",
    .args = "filecopy DIR",
    .summary = "measure how fast files are written and read",
    .about =
        "filecopy: each worker writes a file into DIR, which is on a mount and holds nothing\n"
        "else; when all have, each reads the file of a worker of the next node. Prints what all\n"
        "nodes reached together, and removes DIR with what it has made. On several nodes start it\n"
        "on each with the same DIR and --nodes, e.g.\n"
        "    srun --nodes 4 --ntasks-per-node 1 memefs bench filecopy --nodes 4 /mnt/memefs/bench\n"
        "The first node, by name, prints. DIR may be on any file system that the nodes share.",
    .least = 2,
    .most = 2,
    .options = MFS_OPTIONS(mfs_json_options, options),
    .run = run};

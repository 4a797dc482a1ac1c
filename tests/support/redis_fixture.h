/* Real redis-server processes for a test: N partitions on UNIX sockets in a private directory, with
 * the ACL users of a deployment, formatted and described by a partition table.
 *
 * The processes die with the thread that started them, whatever way it ends: start and restart them
 * from the main thread. One thread at a time; functions that wait do so for at most 10 s. */
#ifndef MFS_TESTS_REDIS_FIXTURE_H
#define MFS_TESTS_REDIS_FIXTURE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "cluster/table.h"

#define REDIS_FIXTURE_NODE           0U /* the node of every partition: mfs_store_opts.node */
#define REDIS_FIXTURE_ADMIN_PASSWORD "fixture-admin" /* of MFS_REDIS_ADMIN */

struct redis_fixture;

struct redis_fixture_opts {
    uint32_t nparts;
    uint32_t stripe_size; /* 0: 1 MiB */
    uint64_t maxmemory;   /* bytes per partition; 0: no limit */
    bool journal;         /* processes keep a journal, see redis_fixture_revive */
    bool tcp;             /* listen on 127.0.0.1, too, and leave the sockets out of the table */
};

/* Starts and formats the processes; 0 or a negative errno, the reason on stderr. */
int redis_fixture_start(struct redis_fixture **f, const struct redis_fixture_opts *opts);
/* Ends the processes and removes their directory. NULL is fine. */
void redis_fixture_stop(struct redis_fixture *f);

/* A new copy of the table, the caller's; epoch 1 unless partitions were moved. */
struct mfs_table *redis_fixture_table(const struct redis_fixture *f);

pid_t redis_fixture_pid(const struct redis_fixture *f, uint32_t part);
/* Kills the process of a partition (SIGKILL) and waits for its end. */
void redis_fixture_kill(struct redis_fixture *f, uint32_t part);
/* Starts it again at the same place, empty and formatted. */
int redis_fixture_restart(struct redis_fixture *f, uint32_t part);
/* Starts it again at the same place, with what its journal says; fixtures with a journal only. */
int redis_fixture_revive(struct redis_fixture *f, uint32_t part);
/* The path of its journal. */
void redis_fixture_journal(const struct redis_fixture *f, uint32_t part, char *out, size_t n);
/* The path of its UNIX socket. */
void redis_fixture_socket(const struct redis_fixture *f, uint32_t part, char *out, size_t n);
/* Starts an empty, formatted process for the partition at another place with another password;
 * the epoch is one higher. The old process goes on until redis_fixture_stop, unless killed before.
 */
int redis_fixture_move(struct redis_fixture *f, uint32_t part);
/* As that, with all that the partition holds, as a migration does it: a replica takes over and the
 * old process is fenced. -EIO when the two differ then. Fixtures with tcp only. */
int redis_fixture_migrate(struct redis_fixture *f, uint32_t part);
/* Ends the processes that moves have left behind. */
void redis_fixture_release(struct redis_fixture *f);

/* From now on the partition's process refuses every command of clients, or executes them again. Any
 * thread. */
int redis_fixture_fence(struct redis_fixture *f, uint32_t part, bool on);

/* Runs one command as administrator, words separated by blanks. 0 or the error reply's errno. */
int redis_fixture_admin(struct redis_fixture *f, uint32_t part, const char *command);

/* Deletes everything in all partitions and formats them again: a fresh deployment in milliseconds.
 */
int redis_fixture_reset(struct redis_fixture *f);

#endif

/* As much of redis as the partition's module needs: keys in memory, commands, and the functions of
 * partition/redis.h and partition/journal/api.h with what the server documents of them. It watches
 * that each command gives one whole reply and closes what it opens. The module keeps a journal. */
#ifndef MFS_FUZZ_REDIS_HOST_H
#define MFS_FUZZ_REDIS_HOST_H

#include "input.h"
#include "partition/journal/journal.h"
#include "partition/journal/state.h"

/* Loads the module, once. Returns the number of its commands. */
unsigned fuzz_redis_load(void);

/* Makes a key: a string, or a hash of one field. */
void fuzz_redis_set(struct fuzz_input name, struct fuzz_input value);
void fuzz_redis_hset(struct fuzz_input name, struct fuzz_input field, struct fuzz_input value);

/* Runs a command of the module; argv[0] is filled in. */
#define FUZZ_REDIS_ARGS 16
void fuzz_redis_command(unsigned which, const struct fuzz_input *args, int n);
/* Likewise one of redis itself. */
void fuzz_redis_other(unsigned which, const struct fuzz_input *args, int n);

/* Takes up a journal into the empty server: as mfs_journal_replay. */
int fuzz_redis_replay(struct mfs_span journal, struct mfs_journal_found *found);
/* Has the module write all keys into its journal, whether it knows of a change or not. */
void fuzz_redis_journal_all(void);
/* What another process would read in the module's journal is what is there now. */
void fuzz_redis_check_journal(void);

/* Drops all keys. */
void fuzz_redis_flush(void);

#endif

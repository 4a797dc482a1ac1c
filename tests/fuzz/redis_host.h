/* As much of redis as the partition's module needs: keys with strings and hashes, in memory, and
 * the functions of partition/redis.h with what the server documents of them, also for keys that are
 * not there or of another type. It watches that each command gives one whole reply and closes what
 * it opens. */
#ifndef MFS_FUZZ_REDIS_HOST_H
#define MFS_FUZZ_REDIS_HOST_H

#include "input.h"

/* Loads the module, once. Returns the number of its commands. */
unsigned fuzz_redis_load(void);

/* Makes a key: a string, or a hash of one field. */
void fuzz_redis_set(struct fuzz_input name, struct fuzz_input value);
void fuzz_redis_hset(struct fuzz_input name, struct fuzz_input field, struct fuzz_input value);

/* Runs a command; argv[0] is filled in. */
#define FUZZ_REDIS_ARGS 16
void fuzz_redis_command(unsigned which, const struct fuzz_input *args, int n);

/* Drops all keys. */
void fuzz_redis_flush(void);

#endif

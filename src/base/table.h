/* uthash for all of the house. Where there is no memory for another item, HASH_ADD leaves its
 * hh.tbl NULL, and does not end the process, which may be a program that uses libmemefs: whoever
 * adds looks. */
#ifndef MFS_BASE_TABLE_H
#define MFS_BASE_TABLE_H

#define HASH_NONFATAL_OOM 1
#include <uthash.h>

#endif

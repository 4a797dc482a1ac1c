/* What EC2's Query API answers, and what it is told. Pure. Source: Amazon EC2 API reference,
 * version 2016-11-15. */
#ifndef MFS_CM_PROVIDER_EC2_ANSWER_H
#define MFS_CM_PROVIDER_EC2_ANSWER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"

#define MFS_EC2_API      "2016-11-15"
#define MFS_EC2_ID_MAX   32
#define MFS_EC2_TAG_OF   "memefs:deployment"
#define MFS_EC2_TAG_NODE "memefs:node"

struct mfs_ec2_instance {
    char id[MFS_EC2_ID_MAX]; /* "i-0123456789abcdef0" */
    char state[32];          /* "pending", "running", "shutting-down", "terminated", … */
    char address[64];        /* private; "" while there is none */
    char why[160];           /* its state has changed; "" for none */
    char node[16];           /* its tag MFS_EC2_TAG_NODE; "" for none */
};

struct mfs_ec2_answer {
    uint32_t n;
    struct mfs_ec2_instance *instance;
    char code[80]; /* of an error; "" for none */
    char message[256];
};

/* Reads instances (of RunInstances and DescribeInstances) or an error. What is too long is cut. 0,
 * -EPROTO (it is no answer of EC2's) or -ENOMEM, both with the reason. *a is for mfs_ec2_free. */
int mfs_ec2_read(const char *text, size_t len, struct mfs_ec2_answer *a, struct mfs_err *err);
void mfs_ec2_free(struct mfs_ec2_answer *a);

/* Would the same call, later, have another answer? By the answer's HTTP status and code. */
bool mfs_ec2_try_again(long status, const char *code);

/* Has it not even been looked at? */
bool mfs_ec2_throttled(const char *code);

/* What helps when a call has failed with that code; "": not known. */
const char *mfs_ec2_advice(const char *code);

/* Appends "&NAME=value" to a form, encoded. 0 or a negative errno. */
int mfs_ec2_form(struct mfs_buf *form, const char *name, const char *value);

#endif

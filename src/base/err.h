/* Errors of the control plane: a code for programs and a sentence for people.
 *
 * The data path returns plain negative errno values. Code that talks to an operator fills a
 * struct mfs_err as well, so that the message that reaches the terminal says what failed and why.
 */
#ifndef MFS_BASE_ERR_H
#define MFS_BASE_ERR_H

#define MFS_ERR_MSG_MAX 512

struct mfs_err {
    int code; /* negative errno, 0 when unset */
    char msg[MFS_ERR_MSG_MAX];
};

/* Fills *err (when not NULL) with a formatted sentence and returns code, which is a negative errno.
 */
int mfs_err_set(struct mfs_err *err, int code, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* Puts "context: " in front of the message that is already there; returns err->code. */
int mfs_err_prefix(struct mfs_err *err, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

#endif

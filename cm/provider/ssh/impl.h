/* Inside the ssh provider: what its files give each other. The loop's thread. */
#ifndef MFS_CM_PROVIDER_SSH_IMPL_H
#define MFS_CM_PROVIDER_SSH_IMPL_H

#include <limits.h>

#include "cm/provider/ssh/hosts.h"
#include "cm/provider/provider.h"

#define MFS_SSH_PLACES_MOST (MFS_HOSTLIST_MOST * MFS_HOSTS_SLOTS_MAX)

/* options.c: parts of the provider */
bool mfs_ssh_is_here(const struct mfs_conf *conf);
int mfs_ssh_environment(struct mfs_conf *conf, struct mfs_err *err);
int mfs_ssh_check(const struct mfs_conf *conf, struct mfs_err *err);
int mfs_ssh_place(const struct mfs_provider_option *option, uint32_t noptions, uint32_t slot,
                  struct mfs_provider_place *out, struct mfs_err *err);

int mfs_ssh_probe(const struct mfs_provider_option *option, uint32_t noptions, uint32_t place,
                  struct mfs_provider_probe *out);
void mfs_ssh_explain_probe(const struct mfs_provider_probe *p, const struct mfs_err *how,
                           const char *output, struct mfs_err *out);

bool mfs_ssh_ships(const struct mfs_provider_option *option, uint32_t noptions); /* --ship. Pure */

/* The line for a shell that has the host in $0 and the command for it in $1; `ssh` may be NULL, and
 * has so many seconds to connect. 0 or -ENAMETOOLONG. Pure. */
int mfs_ssh_command(const char *ssh, unsigned seconds, char *out, size_t n);

/* The host of the place with that number. 0 or -EINVAL with the reason. Pure. */
int mfs_ssh_host(const struct mfs_provider_option *option, uint32_t noptions, uint32_t place,
                 struct mfs_host *out, struct mfs_err *err);

/* ship.c: the command that carries the programs to the host by `ssh_line` (mfs_ssh_command);
 * argv points into the struct, and to the host. 0 or a negative errno. */
struct mfs_ssh_shipping {
    char command[2048], programs[PATH_MAX], unpack[256];
    const char *argv[7];
};

int mfs_ssh_carry(const char *ssh_line, const char *host, const char *dir,
                  struct mfs_ssh_shipping *out);

/* A name for a directory there. 0 or a negative errno. */
int mfs_ssh_name_place(char *out, size_t n);

/* The directory that its output tells. 0 or -EPROTO. Pure. */
int mfs_ssh_shipped(const char *output, char *dir, size_t n);
bool mfs_ssh_is_shipped(const char *handle); /* is that the name of such a directory? Pure */

/* What is noted before it is whole: this, and its name. */
#define MFS_SSH_BEGUN "begun "
bool mfs_ssh_is_begun(const char *handle); /* Pure */

/* Appends what goes before a command of programs there. 0 or -ENOMEM. Pure. */
int mfs_ssh_put_environment(const char *dir, struct mfs_buf *out);

/* text.c: why a command on a host failed, and what to do about it. `status` says how ssh ended,
 * `output` is what was printed, `program` what was to run there. Pure. */
void mfs_ssh_explain(const char *host, const char *program, const struct mfs_err *status,
                     const char *output, struct mfs_err *out);

#endif

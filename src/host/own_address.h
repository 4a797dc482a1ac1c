/* By which of its addresses this machine reaches another one, as the kernel's routes say. Nothing
 * is sent and nothing blocks, but where a name is looked up. */
#ifndef MFS_HOST_OWN_ADDRESS_H
#define MFS_HOST_OWN_ADDRESS_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>

/* `peer` is numeric, or "localhost". 0, -EINVAL when it is no address, or a negative errno: no
 * route leads there (-ENETUNREACH, …). */
int mfs_own_address(const char *peer, char out[INET6_ADDRSTRLEN]);

/* The same for a machine's name, which is looked up: that blocks as long as the resolver does.
 * -ENOENT when there is none of that name. */
int mfs_own_address_towards(const char *name, char out[INET6_ADDRSTRLEN]);

/* The same for what is anywhere else, by the default route. */
int mfs_own_address_default(char out[INET6_ADDRSTRLEN]);

/* The machine's own address in a network, "10.1.0.0/16" or "fd00:1::/64": the first of an interface
 * that is up. 0, -EINVAL when that is no network, -EADDRNOTAVAIL when there is none in it, or a
 * negative errno. */
int mfs_own_address_in(const char *network, char out[INET6_ADDRSTRLEN]);

/* Is it one of the machine's own, which mean another machine elsewhere (127.0.0.0/8, ::1)? */
bool mfs_own_address_is_loopback(const char *host);
bool mfs_own_address_is_any(const char *host); /* 0.0.0.0 or :: */

/* Splits "HOST:PORT" or "[V6]:PORT"; the port follows in *port, which points into the text. 0,
 * -EINVAL or -ENAMETOOLONG. Pure. */
int mfs_own_address_split(const char *text, char *host, size_t n, const char **port);

#endif

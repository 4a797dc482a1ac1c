#include "cm/state/listen.h"

#include <errno.h>
#include <string.h>

#include "base/text.h"
#include "host/own_address.h"

/* Are all nodes on this machine, as far as was said? */
static bool nodes_are_here(const struct mfs_cm_state *s)
{
    return mfs_provider_traits(s->provider)->one_machine ||
           mfs_own_address_is_loopback(s->first_address);
}

/* The address that leads to the nodes. */
static int find(const struct mfs_cm_state *s, char host[INET6_ADDRSTRLEN])
{
    if (s->network[0])
        return mfs_own_address_in(s->network, host);
    if (nodes_are_here(s))
        return mfs_text_copy(host, INET6_ADDRSTRLEN, "127.0.0.1");
    if (s->first_address[0])
        return mfs_own_address(s->first_address, host);
    return mfs_own_address_default(host);
}

static int join(const char *host, const char *port, char out[MFS_ADDRESS_MAX])
{
    return mfs_text_format(out, MFS_ADDRESS_MAX, strchr(host, ':') ? "[%s]:%s" : "%s:%s", host,
                           port);
}

static int check_network(const struct mfs_cm_state *s, struct mfs_err *err)
{
    char host[INET6_ADDRSTRLEN];
    int rc;

    if (!s->network[0])
        return 0;
    if (mfs_provider_traits(s->provider)->one_machine)
        return mfs_err_set(
            err, -EINVAL, "network: only for nodes elsewhere, not with --provider %s", s->provider);
    rc = mfs_own_address_in(s->network, host);
    if (rc == -EINVAL)
        return mfs_err_set(err, rc, "network: %s is no network like 10.1.0.0/16", s->network);
    if (rc && !s->listen[0])
        return mfs_err_set(err, -EINVAL,
                           "network: this machine has no address in %s (%s); if nodes there can "
                           "reach another one, give that by --listen ADDRESS:0",
                           s->network, strerror(-rc));
    return 0;
}

static int check(const struct mfs_cm_state *s, struct mfs_err *err)
{
    char host[MFS_ADDRESS_MAX];
    const char *port;

    /* What is no address at all the listener says itself. */
    if (nodes_are_here(s) || mfs_own_address_split(s->listen, host, sizeof host, &port) ||
        !mfs_own_address_is_loopback(host))
        return 0;
    return mfs_err_set(
        err, -EINVAL,
        "listen: nodes on other machines can't reach %s, which is each machine's own: "
        "leave --listen away, or give an address of this machine's network; for nodes "
        "on this machine, say --first-address 127.0.0.1",
        host);
}

int mfs_listen_choose(const struct mfs_conf *conf, struct mfs_cm_state *s, struct mfs_err *err)
{
    char host[INET6_ADDRSTRLEN];
    int rc;

    if (mfs_conf_str(conf, "listen")) {
        rc = mfs_text_copy(s->listen, sizeof s->listen, mfs_conf_str(conf, "listen"));
        if (!rc && check_network(s, err))
            return err->code;
        return rc ? mfs_err_set(err, rc, "listen: %s", strerror(-rc)) : check(s, err);
    }
    rc = check_network(s, err);
    if (rc)
        return rc;
    rc = find(s, host);
    if (rc)
        return mfs_err_set(
            err, -EINVAL,
            "listen: this machine has no address by which nodes elsewhere could reach "
            "it (%s): give one by --listen ADDRESS:0; for nodes on this machine, say "
            "--first-address 127.0.0.1",
            strerror(-rc));
    rc = join(host, "0", s->listen);
    return rc ? mfs_err_set(err, rc, "listen: %s", strerror(-rc)) : check(s, err);
}

void mfs_listen_again(const struct mfs_cm_state *s, const char *former, char out[MFS_ADDRESS_MAX])
{
    char host[MFS_ADDRESS_MAX], unused[MFS_ADDRESS_MAX];
    const char *port, *given;

    mfs_text_copy(out, MFS_ADDRESS_MAX, former[0] ? former : s->listen);
    if (former[0] && !mfs_own_address_split(s->listen, host, sizeof host, &given) &&
        mfs_own_address_is_any(host) &&
        !mfs_own_address_split(former, unused, sizeof unused, &port))
        join(host, port, out);
}

void mfs_listen_reachable(const struct mfs_cm_state *s, char address[MFS_ADDRESS_MAX])
{
    char host[MFS_ADDRESS_MAX], found[INET6_ADDRSTRLEN], port[MFS_ADDRESS_MAX];
    const char *at;

    if (mfs_own_address_split(address, host, sizeof host, &at) || !mfs_own_address_is_any(host) ||
        mfs_text_copy(port, sizeof port, at) || find(s, found))
        return;
    join(found, port, address);
}

/* The script that an instance runs when it has booted: the operator's own part, then the lm. When
 * the lm ends, whatever the reason, the instance ends itself: nothing runs on that nobody uses. A
 * spot instance asks its metadata whether it is about to be interrupted; its lm then leaves as by
 * any SIGTERM.
 *
 * The secret stands in it, as there is no other way in: whatever may read an instance's user data
 * (its programs, by the metadata; what has the right DescribeInstanceAttribute) may read it. */
#include <errno.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "base/text.h"
#include "cm/provider/ec2/impl.h"

#define MOST 16384 /* bytes that EC2 takes */

/* Until its end, or the notice, of which EC2 says that it comes two minutes before. */
static const char spot_watch[] =
    "m=${AWS_EC2_METADATA_SERVICE_ENDPOINT:-http://169.254.169.254}/latest\n"
    "(\n"
    "while sleep 5; do\n"
    "    t=$(curl -sf -m 2 -X PUT -H 'X-aws-ec2-metadata-token-ttl-seconds: 60' \"$m/api/token\")\n"
    "    if curl -sf -m 2 -o /dev/null -H \"X-aws-ec2-metadata-token: $t\" "
    "\"$m/meta-data/spot/instance-action\"; then\n"
    "        kill -TERM \"$lm\"\n"
    "        break\n"
    "    fi\n"
    "done\n"
    ") &\n";

static int add_setup(const char *path, struct mfs_buf *out, struct mfs_err *err)
{
    int rc = path ? mfs_file_read(path, MOST, out) : 0;

    return rc ? mfs_err_set(err, rc, "ec2-setup: %s: %s", path, strerror(-rc)) : 0;
}

static int add_manager(const struct mfs_provider_context *c, const struct mfs_provider_node *n,
                       struct mfs_buf *out)
{
    struct mfs_provider_input in;
    struct mfs_lm_command lm;
    char quoted[sizeof in.value * 4 + 3];
    int rc = mfs_provider_input(c, &in);

    rc = rc ? rc : mfs_text_quote(quoted, sizeof quoted, in.value);
    rc = rc ? rc : mfs_provider_command(c, n, &lm);
    rc = rc ? rc : mfs_buf_printf(out, "\n%s=%s ", in.input.name, quoted);
    rc = rc ? rc : mfs_provider_quote(&lm, out);
    rc = rc ? rc : mfs_buf_printf(out, " &\nlm=$!\n");
    mfs_provider_input_wipe(&in);
    explicit_bzero(quoted, sizeof quoted);
    return rc;
}

static int write_script(const struct mfs_provider_context *c, const struct mfs_provider_node *n,
                        struct mfs_buf *out, struct mfs_err *err)
{
    int rc = mfs_buf_printf(out, "#!/bin/sh\n# MemEFS: %s of %s\n", n->name, c->paths->name);

    if (!rc && add_setup(mfs_provider_option(c, "ec2-setup"), out, err))
        return err->code;
    rc = rc ? rc : add_manager(c, n, out);
    if (!rc && mfs_provider_option(c, "ec2-spot"))
        rc = mfs_buf_append(out, spot_watch, strlen(spot_watch));
    rc = rc ? rc : mfs_buf_printf(out, "wait \"$lm\"\nshutdown -h now\n");
    if (rc)
        return mfs_err_set(err, rc, "%s", strerror(-rc));
    if (mfs_buf_len(out) > MOST)
        return mfs_err_set(err, -EFBIG, "ec2-setup: too long: EC2 takes %d bytes of user data",
                           MOST);
    return 0;
}

int mfs_ec2_user_data(const struct mfs_provider_context *c, const struct mfs_provider_node *n,
                      struct mfs_buf *out, struct mfs_err *err)
{
    struct mfs_buf script;
    char *room;
    int rc;

    mfs_buf_init(&script);
    rc = write_script(c, n, &script, err);
    room = rc ? NULL : mfs_buf_reserve(out, mfs_buf_len(&script) / 3 * 4 + 8);
    if (!rc && !room)
        rc = mfs_err_set(err, -ENOMEM, "out of memory");
    if (!rc)
        mfs_buf_commit(out, 1 + (size_t)EVP_EncodeBlock((unsigned char *)room,
                                                        (unsigned char *)mfs_buf_data(&script),
                                                        (int)mfs_buf_len(&script)));
    mfs_buf_wipe(&script);
    return rc;
}

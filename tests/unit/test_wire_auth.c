/* The mutual proof: who holds the secret passes; replay, reflection and rubbish do not. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include <sys/stat.h>

#include "base/file.h"
#include "base/text.h"
#include "net/auth.h"
#include "proto/frame.h"
#include "net/proof.h"

static struct mfs_secret right = {.len = 16, .bytes = "0123456789abcdef"};
static struct mfs_secret wrong = {.len = 16, .bytes = "0123456789abcdeF"};

/* Gives the frame at the front of `from` to `a`. */
static int give(struct mfs_auth *a, const struct mfs_buf *from, struct mfs_buf *out)
{
    struct mfs_err err;
    char *body;
    size_t len;

    assert_int_equal(mfs_frame_next(from, MFS_AUTH_FRAME_MAX, &body, &len), 1);
    return mfs_auth_step(a, body, len, out, &err);
}

struct exchange {
    struct mfs_auth listener, caller;
    struct mfs_buf challenge, proof, welcome;
};

static void begin(struct exchange *x, const struct mfs_secret *ours,
                  const struct mfs_secret *theirs)
{
    memset(x, 0, sizeof *x);
    assert_int_equal(mfs_auth_begin(&x->listener, ours, NULL, &x->challenge), 0);
    assert_int_equal(mfs_auth_begin(&x->caller, theirs, "lm", NULL), 0);
    assert_int_equal(give(&x->caller, &x->challenge, &x->proof), MFS_AUTH_WAITING);
}

static void end(struct exchange *x)
{
    mfs_auth_end(&x->listener);
    mfs_auth_end(&x->caller);
    mfs_buf_fini(&x->challenge);
    mfs_buf_fini(&x->proof);
    mfs_buf_fini(&x->welcome);
}

static void both_hold_it(void **state)
{
    struct exchange x;

    (void)state;
    begin(&x, &right, &right);
    assert_int_equal(give(&x.listener, &x.proof, &x.welcome), MFS_AUTH_DONE);
    assert_string_equal(x.listener.role, "lm");
    assert_int_equal(give(&x.caller, &x.welcome, &x.proof), MFS_AUTH_DONE);
    assert_true(give(&x.caller, &x.welcome, &x.proof) < 0);
    end(&x);
}

static void put_frame(struct mfs_buf *out, struct mfs_cipher *with)
{
    mfs_buf_clear(out);
    assert_int_equal(mfs_frame_put(out, "{}", 2), 0);
    assert_int_equal(mfs_cipher_seal(with, out, 0), 0);
}

/* Does `with` open what the other end has sealed? 0 or -EBADMSG. */
static int open_frame(const struct mfs_buf *from, struct mfs_cipher *with)
{
    char copy[64], *body;
    size_t len;

    assert_int_equal(mfs_frame_next(from, sizeof copy, &body, &len), 1);
    memcpy(copy, body, len);
    return mfs_cipher_open(with, copy, &len);
}

static void destroy(struct mfs_cipher *c[2])
{
    mfs_cipher_destroy(c[0]);
    mfs_cipher_destroy(c[1]);
}

/* Both ends seal with the same keys; somebody who has recorded all that went by, and learns the
 * secret later, has no key of theirs to begin with. */
static void recordings_stay_closed(void **state)
{
    struct mfs_cipher *l[2], *c[2], *thief[2];
    struct mfs_buf frame = {0};
    struct mfs_auth later;
    struct exchange x;

    (void)state;
    begin(&x, &right, &right);
    assert_int_equal(give(&x.listener, &x.proof, &x.welcome), MFS_AUTH_DONE);
    assert_int_equal(give(&x.caller, &x.welcome, &x.proof), MFS_AUTH_DONE);
    assert_int_equal(mfs_auth_ciphers(&x.listener, &l[0], &l[1]), 0);
    assert_int_equal(mfs_auth_ciphers(&x.caller, &c[0], &c[1]), 0);
    later = x.caller; /* secret, role and what went by */
    assert_int_equal(mfs_exchange_create(&later.exchange), 0);
    assert_int_equal(mfs_auth_ciphers(&later, &thief[0], &thief[1]), 0);
    put_frame(&frame, l[0]);
    assert_int_equal(open_frame(&frame, thief[1]), -EBADMSG);
    assert_int_equal(open_frame(&frame, c[1]), 0);
    put_frame(&frame, c[0]);
    assert_int_equal(open_frame(&frame, l[1]), 0);
    mfs_auth_end(&x.caller);
    assert_null(x.caller.exchange.secret);
    destroy(l);
    destroy(c);
    destroy(thief);
    mfs_buf_fini(&frame);
    mfs_auth_end(&later);
    end(&x);
}

/* With a key of small order everybody would know what is shared. */
static void keys_of_small_order(void **state)
{
    struct mfs_cipher *sends, *receives;
    struct exchange x;

    (void)state;
    begin(&x, &right, &right);
    memset(x.caller.peer, '0', sizeof x.caller.peer - 1);
    assert_int_equal(mfs_auth_ciphers(&x.caller, &sends, &receives), -EPROTO);
    assert_null(sends);
    assert_null(receives);
    end(&x);
}

/* RFC 7748, 6.1: Bob's secret key, Alice's open one, and what they share. */
static void known_exchange(void **state)
{
    static const char bob[] = "5dab087e624a8a4b79e17f8b83800ee66f3bb1292618b6fd1c2f8b27ff88e0eb";
    static const char alice[] = "8520f0098930a754748b7ddcb43ef75a0dbf3a0d26381af4eba4a98eaa9b4e6a";
    unsigned char open[MFS_EXCHANGE_KEY], shared[MFS_EXCHANGE_KEY];
    unsigned char secret[MFS_EXCHANGE_KEY];
    struct mfs_exchange x = {.secret = secret};
    char text[MFS_AUTH_KEY_TEXT];

    (void)state;
    assert_int_equal(mfs_text_unhex(bob, secret, sizeof secret), 0);
    assert_int_equal(mfs_text_unhex(alice, open, sizeof open), 0);
    assert_int_equal(mfs_exchange_shared(&x, open, shared), 0);
    mfs_text_hex(shared, sizeof shared, text);
    assert_string_equal(text, "4a5d9d5ba4ce2de1728e3bf480350f25e07e21c947d19e3376f09b3c1e161742");
}

static void wrong_secret(void **state)
{
    struct exchange x;

    (void)state;
    begin(&x, &right, &wrong);
    assert_int_equal(give(&x.listener, &x.proof, &x.welcome), -EACCES);
    assert_int_equal(mfs_buf_len(&x.welcome), 0);
    end(&x);
}

static void false_listener(void **state)
{
    struct exchange x, other;

    (void)state;
    begin(&x, &wrong, &right);
    /* A listener without the secret can at best repeat another exchange's welcome. */
    begin(&other, &right, &right);
    assert_int_equal(give(&other.listener, &other.proof, &other.welcome), MFS_AUTH_DONE);
    assert_int_equal(give(&x.caller, &other.welcome, &x.welcome), -EACCES);
    end(&x);
    end(&other);
}

static void replayed_proof(void **state)
{
    struct exchange x, again;

    (void)state;
    begin(&x, &right, &right);
    begin(&again, &right, &right);
    assert_int_equal(give(&again.listener, &x.proof, &again.welcome), -EACCES);
    end(&x);
    end(&again);
}

/* Whoever has no secret sends our own MAC back at us. */
static void reflected(void **state)
{
    struct mfs_auth victim;
    struct mfs_buf challenge = {0}, out = {0}, text = {0};
    struct exchange x;
    struct mfs_err err;
    const char *mac;

    (void)state;
    /* A listener's challenge carried to a caller of the same deployment and back is just a relay;
     * but the caller's proof must not do as a listener's welcome. */
    begin(&x, &right, &right);
    mfs_buf_append(&x.proof, "", 1);
    mac = strstr(mfs_buf_data(&x.proof) + MFS_FRAME_HEAD, "\"mac\":\"");
    assert_non_null(mac);
    mfs_buf_printf(&text, "{\"mac\":\"%.64s\"}", mac + 7);
    assert_int_equal(mfs_auth_step(&x.caller, mfs_buf_data(&text), mfs_buf_len(&text), &out, &err),
                     -EACCES);
    /* And a listener's own challenge is no proof. */
    assert_int_equal(mfs_auth_begin(&victim, &right, NULL, &challenge), 0);
    assert_int_equal(give(&victim, &challenge, &out), -EPROTO);
    mfs_auth_end(&victim);
    mfs_buf_fini(&challenge);
    mfs_buf_fini(&out);
    mfs_buf_fini(&text);
    end(&x);
}

static void rubbish(void **state)
{
    static const char *const bad[] = {"",
                                      "{}",
                                      "null",
                                      "{\"role\":\"lm\",\"key\":\"\",\"mac\":\"\"}",
                                      "{\"role\":\"0123456789abcdefg\",\"key\":\"\",\"mac\":\"\"}",
                                      "{\"type\":\"stop\",\"id\":1}"};
    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct mfs_buf out = {0};
        struct mfs_auth a;
        struct mfs_err err;

        assert_int_equal(mfs_auth_begin(&a, &right, NULL, &out), 0);
        assert_true(mfs_auth_step(&a, bad[i], strlen(bad[i]), &out, &err) < 0);
        mfs_auth_end(&a);
        mfs_buf_clear(&out);
        assert_int_equal(mfs_auth_begin(&a, &right, "cli", &out), 0);
        assert_true(mfs_auth_step(&a, bad[i], strlen(bad[i]), &out, &err) < 0);
        mfs_auth_end(&a);
        mfs_buf_fini(&out);
    }
}

static void secret_files(void **state)
{
    char dir[] = "/tmp/memefs-unit-XXXXXX", path[64];
    struct mfs_secret a, b;
    struct mfs_err err;
    struct stat st;

    (void)state;
    assert_non_null(mkdtemp(dir));
    snprintf(path, sizeof path, "%s/secret", dir);
    assert_int_equal(mfs_secret_create(path), 0);
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 07777, 0600);
    assert_int_equal(mfs_secret_load(path, &a, &err), 0);
    assert_int_equal(mfs_secret_load(path, &b, &err), 0);
    assert_int_equal(a.len, 64);
    assert_int_equal(b.len, 64);
    assert_memory_equal(a.bytes, b.bytes, 64);
    mfs_secret_free(&a);
    mfs_secret_free(&b);
    assert_int_equal(chmod(path, 0640), 0);
    assert_int_equal(mfs_secret_load(path, &b, &err), -EACCES);
    assert_int_equal(mfs_file_write(path, "short\n", 6, 0600), 0);
    assert_int_equal(mfs_secret_load(path, &b, &err), -EINVAL);
    assert_int_equal(mfs_file_remove_tree(dir), 0);
    assert_int_equal(mfs_secret_load(path, &b, &err), -ENOENT);
}

/* As in the proof of a partition's process. */
static void ends_of_connections_have_one_form(void **state)
{
    char a[MFS_PROOF_END_MAX], b[MFS_PROOF_END_MAX];

    (void)state;
    assert_int_equal(mfs_proof_end("127.0.0.1", 65535, a), 0);
    assert_string_equal(a, "127.0.0.1 65535");
    assert_int_equal(mfs_proof_end("0:0:0:0:0:0:0:1", 1, a), 0);
    assert_int_equal(mfs_proof_end("::1", 1, b), 0);
    assert_string_equal(a, b);
    assert_int_equal(mfs_proof_end("localhost", 1, a), -EINVAL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(both_hold_it),
        cmocka_unit_test(wrong_secret),
        cmocka_unit_test(recordings_stay_closed),
        cmocka_unit_test(keys_of_small_order),
        cmocka_unit_test(known_exchange),
        cmocka_unit_test(false_listener),
        cmocka_unit_test(ends_of_connections_have_one_form),
        cmocka_unit_test(replayed_proof),
        cmocka_unit_test(reflected),
        cmocka_unit_test(rubbish),
        cmocka_unit_test(secret_files),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

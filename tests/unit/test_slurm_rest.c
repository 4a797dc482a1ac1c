/* What the Slurm provider says to slurmrestd and reads of it: bodies and answers of old and new
 * versions, tokens, and a server that answers as it should not. */
#include <arpa/inet.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/clock.h"
#include "base/file.h"
#include "cm/provider/slurm/link.h"
#include "cm/provider/slurm/rest_text.h"
#include "cm/provider/slurm/token.h"

/* ---- bodies ---------------------------------------------------------------------------------- */

static const char *body(int version, struct mfs_buf *out)
{
    static const char *const environment[] = {"PATH=/bin", "A=b=c", NULL};
    const struct mfs_slurm_submission s = {.name = "n",
                                           .comment = "t",
                                           .script = "#!/bin/sh\nexec lm\n",
                                           .directory = "/",
                                           .partition = "main",
                                           .minutes = "5",
                                           .mib = 300,
                                           .environment = environment};

    mfs_buf_init(out);
    assert_int_equal(mfs_slurm_rest_body(version, &s, out), 0);
    assert_int_equal(mfs_buf_append(out, "", 1), 0);
    return mfs_buf_data(out);
}

static void jobs_are_described(void **state)
{
    struct mfs_buf buf;
    const char *text = body(38, &buf);

    (void)state;
    assert_non_null(strstr(text, "\"script\":\"#!/bin/sh\\nexec lm\\n\""));
    assert_non_null(strstr(text, "\"environment\":{\"PATH\":\"/bin\",\"A\":\"b=c\"}"));
    assert_non_null(strstr(text, "\"memory_per_node\":\"300M\""));
    assert_non_null(strstr(text, "\"partition\":\"main\""));
    assert_null(strstr(text, "account"));
    mfs_buf_fini(&buf);
    text = body(42, &buf);
    assert_non_null(strstr(text, "\"environment\":[\"PATH=/bin\",\"A=b=c\"]"));
    assert_non_null(strstr(text, "\"memory_per_node\":300"));
    assert_non_null(strstr(text, "\"shared\":[\"none\"]"));
    assert_non_null(strstr(text, "\"kill_warning_flags\":[\"BATCH_JOB\"]"));
    mfs_buf_fini(&buf);
}

/* ---- answers --------------------------------------------------------------------------------- */

static void keep(void *arg, const struct mfs_slurm_job *j)
{
    *(struct mfs_slurm_job *)arg = *j;
}

static struct mfs_slurm_job job_in(const char *text)
{
    struct mfs_slurm_job j = {.id = ""};
    struct mfs_slurm_answer a;
    struct mfs_err err;

    assert_int_equal(mfs_slurm_rest_read(text, strlen(text), keep, &j, &a, &err), 0);
    return j;
}

static void jobs_are_read(void **state)
{
    struct mfs_slurm_job j = job_in(
        "{\"jobs\":[{\"job_id\":12,\"name\":\"n\",\"job_state\":\"PENDING\",\"comment\":\"t\","
        "\"state_reason\":\"Resources\",\"start_time\":86400,\"end_time\":90000}]}");
    char why[MFS_PROVIDER_REASON_MAX];

    (void)state;
    mfs_slurm_why(&j, why);
    assert_string_equal(why, "job 12: Resources; expected at 1970-01-02T00:00:00");
    assert_string_equal(j.comment, "t");
    assert_int_equal(j.end, 90000);
    j = job_in("{\"jobs\":[{\"job_id\":12,\"job_state\":[\"RUNNING\"],\"nodes\":\"tux3\","
               "\"start_time\":{\"set\":false,\"number\":0},"
               "\"end_time\":{\"set\":true,\"infinite\":false,\"number\":90000}}]}");
    assert_int_equal(mfs_slurm_phase(j.state), MFS_SLURM_RUNNING);
    assert_string_equal(j.start, "N/A");
    assert_int_equal(j.end, 90000);
    assert_string_equal(j.host, "tux3");
    j = job_in("{\"jobs\":[{\"job_id\":12,\"job_state\":[\"RUNNING\",\"COMPLETING\"]}]}");
    assert_int_equal(mfs_slurm_phase(j.state), MFS_SLURM_ENDED);
    j = job_in("{\"jobs\":[{\"job_id\":12,\"job_state\":[\"RUNNING\",\"CONFIGURING\"]}]}");
    assert_int_equal(mfs_slurm_phase(j.state), MFS_SLURM_PENDING);
    j = job_in("{\"jobs\":[{\"job_id\":\"12\",\"job_state\":[7]},7,null,{\"job_id\":1e300}]}");
    assert_string_equal(j.id, "");
}

static void errors_are_read(void **state)
{
    static const char invalid[] =
        "{\"errors\":[{\"description\":\"Unable to find JobId=9\",\"error_number\":2017,"
        "\"error\":\"Invalid job id specified\"}],\"jobs\":[]}";
    static const char *const none[] = {
        "", "<html>502</html>", "{\"jobs\":[{\"job_id\":1", "[]", "7", "{} {}"};
    struct mfs_slurm_answer a;
    struct mfs_err err;

    (void)state;
    assert_int_equal(mfs_slurm_rest_read(invalid, strlen(invalid), NULL, NULL, &a, &err), 0);
    assert_int_equal(a.number, MFS_SLURM_NO_SUCH_JOB);
    assert_string_equal(a.error, "Unable to find JobId=9: Invalid job id specified");
    for (size_t i = 0; i < sizeof none / sizeof *none; i++)
        assert_int_equal(mfs_slurm_rest_read(none[i], strlen(none[i]), NULL, NULL, &a, &err),
                         -EPROTO);
}

/* ---- tokens ---------------------------------------------------------------------------------- */

static void tokens_are_read(void **state)
{
    static const char jwt[] = "eyJhbGciOiJIUzI1NiJ9.eyJleHAiOjE3OTU3NTA4NzIsInN1biI6InJvb3QifQ.a_-";
    static const char *const none[] = {"", "\n", "a b", "a\nX-Other: b", "SLURM_JWT="};
    char token[MFS_SLURM_TOKEN_MAX], given[128];
    struct mfs_slurm_claims claims;

    (void)state;
    snprintf(given, sizeof given, "SLURM_JWT=%s\n", jwt);
    assert_int_equal(mfs_slurm_token_read(given, strlen(given), token), 0);
    assert_string_equal(token, jwt);
    mfs_slurm_token_claims(token, &claims);
    assert_int_equal(claims.exp, 1795750872);
    assert_string_equal(claims.sun, "root");
    for (size_t i = 0; i < sizeof none / sizeof *none; i++)
        assert_int_equal(mfs_slurm_token_read(none[i], strlen(none[i]), token), -EINVAL);
    mfs_slurm_token_claims("a.b.c", &claims);
    assert_int_equal(claims.exp, 0);
}

/* ---- a server -------------------------------------------------------------------------------- */

/* Answers each request by `answer`, and closes; NULL: not at all. */
struct server {
    struct mfs_loop *loop;
    int fd, held; /* held: the connection, or -1 */
    struct mfs_watch *watch;
    char url[64];
    const char *(*answer)(const char *request);
    char token[200]; /* of the last request */
    bool ended;
    struct mfs_err err; /* what the call ended with; code 0: it did well */
};

static void serve(void *arg, uint32_t events)
{
    struct server *s = arg;
    char request[4096];
    ssize_t n = read(s->held, request, sizeof request - 1);
    const char *answer, *token;

    (void)events;
    mfs_watch_remove(s->watch);
    assert_true(n > 0);
    request[n] = '\0';
    token = strstr(request, "X-SLURM-USER-TOKEN: ");
    if (token)
        snprintf(s->token, sizeof s->token, "%.*s", (int)strcspn(token + 20, "\r"), token + 20);
    answer = s->answer(request);
    if (!answer)
        return;
    assert_true(write(s->held, answer, strlen(answer)) > 0);
    close(s->held);
    s->held = -1;
}

/* One connection after the other, as calls come one after the other. */
static void take(void *arg, uint32_t events)
{
    struct server *s = arg;

    (void)events;
    s->held = accept4(s->fd, NULL, NULL, SOCK_CLOEXEC);
    assert_true(s->held >= 0);
    s->watch = mfs_loop_watch(s->loop, s->held, EPOLLIN, serve, s);
    assert_non_null(s->watch);
}

static void ended(void *arg, const struct mfs_err *why, const char *text, size_t len)
{
    struct server *s = arg;

    (void)text;
    (void)len;
    s->ended = true;
    s->err = why ? *why : (struct mfs_err){.code = 0};
    mfs_loop_stop(s->loop);
}

static void begin(struct server *s, const char *(*answer)(const char *request))
{
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof a;

    *s = (struct server){.loop = mfs_loop_create(), .answer = answer, .held = -1};
    s->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(s->fd, (struct sockaddr *)&a, sizeof a), 0);
    assert_int_equal(listen(s->fd, 16), 0);
    assert_int_equal(getsockname(s->fd, (struct sockaddr *)&a, &len), 0);
    snprintf(s->url, sizeof s->url, "http://127.0.0.1:%u", ntohs(a.sin_port));
    assert_non_null(mfs_loop_watch(s->loop, s->fd, EPOLLIN, take, s));
}

/* One call, to its end. */
static void call(struct server *s, struct mfs_slurm_link *l, int64_t limit)
{
    const struct mfs_slurm_request r = {.method = "GET", .path = "jobs", .limit = limit};
    struct mfs_err err;

    s->ended = false;
    assert_non_null(mfs_slurm_link_begin(l, &r, ended, s, &err));
    assert_int_equal(mfs_loop_run(s->loop), 0);
    assert_true(s->ended);
}

static void end(struct server *s)
{
    close(s->fd);
    if (s->held >= 0)
        close(s->held);
    mfs_loop_destroy(s->loop);
}

#define OK(text)  "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n" text
#define NOT_FOUND "HTTP/1.1 404 Not Found\r\nConnection: close\r\n\r\nUnable find requested URL."

static const char *version_40(const char *request)
{
    return strstr(request, "/v0.0.40/") ? OK("{\"errors\":[]}") : NOT_FOUND;
}

static const char *no_version(const char *request)
{
    (void)request;
    return NOT_FOUND;
}

static const char *gateway(const char *request)
{
    (void)request;
    return "HTTP/1.1 502 Bad Gateway\r\nConnection: close\r\n\r\n<html>502</html>";
}

static const char *unauthorized(const char *request)
{
    (void)request;
    return "HTTP/1.1 401 Unauthorized\r\nConnection: close\r\n\r\nAuthentication failure";
}

static const char *no_http(const char *request)
{
    (void)request;
    return "SSH-2.0-OpenSSH_9.2\r\n";
}

static const char *silent_after_ping(const char *request)
{
    return strstr(request, "ping") ? OK("{}") : NULL;
}

/* It is cut off. */
static const char *truncated(const char *request)
{
    return strstr(request, "ping")
               ? OK("{}")
               : "HTTP/1.1 200 OK\r\nContent-Length: 99\r\nConnection: close\r\n\r\n{";
}

/* What a call ends with where that answers. */
static struct mfs_err with(const char *(*answer)(const char *request), int *version)
{
    struct mfs_slurm_link *l;
    struct mfs_err err;
    struct server s;

    begin(&s, answer);
    l = mfs_slurm_link_create(s.loop, s.url, NULL, &err);
    assert_non_null(l);
    call(&s, l, 500 * MFS_MSEC);
    if (version)
        *version = mfs_slurm_link_version(l);
    mfs_slurm_link_destroy(l);
    end(&s);
    return s.err;
}

static void the_version_is_found(void **state)
{
    int version = 0;

    (void)state;
    assert_int_equal(with(version_40, &version).code, 0);
    assert_int_equal(version, 40);
    assert_non_null(strstr(with(no_version, NULL).msg, "speaks none of the versions v0.0.36 to"));
}

static void what_is_no_answer(void **state)
{
    struct mfs_err err;

    (void)state;
    assert_non_null(
        strstr(with(gateway, NULL).msg, "is not slurmrestd, or has failed: status 502"));
    err = with(unauthorized, NULL);
    assert_int_equal(err.code, -EACCES);
    assert_non_null(strstr(err.msg, "refuses the token, which may have ended"));
    assert_true(with(no_http, NULL).code < 0);
    assert_int_equal(with(silent_after_ping, NULL).code, -ETIMEDOUT);
    assert_true(with(truncated, NULL).code < 0);
}

static const char *only_new_token(const char *request)
{
    return strstr(request, "X-SLURM-USER-TOKEN: new") ? OK("{}") : unauthorized(request);
}

/* The file is read anew when the token is refused, and the call made again; once. */
static void a_token_is_renewed(void **state)
{
    char file[] = "/tmp/test-slurm-token-XXXXXX";
    int fd = mkstemp(file);
    struct mfs_slurm_link *l;
    struct mfs_err err;
    struct server s;

    (void)state;
    close(fd);
    begin(&s, only_new_token);
    assert_null(mfs_slurm_link_create(s.loop, s.url, file, &err)); /* it is empty */
    assert_int_equal(mfs_file_note(file, "old\n", 4, 0600), 0);
    l = mfs_slurm_link_create(s.loop, s.url, file, &err);
    assert_non_null(l);
    call(&s, l, MFS_SEC);
    assert_int_equal(s.err.code, -EACCES);
    assert_non_null(strstr(s.err.msg, file));
    assert_int_equal(mfs_file_note(file, "new\n", 4, 0600), 0);
    call(&s, l, MFS_SEC);
    assert_int_equal(s.err.code, 0);
    assert_string_equal(s.token, "new");
    mfs_slurm_link_destroy(l);
    unlink(file);
    end(&s);
}

static void urls_are_checked(void **state)
{
    static const char *const good[] = {"http://h:6820", "https://h", "unix:/run/slurmrestd"};
    static const char *const bad[] = {
        "h:6820", "unix:relative", "ftp://h", "http://user:word@h", "http://h/?a", "http://h b"};
    struct mfs_err err;

    (void)state;
    for (size_t i = 0; i < sizeof good / sizeof *good; i++)
        assert_int_equal(mfs_slurm_link_check(good[i], &err), 0);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_int_equal(mfs_slurm_link_check(bad[i], &err), -EINVAL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(jobs_are_described), cmocka_unit_test(jobs_are_read),
        cmocka_unit_test(errors_are_read),    cmocka_unit_test(tokens_are_read),
        cmocka_unit_test(urls_are_checked),   cmocka_unit_test(the_version_is_found),
        cmocka_unit_test(what_is_no_answer),  cmocka_unit_test(a_token_is_renewed)};

    setenv("TZ", "UTC", 1);
    unsetenv("SLURM_JWT");
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* What a cm costs that has many nodes:
 *
 *   many_nodes CM NODES PARTITIONS [--replicas] [--seconds N]
 *
 * Starts CM (build/release/bin/cm), a real one, for NODES nodes on machines of their own, and plays
 * their Local Managers: in this one process each has a connection of its own to cm, proves itself,
 * joins and reports each second by our own src/net and src/proto, as lm does. What cm asks for is
 * answered at once, as there are no redis processes: what is measured is cm. Told are, for each
 * step (start, idle, one node more, one node less, with --replicas one that dies, and a flood of
 * questions), the time that passed, cm's processor time, what the nodes received, the tables among
 * that, and cm's memory. One thread. */
#include <errno.h>
#include <fcntl.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "base/text.h"
#include "cluster/trust.h"
#include "net/conn_impl.h"
#include "net/uplink.h"
#include "proto/messages.h"

#define NAME      "many"
#define STEP_MOST (900 * MFS_SEC)
#define LOOK      (20 * MFS_MSEC)
#define IN_FLIGHT 4
#define MEMORY    (8ULL << 30)

/* A Local Manager. */
struct node {
    uint32_t id;
    struct mfs_uplink *uplink;
    bool joined, mounted, beating, gone;
    uint64_t epoch;
    uint64_t copy_term, copy_revision;
    bool *runs, *copies; /* nparts of each */
    uint64_t received;   /* on connections before this one */
};

static struct {
    const char *cm;
    uint32_t nnodes, nparts;
    bool replicas;
    char dir[64], gate[80];
    struct mfs_secret secret;
    struct mfs_loop *loop;
    struct node *node; /* nnodes + 1 of them: one is to come */
    uint32_t have;
    pid_t daemon;
    uint64_t tables, wholes, states, asked, answered, changed; /* messages */
    bool flood;
} w;

static _Noreturn void fail(const char *what, const char *why)
{
    fprintf(stderr, "many_nodes: %s: %s\n", what, why);
    if (w.daemon)
        kill(w.daemon, SIGKILL);
    exit(1);
}

/* ---- what cm asks a Local Manager for -------------------------------------------------------- */

static struct node *node_of(void *arg)
{
    return arg;
}

static void on_assign(struct mfs_conn *c, uint64_t id, const void *body, void *arg)
{
    const struct mfs_msg_assign *m = body;
    struct mfs_msg_assign_reply reply = {.nassigned = m->nassigned};

    reply.assigned = calloc(m->nassigned + 1, sizeof *reply.assigned);
    for (uint32_t i = 0; i < m->nassigned; i++) {
        reply.assigned[i].index = m->assigned[i].index;
        reply.assigned[i].port = 20000 + i;
        snprintf(reply.assigned[i].unix_path, sizeof reply.assigned[i].unix_path,
                 "/run/memefs/" NAME "/node-%u/redis-%u.sock", node_of(arg)->id,
                 m->assigned[i].index);
        node_of(arg)->runs[m->assigned[i].index] = true;
    }
    mfs_conn_reply(c, MFS_MSG_ASSIGN, id, &reply);
    free(reply.assigned);
}

static void on_table(struct mfs_conn *c, uint64_t id, const void *body, void *arg)
{
    const struct mfs_msg_table *m = body;
    struct node *n = arg;

    w.tables++;
    w.wholes += m->table != NULL;
    n->epoch = m->table ? m->table->epoch : m->change.epoch;
    mfs_conn_reply(c, MFS_MSG_TABLE, id, &(struct mfs_msg_epoch){n->epoch});
}

static void on_state(struct mfs_conn *c, uint64_t id, const void *body, void *arg)
{
    const struct mfs_msg_state *m = body;

    w.states++;
    node_of(arg)->copy_term = m->term;
    node_of(arg)->copy_revision = m->revision;
    mfs_conn_reply(c, MFS_MSG_STATE, id, NULL);
}

static void on_receive(struct mfs_conn *c, uint64_t id, const void *body, void *arg)
{
    const struct mfs_msg_receive *m = body;

    node_of(arg)->copies[m->index] = true;
    mfs_conn_reply(c, MFS_MSG_RECEIVE, id,
                   &(struct mfs_msg_receive_reply){m->index, 1 << 20, 1000, 30000});
}

static void on_take(struct mfs_conn *c, uint64_t id, const void *body, void *arg)
{
    const struct mfs_msg_take *m = body;
    struct mfs_msg_take_reply reply = {.index = m->index, .port = 30000, .blocked_us = 1000};

    node_of(arg)->copies[m->index] = false;
    node_of(arg)->runs[m->index] = true;
    snprintf(reply.unix_path, sizeof reply.unix_path, "/run/memefs/" NAME "/node-%u/redis-%u.sock",
             node_of(arg)->id, m->index);
    mfs_conn_reply(c, MFS_MSG_TAKE, id, &reply);
}

static void on_release(struct mfs_conn *c, uint64_t id, const void *body, void *arg)
{
    const struct mfs_msg_release *m = body;

    node_of(arg)->runs[m->index] = node_of(arg)->copies[m->index] = false;
    mfs_conn_reply(c, MFS_MSG_RELEASE, id, NULL);
}

static void on_fence(struct mfs_conn *c, uint64_t id, const void *body, void *arg)
{
    (void)body;
    (void)arg;
    mfs_conn_reply(c, MFS_MSG_FENCE, id, &(struct mfs_msg_fence_reply){.offset = 0});
}

static void on_mount(struct mfs_conn *c, uint64_t id, const void *body, void *arg)
{
    (void)body;
    node_of(arg)->mounted = true;
    mfs_conn_reply(c, MFS_MSG_MOUNT, id, NULL);
}

static void on_term(struct mfs_conn *c, uint64_t id, const void *body, void *arg)
{
    (void)body;
    (void)arg;
    mfs_conn_reply(c, MFS_MSG_TERM, id, NULL);
}

static void on_umount(struct mfs_conn *c, uint64_t id, const void *body, void *arg)
{
    (void)body;
    (void)arg;
    mfs_conn_reply(c, MFS_MSG_UMOUNT, id, NULL);
}

static void on_end_clients(struct mfs_conn *c, uint64_t id, const void *body, void *arg)
{
    (void)body;
    (void)arg;
    mfs_conn_reply(c, MFS_MSG_END_CLIENTS, id, NULL);
}

static uint64_t received_by(const struct mfs_conn *c)
{
    struct tcp_info info = {0};
    socklen_t len = sizeof info;

    return getsockopt(c->fd, IPPROTO_TCP, TCP_INFO, &info, &len) ? 0 : info.tcpi_bytes_received;
}

static void hang_up(struct node *n)
{
    struct mfs_conn *c = mfs_uplink_conn(n->uplink);

    n->received += c ? received_by(c) : 0;
    mfs_uplink_destroy(n->uplink);
    n->uplink = NULL;
}

/* Its provider takes the end of that process for that of the lm. */
static void end_stand_in(const struct node *n)
{
    char path[96], line[32] = "";
    FILE *f;

    snprintf(path, sizeof path, "%s/pid-%u", w.dir, n->id);
    f = fopen(path, "r");
    if (f && fgets(line, sizeof line, f) && atoi(line) > 1)
        kill(atoi(line), SIGKILL);
    if (f)
        fclose(f);
}

static void end(void *arg)
{
    struct node *n = arg;

    hang_up(n);
    end_stand_in(n);
}

static void on_stop(struct mfs_conn *c, uint64_t id, const void *body, void *arg)
{
    (void)body;
    node_of(arg)->gone = true;
    mfs_conn_reply(c, MFS_MSG_STOP, id, NULL);
    mfs_loop_timer(w.loop, 100 * MFS_MSEC, 0, end, arg);
}

static const struct mfs_handler handlers[] = {{MFS_MSG_ASSIGN, on_assign},
                                              {MFS_MSG_TABLE, on_table},
                                              {MFS_MSG_STATE, on_state},
                                              {MFS_MSG_RECEIVE, on_receive},
                                              {MFS_MSG_TAKE, on_take},
                                              {MFS_MSG_RELEASE, on_release},
                                              {MFS_MSG_FENCE, on_fence},
                                              {MFS_MSG_MOUNT, on_mount},
                                              {MFS_MSG_TERM, on_term},
                                              {MFS_MSG_UMOUNT, on_umount},
                                              {MFS_MSG_END_CLIENTS, on_end_clients},
                                              {MFS_MSG_STOP, on_stop},
                                              {0, NULL}};

/* ---- what a Local Manager says --------------------------------------------------------------- */

static void join(struct node *n, struct mfs_conn *c);

static void join_again(void *arg)
{
    struct node *n = arg;
    struct mfs_conn *c = n->uplink ? mfs_uplink_conn(n->uplink) : NULL;

    if (c && !n->joined)
        join(n, c);
}

/* Until cm knows of the node that is to come, it has none of that name. */
static void join_done(void *arg, const struct mfs_err *err, const void *reply)
{
    struct node *n = arg;

    (void)reply;
    n->joined = !err;
    if (err && err->code != -ECONNABORTED)
        mfs_loop_timer(w.loop, 100 * MFS_MSEC, 0, join_again, n);
}

static void join(struct node *n, struct mfs_conn *c)
{
    struct mfs_msg_join m = {.version = MFS_PROTOCOL_VERSION,
                             .node = n->id,
                             .pid = (uint32_t)getpid(),
                             .epoch = n->epoch,
                             .memory = 2 * MEMORY,
                             .control = 1,
                             .term = n->copy_term,
                             .copy_term = n->copy_term,
                             .copy_revision = n->copy_revision};

    mfs_text_copy(m.name, sizeof m.name, NAME);
    m.assigned = calloc(w.nparts, sizeof *m.assigned);
    for (uint32_t i = 0; i < w.nparts; i++)
        if (n->runs[i])
            m.assigned[m.nassigned++] = (struct mfs_assigned_part){.index = i, .port = 20000};
    mfs_conn_request(c, MFS_MSG_JOIN, &m, 60 * MFS_SEC, join_done, n);
    free(m.assigned);
}

static void up(struct mfs_conn *c, void *arg)
{
    join(arg, c);
}

static void down(struct mfs_conn *c, const struct mfs_err *why, void *arg)
{
    struct node *n = arg;

    (void)c;
    n->joined = n->beating = false;
    if (!n->gone)
        fprintf(stderr, "many_nodes: node %u: %s\n", n->id, why->msg);
}

static const struct mfs_service service = {handlers, up, down};

static void report(struct node *n, struct mfs_conn *c)
{
    struct mfs_msg_report m = {.node = n->id,
                               .epoch = n->epoch,
                               .memory_capacity = MEMORY,
                               .rss = 1ULL << 30,
                               .bandwidth_in = 1e6,
                               .bandwidth_out = 1e6};
    struct mfs_report_client client = {.pid = 4711, .ready = true, .epoch = n->epoch};
    struct mfs_report_copy *copies = calloc(w.nparts, sizeof *copies);

    m.part = calloc(w.nparts, sizeof *m.part);
    m.copy = copies;
    for (uint32_t i = 0; i < w.nparts; i++) {
        if (n->copies[i])
            copies[m.ncopies++] = (struct mfs_report_copy){.index = i, .bytes = 1 << 20};
        if (!n->runs[i])
            continue;
        m.part[m.nparts++] =
            (struct mfs_report_part){.index = i, .memory_used = 1 << 20, .keys = 100};
        m.memory_used += 1 << 20;
    }
    mfs_text_copy(client.mount, sizeof client.mount, "/mnt/memefs-0");
    m.client = &client;
    m.nclients = n->mounted;
    if (!mfs_conn_notify(c, MFS_MSG_REPORT, &m))
        w.asked++;
    free(m.part);
    free(copies);
}

static void flooded(void *arg, const struct mfs_err *err, const void *reply);

static void ask_on(struct node *n)
{
    struct mfs_conn *c = n->uplink ? mfs_uplink_conn(n->uplink) : NULL;

    if (c && w.flood)
        mfs_conn_request(c, MFS_MSG_BEAT, NULL, STEP_MOST, flooded, n);
}

static void flooded(void *arg, const struct mfs_err *err, const void *reply)
{
    (void)reply;
    if (!err)
        w.answered++;
    ask_on(arg);
}

static void beaten(void *arg, const struct mfs_err *err, const void *reply)
{
    (void)reply;
    if (!err)
        w.answered++;
    node_of(arg)->beating = false;
}

/* A twentieth of the nodes each time, so that a second is full of them. */
static void talk(void *arg)
{
    static uint64_t turn;

    (void)arg;
    turn++;
    for (uint32_t i = 0; i < w.have; i++) {
        struct node *n = &w.node[i];
        struct mfs_conn *c = n->uplink && n->joined ? mfs_uplink_conn(n->uplink) : NULL;

        if (!c || n->gone)
            continue;
        if ((turn + i) % 20 == 0)
            report(n, c);
        if (w.replicas && (turn + i) % 5 == 0 && !n->beating && n->epoch)
            n->beating = !mfs_conn_request(c, MFS_MSG_BEAT, NULL, MFS_TRUST_OVER, beaten, n);
    }
}

static void add(uint32_t id)
{
    struct node *n = &w.node[w.have++];
    char at[128];
    struct mfs_err err;

    n->id = id;
    n->runs = calloc(w.nparts, 1);
    n->copies = calloc(w.nparts, 1);
    snprintf(at, sizeof at, "file:%s/state/cm.addr", w.dir);
    n->uplink = mfs_uplink_create(w.loop, at, &w.secret, "lm", &service, n, &err);
    if (!n->uplink)
        fail("connecting", err.msg);
}

/* ---- the deployment -------------------------------------------------------------------------- */

/* What stands for a node's lm at its provider ends when this program does. */
static pid_t run(const char *const *argv)
{
    pid_t pid = fork();

    if (pid)
        return pid;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    execv(w.cm, (char *const *)argv);
    _exit(127);
}

static pid_t cm_start(void)
{
    char nodes[16], parts[16], dir[96], start[300];
    const char *argv[] = {"cm",
                          "start",
                          "--foreground",
                          "--name",
                          NAME,
                          "--state-dir",
                          dir,
                          "--nodes",
                          nodes,
                          "--beta",
                          "0.1",
                          "--partitions",
                          parts,
                          "--memory",
                          "8G",
                          "--provider",
                          "exec",
                          "--exec-start",
                          start,
                          "--first-address",
                          "127.0.0.1",
                          "--mount",
                          "/mnt/memefs-%n",
                          "--log-level",
                          "warn",
                          "--replicas",
                          w.replicas ? "1" : "0",
                          "--rebalance",
                          "off",
                          NULL};

    snprintf(nodes, sizeof nodes, "%u", w.nnodes);
    snprintf(parts, sizeof parts, "%u", w.nparts);
    snprintf(dir, sizeof dir, "%s/state", w.dir);
    snprintf(start, sizeof start, "echo $$ > %s/pid-{node}; read gone < %s", w.dir, w.gate);
    return run(argv);
}

static pid_t cm_scale(uint32_t to)
{
    char dir[96], count[16];
    const char *argv[] = {"cm", "scale", count, "--name", NAME, "--state-dir", dir, NULL};

    snprintf(dir, sizeof dir, "%s/state", w.dir);
    snprintf(count, sizeof count, "%u", to);
    return run(argv);
}

static double cm_spent(void)
{
    unsigned long long ns = 0;
    char path[64];
    FILE *f;

    snprintf(path, sizeof path, "/proc/%d/schedstat", (int)w.daemon);
    f = fopen(path, "r");
    if (!f || fscanf(f, "%llu", &ns) != 1)
        fail("cm", "has ended");
    fclose(f);
    return (double)ns / 1e9;
}

static double cm_memory(const char *what)
{
    char path[64], line[256];
    unsigned long kib = 0;
    FILE *f;

    snprintf(path, sizeof path, "/proc/%d/status", (int)w.daemon);
    f = fopen(path, "r");
    while (f && fgets(line, sizeof line, f))
        if (!strncmp(line, what, strlen(what)))
            kib = strtoul(line + strlen(what) + 1, NULL, 10);
    if (f)
        fclose(f);
    return (double)kib / 1024;
}

static uint64_t received(void)
{
    uint64_t sum = 0;

    for (uint32_t i = 0; i < w.have; i++) {
        struct mfs_conn *c = w.node[i].uplink ? mfs_uplink_conn(w.node[i].uplink) : NULL;

        sum += w.node[i].received + (c ? received_by(c) : 0);
    }
    return sum;
}

/* ---- steps ----------------------------------------------------------------------------------- */

static struct {
    int64_t began;
    double spent;
    uint64_t received, tables, wholes, states, messages;
} before;

static void begin(void)
{
    before.began = mfs_clock_mono();
    before.spent = cm_spent();
    before.received = received();
    before.tables = w.tables;
    before.wholes = w.wholes;
    before.states = w.states;
    before.messages = w.asked + w.answered;
}

static void tell(const char *what)
{
    double passed = (double)(mfs_clock_mono() - before.began) / 1e9;
    double spent = cm_spent() - before.spent;

    printf("| %s | %.2f | %.2f | %.1f | %llu (%llu) | %llu | %llu | %.0f | %.0f |\n", what, passed,
           spent, (double)(received() - before.received) / 1e6,
           (unsigned long long)(w.tables - before.tables),
           (unsigned long long)(w.wholes - before.wholes),
           (unsigned long long)(w.states - before.states),
           (unsigned long long)(w.asked + w.answered - before.messages), cm_memory("VmRSS:"),
           cm_memory("VmHWM:"));
    fflush(stdout);
}

static void stop_loop(void *arg)
{
    (void)arg;
    mfs_loop_stop(w.loop);
}

static void turn_for(int64_t ns)
{
    mfs_loop_timer(w.loop, ns, 0, stop_loop, NULL);
    mfs_loop_run(w.loop);
}

static void wait_for(const char *what, bool (*done)(void))
{
    int64_t until = mfs_clock_mono() + STEP_MOST;

    while (!done()) {
        if (mfs_clock_mono() > until)
            fail(what, "not done in time");
        turn_for(LOOK);
    }
}

static bool all_mounted(void)
{
    for (uint32_t i = 0; i < w.have; i++)
        if (!w.node[i].mounted)
            return false;
    return true;
}

static pid_t command;

static bool command_done(void)
{
    int status;

    if (waitpid(command, &status, WNOHANG) != command)
        return false;
    if (status)
        fprintf(stderr, "many_nodes: the command failed: %d\n", status);
    return true;
}

/* Every partition has a replica that may take over. */
static bool all_protected(void)
{
    static int64_t next;
    char line[256];
    bool none = false;
    FILE *f;

    if (mfs_clock_mono() < next)
        return false;
    next = mfs_clock_mono() + MFS_SEC;
    snprintf(line, sizeof line, "grep -c '\"replica_step\":.*\"ready\"' %s/state/cm.json", w.dir);
    f = popen(line, "r");
    if (f && fgets(line, sizeof line, f))
        none = strtoul(line, NULL, 10) == w.nparts;
    if (f)
        pclose(f);
    return none;
}

/* All partitions of the node that died. */
static bool taken_over(void)
{
    char line[256];
    unsigned long n = 0;
    FILE *f;

    snprintf(line, sizeof line, "grep -c '\"failed-over\"' %s/state/events.jsonl", w.dir);
    f = popen(line, "r");
    if (f && fgets(line, sizeof line, f))
        n = strtoul(line, NULL, 10);
    if (f)
        pclose(f);
    return n >= w.nparts / w.nnodes;
}

static void start(void)
{
    char path[96];
    struct mfs_err err;

    w.daemon = cm_start();
    snprintf(path, sizeof path, "%s/state/secret", w.dir);
    for (int i = 0; i < 1000 && access(path, R_OK); i++)
        mfs_clock_sleep(LOOK);
    if (mfs_secret_load(path, &w.secret, &err))
        fail("secret", err.msg);
    begin();
    before.spent = 0;
    for (uint32_t i = 0; i < w.nnodes; i++)
        add(i);
    mfs_loop_timer(w.loop, MFS_SEC / 20, MFS_SEC / 20, talk, NULL);
    wait_for("start", all_mounted);
    tell("start");
}

static void flood(void)
{
    uint64_t had = w.answered;
    double spent;

    begin();
    spent = cm_spent();
    w.flood = true;
    for (uint32_t i = 0; i < w.have; i++)
        for (int k = 0; k < IN_FLIGHT; k++)
            ask_on(&w.node[i]);
    turn_for(5 * MFS_SEC);
    w.flood = false;
    tell("flood of beats");
    printf("beats per second of cm's processor time: %.0f\n",
           (double)(w.answered - had) / (cm_spent() - spent));
    turn_for(MFS_SEC);
}

static void die(void)
{
    struct node *n = &w.node[w.nnodes / 2];

    begin();
    n->gone = true;
    hang_up(n);
    wait_for("failover", taken_over);
    tell("one node dies: all its partitions serve elsewhere");
}

int main(int argc, char **argv)
{
    int64_t seconds = 10;

    if (argc < 4) {
        fprintf(stderr, "usage: many_nodes CM NODES PARTITIONS [--replicas] [--seconds N]\n");
        return 2;
    }
    w.cm = argv[1];
    w.nnodes = (uint32_t)strtoul(argv[2], NULL, 10);
    w.nparts = (uint32_t)strtoul(argv[3], NULL, 10);
    for (int i = 4; i < argc; i++) {
        if (!strcmp(argv[i], "--replicas"))
            w.replicas = true;
        else if (!strcmp(argv[i], "--seconds") && i + 1 < argc)
            seconds = strtol(argv[++i], NULL, 10);
    }
    mfs_log_open("many_nodes", NULL, MFS_LOG_ERROR);
    signal(SIGPIPE, SIG_IGN);
    strcpy(w.dir, "/tmp/many-nodes-XXXXXX");
    if (!mkdtemp(w.dir))
        fail(w.dir, strerror(errno));
    snprintf(w.gate, sizeof w.gate, "%s/gate", w.dir);
    if (mkfifo(w.gate, 0600) || open(w.gate, O_RDWR | O_CLOEXEC) < 0)
        fail(w.gate, strerror(errno));
    w.loop = mfs_loop_create();
    w.node = calloc(w.nnodes + 1, sizeof *w.node);

    printf("%u nodes, %u partitions%s, %s\n", w.nnodes, w.nparts, w.replicas ? ", replicas" : "",
           w.dir);
    printf(
        "| step | s | cm's processor s | MB to nodes | tables (whole) | copies of cm.json | "
        "reports and "
        "beats | cm's MiB | at most |\n| --- | --- | --- | --- | --- | --- | --- | --- | --- |\n");
    start();
    if (w.replicas) {
        begin();
        wait_for("replicas", all_protected);
        tell("replicas are made");
    } else {
        turn_for(5 * MFS_SEC); /* what follows a start */
    }
    begin();
    turn_for(seconds * MFS_SEC);
    tell("idle");
    if (w.replicas) {
        die();
    } else {
        begin();
        command = cm_scale(w.nnodes + 1);
        add(w.nnodes);
        wait_for("one node more", command_done);
        tell("one node more");
        begin();
        command = cm_scale(w.nnodes);
        wait_for("one node less", command_done);
        tell("one node less");
    }
    flood();
    kill(w.daemon, SIGKILL);
    waitpid(w.daemon, NULL, 0);
    mfs_file_remove_tree(w.dir);
    return 0;
}

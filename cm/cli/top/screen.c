/* Lines from the top: what it is, nodes, mounts, moves; events at the bottom, in what is left.
 * Nodes have a place whatever moves, mounts and moves a quarter of the screen each at most. */
#include "cm/cli/top/screen.h"

#include <curses.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/text.h"
#include "cm/cli/describe.h"
#include "show/figures.h"
#include "show/paint.h"

#define HEAD        3 /* lines above the table of nodes */
#define LEAST_COLS  40
#define LEAST_ROWS  8
#define EVENT_LINES 5 /* that there are at least */

static enum mfs_paint of_state(const char *state)
{
    if (!strcmp(state, "up") || !strcmp(state, "running"))
        return MFS_PAINT_GOOD;
    return strcmp(state, "lost") != 0 && strcmp(state, "degraded") != 0 ? MFS_PAINT_WARN
                                                                        : MFS_PAINT_BAD;
}

static enum mfs_paint of_use(double part, double whole)
{
    double use = whole > 0 ? part / whole : 0;

    return use < 0.8 ? MFS_PAINT_GOOD : use < 0.95 ? MFS_PAINT_WARN : MFS_PAINT_BAD;
}

/* ---- the main page --------------------------------------------------------------------------- */

static void draw_head(const struct mfs_top_sample *s, const struct mfs_top_view *v)
{
    const struct mfs_status *st = &s->status;
    uint64_t used, capacity;
    char clock[16];
    time_t now = time(NULL);
    struct tm tm;
    int width = COLS > 100 ? 30 : 16;

    localtime_r(&now, &tm);
    strftime(clock, sizeof clock, "%H:%M:%S", &tm);
    mfs_status_memory(st, &used, &capacity);
    attron(A_BOLD);
    mfs_paint_put(0, 0, "%s", st->name);
    attroff(A_BOLD);
    mfs_paint_color(of_state(st->state), true);
    mfs_paint_put(0, (int)strlen(st->name) + 1, "%s", st->state);
    mfs_paint_color(of_state(st->state), false);
    mfs_paint_put(0, (int)(strlen(st->name) + strlen(st->state)) + 3, "%s, %s, epoch %llu",
                  MFS_TEXT_COUNT(st->nnodes, "node"), MFS_TEXT_COUNT(st->partitions, "partition"),
                  (unsigned long long)st->epoch);
    mfs_paint_put(0, COLS - 9, " %s", clock);
    mfs_paint_put(1, 0, "memory");
    mfs_paint_bar(1, 7, (double)used, (double)capacity, width,
                  of_use((double)used, (double)capacity));
    mfs_paint_put(1, 8 + width, "%s of %s (%s)  by %s%s", MFS_TEXT_BYTES(used),
                  MFS_TEXT_BYTES(capacity), MFS_SHOW_SHARE(used, capacity, 1),
                  mfs_top_order_names[v->order], v->paused ? "  PAUSED" : "");
    if (v->notice[0]) {
        mfs_paint_color(MFS_PAINT_BAD, true);
        mfs_paint_put(2, 0, "%s", v->notice);
        mfs_paint_color(MFS_PAINT_BAD, false);
    }
}

/* What a full bar of links is: what they carry, where that is known, else the most just now. */
static double link_scale(const struct mfs_status *s, const struct mfs_status_node *n)
{
    double most = 1;

    if (n->bandwidth_capacity > 0)
        return n->bandwidth_capacity;
    for (uint32_t i = 0; i < s->nnodes; i++) {
        most = s->node[i].bandwidth_in > most ? s->node[i].bandwidth_in : most;
        most = s->node[i].bandwidth_out > most ? s->node[i].bandwidth_out : most;
    }
    return most;
}

/* Where columns begin, and how wide bars are. */
struct layout {
    int memory, memory_bar, in, out, link_bar;
};

static struct layout lay_out(void)
{
    int spare = COLS > 80 ? COLS - 80 : 0;
    struct layout c = {.memory = 25, .memory_bar = 8 + spare / 2, .link_bar = 4 + spare / 4};

    c.in = c.memory + c.memory_bar + 1 + 4 + 1 + 9 + 1;
    c.out = c.in + c.link_bar + 1 + 10 + 1;
    return c;
}

static void draw_titles(int row, const struct layout *c)
{
    mfs_paint_title(row);
    mfs_paint_put(row, 0, "%-10s%-9s%5s", "NODE", "STATE", "PARTS");
    mfs_paint_put(row, c->memory, "MEMORY");
    mfs_paint_put(row, c->in, "IN/s");
    mfs_paint_put(row, c->out, "OUT/s");
    attroff(A_REVERSE);
}

static double known(double v)
{
    return isnan(v) ? 0 : v;
}

static void draw_node(int row, const struct mfs_status *s, const struct mfs_status_node *n,
                      const struct layout *c, bool selected)
{
    double used = n->memory_used == MFS_UNKNOWN_U64 ? 0 : (double)n->memory_used;
    double whole = (double)n->memory_capacity;
    double scale = link_scale(s, n);

    if (selected)
        attron(A_BOLD);
    mfs_paint_put(row, 0, "%c%-9.9s", selected ? '>' : ' ', n->name);
    mfs_paint_color(of_state(n->state), true);
    mfs_paint_put(row, 10, "%-9.8s", n->state);
    mfs_paint_color(of_state(n->state), false);
    mfs_paint_put(row, 19, "%5u", n->partitions);
    mfs_paint_bar(row, c->memory, used, whole, c->memory_bar, of_use(used, whole));
    mfs_paint_put(row, c->memory + c->memory_bar + 1, "%4s %9s",
                  MFS_SHOW_SHARE(n->memory_used, n->memory_capacity, 0),
                  MFS_TEXT_BYTES(n->memory_used));
    mfs_paint_bar(row, c->in, known(n->bandwidth_in), scale, c->link_bar, MFS_PAINT_DIM);
    mfs_paint_put(row, c->in + c->link_bar + 1, "%9s", MFS_SHOW_RATE(n->bandwidth_in));
    mfs_paint_bar(row, c->out, known(n->bandwidth_out), scale, c->link_bar, MFS_PAINT_DIM);
    mfs_paint_put(row, c->out + c->link_bar + 1, "%9s", MFS_SHOW_RATE(n->bandwidth_out));
    if (selected)
        attroff(A_BOLD);
}

static uint32_t *make_order(const struct mfs_top_sample *s, const struct mfs_top_view *v)
{
    uint32_t *order = calloc(s->status.nnodes + 1, sizeof *order);

    if (order)
        mfs_top_sort(s, v->order, order);
    return order;
}

/* The row of the selected node; the first one if there is none. */
static uint32_t selected_row(const struct mfs_top_sample *s, const struct mfs_top_view *v,
                             const uint32_t *order)
{
    for (uint32_t i = 0; i < s->status.nnodes; i++)
        if (!strcmp(s->status.node[order[i]].name, v->selected))
            return i;
    return 0;
}

/* At most `rows` of them, with the selected one. The row behind. */
static int draw_nodes(int row, int rows, const struct mfs_top_sample *s, struct mfs_top_view *v)
{
    const struct layout c = lay_out();
    uint32_t *order = make_order(s, v), n = s->status.nnodes, at, shown = (uint32_t)rows;

    draw_titles(row++, &c);
    if (!order)
        return row;
    at = selected_row(s, v, order);
    if (at < v->first)
        v->first = at;
    if (at >= v->first + shown)
        v->first = at - shown + 1;
    if (v->first && v->first + shown > n)
        v->first = n > shown ? n - shown : 0;
    for (uint32_t i = v->first; i < n && i < v->first + shown; i++)
        draw_node(row++, &s->status, &s->status.node[order[i]], &c, i == at);
    free(order);
    return row;
}

/* Where a mount is left out, as there are more than rows, it is the last one. */
static int draw_mounts(int row, int rows, const struct mfs_top_sample *s,
                       const struct mfs_top_view *v)
{
    uint32_t *order = calloc(s->nmounts + 1, sizeof *order);
    int wide = COLS > 80 ? COLS - 80 : 0, at = 20 + wide;
    char p50[16], p99[16];

    if (!order || rows < 2) {
        free(order);
        return row;
    }
    mfs_top_sort_mounts(s, v->order, order);
    mfs_paint_title(row);
    mfs_paint_put(row, 0, "MOUNT");
    mfs_paint_put(row++, at, "%-9s%7s%7s%10s%10s%8s%8s", "NODE", "OPS/s", "ERR/s", "READ/s",
                  "WRITE/s", "P50", "P99");
    attroff(A_REVERSE);
    for (uint32_t i = 0; i < s->nmounts && --rows > 0; i++, row++) {
        const struct mfs_top_mount *m = &s->mount[order[i]];

        mfs_paint_put(row, 0, " %-.*s", at - 2, m->path);
        mfs_paint_put(row, at, "%-9.9s%7.0f%7.0f%10s%10s%8s%8s", m->node, m->operations_rate,
                      m->errors_rate, MFS_TEXT_BYTES((uint64_t)m->read_rate),
                      MFS_TEXT_BYTES((uint64_t)m->written_rate), mfs_show_duration(m->p50, p50),
                      mfs_show_duration(m->p99, p99));
    }
    free(order);
    return row;
}

static int draw_moves(int row, int rows, const struct mfs_top_sample *s)
{
    char left[16];

    if (!s->nmoves || rows < 2)
        return row;
    attron(A_BOLD);
    mfs_paint_put(row++, 0, "%s on the way", MFS_TEXT_COUNT(s->nmoves, "partition"));
    attroff(A_BOLD);
    for (uint32_t i = 0; i < s->nmoves && --rows > 0; i++, row++) {
        const struct mfs_top_move *m = &s->move[i];

        mfs_paint_put(row, 0, " %-5u %s -> %s", m->partition, m->from, m->to);
        mfs_paint_put(row, 30, "%-8.8s", m->step);
        mfs_paint_bar(row, 39, (double)m->bytes, (double)m->bytes_total, 10, MFS_PAINT_GOOD);
        mfs_paint_put(row, 50, "%s of %s", MFS_TEXT_BYTES(m->bytes),
                      MFS_TEXT_BYTES(m->bytes_total));
        if (m->rate > 0 && COLS > 90)
            mfs_paint_put(row, 74, "%s/s, %s left", MFS_TEXT_BYTES((uint64_t)m->rate),
                          mfs_top_left(m->left_seconds, left));
        else if (m->rate > 0)
            mfs_paint_put(row, 73, "%s", mfs_top_left(m->left_seconds, left));
    }
    return row;
}

/* The last ones, in what is left above the last line. */
static void draw_events(int row, const struct mfs_top_sample *s)
{
    int rows = LINES - 1 - row - 1;
    uint32_t first;

    if (rows < 1 || !s->nevents)
        return;
    attron(A_BOLD);
    mfs_paint_put(row++, 0, "events");
    attroff(A_BOLD);
    first = s->nevents > (uint32_t)rows ? s->nevents - (uint32_t)rows : 0;
    for (uint32_t i = first; i < s->nevents; i++) {
        const struct mfs_event *e = &s->event[i];

        mfs_paint_put(row++, 0, " %.8s %-8s %-16s %s",
                      strlen(e->time) > 19 ? e->time + 11 : e->time, e->who, e->what, e->text);
    }
}

static void draw_main(const struct mfs_top_sample *s, struct mfs_top_view *v)
{
    int moves = s->nmoves ? 1 + (int)s->nmoves : 0, nodes, row;
    int mounts = s->nmounts ? 1 + (int)s->nmounts : 0;

    if (moves > LINES / 4)
        moves = LINES / 4;
    if (mounts > LINES / 4)
        mounts = LINES / 4;
    nodes = LINES - HEAD - 1 - mounts - moves - EVENT_LINES - 1;
    if (nodes < 1)
        nodes = 1;
    draw_head(s, v);
    row = draw_nodes(HEAD, nodes, s, v);
    row = draw_mounts(row, mounts, s, v);
    row = draw_moves(row, moves, s);
    draw_events(row, s);
}

/* ---- the other pages ------------------------------------------------------------------------- */

static const struct mfs_status_node *selected(const struct mfs_top_sample *s,
                                              const struct mfs_top_view *v)
{
    uint32_t *order = make_order(s, v);
    const struct mfs_status_node *n = NULL;

    if (order && s->status.nnodes)
        n = &s->status.node[order[selected_row(s, v, order)]];
    free(order);
    return n;
}

/* As cm describe shows it, with what the sample knows. */
static void draw_details(const struct mfs_top_sample *s, const struct mfs_top_view *v)
{
    const struct mfs_status_node *n = selected(s, v);
    struct mfs_description d;
    struct mfs_err err;
    struct mfs_buf b;

    if (!n || mfs_describe(&s->status, n->name, &d, &err))
        return;
    for (uint32_t i = s->nevents; i > 0 && d.nevents < MFS_DESCRIBE_EVENTS; i--)
        if (mfs_describe_event(&d, &s->event[i - 1]))
            d.event[d.nevents++] = s->event[i - 1];
    for (uint32_t i = 0; i < d.nevents / 2; i++) {
        struct mfs_event other = d.event[i];

        d.event[i] = d.event[d.nevents - 1 - i];
        d.event[d.nevents - 1 - i] = other;
    }
    mfs_buf_init(&b);
    if (!mfs_describe_render(&d, &b))
        mfs_paint_lines(0, mfs_buf_data(&b), mfs_buf_len(&b));
    mfs_buf_fini(&b);
    mfs_schema_clear(&mfs_description_schema, &d);
}

static int draw_ops(int row, int rows, const struct mfs_top_sample *s)
{
    char mean[16], max[16];

    mfs_paint_title(row);
    mfs_paint_put(row++, 0, "%-16s%10s%10s%10s%10s%14s", "OPERATION", "OPS/s", "ERR/s", "MEAN",
                  "MAX", "SO FAR");
    attroff(A_REVERSE);
    for (uint32_t i = 0; i < s->nops && --rows > 0; i++)
        mfs_paint_put(row++, 0, "%-16s%10.0f%10.0f%10s%10s%14llu", s->op[i].name,
                      s->op[i].operations_rate, s->op[i].errors_rate,
                      mfs_show_duration(s->op[i].mean, mean), mfs_show_duration(s->op[i].max, max),
                      (unsigned long long)s->op[i].operations);
    return row;
}

static int draw_hot(int row, int rows, const char *title, const struct mfs_mounts_hot *h,
                    uint32_t n)
{
    mfs_paint_title(row);
    mfs_paint_put(row++, 0, "%9s%8s  %s", "OPS/s", "MOUNTS", title);
    attroff(A_REVERSE);
    for (uint32_t i = 0; i < n && --rows > 0; i++)
        mfs_paint_put(row++, 0, "%9.0f%8u  %s", h[i].rate, h[i].mounts, h[i].name);
    return row;
}

/* Operations by kind, what they are of, and what each mount's links carry. */
static void draw_work(const struct mfs_top_sample *s, const struct mfs_top_view *v)
{
    int rows = LINES - 1 - HEAD, part = rows / 4, row;

    draw_head(s, v);
    row = draw_ops(HEAD, rows - 3 * part, s);
    row = draw_hot(row, part, "FILE", s->file, s->nfiles);
    row = draw_hot(row, part, "DIRECTORY", s->dir, s->ndirs);
    mfs_paint_title(row);
    mfs_paint_put(row++, 0, "%12s%12s  %-10s%s", "SENT/s", "RECEIVED/s", "NODE", "MOUNT");
    attroff(A_REVERSE);
    for (uint32_t i = 0; i < s->nmounts && row < LINES - 1; i++)
        mfs_paint_put(row++, 0, "%12s%12s  %-10.10s%s",
                      MFS_TEXT_BYTES((uint64_t)s->mount[i].sent_rate),
                      MFS_TEXT_BYTES((uint64_t)s->mount[i].received_rate), s->mount[i].node,
                      s->mount[i].path);
}

static const char help[] =
    "cm top: what a deployment does, anew each second\n"
    "\n"
    "  n m i o       nodes by name, memory in use, what their links take in, give out\n"
    "  x             nodes and mounts by operations per second\n"
    "  s             by the next one of these\n"
    "  up down j k   select a node\n"
    "  Enter         all that is known of it\n"
    "  w             operations by kind, files and directories, what mounts send and get\n"
    "  p, space      pause, and go on\n"
    "  h ?           this\n"
    "  Esc           back\n"
    "  q             quit\n"
    "\n"
    "A bar of memory is what is used of a node's capacity. A bar of a link is what it\n"
    "carries of what it can or, where that is not known, of the most just now.\n"
    "P50 and P99: so long operations have taken so far, half of them and 99 % at most.\n"
    "Files and directories are of samples of each mount's requests.\n";

static const struct mfs_top_sample none;

void mfs_top_screen_draw(void *view, const void *sample, const char *notice)
{
    const struct mfs_top_sample *s = sample ? sample : &none;
    struct mfs_top_view *v = view;

    v->notice = notice;
    erase();
    if (COLS < LEAST_COLS || LINES < LEAST_ROWS) {
        mfs_paint_put(0, 0, "too small");
    } else if (v->page == MFS_TOP_PAGE_HELP) {
        mfs_paint_lines(0, help, sizeof help - 1);
    } else if (!s->when) {
        mfs_paint_put(0, 0, "%s", v->notice[0] ? v->notice : "waiting for cm");
    } else if (v->page == MFS_TOP_PAGE_NODE) {
        draw_details(s, v);
    } else if (v->page == MFS_TOP_PAGE_WORK) {
        draw_work(s, v);
    } else {
        draw_main(s, v);
    }
    if (LINES > 1) {
        mfs_paint_color(MFS_PAINT_DIM, true);
        mfs_paint_put(LINES - 1, 0,
                      v->page == MFS_TOP_PAGE_MAIN
                          ? "q quit  h help  s sort  p pause  w operations  Enter details"
                          : "Esc back  q quit");
        mfs_paint_color(MFS_PAINT_DIM, false);
    }
    refresh();
}

/* ---- keys ------------------------------------------------------------------------------------ */

static void select_node(const struct mfs_top_sample *s, struct mfs_top_view *v, int step)
{
    uint32_t *order = make_order(s, v), at;

    if (order && s->status.nnodes) {
        at = selected_row(s, v, order);
        if (step > 0 && at + 1 < s->status.nnodes)
            at++;
        else if (step < 0 && at > 0)
            at--;
        memcpy(v->selected, s->status.node[order[at]].name, sizeof v->selected);
    }
    free(order);
}

static bool take_order(struct mfs_top_view *v, int key)
{
    static const char keys[] = "nmiox";
    const char *at = key > 0 && key < 128 ? strchr(keys, key) : NULL;

    if (key == 's')
        v->order = (v->order + 1) % MFS_TOP_ORDERS;
    else if (at)
        v->order = (enum mfs_top_order)(at - keys);
    return key == 's' || at;
}

static bool take_page(struct mfs_top_view *v, int key)
{
    if (key == 'h' || key == '?')
        v->page = v->page == MFS_TOP_PAGE_HELP ? MFS_TOP_PAGE_MAIN : MFS_TOP_PAGE_HELP;
    else if (key == '\r' || key == '\n' || key == KEY_ENTER)
        v->page = v->page == MFS_TOP_PAGE_NODE ? MFS_TOP_PAGE_MAIN : MFS_TOP_PAGE_NODE;
    else if (key == 'w')
        v->page = v->page == MFS_TOP_PAGE_WORK ? MFS_TOP_PAGE_MAIN : MFS_TOP_PAGE_WORK;
    else if (key == 27)
        v->page = MFS_TOP_PAGE_MAIN;
    else
        return false;
    return true;
}

enum mfs_live_key mfs_top_screen_key(void *view, const void *sample)
{
    const struct mfs_top_sample *s = sample ? sample : &none;
    struct mfs_top_view *v = view;
    int key = getch();

    if (key == ERR)
        return MFS_LIVE_NONE;
    if (key == KEY_RESIZE)
        return MFS_LIVE_TAKEN; /* the size has changed */
    if (key == 'q' || key == 'Q')
        return MFS_LIVE_QUIT;
    if (take_page(v, key) || take_order(v, key))
        return MFS_LIVE_TAKEN;
    if (key == 'p' || key == ' ')
        v->paused = !v->paused;
    else if (key == KEY_DOWN || key == 'j')
        select_node(s, v, 1);
    else if (key == KEY_UP || key == 'k')
        select_node(s, v, -1);
    return MFS_LIVE_TAKEN;
}

bool mfs_top_screen_paused(const void *view)
{
    const struct mfs_top_view *v = view;

    return v->paused;
}

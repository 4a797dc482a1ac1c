/* Lines from the top: what the mount does, operations by kind; then files, directories and
 * processes, which share what is left; each of these has a page of its own. */
#include "cli/top/screen.h"

#include <curses.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/text.h"
#include "show/figures.h"
#include "show/paint.h"

#define HEAD       3 /* lines above the table of operations */
#define LEAST_COLS 40
#define LEAST_ROWS 8
#define BAR        10

/* ---- pieces ---------------------------------------------------------------------------------- */

static void draw_head(const struct mfs_mount_top *t, const struct mfs_mount_view *v,
                      const char *notice)
{
    char clock[16], p50[16], p99[16];
    time_t now = time(NULL);
    struct tm tm;

    localtime_r(&now, &tm);
    strftime(clock, sizeof clock, "%H:%M:%S", &tm);
    attron(A_BOLD);
    mfs_paint_put(0, 0, "%s", t->mount);
    attroff(A_BOLD);
    mfs_paint_put(0, COLS - 9, " %s", clock);
    mfs_paint_put(1, 0, "%.0f ops/s  read %s/s  write %s/s  p50 %s  p99 %s  by %s%s", t->operations,
                  MFS_TEXT_BYTES((uint64_t)t->rates.read_bytes),
                  MFS_TEXT_BYTES((uint64_t)t->rates.write_bytes),
                  mfs_show_duration(t->rates.p50_ms / 1e3, p50),
                  mfs_show_duration(t->rates.p99_ms / 1e3, p99),
                  mfs_mount_top_order_names[v->order], v->paused ? "  PAUSED" : "");
    if (notice[0] != '\0') {
        mfs_paint_color(MFS_PAINT_BAD, true);
        mfs_paint_put(2, 0, "%s", notice);
        mfs_paint_color(MFS_PAINT_BAD, false);
    } else if (t->rates.hits >= 0) {
        mfs_paint_put(2, 0, "%.0f%% of look-ups answered here  %llu under way  %llu waiting",
                      t->rates.hits, (unsigned long long)t->under_way,
                      (unsigned long long)t->waiting);
    } else {
        mfs_paint_put(2, 0, "%llu under way  %llu waiting", (unsigned long long)t->under_way,
                      (unsigned long long)t->waiting);
    }
}

static uint32_t *make_order(const struct mfs_mount_top *t, const struct mfs_mount_view *v)
{
    uint32_t *order = calloc(t->nops + 1, sizeof *order);

    if (order != NULL)
        mfs_mount_top_sort(t, v->order, order);
    return order;
}

static uint32_t selected_row(const struct mfs_mount_top *t, const struct mfs_mount_view *v,
                             const uint32_t *order)
{
    for (uint32_t i = 0; i < t->nops; i++)
        if (strcmp(t->op[order[i]].name, v->selected) == 0)
            return i;
    return 0;
}

static void draw_op(int row, const struct mfs_rates_op *op, double most, bool selected)
{
    char p50[16], p99[16], max[16];

    if (selected)
        attron(A_BOLD);
    mfs_paint_put(row, 0, "%c%-14.14s", selected ? '>' : ' ', op->name);
    mfs_paint_bar(row, 16, op->rate, most, BAR, MFS_PAINT_GOOD);
    mfs_paint_put(row, 17 + BAR, "%9.0f", op->rate);
    if (op->errors > 0)
        mfs_paint_color(MFS_PAINT_WARN, true);
    mfs_paint_put(row, 27 + BAR, "%8.0f", op->errors);
    if (op->errors > 0)
        mfs_paint_color(MFS_PAINT_WARN, false);
    mfs_paint_put(row, 36 + BAR, "%8s%8s%8s%8.2f", mfs_show_duration(op->p50_ms / 1e3, p50),
                  mfs_show_duration(op->p99_ms / 1e3, p99),
                  mfs_show_duration(op->max_ms / 1e3, max), op->busy);
    if (selected)
        attroff(A_BOLD);
}

/* At most `rows` of them, with the selected one. The row behind. */
static int draw_ops(int row, int rows, const struct mfs_mount_top *t, struct mfs_mount_view *v)
{
    uint32_t *order = make_order(t, v), at, shown = (uint32_t)rows;
    double most = 1;

    mfs_paint_title(row);
    mfs_paint_put(row++, 0, "%-16s%-*s%10s%9s%9s%8s%8s%8s", "OPERATION", BAR, "", "OPS/s", "ERR/s",
                  "P50", "P99", "MAX", "BUSY");
    attroff(A_REVERSE);
    if (order == NULL)
        return row;
    at = selected_row(t, v, order);
    if (at < v->first)
        v->first = at;
    if (at >= v->first + shown)
        v->first = at - shown + 1;
    if (v->first > 0 && v->first + shown > t->nops)
        v->first = t->nops > shown ? t->nops - shown : 0;
    for (uint32_t i = 0; i < t->nops; i++)
        most = t->op[i].rate > most ? t->op[i].rate : most;
    for (uint32_t i = v->first; i < t->nops && i < v->first + shown; i++)
        draw_op(row++, &t->op[order[i]], most, i == at);
    free(order);
    return row;
}

static int draw_hot(int row, int rows, const char *title, const struct mfs_mount_top_hot *h,
                    uint32_t n)
{
    char mean[16];

    if (rows < 1)
        return row;
    mfs_paint_title(row);
    mfs_paint_put(row++, 0, "%-7s%9s%10s%8s  %s", "SHARE", "OPS/s", "BYTES/s", "MEAN", title);
    attroff(A_REVERSE);
    for (uint32_t i = 0; i < n && --rows > 0; i++, row++)
        mfs_paint_put(row, 0, "%5.1f%% %9.0f%10s%8s  %s", 100 * h[i].share, h[i].rate,
                      MFS_TEXT_BYTES((uint64_t)h[i].bytes_rate),
                      mfs_show_duration(h[i].mean_ms / 1e3, mean), h[i].name);
    return row;
}

/* ---- pages ----------------------------------------------------------------------------------- */

static void draw_main(const struct mfs_mount_top *t, struct mfs_mount_view *v)
{
    int rows = LINES - HEAD - 2, third, ops = rows / 2, row;

    if (t->nops < (uint32_t)ops)
        ops = (int)t->nops;
    row = draw_ops(HEAD, ops > 0 ? ops : 1, t, v);
    third = (LINES - 1 - row) / 3;
    if (!t->samples) {
        mfs_paint_put(row + 1, 0, "files and processes: only for root and the mount's owner");
        return;
    }
    draw_hot(row, third, "FILE", t->file, t->nfiles);
    draw_hot(row + third, third, "DIRECTORY", t->dir, t->ndirs);
    draw_hot(row + 2 * third, LINES - 1 - row - 2 * third, "PROCESS", t->program, t->nprograms);
}

static void draw_nodes(const struct mfs_mount_top *t)
{
    char mean[16];
    int row = HEAD;

    mfs_paint_title(row);
    mfs_paint_put(row++, 0, "%5s%12s%12s%10s%11s%10s", "NODE", "PARTITIONS", "TRIPS/s", "MEAN",
                  "UNDER WAY", "SILENT");
    attroff(A_REVERSE);
    for (uint32_t i = 0; i < t->nnodes && row < LINES - 1; i++) {
        const struct mfs_mount_top_node *n = &t->node[i];

        mfs_paint_color(n->silent_s > 1 ? MFS_PAINT_BAD : MFS_PAINT_PLAIN, true);
        mfs_paint_put(row++, 0, "%5u%12u%12.0f%10s%11u%8.1f s", n->node, n->partitions, n->rate,
                      mfs_show_duration(n->mean_ms / 1e3, mean), n->under_way, n->silent_s);
        mfs_paint_color(n->silent_s > 1 ? MFS_PAINT_BAD : MFS_PAINT_PLAIN, false);
    }
}

static void draw_operation(const struct mfs_mount_top *t, const struct mfs_mount_view *v)
{
    uint32_t *order = make_order(t, v);
    const struct mfs_rates_op *op;
    char a[16], b[16];

    if (order != NULL && t->nops > 0) {
        op = &t->op[order[selected_row(t, v, order)]];
        attron(A_BOLD);
        mfs_paint_put(HEAD, 0, "%s", op->name);
        attroff(A_BOLD);
        mfs_paint_put(HEAD + 1, 0, "each second      %.1f, %.1f with errors", op->rate, op->errors);
        mfs_paint_put(HEAD + 2, 0, "just now         half within %s, 99%% within %s",
                      mfs_show_duration(op->p50_ms / 1e3, a),
                      mfs_show_duration(op->p99_ms / 1e3, b));
        mfs_paint_put(HEAD + 3, 0, "at a time        %.2f under way on average", op->busy);
        mfs_paint_put(HEAD + 4, 0, "since the mount  %llu, %llu with errors",
                      (unsigned long long)op->all, (unsigned long long)op->all_errors);
        mfs_paint_put(HEAD + 5, 0, "                 half within %s, the longest %s",
                      mfs_show_duration(op->all_p50_ms / 1e3, a),
                      mfs_show_duration(op->max_ms / 1e3, b));
    }
    free(order);
}

static const char help[] =
    "memefs top: what a mount does, anew each second\n"
    "\n"
    "  r t l e n     operations by rate, time, latency (99 %), errors, name\n"
    "  s             by the next one of these\n"
    "  up down j k   select an operation\n"
    "  Enter         all that is known of it\n"
    "  f d u o       files, directories, processes; nodes\n"
    "  p, space      pause, and go on\n"
    "  h ?           this\n"
    "  Esc           back\n"
    "  q             quit\n"
    "\n"
    "P50 and P99: so long operations took just now, half of them and 99 % at most; MAX since\n"
    "the mount. BUSY: so many were under way on average. Files, directories and processes are\n"
    "of samples, of which older ones count less: a share of a few is not exact.\n";

static void draw_page(const struct mfs_mount_top *t, struct mfs_mount_view *v)
{
    int rows = LINES - 1 - HEAD;

    switch (v->page) {
    case MFS_MOUNT_PAGE_OPERATION:
        draw_operation(t, v);
        break;
    case MFS_MOUNT_PAGE_FILES:
        draw_hot(HEAD, rows, "FILE", t->file, t->nfiles);
        break;
    case MFS_MOUNT_PAGE_DIRS:
        draw_hot(HEAD, rows, "DIRECTORY", t->dir, t->ndirs);
        break;
    case MFS_MOUNT_PAGE_PROGRAMS:
        draw_hot(HEAD, rows, "PROCESS", t->program, t->nprograms);
        break;
    case MFS_MOUNT_PAGE_NODES:
        draw_nodes(t);
        break;
    default:
        draw_main(t, v);
    }
}

void mfs_mount_screen_draw(void *view, const void *sample, const char *notice)
{
    const struct mfs_mount_top *t = sample;
    struct mfs_mount_view *v = view;

    erase();
    if (COLS < LEAST_COLS || LINES < LEAST_ROWS) {
        mfs_paint_put(0, 0, "too small");
    } else if (v->page == MFS_MOUNT_PAGE_HELP) {
        mfs_paint_lines(0, help, sizeof help - 1);
    } else if (t == NULL) {
        mfs_paint_put(0, 0, "%s", notice[0] != '\0' ? notice : "waiting for the client");
    } else {
        draw_head(t, v, notice);
        draw_page(t, v);
    }
    if (LINES > 1) {
        mfs_paint_color(MFS_PAINT_DIM, true);
        mfs_paint_put(LINES - 1, 0,
                      v->page == MFS_MOUNT_PAGE_MAIN
                          ? "q quit  h help  s sort  p pause  f d u files, dirs, processes  o nodes"
                          : "Esc back  q quit");
        mfs_paint_color(MFS_PAINT_DIM, false);
    }
    refresh();
}

/* ---- keys ------------------------------------------------------------------------------------ */

static void select_op(const struct mfs_mount_top *t, struct mfs_mount_view *v, int step)
{
    uint32_t *order = t != NULL ? make_order(t, v) : NULL, at;

    if (order != NULL && t->nops > 0) {
        at = selected_row(t, v, order);
        if (step > 0 && at + 1 < t->nops)
            at++;
        else if (step < 0 && at > 0)
            at--;
        memcpy(v->selected, t->op[order[at]].name, sizeof v->selected);
    }
    free(order);
}

static bool take_order(struct mfs_mount_view *v, int key)
{
    static const char keys[] = "rtlen";
    const char *at = key > 0 && key < 128 ? strchr(keys, key) : NULL;

    if (key == 's')
        v->order = (v->order + 1) % MFS_MOUNT_TOP_ORDERS;
    else if (at != NULL)
        v->order = (enum mfs_mount_top_order)(at - keys);
    return key == 's' || at != NULL;
}

/* The same key leads there and back. */
static bool take_page(struct mfs_mount_view *v, int key)
{
    static const struct {
        int key;
        enum mfs_mount_page page;
    } pages[] = {{'h', MFS_MOUNT_PAGE_HELP},       {'?', MFS_MOUNT_PAGE_HELP},
                 {'\r', MFS_MOUNT_PAGE_OPERATION}, {'\n', MFS_MOUNT_PAGE_OPERATION},
                 {'f', MFS_MOUNT_PAGE_FILES},      {'d', MFS_MOUNT_PAGE_DIRS},
                 {'u', MFS_MOUNT_PAGE_PROGRAMS},   {'o', MFS_MOUNT_PAGE_NODES},
                 {27, MFS_MOUNT_PAGE_MAIN}};

    key = key == KEY_ENTER ? '\r' : key;
    for (size_t i = 0; i < sizeof pages / sizeof *pages; i++)
        if (pages[i].key == key) {
            v->page = v->page == pages[i].page ? MFS_MOUNT_PAGE_MAIN : pages[i].page;
            return true;
        }
    return false;
}

enum mfs_live_key mfs_mount_screen_key(void *view, const void *sample)
{
    struct mfs_mount_view *v = view;
    int key = getch();

    if (key == ERR)
        return MFS_LIVE_NONE;
    if (key == 'q' || key == 'Q')
        return MFS_LIVE_QUIT;
    if (key == KEY_RESIZE || take_page(v, key) || take_order(v, key))
        return MFS_LIVE_TAKEN;
    if (key == 'p' || key == ' ')
        v->paused = !v->paused;
    else if (key == KEY_DOWN || key == 'j')
        select_op(sample, v, 1);
    else if (key == KEY_UP || key == 'k')
        select_op(sample, v, -1);
    return MFS_LIVE_TAKEN;
}

bool mfs_mount_screen_paused(const void *view)
{
    const struct mfs_mount_view *v = view;

    return v->paused;
}

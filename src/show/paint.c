#include "show/paint.h"

#include <curses.h>
#include <errno.h>
#include <langinfo.h>
#include <locale.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <term.h>
#include <unistd.h>

#include "base/text.h"
#include "show/figures.h"

static bool utf8, colors;
static SCREEN *terminal; /* NULL: it is not ours */

/* ---- the terminal ---------------------------------------------------------------------------- */

bool mfs_paint_can(void)
{
    const char *term = getenv("TERM"), *cup;
    bool can;
    int rc;

    if (!term || !isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO) ||
        setupterm(term, STDOUT_FILENO, &rc) != OK)
        return false;
    cup = tigetstr("cup");
    can = cup && cup != (char *)-1; /* NOLINT(performance-no-int-to-ptr) */
    del_curterm(cur_term);
    return can;
}

static void give_back(void)
{
    if (terminal && !isendwin())
        endwin();
}

/* The last thing before a crash. */
static void on_crash(int signo)
{
    alarm(1); /* endwin(3) may wait for a lock that was held then, of malloc(3) say */
    give_back();
    signal(signo, SIG_DFL);
    raise(signo);
}

static void open_colors(void)
{
    const char *no = getenv("NO_COLOR");

    colors = has_colors() && !(no && *no);
    if (!colors)
        return;
    start_color();
    use_default_colors();
    init_pair(MFS_PAINT_GOOD, COLOR_GREEN, -1);
    init_pair(MFS_PAINT_WARN, COLOR_YELLOW, -1);
    init_pair(MFS_PAINT_BAD, COLOR_RED, -1);
    init_pair(MFS_PAINT_DIM, COLOR_CYAN, -1);
}

int mfs_paint_open(struct mfs_err *err)
{
    static const int crashes[] = {SIGSEGV, SIGBUS, SIGABRT, SIGFPE, SIGILL};

    setlocale(LC_CTYPE, "");
    utf8 = !strcmp(nl_langinfo(CODESET), "UTF-8");
    terminal = newterm(NULL, stdout, stdin);
    if (!terminal)
        return mfs_err_set(err, -ENOTTY, "the terminal can't be used; try --once");
    atexit(give_back);
    for (size_t i = 0; i < sizeof crashes / sizeof *crashes; i++)
        signal(crashes[i], on_crash);
    cbreak();
    noecho();
    nonl();
    keypad(stdscr, TRUE);
    nodelay(stdscr, TRUE);
    set_escdelay(25);
    curs_set(0);
    open_colors();
    return 0;
}

void mfs_paint_close(void)
{
    give_back();
    if (terminal)
        delscreen(terminal);
    terminal = NULL;
}

/* ---- pieces ---------------------------------------------------------------------------------- */

void mfs_paint_color(enum mfs_paint c, bool on)
{
    attr_t a = c == MFS_PAINT_DIM                            ? A_NORMAL
               : c == MFS_PAINT_PLAIN || c == MFS_PAINT_GOOD ? A_NORMAL
                                                             : A_BOLD;

    if (colors && c != MFS_PAINT_PLAIN)
        a |= COLOR_PAIR(c);
    if (on)
        attron(a);
    else
        attroff(a);
}

void mfs_paint_text(int row, int col, const char *text)
{
    int left = COLS - col;

    if (row < 0 || row >= LINES || left <= 0)
        return;
    move(row, col);
    for (size_t n = 0; *text && left > 0; text += n) {
        n = mfs_text_utf8(text);
        if (n == 1 && (unsigned char)*text >= ' ' && *text != 0x7f) {
            addch((unsigned char)*text);
        } else if (n > 1 && utf8 &&
                   !((unsigned char)text[0] == 0xc2 && (unsigned char)text[1] < 0xa0)) {
            addnstr(text, (int)n);
        } else {
            addch('?');
        }
        n = n ? n : 1;
        left = COLS - getcurx(stdscr);
        if (getcury(stdscr) != row)
            break; /* the last column was filled */
    }
}

void mfs_paint_put(int row, int col, const char *fmt, ...)
{
    char text[1024];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    mfs_paint_text(row, col, text);
}

void mfs_paint_bar(int row, int col, double part, double whole, int width, enum mfs_paint c)
{
    int full = mfs_show_cells(part, whole, width);

    mfs_paint_color(c, true);
    for (int i = 0; i < full; i++)
        mfs_paint_text(row, col + i, utf8 ? "█" : "#");
    mfs_paint_color(c, false);
    for (int i = full; i < width; i++)
        mfs_paint_text(row, col + i, utf8 ? "·" : ".");
}

void mfs_paint_title(int row)
{
    attron(A_REVERSE);
    for (int i = 0; i < COLS; i++)
        mfs_paint_text(row, i, " ");
}

void mfs_paint_lines(int row, const char *text, size_t len)
{
    for (const char *end = text + len, *stop; text < end && row < LINES - 1; text = stop + 1) {
        stop = memchr(text, '\n', (size_t)(end - text));
        if (!stop)
            return;
        mfs_paint_put(row++, 0, "%.*s", (int)(stop - text), text);
    }
}

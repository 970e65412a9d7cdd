/* The only code that knows ncurses. */
#ifndef NCURSES_WIDECHAR
#define NCURSES_WIDECHAR 1
#endif
#ifndef _XOPEN_SOURCE
#define _XOPEN_SOURCE 700 /* wcwidth */
#endif
#include <curses.h>
#include <errno.h>
#include <langinfo.h>
#include <locale.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/select.h>
#include <term.h>
#include <termios.h>
#include <unistd.h>
#include <wchar.h>
#undef columns /* of term.h */

#include "process_memory.h"
#include "terminal.h"

enum { ESCAPE_WAIT_MS = 50, MAX_ROWS = 500, MAX_COLUMNS = 1000, CTRL_L = 12 };

/* These end the process. The first STOPS of them wait until the screen is closed; the others are
 * errors, after which nothing but the terminal can be restored. */
static const int fatal[] = {SIGHUP, SIGINT, SIGTERM, SIGQUIT, SIGABRT, SIGSEGV, SIGBUS, SIGFPE};
enum { STOPS = 4, FATALS = sizeof fatal / sizeof *fatal };

/* Variables, because a handler of signals has no argument. */
static struct sigaction old_actions[FATALS];
static volatile sig_atomic_t stopped_by;
static volatile sig_atomic_t is_open; /* the two variables below are set, and the screen may be */
static struct termios modes_before;
static char leave_sequence[256];

/* Restores the terminal, if it was changed. Async-signal-safe. */
static void restore_now(void)
{
    if (!is_open)
        return;
    (void)!write(STDOUT_FILENO, leave_sequence, strlen(leave_sequence));
    (void)tcsetattr(STDIN_FILENO, TCSANOW, &modes_before);
}

static void on_stop(int number)
{
    stopped_by = number;
}

static void on_error(int number)
{
    restore_now();
    for (size_t i = STOPS; i < FATALS; i++)
        if (fatal[i] == number)
            (void)sigaction(number, &old_actions[i], NULL);
    (void)raise(number);
}

/* Adds a sequence of the terminal without its pauses, such as "$<2>". */
static void add_sequence(const char *name)
{
    const char *sequence = tigetstr(name);
    size_t length = strlen(leave_sequence);

    if (!sequence || sequence == (const char *)-1)
        return;
    for (; *sequence && length + 1 < sizeof leave_sequence; sequence++)
        if (sequence[0] == '$' && sequence[1] == '<' && strchr(sequence, '>'))
            sequence = strchr(sequence, '>');
        else
            leave_sequence[length++] = *sequence;
    leave_sequence[length] = '\0';
}

/* Blocks the signals that end the loop, and sets `during` to the mask for its pauses. */
static void take_signals(sigset_t *before, sigset_t *during)
{
    sigset_t blocked;

    stopped_by = 0;
    sigemptyset(&blocked);
    sigaddset(&blocked, SIGWINCH);
    for (size_t i = 0; i < STOPS; i++)
        sigaddset(&blocked, fatal[i]);
    (void)sigprocmask(SIG_BLOCK, &blocked, before);
    *during = *before;
    sigdelset(during, SIGWINCH);
    for (size_t i = 0; i < FATALS; i++) {
        struct sigaction action = {.sa_handler = i < STOPS ? on_stop : on_error};

        (void)sigaction(fatal[i], NULL, &old_actions[i]);
        if (old_actions[i].sa_handler != SIG_IGN)
            (void)sigaction(fatal[i], &action, NULL);
    }
}

static void give_signals_back(const sigset_t *before)
{
    for (size_t i = 0; i < FATALS; i++)
        (void)sigaction(fatal[i], &old_actions[i], NULL);
    (void)sigprocmask(SIG_SETMASK, before, NULL);
    if (stopped_by)
        (void)raise(stopped_by);
}

/* ncurses writes characters in the encoding of the locale, which may not be installed. */
static bool set_encoding(bool wants_unicode)
{
    if (!setlocale(LC_CTYPE, "") || (wants_unicode && strcmp(nl_langinfo(CODESET), "UTF-8") != 0))
        (void)setlocale(LC_CTYPE, "C.UTF-8");
    return wants_unicode && strcmp(nl_langinfo(CODESET), "UTF-8") == 0;
}

/* Finds how the terminal is restored. Returns false if it is unknown. */
static bool describe_terminal(void)
{
    int known;

    (void)tcgetattr(STDIN_FILENO, &modes_before);
    if (setupterm(NULL, STDOUT_FILENO, &known) != OK) /* newterm would lose memory */
        return false;
    leave_sequence[0] = '\0';
    add_sequence("sgr0");
    add_sequence("cnorm");
    add_sequence("rmkx");
    add_sequence("rmcup");
    (void)del_curterm(cur_term);
    return true;
}

static void close_screen(struct mt_terminal_app *app, SCREEN *screen)
{
    (void)endwin();
    is_open = 0;
    app->note_restore(NULL);
    delscreen(screen);
}

static bool open_screen(struct mt_terminal_app *app, SCREEN **screen)
{
    app->has_unicode = set_encoding(app->wants_unicode);
    use_tioctl(TRUE);
    if (!describe_terminal())
        return false;
    is_open = 1; /* newterm changes the terminal */
    *screen = newterm(NULL, stdout, stdin);
    if (!*screen) {
        is_open = 0;
        return false;
    }
    app->note_restore(restore_now);
    cbreak();
    noecho();
    nonl();
    keypad(stdscr, TRUE);
    nodelay(stdscr, TRUE);
    set_escdelay(ESCAPE_WAIT_MS);
    (void)curs_set(0);
    app->has_colors = app->wants_colors && has_colors() && start_color() == OK &&
                      use_default_colors() == OK && COLORS >= 256;
    return true;
}

static void put_cell(const struct mt_terminal_app *app, int row, int column,
                     const struct mt_terminal_cell *cell)
{
    wchar_t text[2] = {(wchar_t)(cell->code ? cell->code : ' '), L'\0'};
    attr_t attributes = 0;
    int pair = 0;
    cchar_t shown;

    if (wcwidth(text[0]) != 1) /* unknown to this system */
        text[0] = L'?';
    if (cell->style & MT_STYLE_BOLD)
        attributes |= WA_BOLD;
    if (cell->style & MT_STYLE_DIM)
        attributes |= WA_DIM;
    if (cell->style & MT_STYLE_REVERSE)
        attributes |= WA_REVERSE;
    if (app->has_colors && (cell->ink || cell->paper))
        pair = alloc_pair(cell->ink ? cell->ink : -1, cell->paper ? cell->paper : -1);
    (void)setcchar(&shown, text, attributes, (short)(pair > 0 && pair < 32768 ? pair : 0), NULL);
    (void)mvadd_wch(row, column, &shown);
}

static void draw(const struct mt_terminal_app *app)
{
    int rows, columns;
    struct mt_terminal_cell *cells;

    getmaxyx(stdscr, rows, columns);
    rows = rows > MAX_ROWS ? MAX_ROWS : rows;
    columns = columns > MAX_COLUMNS ? MAX_COLUMNS : columns;
    cells = mt_memory_zeroed((size_t)rows * (size_t)columns + 1, sizeof *cells);
    app->draw(app->context, (unsigned)rows, (unsigned)columns, cells);
    (void)erase();
    for (int row = 0; row < rows; row++)
        for (int column = 0; column < columns; column++)
            put_cell(app, row, column, &cells[row * columns + column]);
    free(cells);
    (void)refresh();
}

static uint32_t key_of(wint_t code, bool is_character)
{
    static const struct {
        wint_t code;
        uint32_t key;
    } keys[] = {{KEY_LEFT, MT_KEY_LEFT},      {KEY_RIGHT, MT_KEY_RIGHT},
                {KEY_SLEFT, MT_KEY_LEFT_FAR}, {KEY_SRIGHT, MT_KEY_RIGHT_FAR},
                {KEY_UP, MT_KEY_UP},          {KEY_DOWN, MT_KEY_DOWN},
                {KEY_PPAGE, MT_KEY_PAGE_UP},  {KEY_NPAGE, MT_KEY_PAGE_DOWN},
                {KEY_HOME, MT_KEY_HOME},      {KEY_END, MT_KEY_END},
                {KEY_ENTER, MT_KEY_ENTER},    {KEY_BACKSPACE, MT_KEY_DELETE},
                {'\r', MT_KEY_ENTER},         {'\n', MT_KEY_ENTER},
                {'\b', MT_KEY_DELETE},        {127, MT_KEY_DELETE},
                {27, MT_KEY_ESCAPE}};

    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        if (keys[i].code == code && (keys[i].code < 128) == is_character)
            return keys[i].key;
    return is_character ? (uint32_t)code : 0;
}

/* Handles the keys that were typed. Returns false if the application ends; *count: how many. */
static bool read_keys(struct mt_terminal_app *app, unsigned *count)
{
    wint_t code;
    int kind;

    for (*count = 0; (kind = get_wch(&code)) != ERR; ++*count) {
        uint32_t key = key_of(code, kind != KEY_CODE_YES);

        if (kind != KEY_CODE_YES && code == CTRL_L)
            (void)clearok(curscr, TRUE);
        else if (key && !app->press(app->context, key))
            return false;
    }
    return true;
}

/* Waits for a key, a signal or a new size. Returns -1 for an error, 0 for a signal. */
static int wait_for_key(const sigset_t *during)
{
    fd_set inputs;

    FD_ZERO(&inputs);
    FD_SET(STDIN_FILENO, &inputs);
    if (pselect(STDIN_FILENO + 1, &inputs, NULL, NULL, NULL, during) >= 0)
        return 1;
    return errno == EINTR ? 0 : -1;
}

static void run(struct mt_terminal_app *app, const sigset_t *during)
{
    enum { MOST_EMPTY = 4 }; /* readable, but without a key: the terminal is gone */
    unsigned count, empty = 0;

    for (;;) {
        draw(app);
        if (stopped_by || empty > MOST_EMPTY)
            return;
        int ready = wait_for_key(during);
        if (ready < 0 || stopped_by || !read_keys(app, &count))
            return;
        empty = ready && !count ? empty + 1 : 0;
    }
}

bool mt_terminal_available(struct mt_error *error)
{
    (void)error;
    return true;
}

enum mt_status mt_terminal_run(struct mt_terminal_app *app, struct mt_error *error)
{
    sigset_t before, during;
    SCREEN *screen;

    take_signals(&before, &during);
    if (!open_screen(app, &screen)) {
        give_signals_back(&before);
        return mt_fail(error, MT_ERR_UNSUPPORTED, MT_NO_OFFSET,
                       "this terminal is unknown to ncurses: set TERM, for example to xterm");
    }
    run(app, &during);
    close_screen(app, screen);
    give_signals_back(&before);
    return MT_OK;
}

/* A full screen of cells in a terminal, through ncurses. The program may lack ncurses:
 * terminal_loaded.c has the same functions and loads the module that has it. */
#ifndef MT_CLI_TERMINAL_H
#define MT_CLI_TERMINAL_H

#include <stdbool.h>
#include <stdint.h>

#include "status.h"

enum mt_terminal_style { MT_STYLE_BOLD = 1, MT_STYLE_DIM = 2, MT_STYLE_REVERSE = 4 };

struct mt_terminal_cell {
    uint32_t code;      /* a visible character of one column */
    uint8_t ink, paper; /* of 256 colors; 0 = the terminal's own. Ignored without `has_colors` */
    uint8_t style;      /* enum mt_terminal_style */
};

/* Keys that are no characters. */
enum mt_terminal_key {
    MT_KEY_LEFT = 0x110000,
    MT_KEY_RIGHT,
    MT_KEY_LEFT_FAR, /* with shift */
    MT_KEY_RIGHT_FAR,
    MT_KEY_UP,
    MT_KEY_DOWN,
    MT_KEY_PAGE_UP,
    MT_KEY_PAGE_DOWN,
    MT_KEY_HOME,
    MT_KEY_END,
    MT_KEY_ENTER,
    MT_KEY_ESCAPE,
    MT_KEY_DELETE /* the character before the cursor */
};

struct mt_terminal_app {
    void *context;
    bool wants_colors, wants_unicode;
    bool has_colors, has_unicode; /* set before the first call of `draw` */
    /* Fills rows * columns cells, which are blank. */
    void (*draw)(void *context, unsigned rows, unsigned columns, struct mt_terminal_cell *cells);
    bool (*press)(void *context, uint32_t key); /* false: the end */
    /* Gets a function that restores the terminal, for an end of the process without a return from
     * mt_terminal_run; NULL when that is no longer necessary. */
    void (*note_restore)(void (*restore)(void));
};

/* Whether ncurses can be used. Otherwise *error has the reason, and what to install. */
bool mt_terminal_available(struct mt_error *error);

/* Shows the screen on standard output and reads keys from standard input, which are terminals,
 * until `press` returns false or the terminal is gone. The terminal is then as before. A signal
 * that ends the process also restores it. Returns MT_ERR_UNSUPPORTED if the terminal is unknown. */
enum mt_status mt_terminal_run(struct mt_terminal_app *app, struct mt_error *error) MT_MUST_USE;

#endif

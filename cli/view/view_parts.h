/* What `memtrace view` shows: the timeline of a device, and the blocks that are alive at a selected
 * instant. Keys change the state, and the state is drawn as cells. Knows no terminal.
 *
 * The instants are those of the history (history.h): the fullest one of each of its columns. */
#ifndef MT_CLI_VIEW_PARTS_H
#define MT_CLI_VIEW_PARTS_H

#include "arena.h"
#include "report.h"
#include "terminal.h"

/* Live blocks with the same site, phase and role; or only the same phase, or role. */
struct mt_view_row {
    const char *site;  /* "" = several, or all */
    const char *phase; /* of allocation; "" = none, several, or all */
    bool several_phases;
    enum mt_role role;
    uint64_t bytes, blocks;
};

enum mt_view_page { MT_VIEW_BLOCKS, MT_VIEW_STACKS, MT_VIEW_HELP };
enum { MT_VIEW_TYPED = 120, MT_VIEW_MESSAGE = 200 };

struct mt_view {
    const struct mt_report *report;        /* with histories, borrowed */
    const char *path;                      /* of the trace, borrowed */
    const struct mt_device_report *device; /* has a history */
    bool unicode, colors;                  /* what may be drawn */
    struct mt_arena arena;                 /* of the device */

    uint64_t (*role_bytes)[MT_ROLE_COUNT]; /* by column of the history */
    uint32_t selected;                     /* column of the history */
    uint32_t first, count;                 /* columns that the timeline shows */
    enum mt_group_by by;                   /* site, role or phase */
    struct mt_history_change *sums;        /* by group, at the selected instant */
    struct mt_view_row *rows;              /* largest first; they sum to the allocated bytes */
    uint32_t row_count, row, top;          /* row: selected; top: first in the table */

    enum mt_view_page page;
    struct mt_buf lines; /* of the pages other than MT_VIEW_BLOCKS, without control characters */
    uint32_t line_count, line; /* line: the first that is shown */

    char prompt; /* '/' or 'g' while text is typed; otherwise 0 */
    char typed[MT_VIEW_TYPED], search[MT_VIEW_TYPED];
    char message[MT_VIEW_MESSAGE];        /* "" = none */
    unsigned screen_rows, screen_columns; /* of the last drawing */
};

#define MT_VIEW_MIN_ROWS    12
#define MT_VIEW_MIN_COLUMNS 40

enum { MT_VIEW_LEGEND_ROWS = 2 }; /* at most */

/* The sizes of the parts of a screen. */
struct mt_view_layout {
    unsigned plot_left, plot_columns, plot_top, plot_rows;
    unsigned table_top, table_rows; /* table_top: the line of titles */
};
struct mt_view_layout mt_view_layout(const struct mt_view *view);

/* Selects the allocated peak of the first device (mt_device_comes_first) that has a history.
 * Returns false if there is none. Call mt_view_release in either case. */
bool mt_view_init(struct mt_view *view, const struct mt_report *report, const char *path);
void mt_view_release(struct mt_view *view);

/* Handles a character or an mt_terminal_key. Returns false at the end. */
bool mt_view_press(struct mt_view *view, uint32_t key);

/* Columns [*begin, *end) of the history that are drawn in a column of the plot. */
void mt_view_columns_of(const struct mt_view *view, unsigned plot_column, uint32_t *begin,
                        uint32_t *end);
/* The fullest of these columns. */
uint32_t mt_view_fullest(const struct mt_view *view, uint32_t begin, uint32_t end);

/* Appends "memtrace live run.pickle --at 4496", which prints what is shown. */
void mt_view_add_command(struct mt_buf *out, const struct mt_view *view);

/* Fills the rows from the changes of the history up to the selected instant. */
void mt_view_fill_rows(struct mt_view *view);
/* Fills `lines` with the stacks of the selected row, largest first. */
void mt_view_fill_stacks(struct mt_view *view);

/* Draws the state. `cells` are zeroed. */
void mt_view_draw(struct mt_view *view, unsigned rows, unsigned columns,
                  struct mt_terminal_cell *cells);

#endif

/* Parses `--sweep` options into runs, and makes the command of each. */
#ifndef MT_CLI_SWEEP_PLAN_H
#define MT_CLI_SWEEP_PLAN_H

#include "arena.h"
#include "cli.h"
#include "sweep.h"

/* "batch=1,2,4", "seq=128..512", "rank=1..64*2": the product of their values. */
struct mt_sweep_plan {
    struct mt_sweep sweep; /* without results */
    char *const *command;  /* borrowed; has the placeholder "{batch}" for the value */
    struct mt_arena arena;
};

/* Returns -1 or an exit code; errors were printed. Every name must have a placeholder in the
 * command. Release the plan in any case. */
int mt_sweep_plan_make(struct mt_sweep_plan *plan, const struct mt_text_list *options,
                       char *const *command);

/* Returns the words of one run; ends with NULL. Placeholders without a sweep are unchanged. In
 * the plan's arena; NULL: no memory. */
char **mt_sweep_plan_command(struct mt_sweep_plan *plan, const struct mt_sweep_run *run);

/* "batch=4,seq=128": unique for each run; only letters, digits and -_.+=,% in at most 240 bytes;
 * other bytes of a value are written as %2F. In the plan's arena; NULL: no memory. */
char *mt_sweep_plan_file(struct mt_sweep_plan *plan, const struct mt_sweep_run *run);

void mt_sweep_plan_release(struct mt_sweep_plan *plan);

#endif

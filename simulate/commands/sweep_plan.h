/* Parses `--sweep` options into runs, and makes the command of each. */
#ifndef MT_CLI_SWEEP_PLAN_H
#define MT_CLI_SWEEP_PLAN_H

#include "arena.h"
#include "cli.h"
#include "sweep.h"

/* A plan for options such as "batch=1,2,4", "seq=128..512" and "rank=1..64*2". It has a run for
 * each combination of values. */
struct mt_sweep_plan {
    struct mt_sweep sweep; /* has no results yet */
    char *const *command;  /* borrowed; contains placeholders for the values: "{batch}" */
    struct mt_arena arena;
};

/* Makes the plan. Every name must have a placeholder in the command. Returns -1, or the exit code
 * after an error message. Release the plan in any case. */
int mt_sweep_plan_make(struct mt_sweep_plan *plan, const struct mt_text_list *options,
                       char *const *command);

/* Returns the words of the command of one run, in the plan's arena. The array ends with NULL.
 * Placeholders without a sweep are unchanged. */
char **mt_sweep_plan_command(struct mt_sweep_plan *plan, const struct mt_sweep_run *run);

/* Returns a file name that is unique for the run, "batch=4,seq=128", in the plan's arena. It has at
 * most 220 bytes and consists of letters, digits and -_.+=,%. Other bytes of a value are escaped:
 * %2F. */
char *mt_sweep_plan_file(struct mt_sweep_plan *plan, const struct mt_sweep_run *run);

void mt_sweep_plan_release(struct mt_sweep_plan *plan);

#endif

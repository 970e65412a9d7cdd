/* Parses `--sweep` and `--try` options and the ranks of a command into runs, and makes the command
 * of each. */
#ifndef MT_CLI_SWEEP_PLAN_H
#define MT_CLI_SWEEP_PLAN_H

#include "arena.h"
#include "cli.h"
#include "sweep.h"

enum { MT_MAX_PLAN_VALUES = 1024, MT_MAX_PLAN_POINTS = 16384 };

/* What the options request. */
struct mt_sweep_grid {
    const char *option;         /* "--sweep" or "--try", for messages */
    const char *stem;           /* of the files of the answer: "sweep" for sweep.json */
    struct mt_text_list values; /* "batch=1,2,4", "seq=128..512" and "rank=1..64*2" */
    char *const *command;       /* borrowed; contains placeholders for the values: "{batch}" */
    const char *ranks;          /* --ranks; NULL = not given */
    uint64_t world;             /* --world; 0 = as in the options of torchrun */
    uint64_t devices;           /* --devices; 0 = as many as a node has ranks */
    bool chooses_ranks; /* without `ranks`, the first, the middle and the last of a launcher */
    size_t most_values; /* of a name */
};

/* The values of one name. */
struct mt_sweep_axis {
    const char *name;
    const char **values;
    size_t count, capacity;
    bool is_range; /* one range with several values, so they are numbers that ascend */
};

struct mt_sweep_plan {
    struct mt_sweep sweep; /* has no results yet; the plan owns its runs */
    const struct mt_sweep_grid *grid;
    struct mt_sweep_axis axes[MT_MAX_SWEEP_NAMES];
    size_t axis_count;
    struct mt_arena arena;
};

/* Parses the options; the plan has no runs yet. Every name must have a placeholder in the command.
 * Returns -1, or the exit code after an error message. Release the plan in any case. */
int mt_sweep_plan_make(struct mt_sweep_plan *plan, const struct mt_sweep_grid *grid);

/* Adds the runs of a point, one for each of its ranks: the index of a value for each name. Returns
 * -1, or the exit code after an error message about its ranks. */
int mt_sweep_plan_add(struct mt_sweep_plan *plan, size_t point, const size_t *at);

/* Adds the runs of all points, at most MT_MAX_SWEEP_RUNS. The last name changes fastest. */
int mt_sweep_plan_add_all(struct mt_sweep_plan *plan);

/* Returns the words of the command of one run, in the plan's arena. The array ends with NULL.
 * Placeholders without a value are unchanged. The command of a rank has no launcher. */
char **mt_sweep_plan_command(struct mt_sweep_plan *plan, const struct mt_sweep_run *run);

/* The same with the launcher: what a person types for the point of this run. */
char **mt_sweep_plan_typed(struct mt_sweep_plan *plan, const struct mt_sweep_run *run);

/* Returns the changes of the program that the run applies on paper (applied.h): the value of the
 * name MT_APPLY_NAME, which needs no placeholder. NULL: none. */
#define MT_APPLY_NAME "apply"
const char *mt_sweep_plan_apply(const struct mt_sweep_plan *plan, const struct mt_sweep_run *run);

/* Returns a file name that is unique for the run, "batch=4,seq=128", in the plan's arena. It has at
 * most 220 bytes and consists of letters, digits and -_.+=,%. Other bytes of a value are escaped:
 * %2F. */
char *mt_sweep_plan_file(struct mt_sweep_plan *plan, const struct mt_sweep_run *run);

void mt_sweep_plan_release(struct mt_sweep_plan *plan);

#endif

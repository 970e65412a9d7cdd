#include "sweep_plan.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "applied.h"
#include "grow.h"
#include "util.h"

/* A file name has at most 255 bytes. The longest one is "NAME~again-4194303-10.trace.zst.tape", of
 * a second run (assumption.h) with many processes. Longer names would lose traces. */
enum { MAX_FILE = 220 };

static bool is_name_character(char c, bool is_first)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' ||
           (!is_first && ((c >= '0' && c <= '9') || c == '-'));
}

/* Returns the length of the name at the beginning of a text; 0 if there is none. */
static size_t name_length(const char *text)
{
    size_t length = 0;

    while (is_name_character(text[length], length == 0))
        length++;
    return length;
}

static int say_wrong(const struct mt_sweep_plan *plan, const char *option)
{
    mt_message("option '%s' needs NAME=VALUES such as batch=1,2,4 or batch=1..8 or batch=1..64*2, "
               "not '%s'",
               plan->grid->option, option);
    return MT_EXIT_USAGE;
}

static int add_value(struct mt_sweep_plan *plan, struct mt_sweep_axis *axis, const char *value,
                     size_t length)
{
    if (axis->count == plan->grid->most_values) {
        mt_message("option '%s': '%s' has more than %zu values", plan->grid->option, axis->name,
                   plan->grid->most_values);
        return MT_EXIT_USAGE;
    }
    if (length > MT_MAX_SWEEP_VALUE) {
        mt_message("option '%s': a value of '%s' has more than %d bytes", plan->grid->option,
                   axis->name, MT_MAX_SWEEP_VALUE);
        return MT_EXIT_USAGE;
    }
    char *copy = mt_arena_text(&plan->arena, value, length);
    for (size_t i = 0; i < axis->count; i++)
        if (!strcmp(axis->values[i], copy)) {
            mt_message("option '%s': '%s' has the value '%s' twice", plan->grid->option, axis->name,
                       copy);
            return MT_EXIT_USAGE;
        }
    mt_grow_to(&axis->values, &axis->capacity, axis->count + 1, sizeof *axis->values);
    axis->values[axis->count++] = copy;
    return -1;
}

struct range {
    uint64_t from, to, factor; /* factor 0: consecutive numbers */
};

enum range_kind {
    NO_RANGE, /* an ordinary value */
    RANGE,
    EMPTY_RANGE /* "8..1", "0..8*2", "1..8*1" */
};

/* Parses a range: "1..8", "1..64*2". */
static enum range_kind read_range(const char *text, size_t length, struct range *range)
{
    char copy[3 * MT_MAX_SWEEP_WORD];

    if (length >= sizeof copy)
        return NO_RANGE;
    memcpy(copy, text, length);
    copy[length] = '\0';
    char *dots = strstr(copy, "..");
    char *star = strchr(copy, '*');
    if (!dots || (star && star < dots))
        return NO_RANGE;
    *dots = '\0';
    if (star)
        *star = '\0';
    range->factor = 0;
    if (!mt_sweep_number(copy, &range->from) || !mt_sweep_number(dots + 2, &range->to) ||
        (star && !mt_sweep_number(star + 1, &range->factor)))
        return NO_RANGE;
    if (range->from > range->to || (star && (range->factor < 2 || !range->from)))
        return EMPTY_RANGE;
    return RANGE;
}

static int say_empty(const struct mt_sweep_plan *plan, const struct range *range, const char *text,
                     size_t length)
{
    if (range->from > range->to)
        mt_message("option '%s': the range '%.*s' descends; start with the smaller number: "
                   "%llu..%llu",
                   plan->grid->option, (int)length, text, (unsigned long long)range->to,
                   (unsigned long long)range->from);
    else
        mt_message(
            "option '%s': the range '%.*s' needs a start of at least 1 and a factor of at least 2",
            plan->grid->option, (int)length, text);
    return MT_EXIT_USAGE;
}

static int add_range(struct mt_sweep_plan *plan, struct mt_sweep_axis *axis,
                     const struct range *range)
{
    uint64_t at = range->from;
    int code = -1;

    while (code < 0 && at <= range->to) {
        char text[24];
        int length = snprintf(text, sizeof text, "%llu", (unsigned long long)at);

        code = add_value(plan, axis, text, (size_t)length);
        if (!range->factor)
            at++;
        else if (!mt_mul_ok(at, range->factor, &at))
            break;
    }
    return code;
}

static int read_axis(struct mt_sweep_plan *plan, struct mt_sweep_axis *axis, const char *option)
{
    size_t name = name_length(option);
    const char *at = option + name;
    size_t parts = 0;
    int code = -1;

    if (!name || name > MT_MAX_SWEEP_WORD || *at++ != '=')
        return say_wrong(plan, option);
    axis->name = mt_arena_text(&plan->arena, option, name);
    while (code < 0) {
        size_t length = strcspn(at, ",");
        struct range range;

        if (!length)
            return say_wrong(plan, option);
        switch (read_range(at, length, &range)) {
        case NO_RANGE: code = add_value(plan, axis, at, length); break;
        case RANGE:
            code = add_range(plan, axis, &range);
            axis->is_range = !parts && axis->count > 1;
            break;
        case EMPTY_RANGE: code = say_empty(plan, &range, at, length); break;
        }
        parts++;
        at += length;
        if (!*at++)
            break;
    }
    axis->is_range &= parts == 1;
    return code;
}

/* Finds the next "{name}" at or after *at, and moves *at after it. Returns false if there is
 * none. */
static bool next_placeholder(const char **at, const char **name, size_t *length)
{
    while ((*at = strchr(*at, '{')) != NULL) {
        *name = *at + 1;
        *length = name_length(*name);
        if (*length && (*name)[*length] == '}') {
            *at = *name + *length + 1;
            return true;
        }
        (*at)++;
    }
    return false;
}

enum { MAX_PLACEHOLDERS = 32 }; /* maximum number of names with which a wrong name is compared */

/* Rejects a name without a placeholder, because a sweep that changes nothing is a mistake. */
static int check_use(struct mt_sweep_plan *plan, const char *wanted)
{
    const char *names[MAX_PLACEHOLDERS];
    size_t count = 0;

    if (!strcmp(wanted, MT_APPLY_NAME)) /* changes the program on paper, not its command */
        return -1;
    for (char *const *word = plan->grid->command; *word; word++) {
        const char *at = *word, *name;
        size_t length;

        while (next_placeholder(&at, &name, &length)) {
            if (length == strlen(wanted) && !strncmp(name, wanted, length))
                return -1;
            if (count < MAX_PLACEHOLDERS)
                names[count++] = mt_arena_text(&plan->arena, name, length);
        }
    }
    const char *near = mt_did_you_mean(wanted, names, count);
    if (near)
        mt_message("option '%s': the command does not contain '{%s}'; did you mean '{%s}'?",
                   plan->grid->option, wanted, near);
    else
        mt_message("option '%s': the command does not contain '{%s}'; put it where the values "
                   "belong",
                   plan->grid->option, wanted);
    return MT_EXIT_USAGE;
}

/* By default torchrun starts one process on one node. Returns -1 or an exit code. */
static int choose_world(const struct mt_sweep_grid *grid, const struct mt_rank_command *command,
                        struct mt_rank *rank)
{
    uint64_t local = command->local_world, world = grid->world;
    uint64_t nodes = command->nodes ? command->nodes : 1;

    if (!local)
        local = grid->devices          ? grid->devices
                : world                ? mt_min_u64(world, MT_MAX_SIMULATED_DEVICES)
                : command->is_launched ? 1
                                       : 0;
    if (!world && command->is_launched)
        world = nodes * local;
    if (!world || world > MT_MAX_WORLD) {
        mt_message("option '--ranks' needs '--world N', the total number of ranks, up to %llu",
                   (unsigned long long)MT_MAX_WORLD);
        return MT_EXIT_USAGE;
    }
    if (local > MT_MAX_SIMULATED_DEVICES) {
        mt_message("a node has at most %d simulated devices, not %llu", MT_MAX_SIMULATED_DEVICES,
                   (unsigned long long)local);
        return MT_EXIT_USAGE;
    }
    if (command->nodes && world != nodes * local) {
        mt_message(
            "option '--world': torchrun has %llu node%s of %llu rank%s, which are not %llu ranks",
            (unsigned long long)nodes, nodes == 1 ? "" : "s", (unsigned long long)local,
            local == 1 ? "" : "s", (unsigned long long)world);
        return MT_EXIT_USAGE;
    }
    if (world % local) {
        mt_message("option '--world': %llu ranks cannot be divided into nodes of %llu",
                   (unsigned long long)world, (unsigned long long)local);
        return MT_EXIT_USAGE;
    }
    *rank =
        (struct mt_rank){.world = world, .local_world = local, .is_launched = command->is_launched};
    return -1;
}

/* The stages of a pipeline differ most at its ends. */
static int choose_ranks(const struct mt_sweep_grid *grid, uint64_t world,
                        uint64_t ranks[MT_MAX_RANKS], size_t *count)
{
    *count = 0;
    if (grid->ranks)
        return mt_ranks_read(grid->ranks, world, ranks, count);
    ranks[(*count)++] = 0;
    if (world > 2)
        ranks[(*count)++] = world / 2;
    if (world > 1)
        ranks[(*count)++] = world - 1;
    return -1;
}

static struct mt_sweep_run *append(struct mt_sweep *sweep, const struct mt_sweep_run *run)
{
    mt_grow_to(&sweep->runs, &sweep->run_capacity, sweep->run_count + 1, sizeof *sweep->runs);
    sweep->runs[sweep->run_count] = *run;
    return &sweep->runs[sweep->run_count++];
}

static void add_rank(struct mt_sweep_plan *plan, struct mt_sweep_run run, uint64_t rank)
{
    struct mt_sweep *sweep = &plan->sweep;

    run.rank.rank = rank;
    run.values[plan->axis_count] = mt_arena_printf(&plan->arena, "%llu", (unsigned long long)rank);
    run.label = mt_arena_printf(&plan->arena, "%s%srank %llu", run.label, *run.label ? ", " : "",
                                (unsigned long long)rank);
    if (run.rank.world > sweep->world) {
        sweep->world = run.rank.world;
        sweep->local_world = run.rank.local_world;
    }
    (void)append(sweep, &run);
}

static int check_files(struct mt_sweep_plan *plan, size_t first)
{
    for (size_t i = first; i < plan->sweep.run_count; i++) {
        const char *file = mt_sweep_plan_file(plan, &plan->sweep.runs[i]);

        if (strlen(file) > MAX_FILE) {
            mt_message("option '%s': '%s' is too long for the name of a file", plan->grid->option,
                       file);
            return MT_EXIT_USAGE;
        }
    }
    return -1;
}

/* Without ranks, other launchers run as they are. */
static int refuse_launcher(const struct mt_rank_command *command)
{
    if (!command->other_launcher)
        return -1;
    mt_message("option '--ranks' starts the ranks itself; omit '%s' and name the script, as in "
               "--ranks 0,1 --world 8 -- python train.py",
               command->other_launcher);
    return MT_EXIT_USAGE;
}

static bool has_ranks(const struct mt_sweep_grid *grid, const struct mt_rank_command *command)
{
    return grid->ranks || grid->world || (grid->chooses_ranks && command->is_launched);
}

int mt_sweep_plan_add(struct mt_sweep_plan *plan, size_t point, const size_t *at)
{
    const struct mt_sweep_grid *grid = plan->grid;
    struct mt_sweep *sweep = &plan->sweep;
    struct mt_sweep_run run = {.label = "", .point = point};
    size_t count = 0, first = sweep->run_count;
    struct mt_rank_command command;
    uint64_t ranks[MT_MAX_RANKS];
    int code = -1;

    for (size_t i = 0; i < plan->axis_count; i++) {
        run.values[i] = plan->axes[i].values[at[i]];
        run.label = mt_arena_printf(&plan->arena, "%s%s%s=%s", run.label, i ? ", " : "",
                                    plan->axes[i].name, run.values[i]);
    }
    run.point_label = run.label;
    if (grid->ranks || grid->world || grid->chooses_ranks)
        code = mt_rank_command_read(&command, mt_sweep_plan_typed(plan, &run), &plan->arena);
    if (code >= 0)
        return code;
    if ((!grid->ranks && !grid->world && !grid->chooses_ranks) || !has_ranks(grid, &command)) {
        (void)append(sweep, &run);
        return check_files(plan, first);
    }
    code = refuse_launcher(&command);
    if (code < 0)
        code = choose_world(grid, &command, &run.rank);
    if (code < 0)
        code = choose_ranks(grid, run.rank.world, ranks, &count);
    if (code < 0 && sweep->name_count == plan->axis_count)
        sweep->names[sweep->name_count++] = "rank";
    for (size_t i = 0; code < 0 && i < count; i++)
        add_rank(plan, run, ranks[i]);
    return code < 0 ? check_files(plan, first) : code;
}

int mt_sweep_plan_add_all(struct mt_sweep_plan *plan)
{
    size_t at[MT_MAX_SWEEP_NAMES];
    uint64_t count = 1;
    int code = -1;

    for (size_t i = 0; i < plan->axis_count; i++)
        count *= plan->axes[i].count; /* at most 64 to the power of 4, so there is no overflow */
    for (size_t point = 0; code < 0 && point < count; point++) {
        size_t rest = point;

        for (size_t i = plan->axis_count; i-- > 0; rest /= plan->axes[i].count)
            at[i] = rest % plan->axes[i].count;
        code = mt_sweep_plan_add(plan, point, at);
        if (code < 0 && (count > MT_MAX_SWEEP_RUNS || plan->sweep.run_count > MT_MAX_SWEEP_RUNS)) {
            mt_message("option '%s': these values make %llu runs, but at most %d are allowed; "
                       "'memtrace plan' searches among more",
                       plan->grid->option,
                       (unsigned long long)(count * plan->sweep.run_count / (point + 1)),
                       MT_MAX_SWEEP_RUNS);
            return MT_EXIT_USAGE;
        }
    }
    return code;
}

/* The values of MT_APPLY_NAME are changes of the program. */
static int check_changes(const struct mt_sweep_axis *axis)
{
    int code = -1;

    for (size_t i = 0; code < 0 && i < axis->count; i++) {
        const struct mt_text_list value = {.items = {axis->values[i]}, .count = 1};
        struct mt_buf changes = {0};

        code = mt_applied_read(&value, &changes);
        mt_buf_release(&changes);
    }
    return code;
}

int mt_sweep_plan_make(struct mt_sweep_plan *plan, const struct mt_sweep_grid *grid)
{
    const struct mt_text_list *options = &grid->values;
    struct mt_sweep *sweep = &plan->sweep;
    int code = -1;

    *plan = (struct mt_sweep_plan){.grid = grid};
    if (options->count > MT_MAX_SWEEP_NAMES) {
        mt_message("option '%s': at most %d names", grid->option, MT_MAX_SWEEP_NAMES);
        return MT_EXIT_USAGE;
    }
    for (size_t i = 0; code < 0 && i < options->count; i++) {
        struct mt_sweep_axis *axis = &plan->axes[plan->axis_count++];

        code = read_axis(plan, axis, options->items[i]);
        for (size_t j = 0; code < 0 && j < i; j++)
            if (!strcmp(plan->axes[j].name, axis->name)) {
                mt_message("option '%s': '%s' is given twice", grid->option, axis->name);
                code = MT_EXIT_USAGE;
            }
        if (code < 0)
            code = check_use(plan, axis->name);
        if (code < 0 && !strcmp(axis->name, MT_APPLY_NAME))
            code = check_changes(axis);
        sweep->names[sweep->name_count++] = axis->name;
    }
    return code;
}

/* Returns the value of a name in a run; NULL if there is no sweep over the name. */
static const char *value_of(const struct mt_sweep *sweep, const struct mt_sweep_run *run,
                            const char *name, size_t length)
{
    for (size_t i = 0; i < sweep->name_count; i++)
        if (strlen(sweep->names[i]) == length && !strncmp(sweep->names[i], name, length))
            return run->values[i]; /* NULL: the rank of a point */
    return NULL;
}

static char *replace(struct mt_sweep_plan *plan, const struct mt_sweep_run *run, const char *word)
{
    const char *at = word, *done = word, *name;
    struct mt_buf out = {0};
    size_t length;

    while (next_placeholder(&at, &name, &length)) {
        const char *value = value_of(&plan->sweep, run, name, length);

        if (!value)
            continue;
        mt_buf_add(&out, done, (size_t)(name - 1 - done));
        mt_buf_add_text(&out, value);
        done = at;
    }
    mt_buf_add_text(&out, done);
    char *copy = mt_arena_text(&plan->arena, out.data ? out.data : "", out.length);
    mt_buf_release(&out);
    return copy;
}

const char *mt_sweep_plan_apply(const struct mt_sweep_plan *plan, const struct mt_sweep_run *run)
{
    const char *value = value_of(&plan->sweep, run, MT_APPLY_NAME, strlen(MT_APPLY_NAME));

    return value && strcmp(value, "none") != 0 ? value : NULL;
}

char **mt_sweep_plan_typed(struct mt_sweep_plan *plan, const struct mt_sweep_run *run)
{
    char *const *command = plan->grid->command;
    size_t count = 0;
    char **words;

    while (command[count])
        count++;
    words = mt_arena_array(&plan->arena, count + 1, sizeof *words);
    for (size_t i = 0; i < count; i++)
        words[i] = replace(plan, run, command[i]);
    return words;
}

char **mt_sweep_plan_command(struct mt_sweep_plan *plan, const struct mt_sweep_run *run)
{
    char **words = mt_sweep_plan_typed(plan, run);
    struct mt_rank_command command;

    if (!run->rank.world || mt_rank_command_read(&command, words, &plan->arena) >= 0)
        return words;
    return command.words;
}

char *mt_sweep_plan_file(struct mt_sweep_plan *plan, const struct mt_sweep_run *run)
{
    const struct mt_sweep *sweep = &plan->sweep;
    struct mt_buf out = {0};

    for (size_t i = 0; i < sweep->name_count; i++) {
        mt_buf_printf(&out, "%s%s=", i ? "," : "", sweep->names[i]);
        for (const char *at = run->values[i]; *at; at++)
            if (is_name_character(*at, false) || strchr(".+", *at))
                mt_buf_add_char(&out, *at);
            else
                mt_buf_printf(&out, "%%%02X", (unsigned)(unsigned char)*at);
    }
    char *copy = mt_arena_text(&plan->arena, out.data ? out.data : "", out.length);
    mt_buf_release(&out);
    return copy;
}

void mt_sweep_plan_release(struct mt_sweep_plan *plan)
{
    for (size_t i = 0; i < plan->axis_count; i++)
        free(plan->axes[i].values);
    free(plan->sweep.runs);
    mt_arena_release(&plan->arena);
}

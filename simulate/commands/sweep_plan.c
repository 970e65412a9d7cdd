#include "sweep_plan.h"

#include <stdio.h>
#include <string.h>

#include "util.h"

/* A file name has at most 255 bytes. The longest one is "NAME~early-4194303-10.trace.zst.tape", of
 * a second run (sweep_early.h) with many processes. Longer names would lose traces. */
enum { MAX_FILE = 220 };

/* The values of one name. */
struct axis {
    const char *name;
    const char *values[MT_MAX_SWEEP_RUNS];
    size_t count;
};

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

static int say_wrong(const char *option)
{
    mt_message(
        "option '--sweep' needs NAME=VALUES such as batch=1,2,4 or batch=1..8 or batch=1..64*2, "
        "not '%s'",
        option);
    return MT_EXIT_USAGE;
}

static int add_value(struct mt_sweep_plan *plan, struct axis *axis, const char *value,
                     size_t length)
{
    char *copy;

    if (axis->count == MT_MAX_SWEEP_RUNS) {
        mt_message("option '--sweep': '%s' has more than %d values", axis->name, MT_MAX_SWEEP_RUNS);
        return MT_EXIT_USAGE;
    }
    if (length > MT_MAX_SWEEP_WORD) {
        mt_message("option '--sweep': a value of '%s' has more than %d bytes", axis->name,
                   MT_MAX_SWEEP_WORD);
        return MT_EXIT_USAGE;
    }
    copy = mt_arena_text(&plan->arena, value, length);
    for (size_t i = 0; i < axis->count; i++)
        if (!strcmp(axis->values[i], copy)) {
            mt_message("option '--sweep': '%s' has the value '%s' twice", axis->name, copy);
            return MT_EXIT_USAGE;
        }
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
    char copy[3 * MT_MAX_SWEEP_WORD], *dots, *star;

    if (length >= sizeof copy)
        return NO_RANGE;
    memcpy(copy, text, length);
    copy[length] = '\0';
    dots = strstr(copy, "..");
    star = strchr(copy, '*');
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

static int say_empty(const struct range *range, const char *text, size_t length)
{
    if (range->from > range->to)
        mt_message("option '--sweep': the range '%.*s' descends; start with the smaller number: "
                   "%llu..%llu",
                   (int)length, text, (unsigned long long)range->to,
                   (unsigned long long)range->from);
    else
        mt_message(
            "option '--sweep': the range '%.*s' needs a start of at least 1 and a factor of at "
            "least 2",
            (int)length, text);
    return MT_EXIT_USAGE;
}

static int add_range(struct mt_sweep_plan *plan, struct axis *axis, const struct range *range)
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

static int read_axis(struct mt_sweep_plan *plan, struct axis *axis, const char *option)
{
    size_t name = name_length(option);
    const char *at = option + name;
    int code = -1;

    if (!name || name > MT_MAX_SWEEP_WORD || *at++ != '=')
        return say_wrong(option);
    axis->name = mt_arena_text(&plan->arena, option, name);
    while (code < 0) {
        size_t length = strcspn(at, ",");
        struct range range;

        if (!length)
            return say_wrong(option);
        switch (read_range(at, length, &range)) {
        case NO_RANGE: code = add_value(plan, axis, at, length); break;
        case RANGE: code = add_range(plan, axis, &range); break;
        case EMPTY_RANGE: code = say_empty(&range, at, length); break;
        }
        at += length;
        if (!*at++)
            break;
    }
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
    const char *names[MAX_PLACEHOLDERS], *near;
    size_t count = 0;

    for (char *const *word = plan->command; *word; word++) {
        const char *at = *word, *name;
        size_t length;

        while (next_placeholder(&at, &name, &length)) {
            if (length == strlen(wanted) && !strncmp(name, wanted, length))
                return -1;
            if (count < MAX_PLACEHOLDERS)
                names[count++] = mt_arena_text(&plan->arena, name, length);
        }
    }
    near = mt_did_you_mean(wanted, names, count);
    if (near)
        mt_message("option '--sweep': the command does not contain '{%s}'; did you mean '{%s}'?",
                   wanted, near);
    else
        mt_message(
            "option '--sweep': the command does not contain '{%s}'; put it where the values belong",
            wanted);
    return MT_EXIT_USAGE;
}

static void add_label(struct mt_sweep_plan *plan, struct mt_sweep_run *run)
{
    const struct mt_sweep *sweep = &plan->sweep;
    const char *label = "";

    for (size_t i = 0; i < sweep->name_count; i++)
        label = mt_arena_printf(&plan->arena, "%s%s%s=%s", label, i ? ", " : "", sweep->names[i],
                                run->values[i]);
    run->label = label;
}

/* Adds a run for each combination of values. The last name changes fastest. */
static int add_runs(struct mt_sweep_plan *plan, const struct axis *axes)
{
    struct mt_sweep *sweep = &plan->sweep;
    uint64_t count = 1;

    for (size_t i = 0; i < sweep->name_count; i++)
        count *= axes[i].count; /* at most 64 to the power of 4, so there is no overflow */
    if (count > MT_MAX_SWEEP_RUNS) {
        mt_message("option '--sweep': these values make %llu runs, but at most %d are allowed",
                   (unsigned long long)count, MT_MAX_SWEEP_RUNS);
        return MT_EXIT_USAGE;
    }
    sweep->run_count = (size_t)count;
    for (size_t run = 0; run < sweep->run_count; run++) {
        size_t rest = run;

        for (size_t i = sweep->name_count; i-- > 0; rest /= axes[i].count)
            sweep->runs[run].values[i] = axes[i].values[rest % axes[i].count];
        add_label(plan, &sweep->runs[run]);
    }
    return -1;
}

static int check_files(struct mt_sweep_plan *plan)
{
    for (size_t i = 0; i < plan->sweep.run_count; i++) {
        const char *file = mt_sweep_plan_file(plan, &plan->sweep.runs[i]);

        if (strlen(file) > MAX_FILE) {
            mt_message("option '--sweep': '%s' is too long for the name of a file", file);
            return MT_EXIT_USAGE;
        }
    }
    return -1;
}

int mt_sweep_plan_make(struct mt_sweep_plan *plan, const struct mt_text_list *options,
                       char *const *command)
{
    struct mt_sweep *sweep = &plan->sweep;
    struct axis axes[MT_MAX_SWEEP_NAMES] = {{.count = 0}};
    int code = -1;

    memset(plan, 0, sizeof *plan);
    plan->command = command;
    if (options->count > MT_MAX_SWEEP_NAMES) {
        mt_message("option '--sweep': at most %d names", MT_MAX_SWEEP_NAMES);
        return MT_EXIT_USAGE;
    }
    for (size_t i = 0; code < 0 && i < options->count; i++) {
        code = read_axis(plan, &axes[i], options->items[i]);
        for (size_t j = 0; code < 0 && j < i; j++)
            if (!strcmp(axes[j].name, axes[i].name)) {
                mt_message("option '--sweep': '%s' is given twice", axes[i].name);
                code = MT_EXIT_USAGE;
            }
        if (code < 0)
            code = check_use(plan, axes[i].name);
        sweep->names[sweep->name_count++] = axes[i].name;
    }
    if (code < 0)
        code = add_runs(plan, axes);
    return code < 0 ? check_files(plan) : code;
}

/* Returns the value of a name in a run; NULL if there is no sweep over the name. */
static const char *value_of(const struct mt_sweep *sweep, const struct mt_sweep_run *run,
                            const char *name, size_t length)
{
    for (size_t i = 0; i < sweep->name_count; i++)
        if (strlen(sweep->names[i]) == length && !strncmp(sweep->names[i], name, length))
            return run->values[i];
    return NULL;
}

static char *replace(struct mt_sweep_plan *plan, const struct mt_sweep_run *run, const char *word)
{
    const char *at = word, *done = word, *name;
    struct mt_buf out = {0};
    char *copy;
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
    copy = mt_arena_text(&plan->arena, out.data ? out.data : "", out.length);
    mt_buf_release(&out);
    return copy;
}

char **mt_sweep_plan_command(struct mt_sweep_plan *plan, const struct mt_sweep_run *run)
{
    size_t count = 0;
    char **words;

    while (plan->command[count])
        count++;
    words = mt_arena_array(&plan->arena, count + 1, sizeof *words);
    for (size_t i = 0; i < count; i++)
        words[i] = replace(plan, run, plan->command[i]);
    return words;
}

char *mt_sweep_plan_file(struct mt_sweep_plan *plan, const struct mt_sweep_run *run)
{
    const struct mt_sweep *sweep = &plan->sweep;
    struct mt_buf out = {0};
    char *copy;

    for (size_t i = 0; i < sweep->name_count; i++) {
        mt_buf_printf(&out, "%s%s=", i ? "," : "", sweep->names[i]);
        for (const char *at = run->values[i]; *at; at++)
            if (is_name_character(*at, false) || strchr(".+", *at))
                mt_buf_add_char(&out, *at);
            else
                mt_buf_printf(&out, "%%%02X", (unsigned)(unsigned char)*at);
    }
    copy = mt_arena_text(&plan->arena, out.data ? out.data : "", out.length);
    mt_buf_release(&out);
    return copy;
}

void mt_sweep_plan_release(struct mt_sweep_plan *plan)
{
    mt_arena_release(&plan->arena);
}

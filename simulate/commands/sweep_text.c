/* The result of a sweep, as text and as JSON. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "assumed_output.h"
#include "cli.h"
#include "dry_run_answer.h"
#include "gate_result.h"
#include "report_json.h"
#include "sweep_output.h"
#include "text_table.h"
#include "units.h"
#include "util.h"

static bool has_gates(const struct mt_sweep *sweep)
{
    for (size_t i = 0; i < sweep->run_count; i++)
        if (sweep->runs[i].result.has_gates)
            return true;
    return false;
}

/* Adds the memory that a card must have, which is known only for a run that finished. */
static void add_need(struct mt_table *table, const struct mt_sweep_result *result)
{
    char bytes[MT_UNITS_TEXT], all[MT_UNITS_TEXT + 4] = "";

    if (!result->has_need) {
        mt_table_skip(table, 2);
        return;
    }
    snprintf(all, sizeof all, "%s%s", result->card.cuda_from == MT_CUDA_TABLE ? "" : "~",
             mt_format_bytes(bytes, result->card.bytes));
    MT_CELLS(table, MT_BYTES(result->card.allocator_bytes), MT_TEXT(all));
}

/* Writes "killed by SIGSEGV". Knows the names of signals that usually kill programs. */
static void write_signal(char *text, size_t size, int number)
{
    static const struct {
        int number;
        const char *name;
    } names[] = {{SIGHUP, "HUP"},   {SIGINT, "INT"},   {SIGQUIT, "QUIT"}, {SIGILL, "ILL"},
                 {SIGTRAP, "TRAP"}, {SIGABRT, "ABRT"}, {SIGBUS, "BUS"},   {SIGFPE, "FPE"},
                 {SIGKILL, "KILL"}, {SIGUSR1, "USR1"}, {SIGSEGV, "SEGV"}, {SIGUSR2, "USR2"},
                 {SIGPIPE, "PIPE"}, {SIGALRM, "ALRM"}, {SIGTERM, "TERM"}, {SIGXCPU, "XCPU"},
                 {SIGXFSZ, "XFSZ"}, {SIGSYS, "SYS"}};

    for (size_t i = 0; i < MT_ARRAY_LEN(names); i++)
        if (names[i].number == number) {
            snprintf(text, size, "killed by SIG%s", names[i].name);
            return;
        }
    snprintf(text, size, "killed by signal %d", number);
}

static void add_outcome(struct mt_table *table, const struct mt_sweep_result *result)
{
    char text[64];

    if (result->outcome == MT_SWEEP_FAILED && result->signal)
        write_signal(text, sizeof text, result->signal);
    else if (result->outcome == MT_SWEEP_FAILED)
        snprintf(text, sizeof text, "failed with %d", result->exit_status);
    else
        snprintf(text, sizeof text, "%s", mt_sweep_outcome_name(result->outcome));
    MT_CELLS(table, MT_TEXT(text));
}

static void add_peaks(struct mt_buf *out, const struct mt_sweep *sweep,
                      const struct mt_style *style)
{
    bool with_gates = has_gates(sweep);
    struct mt_table table;

    mt_sweep_table_begin(&table, sweep, "outcome|#allocated|#reserved|#smallest limit|#card");
    if (with_gates)
        mt_table_columns(&table, "rules");
    for (size_t i = 0; i < sweep->run_count; i++) {
        const struct mt_sweep_result *result = &sweep->runs[i].result;

        MT_CELLS(&table, MT_TEXT(mt_sweep_run_name(sweep, &sweep->runs[i])));
        add_outcome(&table, result);
        if (result->is_measured)
            MT_CELLS(&table, MT_BYTES(result->allocated_peak_bytes),
                     MT_BYTES(result->reserved_peak_bytes));
        else
            mt_table_skip(&table, 2);
        add_need(&table, result);
        if (with_gates)
            MT_CELLS(&table,
                     MT_TEXT(result->has_gates ? mt_gate_state_name(result->gate_state) : ""));
    }
    mt_text_table_add(out, &table, 0, style);
}

static void add_role_cells(struct mt_table *table, const struct mt_sweep *sweep,
                           const struct mt_sweep_result *result)
{
    for (int role = 0; role < MT_ROLE_COUNT; role++)
        if (mt_sweep_uses_role(sweep, role))
            MT_CELLS(table, MT_BYTES(result->role_bytes[role]));
}

static void add_roles(struct mt_buf *out, const struct mt_sweep *sweep,
                      const struct mt_style *style)
{
    struct mt_table table;
    char titles[MT_ROLE_COUNT][32];

    mt_sweep_table_begin(&table, sweep, NULL);
    for (int role = 0; role < MT_ROLE_COUNT; role++) {
        snprintf(titles[role], sizeof titles[role], "#%s", mt_role_name((enum mt_role)role));
        if (mt_sweep_uses_role(sweep, role))
            mt_table_columns(&table, titles[role]);
    }
    for (size_t i = 0; i < sweep->run_count; i++)
        if (sweep->runs[i].result.is_measured) {
            MT_CELLS(&table, MT_TEXT(mt_sweep_run_name(sweep, &sweep->runs[i])));
            add_role_cells(&table, sweep, &sweep->runs[i].result);
        }
    if (!mt_table_rows(&table)) {
        mt_table_release(&table);
        return;
    }
    mt_buf_add_text(out, "\nAt the allocated peak\n");
    mt_text_table_add(out, &table, 0, style);
}

static uint64_t allocated_of(const struct mt_sweep_result *result)
{
    return result->allocated_peak_bytes;
}

static uint64_t reserved_of(const struct mt_sweep_result *result)
{
    return result->reserved_peak_bytes;
}

/* The metrics for which the output has a slope, in the order of the output. */
struct metric {
    const char *words, *key;
    uint64_t (*bytes_of)(const struct mt_sweep_result *result);
};

static const struct metric metrics[] = {
    {"allocated peak", "allocated_peak_bytes", allocated_of},
    {"reserved peak", "reserved_peak_bytes", reserved_of},
};

enum { CHANGE_TEXT = 2 * MT_UNITS_TEXT };

static void write_bytes(char text[CHANGE_TEXT], int64_t change_bytes)
{
    char bytes[MT_UNITS_TEXT];

    snprintf(text, CHANGE_TEXT, "%s%s B", change_bytes < 0 ? "\xE2\x88\x92" : "+",
             mt_format_count(bytes, mt_magnitude(change_bytes)));
}

/* Writes two different changes: in bytes if they are equal when rounded. */
static void write_changes(char least[CHANGE_TEXT], char most[CHANGE_TEXT],
                          const struct mt_sweep_slope *slope)
{
    mt_format_change(least, slope->least_bytes);
    mt_format_change(most, slope->most_bytes);
    if (strcmp(least, most) == 0) {
        write_bytes(least, slope->least_bytes);
        write_bytes(most, slope->most_bytes);
    }
}

static void add_slope(struct mt_buf *out, const struct mt_sweep *sweep, const struct metric *metric)
{
    const struct mt_sweep_slope slope = mt_sweep_slope_of(sweep, metric->bytes_of);
    char least[CHANGE_TEXT], most[CHANGE_TEXT];

    if (slope.points < MT_SWEEP_SLOPE_POINTS)
        return;
    if (slope.is_exact && !slope.least_bytes) {
        mt_text_table_add_note(out, 0, "%s does not change the %s: it is the same for %zu values",
                               sweep->names[0], metric->words, slope.points);
        return;
    }
    if (slope.is_exact) {
        mt_text_table_add_note(
            out, 0, "Each +1 of %s changes the %s by %s (%s%s B): exactly linear over %zu values",
            sweep->names[0], metric->words, mt_format_change(least, slope.least_bytes),
            slope.least_bytes < 0 ? "\xE2\x88\x92" : "",
            mt_format_count(most, mt_magnitude(slope.least_bytes)), slope.points);
        return;
    }
    write_changes(least, most, &slope);
    mt_text_table_add_note(
        out, 0, "Each +1 of %s changes the %s by between %s and %s: not linear over %zu values",
        sweep->names[0], metric->words, least, most, slope.points);
}

static void add_slopes(struct mt_buf *out, const struct mt_sweep *sweep)
{
    size_t before = out->length;

    mt_buf_add_char(out, '\n');
    for (size_t i = 0; i < MT_ARRAY_LEN(metrics); i++)
        add_slope(out, sweep, &metrics[i]);
    if (out->length == before + 1)
        out->length = before;
}

static void add_card_row(struct mt_table *table, const struct mt_sweep *sweep,
                         const struct mt_card *card)
{
    const struct mt_sweep_fit fit = mt_sweep_fit_of(sweep, card);
    char largest[MT_MAX_SWEEP_NAMES * (MT_MAX_SWEEP_WORD + MT_MAX_SWEEP_VALUE + 3) + 32];

    snprintf(largest, sizeof largest, "%s%s",
             fit.fits ? mt_sweep_run_name(sweep, fit.fits) : "none",
             fit.may_be_more ? " or more" : "");
    MT_CELLS(table, MT_TEXT(card->name), MT_BYTES(card->memory_bytes), MT_TEXT(largest));
    if (!mt_sweep_is_numeric(sweep)) {
        char text[48];

        snprintf(text, sizeof text, "%zu of %zu", fit.fit_count, fit.known_count);
        MT_CELLS(table, MT_TEXT(text));
    }
}

static bool any_need(const struct mt_sweep *sweep)
{
    for (size_t i = 0; i < sweep->run_count; i++)
        if (sweep->runs[i].result.has_need)
            return true;
    return false;
}

static void add_cards(struct mt_buf *out, const struct mt_sweep *sweep,
                      const struct mt_style *style)
{
    bool is_numeric = mt_sweep_is_numeric(sweep);
    struct mt_table table;
    char largest[MT_MAX_SWEEP_WORD + 32];

    if (!any_need(sweep))
        return;
    snprintf(largest, sizeof largest, "!largest %s that fits", mt_sweep_column(sweep));
    mt_table_begin(&table, "card|#memory");
    mt_table_columns(&table, is_numeric ? largest : "!most memory that fits");
    if (!is_numeric)
        mt_table_columns(&table, "#runs that fit");
    for (const struct mt_card *card = mt_cards; card->name; card++)
        add_card_row(&table, sweep, card);
    mt_buf_add_char(out, '\n');
    mt_text_table_add(out, &table, 0, style);
    mt_text_table_add_note(
        out, 0,
        "The table compares only values whose run finished. \"or more\": a larger value did not "
        "finish here but may fit.");
}

/* A point fits if all its ranks do. */
static void add_point_cards(struct mt_buf *out, const struct mt_sweep *sweep,
                            const struct mt_style *style)
{
    struct mt_sweep points;

    mt_sweep_take_points(sweep, &points);
    add_cards(out, &points, style);
    free(points.runs);
}

static void say_out_of_memory(struct mt_buf *out, const struct mt_sweep_run *run)
{
    const struct mt_sweep_result *result = &run->result;
    char bytes[MT_UNITS_TEXT];

    if (!result->oom_request_bytes)
        return;
    mt_text_table_add_note(out, 2, "%s: out of memory at a request of %s%s%s, %s", run->label,
                           mt_format_bytes(bytes, result->oom_request_bytes),
                           *result->oom_site ? " from " : "", result->oom_site, result->oom_phase);
}

/* Prints reasons why the numbers may differ from those of real runs. */
void mt_sweep_add_doubts(struct mt_buf *out, const struct mt_sweep *sweep)
{
    size_t dependent = 0, unbounded = 0, bounded = 0, doubtful = 0;

    for (size_t i = 0; i < sweep->run_count; i++) {
        const struct mt_sweep_result *result = &sweep->runs[i].result;

        dependent += mt_sweep_guess_weight(result) == MT_GUESSES_UNTRIED;
        bounded += mt_sweep_guess_weight(result) == MT_GUESSES_BOUNDED;
        unbounded += mt_sweep_guess_weight(result) == MT_GUESSES_UNBOUNDED;
        doubtful += result->has_doubts;
    }
    if (dependent)
        mt_text_table_add_note(
            out, 0,
            "In %zu run%s, sizes or decisions depended on data that a dry run does not "
            "have: peaks may differ.",
            dependent, dependent == 1 ? "" : "s");
    if (bounded)
        mt_text_table_add_note(
            out, 0,
            "In %zu run%s, peaks depend on data that a dry run does not have. Whether a card has "
            "enough is decided by the most that 25%% to 100%% of such data needs.",
            bounded, bounded == 1 ? "" : "s");
    if (unbounded)
        mt_text_table_add_note(
            out, 0,
            "In %zu run%s, peaks depend on data that a dry run does not have, and with other data "
            "the command failed: what it needs is not known.",
            unbounded, unbounded == 1 ? "" : "s");
    if (doubtful)
        mt_text_table_add_note(
            out, 0,
            "In %zu run%s, a process is missing from the peaks, or ran without the "
            "simulated device or without the Python part of the dry run: peaks may differ. "
            "For details, make a dry run of that value alone.",
            doubtful, doubtful == 1 ? "" : "s");
}

/* Explains the marks of the table. */
static void say_marks(struct mt_buf *out, const struct mt_sweep *sweep)
{
    size_t unfinished = 0, unknown = 0;

    for (size_t i = 0; i < sweep->run_count; i++) {
        const struct mt_sweep_result *result = &sweep->runs[i].result;

        unfinished += result->is_measured && result->outcome != MT_SWEEP_FINISHED;
        unknown += result->has_need && result->card.cuda_from != MT_CUDA_TABLE;
    }
    if (unfinished)
        mt_text_table_add_note(
            out, 0,
            "A run that did not finish has the peaks up to its end; its full need is "
            "unknown. If it ran out of memory, try a larger card (--device).");
    if (unknown)
        mt_text_table_add_note(out, 0,
                               "~ is an estimate: the memory of CUDA and its libraries "
                               "beside the allocator was not measured for %s%s.",
                               sweep->card->name,
                               sweep->world > 4 ? " with more than 4 ranks of NCCL"
                                                : ", and counts as 1 GiB");
}

/* Adds the heading of the answer about the worst run. */
static void add_worst(struct mt_buf *out, const struct mt_sweep *sweep)
{
    const struct mt_sweep_run *worst = mt_sweep_worst(sweep);

    if (worst)
        mt_buf_printf(out, "\nThe largest reserved peak is that of %s:\n", worst->label);
}

void mt_sweep_add_text(struct mt_buf *out, const struct mt_sweep *sweep)
{
    const struct mt_style *style = mt_stdout_style();
    char memory[MT_UNITS_TEXT];

    if (sweep->world && sweep->name_count == 1)
        mt_text_table_add_note(
            out, 0,
            "%zu of %s ranks, each simulated alone: in place of the values of other ranks it "
            "receives its own",
            sweep->run_count, mt_format_count(memory, sweep->world));
    else if (sweep->world)
        mt_text_table_add_note(out, 0,
                               "Each rank is simulated alone: in place of the values of other "
                               "ranks it receives its own");
    mt_text_table_add_note(
        out, 0, "%zu dry run%s on a simulated %s with %s: times and values are meaningless",
        sweep->run_count, sweep->run_count == 1 ? "" : "s", sweep->card->name,
        mt_format_bytes(memory, sweep->memory_bytes));
    add_peaks(out, sweep, style);
    for (size_t i = 0; i < sweep->run_count; i++)
        say_out_of_memory(out, &sweep->runs[i]);
    mt_sweep_add_assumed(out, sweep);
    mt_sweep_add_doubts(out, sweep);
    say_marks(out, sweep);
    add_roles(out, sweep, style);
    add_slopes(out, sweep);
    if (!sweep->world || sweep->name_count > 1)
        add_point_cards(out, sweep, style);
    if (sweep->world)
        add_worst(out, sweep);
}

/* A sweep as memtrace.sweep/1. It has at most MT_MAX_SWEEP_RUNS runs of a few hundred bytes each,
 * so it needs no other limit. */

static void add_memory_error(struct mt_json *json, const struct mt_sweep_result *result)
{
    if (result->outcome != MT_SWEEP_OUT_OF_MEMORY) {
        mt_json_null(json, "out_of_memory");
        return;
    }
    mt_json_object_begin(json, "out_of_memory");
    mt_json_u64(json, "request_bytes", result->oom_request_bytes);
    mt_json_text(json, "site", *result->oom_site ? result->oom_site : NULL);
    mt_json_text(json, "phase", result->oom_phase);
    mt_json_object_end(json);
}

static void add_json_peaks(struct mt_json *json, const struct mt_sweep_result *result)
{
    bool is_measured = result->is_measured;

    mt_json_u64_or_null(json, "device", is_measured, result->device);
    mt_json_u64_or_null(json, "allocated_peak_bytes", is_measured, result->allocated_peak_bytes);
    mt_json_u64_or_null(json, "reserved_peak_bytes", is_measured, result->reserved_peak_bytes);
    mt_json_peak_roles(json, result->role_bytes);
    mt_json_card(json, result->has_need ? &result->card : NULL);
}

void mt_json_sweep_run(struct mt_json *json, struct mt_sweep_plan *plan,
                       const struct mt_sweep_run *run, bool has_files)
{
    const struct mt_sweep_result *result = &run->result;

    mt_json_object_begin(json, NULL);
    mt_json_array_begin(json, "values");
    for (size_t i = 0; i < plan->sweep.name_count; i++)
        mt_json_text(json, NULL, run->values[i]);
    mt_json_array_end(json);
    mt_json_text(json, "outcome", mt_sweep_outcome_name(result->outcome));
    mt_json_u64_or_null(json, "exit_status", result->outcome != MT_SWEEP_NOT_RUN,
                        (uint64_t)result->exit_status);
    mt_json_u64_or_null(json, "signal", result->signal, (uint64_t)result->signal);
    mt_json_i64(json, "exit_code", result->exit_code);
    if (has_files)
        mt_json_text(json, "file", mt_sweep_plan_file(plan, run));
    add_json_peaks(json, result);
    add_memory_error(json, result);
    mt_json_object_begin(json, "depended_on_data");
    mt_json_u64(json, "sizes", result->sizes_from_data);
    mt_json_u64(json, "decisions", result->decisions_from_data);
    mt_json_object_end(json);
    mt_json_undecided(json, &result->undecided);
    mt_json_assumed(json, result);
    mt_json_bool(json, "has_doubts", result->has_doubts);
    if (result->has_gates)
        mt_json_text(json, "verdict", mt_gate_state_name(result->gate_state));
    mt_json_object_end(json);
}

static void add_json_slope(struct mt_json *json, const struct mt_sweep *sweep,
                           const struct metric *metric)
{
    const struct mt_sweep_slope slope = mt_sweep_slope_of(sweep, metric->bytes_of);

    if (slope.points < MT_SWEEP_SLOPE_POINTS)
        return;
    mt_json_object_begin(json, NULL);
    mt_json_text(json, "of", metric->key);
    mt_json_u64(json, "values", slope.points);
    mt_json_u64(json, "from", slope.from);
    mt_json_u64(json, "to", slope.to);
    mt_json_bool(json, "exact", slope.is_exact);
    mt_json_i64(json, "least_bytes", slope.least_bytes);
    mt_json_i64(json, "most_bytes", slope.most_bytes);
    mt_json_object_end(json);
}

static void add_card(struct mt_json *json, const struct mt_sweep *sweep, const struct mt_card *card)
{
    const struct mt_sweep_fit fit = mt_sweep_fit_of(sweep, card);

    mt_json_object_begin(json, NULL);
    mt_json_text(json, "card", card->name);
    mt_json_u64(json, "memory_bytes", card->memory_bytes);
    mt_json_text(json, "fits", fit.fits ? fit.fits->label : NULL);
    mt_json_u64(json, "runs_that_fit", fit.fit_count);
    mt_json_u64(json, "runs_known", fit.known_count);
    mt_json_bool(json, "may_be_more", fit.may_be_more);
    mt_json_object_end(json);
}

void mt_sweep_add_json(struct mt_buf *out, struct mt_sweep_plan *plan, bool has_files)
{
    const struct mt_sweep *sweep = &plan->sweep;
    struct mt_sweep points;
    struct mt_json json;

    mt_json_document(&json, out, "memtrace.sweep/1", false);
    mt_json_simulated(&json, sweep->card, sweep->devices, sweep->memory_bytes);
    if (sweep->world) {
        const struct mt_sweep_run *worst = mt_sweep_worst(sweep);

        mt_json_u64(&json, "world_size", sweep->world);
        mt_json_u64(&json, "local_world_size", sweep->local_world);
        mt_json_text(&json, "largest_reserved_peak",
                     worst ? mt_sweep_run_name(sweep, worst) : NULL);
    }
    mt_json_array_begin(&json, "names");
    for (size_t i = 0; i < sweep->name_count; i++)
        mt_json_text(&json, NULL, sweep->names[i]);
    mt_json_array_end(&json);
    mt_json_array_begin(&json, "runs");
    for (size_t i = 0; i < sweep->run_count; i++)
        mt_json_sweep_run(&json, plan, &sweep->runs[i], has_files);
    mt_json_array_end(&json);
    mt_json_array_begin(&json, "slopes");
    for (size_t i = 0; i < MT_ARRAY_LEN(metrics); i++)
        add_json_slope(&json, sweep, &metrics[i]);
    mt_json_array_end(&json);
    mt_json_array_begin(&json, "cards");
    mt_sweep_take_points(sweep, &points);
    for (const struct mt_card *card = mt_cards; card->name; card++)
        add_card(&json, &points, card);
    free(points.runs);
    mt_json_array_end(&json);
    mt_json_object_end(&json);
}

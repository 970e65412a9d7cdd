/* Ranges of the peaks, from runs of the same command under other assumptions. */
#include <stdio.h>
#include <string.h>

#include "assumed_output.h"
#include "ascii.h"
#include "cli.h"
#include "foreign_text.h"
#include "json.h"
#include "text_table.h"
#include "units.h"
#include "util.h"

static void add_counted(struct mt_buf *out, uint64_t count, const char *noun)
{
    char text[MT_UNITS_TEXT];

    mt_buf_add_text(out, mt_format_counted(text, count, noun));
}

/* "680 sizes and 394 decisions" */
static void add_counts(struct mt_buf *out, const struct mt_sweep_result *result)
{
    if (result->sizes_from_data)
        add_counted(out, result->sizes_from_data, "size");
    if (result->sizes_from_data && result->decisions_from_data)
        mt_buf_add_text(out, " and ");
    if (result->decisions_from_data)
        add_counted(out, result->decisions_from_data, "decision");
}

/* "9,903 of 19,806 at train.py:37 (selection)" */
static void add_cause(struct mt_buf *out, const struct mt_guess_cause *cause)
{
    char size[MT_UNITS_TEXT], of[MT_UNITS_TEXT];

    if (cause->of)
        mt_buf_printf(out, "%s of %s at ", mt_format_count(size, cause->size),
                      mt_format_count(of, cause->of));
    mt_buf_add_printable_text(out, mt_base_name(cause->place));
    mt_buf_add_text(out, " (");
    mt_buf_add_printable_text(out, cause->kind);
    mt_buf_add_char(out, ')');
}

static void add_range(struct mt_buf *out, const char *name, uint64_t least, uint64_t most)
{
    char bytes[2][MT_UNITS_TEXT];

    mt_buf_printf(out, "%s %s", name, mt_format_bytes(bytes[0], least));
    if (strcmp(bytes[0], mt_format_bytes(bytes[1], most)) != 0)
        mt_buf_printf(out, " to %s", bytes[1]);
}

/* The peaks of the run itself. */
static struct mt_assumed_peaks own_peaks(const struct mt_sweep_result *result)
{
    return (struct mt_assumed_peaks){.outcome = result->outcome,
                                     .allocated_bytes = result->allocated_peak_bytes,
                                     .reserved_bytes = result->reserved_peak_bytes,
                                     .card_bytes = result->has_need ? result->card.bytes : 0};
}

/* Appends the ranges of the run and of the runs from `first` to `last`. */
static void add_ranges(struct mt_buf *out, const struct mt_sweep_result *result,
                       enum mt_assumed first, enum mt_assumed last)
{
    struct mt_assumed_peaks least = own_peaks(result), most = least;
    bool has_card = least.card_bytes;

    for (unsigned i = first; i <= (unsigned)last; i++) {
        const struct mt_assumed_peaks *peaks = &result->assumed[i];

        if (!mt_assumed_has_peaks(peaks))
            continue;
        least.allocated_bytes = mt_min_u64(least.allocated_bytes, peaks->allocated_bytes);
        most.allocated_bytes = mt_max_u64(most.allocated_bytes, peaks->allocated_bytes);
        least.reserved_bytes = mt_min_u64(least.reserved_bytes, peaks->reserved_bytes);
        most.reserved_bytes = mt_max_u64(most.reserved_bytes, peaks->reserved_bytes);
        least.card_bytes = mt_min_u64(least.card_bytes, peaks->card_bytes);
        most.card_bytes = mt_max_u64(most.card_bytes, peaks->card_bytes);
        has_card = has_card && peaks->card_bytes;
    }
    add_range(out, "allocated", least.allocated_bytes, most.allocated_bytes);
    add_range(out, ", reserved", least.reserved_bytes, most.reserved_bytes);
    if (has_card)
        add_range(out, ", card", least.card_bytes, most.card_bytes);
}

/* Why memory is freed late, for the first of the reasons. */
static void add_undecided(struct mt_buf *out, const struct mt_undecided *undecided)
{
    if (undecided->collectives) {
        mt_buf_add_text(out, "The program did not wait for ");
        add_counted(out, undecided->collectives, "collective");
        mt_buf_add_text(out, " of NCCL: PyTorch frees the memory of such a collective when its "
                             "watchdog thread notices that it ended");
    } else if (undecided->blocks) {
        mt_buf_add_text(out, "Another stream used ");
        add_counted(out, undecided->blocks, "block");
        mt_buf_add_text(out, ": PyTorch frees such a block when it notices that the stream is done "
                             "with it");
    } else {
        mt_buf_add_text(out,
                        "The program went on without an event or stream that it had queried, ");
        add_counted(out, undecided->queries, "time");
        mt_buf_add_text(out, ": these complete");
    }
}

static void add_timing(struct mt_buf *out, const struct mt_sweep_result *result)
{
    const struct mt_assumed_peaks *early = &result->assumed[MT_ASSUMED_EARLY];

    if (!mt_sweep_depends_on_timing(result))
        return;
    add_undecided(out, &result->undecided);
    if (mt_assumed_has_peaks(early)) {
        mt_buf_add_text(out, ", at once to late: ");
        add_ranges(out, result, MT_ASSUMED_EARLY, MT_ASSUMED_EARLY);
        mt_buf_add_char(out, '\n');
    } else {
        mt_buf_add_text(out, ", which is late here; a real run may need less\n");
    }
}

static void add_unbounded(struct mt_buf *out, const struct mt_sweep_result *result)
{
    const struct mt_assumed_peaks *less = &result->assumed[MT_ASSUMED_LESS];
    const struct mt_assumed_peaks *more = &result->assumed[MT_ASSUMED_MORE];
    bool lacks_less = !mt_assumed_has_peaks(less);
    const struct mt_assumed_peaks *lacking = lacks_less ? less : more;

    mt_buf_printf(out, "\n  how much is not known: with %s of it the run %s\n",
                  lacks_less ? "25%" : "100%",
                  lacking->outcome == MT_SWEEP_NOT_RUN ? "has no result"
                                                       : mt_sweep_outcome_name(lacking->outcome));
}

static void add_guesses(struct mt_buf *out, const struct mt_sweep_result *result)
{
    enum mt_guess_weight weight = mt_sweep_guess_weight(result);
    char bytes[MT_UNITS_TEXT];

    if (weight == MT_GUESSES_NONE || weight == MT_GUESSES_HARMLESS)
        return;
    add_counts(out, result);
    mt_buf_add_text(out, " depended on data that a dry run does not have; peaks ");
    mt_buf_add_text(out, weight == MT_GUESSES_UNTRIED ? "may differ" : "depend on it");
    if (*result->cause.place) {
        mt_buf_add_text(out, ": ");
        add_cause(out, &result->cause);
        if (result->cause.peak_bytes)
            mt_buf_printf(out, ", %s of the peak",
                          mt_format_bytes(bytes, result->cause.peak_bytes));
    }
    if (weight == MT_GUESSES_UNBOUNDED) {
        add_unbounded(out, result);
    } else if (weight == MT_GUESSES_BOUNDED) {
        mt_buf_add_text(out, "\n  with 25% to 100% of it: ");
        add_ranges(out, result, MT_ASSUMED_LESS, MT_ASSUMED_MORE);
        mt_buf_add_char(out, '\n');
    } else {
        mt_buf_add_char(out, '\n');
    }
}

void mt_assumed_add_ranges(struct mt_buf *out, const struct mt_sweep_result *result)
{
    add_guesses(out, result);
    add_timing(out, result);
}

static void add_outcome(struct mt_table *table, const struct mt_assumed_peaks *peaks)
{
    bool is_known = peaks->outcome != MT_SWEEP_NOT_RUN;

    MT_CELLS(table, MT_TEXT(is_known ? mt_sweep_outcome_name(peaks->outcome) : "not known"));
    if (mt_assumed_has_peaks(peaks))
        MT_CELLS(table, MT_BYTES(peaks->allocated_bytes), MT_BYTES(peaks->reserved_bytes));
    else
        mt_table_skip(table, 2);
}

void mt_sweep_table_begin(struct mt_table *table, const struct mt_sweep *sweep, const char *columns)
{
    char first[MT_MAX_SWEEP_WORD + 2];

    snprintf(first, sizeof first, "!%s", mt_sweep_column(sweep));
    mt_table_begin(table, first);
    if (columns)
        mt_table_columns(table, columns);
}

/* Appends the table below its note, if it has rows, and releases it. */
static void end(struct mt_buf *out, struct mt_table *table, const char *note)
{
    if (mt_table_rows(table)) {
        mt_text_table_add_note(out, 0, "%s", note);
        mt_text_table_add(out, table, 0, mt_stdout_style());
    } else {
        mt_table_release(table);
    }
}

static void add_timing_table(struct mt_buf *out, const struct mt_sweep *sweep)
{
    struct mt_table table;

    mt_sweep_table_begin(&table, sweep, "outcome|#allocated|#reserved");
    for (size_t i = 0; i < sweep->run_count; i++) {
        const struct mt_sweep_run *run = &sweep->runs[i];

        if (!mt_sweep_depends_on_timing(&run->result))
            continue;
        MT_CELLS(&table, MT_TEXT(mt_sweep_run_name(sweep, run)));
        add_outcome(&table, &run->result.assumed[MT_ASSUMED_EARLY]);
    }
    end(out, &table,
        "The peaks depend on timing: PyTorch frees the memory of collectives, and of blocks that "
        "another stream used, when it notices that they ended. Above, it notices late. If it "
        "notices at once:");
}

static void add_guess_rows(struct mt_table *table, const struct mt_sweep *sweep,
                           const struct mt_sweep_run *run)
{
    static const char *const shares[] = {[MT_ASSUMED_LESS] = "25%", [MT_ASSUMED_MORE] = "100%"};
    struct mt_buf cause = {0};

    if (*run->result.cause.place)
        add_cause(&cause, &run->result.cause);
    for (unsigned i = MT_ASSUMED_LESS; i <= MT_ASSUMED_MORE; i++) {
        MT_CELLS(table, MT_TEXT(mt_sweep_run_name(sweep, run)), MT_TEXT(shares[i]));
        add_outcome(table, &run->result.assumed[i]);
        MT_CELLS(table, MT_TEXT(cause.length ? cause.data : ""));
    }
    mt_buf_release(&cause);
}

static void add_guess_table(struct mt_buf *out, const struct mt_sweep *sweep)
{
    struct mt_table table;

    mt_sweep_table_begin(&table, sweep, "of data|outcome|#allocated|#reserved|place");
    for (size_t i = 0; i < sweep->run_count; i++)
        if (mt_sweep_guess_weight(&sweep->runs[i].result) >= MT_GUESSES_BOUNDED)
            add_guess_rows(&table, sweep, &sweep->runs[i]);
    end(out, &table,
        "The peaks depend on data that a dry run does not have: above, masks and selections leave "
        "50%. If they leave:");
}

void mt_sweep_add_assumed(struct mt_buf *out, const struct mt_sweep *sweep)
{
    add_timing_table(out, sweep);
    add_guess_table(out, sweep);
}

static void json_cause(struct mt_json *json, const struct mt_guess_cause *cause)
{
    if (!*cause->place)
        return;
    mt_json_object_begin(json, "cause");
    mt_json_text(json, "place", cause->place);
    mt_json_text(json, "kind", cause->kind);
    mt_json_u64(json, "size", cause->size);
    mt_json_u64(json, "of", cause->of);
    mt_json_u64(json, "peak_bytes", cause->peak_bytes);
    mt_json_object_end(json);
}

void mt_json_assumed(struct mt_json *json, const struct mt_sweep_result *result)
{
    static const char *const names[] = {"early", "less", "more"};
    static const char *const weights[] = {"none", "not tried", "harmless", "bounded",
                                          "not bounded"};

    mt_json_object_begin(json, "assumed");
    mt_json_text(json, "data", weights[mt_sweep_guess_weight(result)]);
    json_cause(json, &result->cause);
    mt_json_array_begin(json, "runs");
    for (unsigned i = 0; i < MT_ASSUMED_COUNT; i++) {
        const struct mt_assumed_peaks *peaks = &result->assumed[i];

        if (peaks->outcome == MT_SWEEP_NOT_RUN)
            continue;
        mt_json_object_begin(json, NULL);
        mt_json_text(json, "assumption", names[i]);
        mt_json_text(json, "outcome", mt_sweep_outcome_name(peaks->outcome));
        mt_json_u64(json, "allocated_peak_bytes", peaks->allocated_bytes);
        mt_json_u64(json, "reserved_peak_bytes", peaks->reserved_bytes);
        mt_json_u64_or_null(json, "card_bytes", peaks->card_bytes, peaks->card_bytes);
        mt_json_object_end(json);
    }
    mt_json_array_end(json);
    mt_json_object_end(json);
}

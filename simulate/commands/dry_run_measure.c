#include "dry_run_measure.h"

#include <stdio.h>
#include <string.h>

#include "analyze.h"
#include "question_report.h"
#include "report_query.h"

enum { TIMED_OUT = 124 }; /* the status that timeout(1) uses */

static bool is_worse_trace(const struct mt_dry_run_trace *a, const struct mt_dry_run_trace *b)
{
    if (a->died_of_oom != b->died_of_oom)
        return a->died_of_oom;
    return a->reserved_peak_bytes > b->reserved_peak_bytes;
}

const struct mt_dry_run_trace *mt_dry_run_worst_trace(const struct mt_dry_run_answer *answer)
{
    const struct mt_dry_run_trace *worst = NULL;

    for (size_t i = 0; i < answer->trace_count; i++)
        if (!worst || is_worse_trace(&answer->traces[i], worst))
            worst = &answer->traces[i];
    return worst;
}

/* Sets what is known without a trace: how the command ended, and on what its peaks may depend. */
static void begin(struct mt_sweep_result *result, const struct mt_dry_run_answer *answer)
{
    result->exit_status = answer->exit_status;
    result->signal = answer->signal;
    result->outcome = answer->timed_out      ? MT_SWEEP_TIMED_OUT
                      : answer->exit_status  ? MT_SWEEP_FAILED
                      : !answer->trace_count ? MT_SWEEP_NO_DEVICE
                                             : MT_SWEEP_FINISHED;
    result->sizes_from_data = answer->notes->sizes;
    result->decisions_from_data = answer->notes->decisions;
    result->has_doubts = mt_dry_run_has_doubts(answer);
    result->undecided = answer->notes->undecided;
    result->fake_groups = answer->notes->fake_groups;
    result->exchanged_counts = answer->notes->exchanged_counts;
}

/* The bytes at the peak in blocks whose requested sizes are multiples of `size`. */
static uint64_t explained_bytes(const struct mt_instant *peak, uint64_t size)
{
    enum { MIN_SIZE = 64 }; /* the size of most blocks is a multiple of a smaller number */
    uint64_t bytes = 0;

    for (uint32_t i = 0; size >= MIN_SIZE && i < peak->holding_count; i++) {
        const struct mt_holding *holding = &peak->holdings[i];

        if (holding->blocks && holding->requested_bytes / holding->blocks % size == 0)
            bytes += holding->bytes;
    }
    return bytes;
}

static bool is_stronger(const struct mt_guess_place *place, uint64_t bytes,
                        const struct mt_guess_place *best, uint64_t best_bytes)
{
    if (!best || bytes != best_bytes)
        return !best || bytes > best_bytes;
    return place->size != best->size ? place->size > best->size : place->count > best->count;
}

/* The end of a long place names the file and the line. */
static void take_place(struct mt_guess_cause *cause, const struct mt_guess_place *place,
                       uint64_t peak_bytes)
{
    size_t length = strlen(place->place), most = sizeof cause->place - 1;

    snprintf(cause->place, sizeof cause->place, "%s",
             place->place + (length > most ? length - most : 0));
    snprintf(cause->kind, sizeof cause->kind, "%s", place->kind);
    cause->size = place->size;
    cause->of = place->of;
    cause->peak_bytes = peak_bytes;
}

/* Finds the place whose number of made-up elements divides the sizes of the most bytes at the peak
 * of a device. */
static void find_cause(struct mt_guess_cause *cause, const struct mt_dry_run_notes *notes,
                       const struct mt_report *report, unsigned device)
{
    const struct mt_device_report *found = mt_report_device(report, (uint16_t)device);
    const struct mt_guess_place *best = NULL;
    uint64_t best_bytes = 0;

    for (size_t i = 0; i < notes->place_count; i++) {
        const struct mt_guess_place *place = &notes->places[i];
        uint64_t bytes =
            found && found->instant_count ? explained_bytes(&found->instants[0], place->size) : 0;

        if (!is_stronger(place, bytes, best, best_bytes))
            continue;
        best = place;
        best_bytes = bytes;
    }
    if (best)
        take_place(cause, best, best_bytes);
}

int mt_dry_run_measure(const struct mt_dry_run_answer *answer,
                       const struct mt_analyze_options *options,
                       struct mt_dry_run_measured *measured)
{
    struct mt_sweep_result *result = &measured->result;
    struct mt_analyze_options complete = *options;
    struct mt_error error;
    int code = MT_EXIT_OK;

    *measured = (struct mt_dry_run_measured){.trace = mt_dry_run_worst_trace(answer)};
    begin(result, answer);
    if (!measured->trace)
        return MT_EXIT_OK;
    complete.path = measured->trace->path;
    complete.needs = true;
    measured->source = mt_open_input(complete.path, answer->common, &code);
    if (!measured->source)
        return code;
    if (mt_analyze_with_progress(measured->source, &complete, answer->common->quiet,
                                 &measured->report, &error) != MT_OK)
        return mt_report_error(complete.path, &error);
    measured->report->doubt = mt_dry_run_lower_bound(answer);
    mt_sweep_measure(result, measured->report);
    find_cause(&result->cause, answer->notes, measured->report, result->device);
    return MT_EXIT_OK;
}

void mt_dry_run_measured_release(struct mt_dry_run_measured *measured)
{
    mt_report_release(measured->report);
    mt_source_close(measured->source);
}

/* A failed gate is worse than one that may fail under another order of addresses. A gate that could
 * not be evaluated gives no information about other processes. */
static unsigned badness(const struct mt_gate_run *run)
{
    if (!run->is_checked)
        return 0;
    return run->gates.verdict == MT_GATE_FAIL ? 2 : run->gates.verdict == MT_GATE_WARN;
}

static int check_source(struct mt_gate_run *run, const struct mt_dry_run_answer *answer,
                        struct mt_source *source, const char *path)
{
    const struct mt_analyze_options options = {.path = path, .peak_orders = true};
    struct mt_report *report;
    struct mt_error error;

    if (mt_analyze(source, &options, &report, &error) != MT_OK)
        return mt_report_error(path, &error);
    report->doubt = mt_dry_run_lower_bound(answer);
    int code = mt_gate_run_check(run, answer->gates, source, report, NULL);
    mt_report_release(report);
    return code;
}

/* Keeps the worse of the results. A process without PyTorch, for which a rule cannot be evaluated,
 * gives no information about other processes. */
static int check_other(const struct mt_dry_run_answer *answer, const char *path, bool *is_worse)
{
    struct mt_gate_run *run = answer->gate_run; /* not a copy: results point to its rules */
    struct mt_gates others = run->gates;
    const unsigned before = badness(run);
    const bool was_checked = run->is_checked;
    int code = MT_EXIT_OK;

    run->gates = (struct mt_gates){.results = NULL};
    run->is_checked = false;
    struct mt_source *source = mt_open_input(path, answer->common, &code);
    if (source)
        code = check_source(run, answer, source, path);
    mt_source_close(source);
    *is_worse = !code && badness(run) > before;
    if (!*is_worse) {
        struct mt_gates passed = run->gates;

        run->gates = others;
        run->is_checked = was_checked;
        others = passed;
    }
    mt_gates_release(&others);
    return code;
}

int mt_dry_run_check_gates(const struct mt_dry_run_answer *answer,
                           const struct mt_dry_run_measured *measured,
                           const struct mt_dry_run_trace **failing)
{
    bool is_worse;

    *failing = NULL;
    if (!measured->report)
        return MT_EXIT_OK;
    int code = mt_gate_run_check(answer->gate_run, answer->gates, measured->source,
                                 measured->report, NULL);
    for (size_t i = 0; !code && mt_gate_run_gates(answer->gate_run) &&
                       badness(answer->gate_run) < 2 && i < answer->trace_count;
         i++) {
        if (&answer->traces[i] == measured->trace)
            continue;
        code = check_other(answer, answer->traces[i].path, &is_worse);
        if (is_worse)
            *failing = &answer->traces[i];
    }
    return code;
}

bool mt_dry_run_lacks_evaluation(const struct mt_dry_run_answer *answer)
{
    return !answer->trace_count && answer->gate_run->rules.count;
}

/* A simulated out-of-memory error is a valid answer if a limit was requested. */
int mt_dry_run_exit_code(const struct mt_dry_run_answer *answer, const struct mt_report *report)
{
    if (answer->timed_out)
        return TIMED_OUT;
    if (report && answer->has_limit && answer->exit_status && mt_dry_run_ran_out(report))
        return MT_EXIT_BUDGET;
    if (answer->exit_status)
        return answer->exit_status;
    if (mt_dry_run_lacks_evaluation(answer))
        return MT_EXIT_BUDGET;
    return mt_gate_run_verdict(answer->gate_run);
}

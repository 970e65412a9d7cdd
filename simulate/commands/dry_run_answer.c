
#include "analyze_output.h"
#include "card_use.h"
#include "dry_run_answer.h"
#include "assumed_output.h"
#include "dry_run_measure.h"
#include "foreign_text.h"
#include "gate_output.h"
#include "json.h"
#include "report.h"
#include "report_json.h"
#include "units.h"

static void say_out_of_memory(struct mt_buf *out, const struct mt_dry_run_answer *answer)
{
    const struct mt_style *style = mt_stdout_style();
    char bytes[MT_UNITS_TEXT];

    mt_buf_printf(out, "%sOUT OF MEMORY (simulated): %s on the %s is not enough for this run%s\n",
                  style->red, mt_format_bytes(bytes, answer->memory_bytes), answer->card->name,
                  style->reset);
}

static void add_text(struct mt_buf *out, const struct mt_dry_run_answer *answer,
                     const struct mt_report *report, const struct mt_dry_run_trace *failing)
{
    const struct mt_gates *gates = mt_gate_run_gates(answer->gate_run);

    mt_applied_add_costs(out, &answer->notes->applied);
    if (mt_dry_run_ran_out(report))
        say_out_of_memory(out, answer);
    if (gates)
        mt_gates_add_text(out, gates, mt_stdout_style());
    if (failing) {
        mt_buf_printf(out, "  Another process %s; its trace is ",
                      gates && gates->verdict == MT_GATE_FAIL ? "fails" : "may fail");
        mt_buf_add_printable_text(out, failing->path);
        mt_buf_add_char(out, '\n');
    }
    mt_dry_run_add_doubts(out, answer, mt_dry_run_ran_out(report));
    mt_analyze_text(out, report, mt_stdout_style(), NULL, false);
    mt_applied_add_patch(out, &answer->notes->applied);
}

static const char *cost_name(enum mt_card_cost_kind kind)
{
    switch (kind) {
    case MT_COST_CUDA: return "cuda";
    case MT_COST_CUDA_WITH_NCCL: return "cuda_with_nccl";
    case MT_COST_CUBLAS_HANDLE: return "cublas_handle";
    case MT_COST_CUDNN_HANDLE: return "cudnn_handle";
    case MT_COST_NCCL_ONE_RANK: return "nccl_communicator_of_one_rank";
    case MT_COST_NCCL_TWO_RANKS: break;
    }
    return "nccl_communicator_of_two_ranks";
}

static void add_outside(struct mt_json *json, const struct mt_card_overhead *overhead)
{
    mt_json_object_begin(json, "outside");
    mt_json_i64(json, "table_version", MT_CARD_COSTS_VERSION);
    mt_json_bool(json, "known", overhead->is_known);
    mt_json_u64(json, "simulated_bytes", overhead->outside_bytes);
    mt_json_array_begin(json, "measured");
    for (uint32_t i = 0; i < overhead->row_count; i++) {
        const struct mt_card_overhead_row *row = &overhead->rows[i];

        mt_json_object_begin(json, NULL);
        mt_json_text(json, "what", cost_name(row->cost->kind));
        mt_json_u64(json, "count", row->count);
        mt_json_u64(json, "least_bytes_each", row->cost->least_bytes);
        mt_json_u64(json, "most_bytes_each", row->cost->most_bytes);
        mt_json_text(json, "source", row->cost->source);
        mt_json_object_end(json);
    }
    mt_json_array_end(json);
    mt_json_object_end(json);
}

static void add_device(struct mt_json *json, const struct mt_report *report,
                       const struct mt_device_report *device)
{
    const struct mt_card_overhead overhead = mt_card_overhead_of(report, device);
    struct mt_card_use card;

    mt_json_object_begin(json, NULL);
    mt_json_u64(json, "device", device->device);
    mt_json_u64(json, "allocated_peak_bytes", device->allocated_peak.bytes);
    mt_json_u64(json, "reserved_peak_bytes", device->reserved_peak.bytes);
    mt_json_peak_orders(json, device->peak_orders);
    mt_json_peak_roles(json, device->peak_role_bytes);
    mt_json_card(json, mt_card_use_of(report, device, &card) ? &card : NULL);
    add_outside(json, &overhead);
    mt_json_object_end(json);
}

void mt_json_simulated(struct mt_json *json, const struct mt_card *card, uint64_t devices,
                       uint64_t memory_bytes)
{
    mt_json_object_begin(json, "simulated");
    mt_json_text(json, "card", card->name);
    mt_json_u64(json, "devices", devices);
    mt_json_u64(json, "memory_bytes", memory_bytes);
    mt_json_object_end(json);
}

static void add_places(struct mt_json *json, const struct mt_dry_run_notes *notes)
{
    for (struct mt_json_list row = mt_json_rows(json, "places", notes->place_count);
         mt_json_next(&row);) {
        const struct mt_guess_place *place = &notes->places[row.i];

        mt_json_text(json, "place", place->place);
        mt_json_text(json, "kind", place->kind);
        mt_json_u64(json, "count", place->count);
        mt_json_u64(json, "size", place->size);
        mt_json_u64(json, "of", place->of);
    }
}

/* Adds the guess that may have made the command fail, and those that got the other outcome. */
static void add_suspect(struct mt_json *json, const struct mt_dry_run_answer *answer)
{
    const struct mt_assumption *assumption = answer->assumption;

    mt_json_object_begin(json, "failed_after_guess");
    mt_json_array_begin(json, "retried");
    for (unsigned i = 0; assumption && i < assumption->other_count; i++)
        mt_json_text(json, NULL, mt_guess_place(assumption->others[i]));
    mt_json_array_end(json);
    mt_json_text(json, "place", answer->exit_status ? answer->notes->suspect_place : NULL);
    mt_json_text(json, "error", answer->exit_status ? answer->notes->suspect_error : NULL);
    mt_json_object_end(json);
}

static void begin_json(struct mt_json *json, struct mt_buf *out,
                       const struct mt_dry_run_answer *answer)
{
    mt_json_document(json, out, "memtrace.dry-run/1", false);
    mt_json_u64_or_null(json, "exit_status", !answer->was_not_run, (uint64_t)answer->exit_status);
    mt_json_bool(json, "timed_out", answer->timed_out);
    mt_json_simulated(json, answer->card, answer->devices, answer->memory_bytes);
    mt_json_object_begin(json, "depended_on_data");
    mt_json_u64(json, "sizes", answer->notes->sizes);
    mt_json_u64(json, "decisions", answer->notes->decisions);
    mt_json_u64(json, "compiled_functions", answer->notes->compiled);
    mt_json_u64(json, "eager_compilations", answer->notes->eager);
    mt_json_u64(json, "unreadable_notes", answer->notes->unreadable);
    mt_json_u64(json, "failures", answer->notes->failures);
    add_places(json, answer->notes);
    mt_json_object_end(json);
    mt_json_undecided(json, &answer->notes->undecided);
    mt_json_u64(json, "fake_process_groups", answer->notes->fake_groups);
    if (answer->measured && (answer->notes->sizes || answer->notes->decisions ||
                             mt_is_undecided(&answer->notes->undecided)))
        mt_json_assumed(json, answer->measured);
    add_suspect(json, answer);
    mt_json_object_begin(json, "convolution_workspaces");
    mt_json_u64(json, "measured", answer->notes->measured_workspaces);
    mt_json_u64(json, "asked", answer->notes->queried_workspaces);
    mt_json_u64(json, "by_rule", answer->notes->ruled_workspaces);
    mt_json_u64(json, "guessed", answer->notes->guessed_workspaces);
    mt_json_u64(json, "most_unsure_bytes", answer->notes->most_unsure_bytes);
    mt_json_object_end(json);
    mt_applied_add_json(json, &answer->notes->applied);
    mt_json_dry_run_doubts(json, answer);
    mt_json_array_begin(json, "traces");
    for (size_t i = 0; i < answer->trace_count; i++) {
        mt_json_object_begin(json, NULL);
        mt_json_text(json, "path", answer->traces[i].path);
        mt_json_u64(json, "reserved_peak_bytes", answer->traces[i].reserved_peak_bytes);
        mt_json_object_end(json);
    }
    mt_json_array_end(json);
}

/* Appends the text for a run without a recorded trace. */
static void add_text_without_trace(struct mt_buf *out, const struct mt_dry_run_answer *answer)
{
    mt_dry_run_add_doubts(out, answer, false);
    mt_buf_printf(out, "Dry run on a simulated %s: no recorded process used the device\n",
                  answer->card->name);
    if (mt_dry_run_lacks_evaluation(answer))
        mt_buf_add_text(out, "  Therefore --max-peak was not evaluated\n");
    mt_dry_run_add_nothing(out, answer);
}

/* `report` is NULL if nothing was recorded. */
static void add_json(struct mt_buf *out, const struct mt_dry_run_answer *answer,
                     const struct mt_report *report, const struct mt_dry_run_trace *failing)
{
    struct mt_json json;

    begin_json(&json, out, answer);
    if (report) {
        mt_json_gates(&json, mt_gate_run_gates(answer->gate_run));
        if (failing)
            mt_json_text(&json, "failing_trace", failing->path);
        mt_json_bool(&json, "out_of_memory", mt_dry_run_ran_out(report));
        mt_json_array_begin(&json, "devices");
        for (uint32_t i = 0; i < report->device_count; i++)
            add_device(&json, report, &report->devices[i]);
        mt_json_array_end(&json);
    } else if (mt_dry_run_lacks_evaluation(answer)) {
        mt_json_text(&json, "verdict", mt_gate_state_name(MT_GATE_NOT_EVALUATED));
    }
    mt_json_object_end(&json);
}

int mt_dry_run_print_answer(const struct mt_dry_run_answer *answer,
                            const struct mt_dry_run_measured *measured)
{
    const struct mt_dry_run_trace *failing;
    int checked = mt_dry_run_check_gates(answer, measured, &failing);
    struct mt_buf out = {0};

    if (answer->common->json)
        add_json(&out, answer, measured->report, failing);
    else if (measured->report)
        add_text(&out, answer, measured->report, failing);
    else
        add_text_without_trace(&out, answer);
    int printed = mt_print_answer_and_release(&out, answer->common->json);
    if (checked || printed)
        return checked ? checked : printed;
    return mt_dry_run_exit_code(answer, measured->report);
}

void mt_dry_run_add_too_small(struct mt_buf *out, const struct mt_dry_run_answer *answer,
                              uint64_t least_bytes)
{
    char bytes[2][MT_UNITS_TEXT];

    mt_buf_printf(
        out,
        "OUT OF MEMORY (simulated): %s is less than the %s that CUDA itself takes on this "
        "card (%s); the command was not run",
        mt_format_bytes(bytes[0], answer->memory_bytes), mt_format_bytes(bytes[1], least_bytes),
        answer->card->name);
}

int mt_dry_run_print_too_small(const struct mt_dry_run_answer *answer, uint64_t least_bytes)
{
    const struct mt_style *style = mt_stdout_style();
    struct mt_buf out = {0};
    struct mt_json json;

    if (answer->common->json) {
        begin_json(&json, &out, answer);
        if (mt_dry_run_lacks_evaluation(answer))
            mt_json_text(&json, "verdict", mt_gate_state_name(MT_GATE_NOT_EVALUATED));
        mt_json_bool(&json, "out_of_memory", true);
        mt_json_u64(&json, "cuda_least_bytes", least_bytes);
        mt_json_object_end(&json);
    } else {
        mt_buf_add_text(&out, style->red);
        mt_dry_run_add_too_small(&out, answer, least_bytes);
        mt_buf_printf(&out, "%s\n", style->reset);
    }
    int printed = mt_print_answer_and_release(&out, answer->common->json);
    return printed ? printed : MT_EXIT_BUDGET;
}

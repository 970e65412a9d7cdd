#include <inttypes.h>
#include <string.h>

#include "analyze.h"
#include "analyze_output.h"
#include "card_use.h"
#include "dry_run_answer.h"
#include "dry_run_gates.h"
#include "dry_run_result.h"
#include "foreign_text.h"
#include "gate_output.h"
#include "header.h"
#include "json.h"
#include "question_report.h"
#include "report.h"
#include "report_json.h"
#include "report_query.h"
#include "simulated_site.h"
#include "units.h"
#include "util.h"

static size_t unread_count(const struct mt_dry_run_answer *answer)
{
    const struct mt_dry_run_unread *unread = &answer->unread;

    return unread->running + unread->failed + unread->incomplete;
}

const char *mt_dry_run_lower_bound(const struct mt_dry_run_answer *answer)
{
    if (answer->timed_out)
        return mt_ending_doubt(MT_ENDED_TIMEOUT, 0);
    if (answer->exit_status)
        return mt_ending_doubt(answer->signal ? MT_ENDED_SIGNAL : MT_ENDED_EXIT, 1);
    if (unread_count(answer))
        return "some processes are missing from the answer, or only partly included";
    if (answer->notes->without_device)
        return "a process imported PyTorch without the simulated device";
    return NULL;
}

static const char *them(size_t count)
{
    return count == 1 ? "it" : "them";
}

static const char *plural(uint64_t count)
{
    return count == 1 ? "" : "es";
}

static void add_end_of_command(struct mt_buf *out, const struct mt_dry_run_answer *answer)
{
    if (answer->signal)
        mt_buf_printf(out, "Signal %d (%s) ended the command", answer->signal,
                      strsignal(answer->signal));
    else
        mt_buf_printf(out, "The command failed with status %d", answer->exit_status);
    mt_buf_add_text(out, ": a complete run may need more\n");
}

static void add_unread(struct mt_buf *out, const struct mt_dry_run_unread *unread)
{
    if (unread->running)
        mt_buf_printf(
            out,
            "%zu process%s still ran when the command ended: the answer leaves %s out; make "
            "the command wait for its processes\n",
            unread->running, plural(unread->running), them(unread->running));
    if (unread->failed)
        mt_buf_printf(out,
                      "The trace%s of %zu process%s cannot be read: the answer leaves %s out\n",
                      unread->failed == 1 ? "" : "s", unread->failed, plural(unread->failed),
                      them(unread->failed));
    if (unread->incomplete)
        mt_buf_printf(out,
                      "The trace%s of %zu process%s %s incomplete: the real peaks may be larger\n",
                      unread->incomplete == 1 ? "" : "s", unread->incomplete,
                      plural(unread->incomplete), unread->incomplete == 1 ? "is" : "are");
}

/* Counts processes of PyTorch without notes: their Python part did not run or could not write. */
static size_t unnoted_count(const struct mt_dry_run_answer *answer)
{
    size_t count = 0;

    for (size_t i = 0; i < answer->trace_count && answer->notes->folder_was_made; i++)
        count += answer->traces[i].is_pytorch &&
                 !mt_dry_run_notes_has(answer->notes, answer->traces[i].process_id);
    return count;
}

static const char *interpreter(const struct mt_dry_run_answer *answer)
{
    return answer->site && *answer->site->python ? answer->site->python : "/path/to/python";
}

static bool has_other_torch(const struct mt_dry_run_answer *answer)
{
    const char *imported = answer->notes->torch_folder;

    return imported && answer->site && *answer->site->torch_folder &&
           strcmp(imported, answer->site->torch_folder) != 0;
}

bool mt_dry_run_has_doubts(const struct mt_dry_run_answer *answer)
{
    const struct mt_dry_run_notes *notes = answer->notes;

    return unread_count(answer) || notes->without_device || notes->failures || notes->unreadable ||
           unnoted_count(answer) || has_other_torch(answer);
}

static void add_other_torch(struct mt_buf *out, const struct mt_dry_run_answer *answer)
{
    const struct mt_dry_run_notes *notes = answer->notes;

    if (!has_other_torch(answer))
        return;
    mt_buf_add_text(out, "The command imported the PyTorch in ");
    mt_buf_add_printable_text(out, notes->torch_folder);
    mt_buf_add_text(out, ", but the simulated libraries are those for ");
    mt_buf_add_printable_text(out, answer->site->torch_folder);
    mt_buf_add_text(out, "; in the command, name the Python that the program uses\n");
}

static void add_other_library(struct mt_buf *out, const struct mt_dry_run_notes *notes)
{
    if (!notes->other_library)
        return;
    mt_buf_add_text(out, "The program imported ");
    mt_buf_add_printable_text(out, notes->other_library);
    mt_buf_add_text(out, ", which cannot use the simulated device: the answer does not include the "
                         "memory that it would use\n");
}

static void add_failures(struct mt_buf *out, const struct mt_dry_run_notes *notes)
{
    char count[MT_UNITS_TEXT];

    if (!notes->failures)
        return;
    mt_buf_printf(out, "The Python part of the dry run failed %s time%s",
                  mt_format_count(count, notes->failures), notes->failures == 1 ? "" : "s");
    if (notes->first_failure) {
        mt_buf_add_text(out, ", first in ");
        mt_buf_add_printable_text(out, notes->first_failure);
    }
    mt_buf_add_text(
        out,
        "; the program may take other branches than on a real device, so the peaks may differ\n");
}

/* Appends a line for each doubt. If `is_out_of_memory` is set, omits how the command ended, because
 * the answer already contains it. */
static void dry_run_add_doubts(struct mt_buf *out, const struct mt_dry_run_answer *answer,
                               bool is_out_of_memory)
{
    const struct mt_dry_run_notes *notes = answer->notes;
    size_t unnoted = unnoted_count(answer);

    if (answer->exit_status && !answer->timed_out && !is_out_of_memory)
        add_end_of_command(out, answer);
    add_unread(out, &answer->unread);
    if (notes->without_device && answer->trace_count)
        mt_buf_printf(out,
                      "%" PRIu64
                      " process%s imported PyTorch without the simulated device, because "
                      "something removed LD_PRELOAD from the environment\n",
                      notes->without_device, plural(notes->without_device));
    if (unnoted)
        mt_buf_printf(out,
                      "%zu process%s used PyTorch without the Python part of the dry run (python "
                      "-I, -E or -S, or a changed PYTHONPATH); the peaks may differ\n",
                      unnoted, plural(unnoted));
    add_other_torch(out, answer);
    add_other_library(out, notes);
    add_failures(out, notes);
}

/* The command to type: the script as an argument of its interpreter. */
static void add_remedy(struct mt_buf *out, const struct mt_dry_run_answer *answer)
{
    mt_buf_add_text(out, "memtrace dry-run -- ");
    mt_buf_add_shell_path(out, interpreter(answer));
    mt_buf_add_text(out, " SCRIPT\n");
}

/* Appends why no recorded process used the device, and a remedy. */
static void dry_run_add_nothing(struct mt_buf *out, const struct mt_dry_run_answer *answer)
{
    const struct mt_dry_run_notes *notes = answer->notes;

    if (notes->without_device) {
        mt_buf_add_text(out,
                        "  PyTorch ran without the simulated device, because something removed "
                        "LD_PRELOAD from the environment;\n  start Python directly: ");
        add_remedy(out, answer);
    } else if (notes->torch_processes && answer->exit_status) {
        mt_buf_add_text(out, "  The command ended before PyTorch requested device memory; its own "
                             "messages give the reason\n");
    } else if (notes->torch_processes) {
        mt_buf_add_text(out, "  PyTorch was imported but requested no device memory: look for "
                             "device=\"cpu\" or CUDA_VISIBLE_DEVICES\n");
    } else if (answer->site) {
        mt_buf_add_text(out, "  PyTorch was not imported, or the environment was cleared before it "
                             "started (env -i, a container);\n  start Python directly: ");
        add_remedy(out, answer);
    }
}

static void json_python(struct mt_json *json, const struct mt_simulated_site *site)
{
    mt_json_object_begin(json, "python");
    mt_json_text(json, "path", site->python);
    mt_json_text(json, "chosen_by", site->python_from);
    mt_json_text(json, "version", site->python_version);
    mt_json_text(json, "torch_version", site->torch_version);
    mt_json_text(json, "torch_folder", site->torch_folder);
    mt_json_text(json, "cuda_version", site->cuda_version);
    mt_json_object_end(json);
}

/* Adds the members "python" and "processes". */
static void json_dry_run_doubts(struct mt_json *json, const struct mt_dry_run_answer *answer)
{
    if (answer->site)
        json_python(json, answer->site);
    mt_json_object_begin(json, "processes");
    mt_json_u64(json, "with_trace", answer->trace_count);
    mt_json_u64(json, "still_running", answer->unread.running);
    mt_json_u64(json, "unreadable", answer->unread.failed);
    mt_json_u64(json, "incomplete", answer->unread.incomplete);
    mt_json_u64(json, "imported_torch", answer->notes->torch_processes);
    mt_json_u64(json, "without_device", answer->notes->without_device);
    mt_json_u64(json, "without_python_part", unnoted_count(answer));
    mt_json_object_end(json);
}

enum { TIMED_OUT = 124 }; /* the status that timeout(1) uses */

static bool is_worse(const struct mt_dry_run_trace *a, const struct mt_dry_run_trace *b)
{
    if (a->died_of_oom != b->died_of_oom)
        return a->died_of_oom;
    return a->reserved_peak_bytes > b->reserved_peak_bytes;
}

const struct mt_dry_run_trace *mt_dry_run_worst_trace(const struct mt_dry_run_answer *answer)
{
    const struct mt_dry_run_trace *worst = NULL;

    for (size_t i = 0; i < answer->trace_count; i++)
        if (!worst || is_worse(&answer->traces[i], worst))
            worst = &answer->traces[i];
    return worst;
}

bool mt_dry_run_ran_out(const struct mt_report *report)
{
    for (uint32_t i = 0; i < report->device_count; i++)
        if (mt_fatal_oom(&report->devices[i]))
            return true;
    return false;
}

static void say_out_of_memory(struct mt_buf *out, const struct mt_dry_run_answer *answer)
{
    const struct mt_style *style = mt_stdout_style();
    char bytes[MT_UNITS_TEXT];

    mt_buf_printf(out, "%sOUT OF MEMORY (simulated): %s on the %s is not enough for this run%s\n",
                  style->red, mt_format_bytes(bytes, answer->memory_bytes), answer->card->name,
                  style->reset);
}

static void add_counted(struct mt_buf *out, uint64_t count, const char *noun)
{
    char text[MT_UNITS_TEXT];

    mt_buf_printf(out, "%s %s%s", mt_format_count(text, count), noun, count == 1 ? "" : "s");
}

static void say_data(struct mt_buf *out, const struct mt_dry_run_notes *notes)
{
    if (!notes->sizes && !notes->decisions)
        return;
    if (notes->sizes)
        add_counted(out, notes->sizes, "size");
    if (notes->sizes && notes->decisions)
        mt_buf_add_text(out, " and ");
    if (notes->decisions)
        add_counted(out, notes->decisions, "decision");
    mt_buf_add_text(out, " depended on data that a dry run does not have; peaks may differ\n");
}

static void say_workspaces(struct mt_buf *out, const struct mt_dry_run_notes *notes)
{
    char measured[MT_UNITS_TEXT], asked[MT_UNITS_TEXT], ruled[MT_UNITS_TEXT];
    char guessed[MT_UNITS_TEXT];

    if (notes->queried_workspaces || notes->ruled_workspaces || notes->guessed_workspaces)
        mt_buf_printf(
            out,
            "Workspaces of convolutions: %s measured on an H200, %s planned by the program's "
            "cuDNN, %s by rule, %s guessed; peaks may differ\n",
            mt_format_count(measured, notes->measured_workspaces),
            mt_format_count(asked, notes->queried_workspaces),
            mt_format_count(ruled, notes->ruled_workspaces),
            mt_format_count(guessed, notes->guessed_workspaces));
}

static void say_timing(struct mt_buf *out, const struct mt_dry_run_notes *notes)
{
    if (notes->undecided.collectives) {
        mt_buf_add_text(out, "The program did not wait for ");
        add_counted(out, notes->undecided.collectives, "collective");
        mt_buf_add_text(
            out, " of NCCL: PyTorch frees the memory of such a collective when its watchdog "
                 "thread notices that it ended, which is late here; a real run may need less\n");
    }
    if (notes->undecided.blocks) {
        mt_buf_add_text(out, "Another stream used ");
        add_counted(out, notes->undecided.blocks, "block");
        mt_buf_add_text(out, ": PyTorch frees such a block when it notices that the stream is done "
                             "with it, which is late here; a real run may need less\n");
    }
    if (notes->undecided.queries) {
        mt_buf_add_text(out, "The program went on without ");
        add_counted(out, notes->undecided.queries, "event");
        mt_buf_add_text(out, " that it had queried: events are complete late here; a real run may "
                             "need less\n");
    }
}

static void say_groups(struct mt_buf *out, const struct mt_dry_run_answer *answer)
{
    const struct mt_dry_run_notes *notes = answer->notes;

    if (notes->fake_groups) {
        add_counted(out, notes->fake_groups, "process group");
        mt_buf_printf(out,
                      " of the program %s fake and without NCCL: the card's part includes what "
                      "NCCL takes for %s in a real job, from a table\n",
                      notes->fake_groups == 1 ? "is" : "are", them((size_t)notes->fake_groups));
    }
    if (answer->imbalance && !notes->exchanged_counts)
        mt_buf_add_text(out,
                        "--imbalance changed nothing: no counts were exchanged by all-to-all\n");
}

/* Reasons why the peaks may differ from those of a real run. */
static void say_doubts(struct mt_buf *out, const struct mt_dry_run_answer *answer,
                       bool is_out_of_memory)
{
    const struct mt_dry_run_notes *notes = answer->notes;
    char sizes[MT_UNITS_TEXT];

    if (answer->timed_out)
        mt_buf_add_text(out, "--timeout ended the run: peaks and counts are lower bounds\n");
    dry_run_add_doubts(out, answer, is_out_of_memory);
    say_data(out, notes);
    say_workspaces(out, notes);
    say_timing(out, notes);
    say_groups(out, answer);
    if (notes->compiled)
        mt_buf_printf(
            out,
            "Inductor compiled %s function%s: its buffers are those of a compiled run, its "
            "kernels were not built\n",
            mt_format_count(sizes, notes->compiled), notes->compiled == 1 ? "" : "s");
    if (notes->eager)
        mt_buf_printf(
            out,
            "%s function%s of torch.compile ran eagerly: a compiled run may need more or less "
            "memory\n",
            mt_format_count(sizes, notes->eager), notes->eager == 1 ? "" : "s");
    if (notes->unreadable)
        mt_buf_add_text(out, "It is unknown how much depended on data: the notes of a process "
                             "cannot be written or read\n");
    if (answer->trace_count > 1)
        mt_buf_printf(out, "%zu processes used the device; this is %s\n", answer->trace_count,
                      is_out_of_memory ? "one that ran out of memory"
                                       : "the one with the largest reserved peak");
}

static void add_text(struct mt_buf *out, const struct mt_dry_run_answer *answer,
                     const struct mt_report *report, const struct mt_dry_run_trace *failing)
{
    const struct mt_gates *gates = mt_gate_run_gates(answer->gate_run);

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
    say_doubts(out, answer, mt_dry_run_ran_out(report));
    mt_analyze_text(out, report, mt_stdout_style(), NULL, false);
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

void mt_json_undecided(struct mt_json *json, const struct mt_undecided *undecided)
{
    mt_json_u64(json, "collectives", undecided->collectives);
    mt_json_u64(json, "blocks", undecided->blocks);
    mt_json_u64(json, "queries", undecided->queries);
}

static void add_run(struct mt_json *json, const struct mt_dry_run_answer *answer)
{
    mt_json_text(json, "schema", "memtrace.dry-run/1");
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
    mt_json_object_end(json);
    mt_json_object_begin(json, "depended_on_timing");
    mt_json_undecided(json, &answer->notes->undecided);
    mt_json_object_end(json);
    mt_json_u64(json, "fake_process_groups", answer->notes->fake_groups);
    mt_json_object_begin(json, "convolution_workspaces");
    mt_json_u64(json, "measured", answer->notes->measured_workspaces);
    mt_json_u64(json, "asked", answer->notes->queried_workspaces);
    mt_json_u64(json, "by_rule", answer->notes->ruled_workspaces);
    mt_json_u64(json, "guessed", answer->notes->guessed_workspaces);
    mt_json_object_end(json);
    json_dry_run_doubts(json, answer);
    mt_json_array_begin(json, "traces");
    for (size_t i = 0; i < answer->trace_count; i++) {
        mt_json_object_begin(json, NULL);
        mt_json_text(json, "path", answer->traces[i].path);
        mt_json_u64(json, "reserved_peak_bytes", answer->traces[i].reserved_peak_bytes);
        mt_json_object_end(json);
    }
    mt_json_array_end(json);
}

/* Returns true if there are rules but no trace. The program may have run on the CPU. */
static bool lacks_evaluation(const struct mt_dry_run_answer *answer)
{
    return !answer->trace_count && answer->gate_run->rules.count;
}

/* Appends the text for a run without a recorded trace. */
static void add_text_without_trace(struct mt_buf *out, const struct mt_dry_run_answer *answer)
{
    say_doubts(out, answer, false);
    mt_buf_printf(out, "Dry run on a simulated %s: no recorded process used the device\n",
                  answer->card->name);
    if (lacks_evaluation(answer))
        mt_buf_add_text(out, "  Therefore --max-peak was not evaluated\n");
    dry_run_add_nothing(out, answer);
}

/* `report` is NULL if nothing was recorded. */
static void add_json(struct mt_buf *out, const struct mt_dry_run_answer *answer,
                     const struct mt_report *report, const struct mt_dry_run_trace *failing)
{
    struct mt_json json;

    mt_json_init(&json, out, true);
    mt_json_object_begin(&json, NULL);
    add_run(&json, answer);
    if (report) {
        mt_json_gates(&json, mt_gate_run_gates(answer->gate_run));
        if (failing)
            mt_json_text(&json, "failing_trace", failing->path);
        mt_json_bool(&json, "out_of_memory", mt_dry_run_ran_out(report));
        mt_json_array_begin(&json, "devices");
        for (uint32_t i = 0; i < report->device_count; i++)
            add_device(&json, report, &report->devices[i]);
        mt_json_array_end(&json);
    } else if (lacks_evaluation(answer)) {
        mt_json_text(&json, "verdict", mt_gate_state_name(MT_GATE_NOT_EVALUATED));
    }
    mt_json_object_end(&json);
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
    if (lacks_evaluation(answer))
        return MT_EXIT_BUDGET;
    return mt_gate_run_verdict(answer->gate_run);
}

static int print_result(struct mt_source *source, const struct mt_dry_run_answer *answer,
                        const struct mt_dry_run_trace *told)
{
    const char *path = told->path;
    const struct mt_analyze_options options = {
        .path = path, .needs = true, .models = MT_MODEL_MODULES};
    const struct mt_dry_run_trace *failing;
    struct mt_report *report;
    struct mt_buf out = {0};
    struct mt_error error;
    int checked, printed, code;

    if (mt_analyze_with_progress(source, &options, answer->common->quiet, &report, &error) != MT_OK)
        return mt_report_error(path, &error);
    report->doubt = mt_dry_run_lower_bound(answer);
    checked = mt_dry_run_check_gates(answer, told, source, report, &failing);
    if (answer->common->json)
        add_json(&out, answer, report, failing);
    else
        add_text(&out, answer, report, failing);
    code = mt_dry_run_exit_code(answer, report);
    mt_report_release(report);
    printed = mt_print_answer_and_release(&out, answer->common->json);
    return checked ? checked : printed ? printed : code;
}

int mt_report_dry_run_answer(const struct mt_dry_run_answer *answer)
{
    const struct mt_dry_run_trace *worst = mt_dry_run_worst_trace(answer);
    struct mt_source *source;
    int code = MT_EXIT_OK, printed = MT_EXIT_OK;

    if (!worst) {
        struct mt_buf out = {0};

        if (answer->common->json)
            add_json(&out, answer, NULL, NULL);
        else
            add_text_without_trace(&out, answer);
        printed = mt_print_answer_and_release(&out, answer->common->json);
        code = mt_dry_run_exit_code(answer, NULL);
        return printed ? printed : code;
    }
    source = mt_open_input(worst->path, answer->common, &code);
    if (source)
        code = print_result(source, answer, worst);
    mt_source_close(source);
    return code;
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
    int printed;

    if (answer->common->json) {
        mt_json_init(&json, &out, true);
        mt_json_object_begin(&json, NULL);
        add_run(&json, answer);
        if (lacks_evaluation(answer))
            mt_json_text(&json, "verdict", mt_gate_state_name(MT_GATE_NOT_EVALUATED));
        mt_json_bool(&json, "out_of_memory", true);
        mt_json_u64(&json, "cuda_least_bytes", least_bytes);
        mt_json_object_end(&json);
    } else {
        mt_buf_add_text(&out, style->red);
        mt_dry_run_add_too_small(&out, answer, least_bytes);
        mt_buf_printf(&out, "%s\n", style->reset);
    }
    printed = mt_print_answer_and_release(&out, answer->common->json);
    return printed ? printed : MT_EXIT_BUDGET;
}

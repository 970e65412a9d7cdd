#include "ascii.h"
#include "dry_run_measure.h"

#include <inttypes.h>
#include <string.h>

#include "assumed_output.h"
#include "foreign_text.h"
#include "header.h"
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
    mt_buf_printf(out, "The Python part of the dry run failed %s",
                  mt_format_counted(count, notes->failures, "time"));
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
static void add_faults(struct mt_buf *out, const struct mt_dry_run_answer *answer,
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

void mt_dry_run_add_nothing(struct mt_buf *out, const struct mt_dry_run_answer *answer)
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

void mt_json_dry_run_doubts(struct mt_json *json, const struct mt_dry_run_answer *answer)
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

/* A workspace lives during one convolution only, so the largest one that may be wrong decides
 * whether a peak is. */
static void say_workspaces(struct mt_buf *out, const struct mt_dry_run_answer *answer)
{
    enum { MIN_PERCENT = 5 };
    const struct mt_dry_run_notes *notes = answer->notes;
    const struct mt_dry_run_trace *worst = mt_dry_run_worst_trace(answer);
    uint64_t reserved = worst ? worst->reserved_peak_bytes : 0;
    char asked[MT_UNITS_TEXT], ruled[MT_UNITS_TEXT], guessed[MT_UNITS_TEXT];
    char low[MT_UNITS_TEXT], high[MT_UNITS_TEXT];

    if (!notes->most_unsure_bytes || notes->most_unsure_bytes < reserved / 100 * MIN_PERCENT)
        return;
    mt_buf_printf(out,
                  "Workspaces of convolutions: %s planned by the program's cuDNN, %s by rule, %s "
                  "guessed; with one of them more or less: reserved %s to %s\n",
                  mt_format_count(asked, notes->queried_workspaces),
                  mt_format_count(ruled, notes->ruled_workspaces),
                  mt_format_count(guessed, notes->guessed_workspaces),
                  mt_format_bytes(low, reserved - mt_min_u64(reserved, notes->most_unsure_bytes)),
                  mt_format_bytes(high, reserved + notes->most_unsure_bytes));
}

/* Appends that a guess made the command fail, or may have. */
static void say_suspect(struct mt_buf *out, const struct mt_dry_run_answer *answer)
{
    const struct mt_assumption *assumption = answer->assumption;
    const struct mt_dry_run_notes *notes = answer->notes;

    for (unsigned i = 0; assumption && i < assumption->other_count; i++) {
        const char *place = mt_guess_place(assumption->others[i]);
        bool fails_there =
            answer->exit_status && notes->suspect_place && !strcmp(notes->suspect_place, place);

        mt_buf_add_text(out, "The dry run's guess at ");
        mt_buf_add_printable_text(out, mt_base_name(place));
        mt_buf_printf(out, " made the program fail; with the other outcome it %s\n",
                      fails_there           ? "fails there again"
                      : answer->exit_status ? "goes on"
                                            : "runs to its end");
    }
    if (!answer->exit_status || !notes->suspect_place)
        return;
    mt_buf_add_text(out, "The failure may be that of the dry run, which guessed at ");
    mt_buf_add_printable_text(out, mt_base_name(notes->suspect_place));
    mt_buf_add_text(out, ": ");
    mt_buf_add_printable_text(out, notes->suspect_error ? notes->suspect_error : "an exception");
    mt_buf_add_char(out, '\n');
}

static void say_groups(struct mt_buf *out, const struct mt_dry_run_answer *answer)
{
    const struct mt_dry_run_notes *notes = answer->notes;
    char count[MT_UNITS_TEXT];

    if (notes->fake_groups)
        mt_buf_printf(out,
                      "%s process group%s of the program %s fake and without NCCL: the card's part "
                      "includes what NCCL takes for %s in a real job, from a table\n",
                      mt_format_count(count, notes->fake_groups),
                      notes->fake_groups == 1 ? "" : "s", notes->fake_groups == 1 ? "is" : "are",
                      them((size_t)notes->fake_groups));
    if (answer->imbalance && !notes->exchanged_counts)
        mt_buf_add_text(out,
                        "--imbalance changed nothing: no counts were exchanged by all-to-all\n");
}

void mt_dry_run_add_doubts(struct mt_buf *out, const struct mt_dry_run_answer *answer,
                           bool is_out_of_memory)
{
    const struct mt_dry_run_notes *notes = answer->notes;
    char sizes[MT_UNITS_TEXT];

    if (answer->timed_out)
        mt_buf_add_text(out, "--timeout ended the run: peaks and counts are lower bounds\n");
    add_faults(out, answer, is_out_of_memory);
    say_suspect(out, answer);
    mt_assumed_add_ranges(out, answer->measured);
    say_workspaces(out, answer);
    say_groups(out, answer);
    if (notes->compiled)
        mt_buf_printf(out,
                      "Inductor compiled %s: its buffers are those of a compiled run, its "
                      "kernels were not built\n",
                      mt_format_counted(sizes, notes->compiled, "function"));
    if (notes->eager)
        mt_buf_printf(out,
                      "%s of torch.compile ran eagerly: a compiled run may need more or less "
                      "memory\n",
                      mt_format_counted(sizes, notes->eager, "function"));
    if (notes->unreadable)
        mt_buf_add_text(out, "It is unknown how much depended on data: the notes of a process "
                             "cannot be written or read\n");
    if (answer->trace_count > 1)
        mt_buf_printf(out, "%zu processes used the device; this is %s\n", answer->trace_count,
                      is_out_of_memory ? "one that ran out of memory"
                                       : "the one with the largest reserved peak");
}

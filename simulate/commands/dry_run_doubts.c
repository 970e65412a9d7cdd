#include "dry_run_doubts.h"

#include <inttypes.h>
#include <string.h>

#include "foreign_text.h"
#include "header.h"
#include "simulated_site.h"
#include "units.h"

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

void mt_dry_run_add_doubts(struct mt_buf *out, const struct mt_dry_run_answer *answer,
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

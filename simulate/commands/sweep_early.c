#include "sweep_early.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "analyze.h"
#include "dry_run_answer.h"
#include "io.h"
#include "sweep.h"
#include "tape_file.h"
#include "text_table.h"
#include "trace_target.h"
#include "util.h"

/* The log of the run has the output of the first run already. */
static void discard_output(void)
{
    int nowhere = mt_io_open("/dev/null", O_WRONLY | O_CLOEXEC, 0);

    if (nowhere >= 0) {
        (void)dup2(nowhere, STDOUT_FILENO);
        (void)dup2(nowhere, STDERR_FILENO);
        (void)close(nowhere);
    }
}

/* Compares the same device as in the first run. That one was chosen by the smallest limit, which is
 * not computed here. */
static void take_peaks(struct mt_sweep_result *early, const struct mt_report *report,
                       uint32_t device)
{
    for (uint32_t i = 0; i < report->device_count; i++)
        if (report->devices[i].device == device) {
            early->allocated_peak_bytes = report->devices[i].allocated_peak.bytes;
            early->reserved_peak_bytes = report->devices[i].reserved_peak.bytes;
        }
}

static void measure(struct mt_sweep_result *early, const struct mt_dry_run_answer *answer,
                    const struct mt_common *common, uint32_t device)
{
    const struct mt_dry_run_trace *worst = mt_dry_run_worst_trace(answer);
    const struct mt_analyze_options options = {.path = worst ? worst->path : NULL,
                                               .no_findings = true};
    struct mt_source *source;
    struct mt_report *report;
    struct mt_error error;
    int code;

    source = worst ? mt_open_input(worst->path, common, &code) : NULL;
    if (source && mt_analyze(source, &options, &report, &error) == MT_OK) {
        early->outcome = answer->timed_out     ? MT_SWEEP_TIMED_OUT
                         : answer->exit_status ? MT_SWEEP_FAILED
                                               : MT_SWEEP_FINISHED;
        mt_sweep_measure(early, report);
        take_peaks(early, report, device);
        mt_report_release(report);
    }
    mt_source_close(source);
}

/* Returns true for what follows the stem in the names of traces, tapes and summaries:
 * "-PID.trace.zst", or "-PID-N.trace.zst". */
static bool is_end_of_name(const char *end)
{
    static const char *const ends[] = {MT_TRACE_SUFFIX, MT_TRACE_SUFFIX MT_TAPE_SUFFIX,
                                       MT_TRACE_SUFFIX ".mtsum", ".mtsum"};

    if (*end == '-')
        end += strspn(end, "-0123456789");
    for (size_t i = 0; i < MT_ARRAY_LEN(ends); i++)
        if (strcmp(end, ends[i]) == 0)
            return true;
    return false;
}

/* Removes the files of a run whose trace has this path. Processes that outlive the command have
 * traces and tapes that are in no list. Other files in the folder belong to the user. */
static void remove_files(const char *path)
{
    const char *name = strrchr(path, '/') + 1;
    size_t length = strlen(name) - strlen(MT_TRACE_SUFFIX);
    struct mt_buf folder = {0};
    DIR *open;

    mt_buf_add(&folder, path, (size_t)(name - path));
    mt_buf_add_char(&folder, '\0');
    open = opendir(folder.data);
    for (const struct dirent *entry; open && (entry = readdir(open));)
        if (strncmp(entry->d_name, name, length) == 0 && is_end_of_name(entry->d_name + length))
            (void)unlinkat(dirfd(open), entry->d_name, 0);
    if (open)
        (void)closedir(open);
    mt_buf_release(&folder);
}

void mt_sweep_run_early(struct mt_simulated_run *second, const struct mt_common *common,
                        struct mt_sweep_result *result)
{
    struct mt_sweep_result early = {.outcome = MT_SWEEP_NOT_RUN};

    second->recording.json = false;
    second->recording.quiet = true;
    second->frees_early = true;
    discard_output();
    mt_simulated_run_init(second);
    if (mt_simulated_run_prepare(second) < 0 && mt_simulated_run_finish(second) < 0) {
        const struct mt_dry_run_answer answer = mt_simulated_run_answer(second);

        measure(&early, &answer, common, result->device);
    }
    mt_simulated_run_release(second);
    remove_files(second->recording.output);
    if (!early.is_measured)
        return;
    result->early.outcome = early.outcome;
    result->early.allocated_peak_bytes = early.allocated_peak_bytes;
    result->early.reserved_peak_bytes = early.reserved_peak_bytes;
}

/* A second run that ended for another reason, for example because the files of the first run exist,
 * has lower peaks that say nothing about timing. */
static bool has_early_peaks(const struct mt_sweep_result *result)
{
    return result->early.outcome == MT_SWEEP_FINISHED ||
           result->early.outcome == MT_SWEEP_OUT_OF_MEMORY;
}

static void add_row(struct mt_table *table, const struct mt_sweep *sweep,
                    const struct mt_sweep_run *run)
{
    const struct mt_sweep_result *result = &run->result;
    bool is_known = result->early.outcome != MT_SWEEP_NOT_RUN;
    bool has_peaks = has_early_peaks(result);

    MT_CELLS(table, MT_TEXT(sweep->name_count == 1 ? run->values[0] : run->label),
             MT_TEXT(is_known ? mt_sweep_outcome_name(result->early.outcome) : "not known"));
    if (has_peaks)
        MT_CELLS(table, MT_BYTES(result->early.allocated_peak_bytes),
                 MT_BYTES(result->early.reserved_peak_bytes));
    else
        mt_table_skip(table, 2);
}

void mt_sweep_add_timing(struct mt_buf *out, const struct mt_sweep *sweep)
{
    struct mt_table table;
    char first[MT_MAX_SWEEP_WORD + 2];

    snprintf(first, sizeof first, "!%s", sweep->name_count == 1 ? sweep->names[0] : "run");
    mt_table_begin(&table, first);
    mt_table_columns(&table, "outcome|#allocated|#reserved");
    for (size_t i = 0; i < sweep->run_count; i++)
        if (mt_sweep_depends_on_timing(&sweep->runs[i].result))
            add_row(&table, sweep, &sweep->runs[i]);
    if (!mt_table_rows(&table)) {
        mt_table_release(&table);
        return;
    }
    mt_text_table_add_note(
        out, 0,
        "The peaks depend on timing: PyTorch frees the memory of collectives, and of blocks that "
        "another stream used, when it notices that they ended. Above, it notices late. If it "
        "notices at once:");
    mt_text_table_add(out, &table, 0, mt_stdout_style());
}

void mt_json_sweep_timing(struct mt_json *json, const struct mt_sweep_result *result)
{
    bool is_known = result->early.outcome != MT_SWEEP_NOT_RUN;

    mt_json_object_begin(json, "depended_on_timing");
    mt_json_undecided(json, &result->undecided);
    mt_json_text(json, "early_outcome",
                 is_known ? mt_sweep_outcome_name(result->early.outcome) : NULL);
    mt_json_u64_or_null(json, "early_allocated_peak_bytes", has_early_peaks(result),
                        result->early.allocated_peak_bytes);
    mt_json_u64_or_null(json, "early_reserved_peak_bytes", has_early_peaks(result),
                        result->early.reserved_peak_bytes);
    mt_json_object_end(json);
}

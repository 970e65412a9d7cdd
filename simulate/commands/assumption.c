#include "assumption.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "dry_run_measure.h"
#include "process_memory.h"
#include "report_query.h"
#include "simulated_run.h"
#include "tape_file.h"
#include "trace_target.h"
#include "util.h"

/* The name of the trace of another run ends so. No file of a sweep has this suffix: a value has no
 * "~" in it. */
#define AGAIN_SUFFIX "~again" MT_TRACE_SUFFIX

static const struct {
    bool frees_early, inverts;
    unsigned share_percent;
    const char *words;
} others[] = {
    [MT_ASSUMED_EARLY] = {true, false, 0,
                          "memory that waits for the device is freed as early as possible"},
    [MT_ASSUMED_LESS] =
        {false, true, 25,
         "masks and selections leave 25% instead of 50%, and decisions are inverted"},
    [MT_ASSUMED_MORE] = {false, false, 100, "masks and selections leave 100% instead of 50%"}};

static bool has_other_at(const struct mt_assumption *assumption, const char *place)
{
    for (unsigned i = 0; i < assumption->other_count; i++)
        if (!strcmp(mt_guess_place(assumption->others[i]), place))
            return true;
    return false;
}

/* Returns true if a further run is wanted and gets the input of the first: a pipe is empty then. */
static bool can_run_again(const struct mt_simulated_run *run)
{
    struct stat info;

    if (run->settings.runs_once || run->recording.launch.interrupted)
        return false;
    return run->settings.is_silent ||
           (fstat(STDIN_FILENO, &info) == 0 && (S_ISCHR(info.st_mode) || S_ISREG(info.st_mode)));
}

/* Adds the other outcome of the guess that made the command fail. Returns false if there is none,
 * or if the program fails there with either outcome. */
static bool add_other(struct mt_simulated_run *run)
{
    const struct mt_dry_run_notes *notes = &run->notes;
    const struct mt_launch *launch = &run->recording.launch;
    struct mt_assumption *assumption = &run->settings.assumption;

    if (!can_run_again(run) || launch->timed_out || !mt_launch_exit_code(launch) ||
        !notes->suspect_place || !notes->suspect_other ||
        assumption->other_count == MT_MAX_OTHER_OUTCOMES ||
        strlen(notes->suspect_other) >= MT_PLACE_BYTES || strchr(notes->suspect_other, '\n') ||
        has_other_at(assumption, notes->suspect_place))
        return false;
    snprintf(assumption->others[assumption->other_count++], MT_PLACE_BYTES, "%s",
             notes->suspect_other);
    return true;
}

static void say_again(const struct mt_simulated_run *run)
{
    const struct mt_assumption *assumption = &run->settings.assumption;

    if (!run->settings.is_silent)
        mt_message("the command failed after a guess of the dry run at %s; running it again with "
                   "the other outcome",
                   mt_guess_place(assumption->others[assumption->other_count - 1]));
}

/* Removes the traces that a run lists, also those without events, with the tapes and summaries that
 * are left beside them. Other files in the folder may be those of a run with a similar name. */
static void remove_listed(const struct mt_simulated_run *run)
{
    static const char *const ends[] = {"", MT_TAPE_SUFFIX, ".mtsum"};
    const struct mt_recording *recording = &run->recording;
    struct mt_buf path = {0};

    for (size_t i = 0; i < recording->trace_count * MT_ARRAY_LEN(ends); i++) {
        path.length = 0;
        mt_buf_add_text(&path, recording->traces[i / MT_ARRAY_LEN(ends)]);
        mt_buf_add_text(&path, ends[i % MT_ARRAY_LEN(ends)]);
        mt_buf_add_char(&path, '\0');
        (void)unlink(path.data);
    }
    mt_buf_release(&path);
}

int mt_assumption_finish(struct mt_simulated_run *run)
{
    int code = mt_simulated_run_finish(run);

    while (code < 0 && add_other(run)) {
        say_again(run);
        remove_listed(run);
        mt_simulated_run_renew(run);
        code = mt_simulated_run_prepare(run);
        if (code < 0)
            code = mt_simulated_run_finish(run);
    }
    return code;
}

/* Takes the peaks of the device that the first run is about. */
static void take_peaks(struct mt_assumed_peaks *peaks, const struct mt_dry_run_measured *measured,
                       unsigned device)
{
    const struct mt_report *report = measured->report;
    const struct mt_device_report *found =
        report ? mt_report_device(report, (uint16_t)device) : NULL;
    struct mt_card_use card;

    if (!measured->result.is_measured || !found)
        return;
    peaks->outcome = measured->result.outcome;
    peaks->allocated_bytes = found->allocated_peak.bytes;
    peaks->reserved_bytes = found->reserved_peak.bytes;
    if (peaks->outcome == MT_SWEEP_FINISHED && found->need && mt_card_use_of(report, found, &card))
        peaks->card_bytes = card.bytes;
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

    mt_buf_add(&folder, path, (size_t)(name - path));
    mt_buf_add_char(&folder, '\0');
    DIR *open = opendir(folder.data);
    for (const struct dirent *entry; open && (entry = readdir(open));)
        if (strncmp(entry->d_name, name, length) == 0 && is_end_of_name(entry->d_name + length))
            (void)unlinkat(dirfd(open), entry->d_name, 0);
    if (open)
        (void)closedir(open);
    mt_buf_release(&folder);
}

/* Returns false if a signal asked memtrace to end meanwhile: then nothing is known about this run,
 * and no other one must start. */
static bool run_under(const struct mt_assuming *assuming, enum mt_assumed which, const char *output,
                      struct mt_sweep_result *result)
{
    const struct mt_analyze_options options = {.no_findings = true};
    struct mt_simulated_run *run = mt_memory_new(sizeof *run); /* too large for a small stack */
    struct mt_run_settings settings = assuming->first->settings;
    bool goes_on = true;

    if (!assuming->is_quiet)
        mt_message("running the command again: what if %s?", others[which].words);
    settings.output = output;
    settings.json = settings.summarizes = false;
    settings.quiet = settings.is_silent = true;
    settings.assumption.frees_early = others[which].frees_early;
    settings.assumption.inverts = others[which].inverts;
    settings.assumption.share_percent = others[which].share_percent;
    mt_simulated_run_init(run, &settings);
    if (mt_simulated_run_prepare(run) < 0 && mt_assumption_finish(run) < 0) {
        struct mt_dry_run_answer answer = mt_simulated_run_answer(run);
        struct mt_dry_run_measured measured;

        answer.common = assuming->common;
        goes_on = !run->recording.launch.interrupted;
        if (goes_on && mt_dry_run_measure(&answer, &options, &measured) == MT_EXIT_OK)
            take_peaks(&result->assumed[which], &measured, result->device);
        if (goes_on)
            mt_dry_run_measured_release(&measured);
    }
    mt_simulated_run_release(run);
    free(run);
    remove_files(output);
    return goes_on;
}

void mt_assume_others(const struct mt_assuming *assuming, struct mt_sweep_result *result)
{
    bool has_peaks =
        result->outcome == MT_SWEEP_FINISHED || result->outcome == MT_SWEEP_OUT_OF_MEMORY;
    bool goes_on = true;
    const size_t suffix = strlen(MT_TRACE_SUFFIX);
    struct mt_buf output = {0};

    if (!has_peaks || !result->is_measured || !can_run_again(assuming->first))
        return;
    size_t length = strlen(assuming->path);
    if (length > suffix && !strcmp(assuming->path + length - suffix, MT_TRACE_SUFFIX))
        length -= suffix;
    mt_buf_printf(&output, "%.*s" AGAIN_SUFFIX, (int)length, assuming->path);
    if (mt_is_undecided(&result->undecided))
        goes_on = run_under(assuming, MT_ASSUMED_EARLY, output.data, result);
    /* Both: another phase may have the peak with less of the data, but not with more. */
    for (unsigned i = MT_ASSUMED_LESS; i <= MT_ASSUMED_MORE; i++)
        if (goes_on && (result->sizes_from_data || result->decisions_from_data))
            goes_on = run_under(assuming, i, output.data, result);
    mt_buf_release(&output);
}

#include "assumption.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "analyze.h"
#include "dry_run_answer.h"
#include "dry_run_doubts.h"
#include "process_memory.h"
#include "report_query.h"
#include "simulated_run.h"
#include "tape_file.h"
#include "trace_target.h"
#include "util.h"

static const struct {
    enum mt_assumed which;
    struct mt_assumption assumption;
    const char *words;
} others[] = {
    {MT_ASSUMED_EARLY,
     {.frees_early = true},
     "memory that waits for the device is freed as early as possible"},
    {MT_ASSUMED_LESS,
     {.share_percent = 25, .inverts = true},
     "masks and selections leave 25% instead of 50%, and decisions are inverted"},
    {MT_ASSUMED_MORE, {.share_percent = 100}, "masks and selections leave 100% instead of 50%"}};

static bool has_other_at(const struct mt_assumption *assumption, const char *place)
{
    for (unsigned i = 0; i < assumption->other_count; i++)
        if (!strcmp(mt_guess_place(assumption->others[i]), place))
            return true;
    return false;
}

/* Returns true if a further run gets the input of the first: a pipe is empty then. */
static bool can_run_again(const struct mt_simulated_run *run)
{
    struct stat info;

    if (run->runs_once)
        return false;
    return run->is_silent ||
           (fstat(STDIN_FILENO, &info) == 0 && (S_ISCHR(info.st_mode) || S_ISREG(info.st_mode)));
}

/* Adds the other outcome of the guess that made the command fail. Returns false if there is none,
 * or if the program fails there with either outcome. */
static bool add_other(struct mt_simulated_run *run)
{
    const struct mt_dry_run_notes *notes = &run->notes;
    const struct mt_launch *launch = &run->recording.launch;
    struct mt_assumption *assumption = &run->assumption;

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
    const struct mt_assumption *assumption = &run->assumption;

    if (!run->is_silent)
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

void mt_sweep_begin(struct mt_sweep_result *result, const struct mt_dry_run_answer *answer)
{
    result->exit_status = answer->exit_status;
    result->signal = answer->signal;
    result->outcome = answer->timed_out     ? MT_SWEEP_TIMED_OUT
                      : answer->exit_status ? MT_SWEEP_FAILED
                                            : MT_SWEEP_FINISHED;
    result->sizes_from_data = answer->notes->sizes;
    result->decisions_from_data = answer->notes->decisions;
    result->has_doubts = mt_dry_run_has_doubts(answer);
    result->undecided = answer->notes->undecided;
    result->fake_groups = answer->notes->fake_groups;
    result->exchanged_counts = answer->notes->exchanged_counts;
}

/* Takes the peaks of the device that the first run is about. */
static void take_peaks(struct mt_assumed_peaks *peaks, const struct mt_sweep_result *again,
                       const struct mt_report *report, unsigned device)
{
    const struct mt_device_report *found = mt_report_device(report, (uint16_t)device);
    struct mt_card_use card;

    if (!again->is_measured || !found)
        return;
    peaks->outcome = again->outcome;
    peaks->allocated_bytes = found->allocated_peak.bytes;
    peaks->reserved_bytes = found->reserved_peak.bytes;
    if (again->outcome == MT_SWEEP_FINISHED && found->need && mt_card_use_of(report, found, &card))
        peaks->card_bytes = card.bytes;
}

/* Fills `result` from the worst trace of a run. `first` is the result of the first run, whose
 * `which` peaks this run has; NULL: this run is the first. */
static void measure(struct mt_sweep_result *result, const struct mt_dry_run_answer *answer,
                    struct mt_sweep_result *first, enum mt_assumed which)
{
    const struct mt_dry_run_trace *worst = mt_dry_run_worst_trace(answer);
    const struct mt_analyze_options options = {
        .path = worst ? worst->path : NULL, .no_findings = true, .needs = true};
    struct mt_source *source;
    struct mt_report *report;
    struct mt_error error;
    int code;

    mt_sweep_begin(result, answer);
    source = worst ? mt_open_input(worst->path, answer->common, &code) : NULL;
    if (source && mt_analyze(source, &options, &report, &error) == MT_OK) {
        mt_sweep_measure(result, report);
        if (first)
            take_peaks(&first->assumed[which], result, report, first->device);
        else
            mt_guess_cause_find(&result->cause, answer->notes, report, result->device);
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

/* Adds places at which the first run already needed the other outcome. */
static void inherit(struct mt_assumption *assumption, const struct mt_assumption *first)
{
    memcpy(assumption->others, first->others, sizeof first->others);
    assumption->other_count = first->other_count;
}

static void run_under(const struct mt_assuming *assuming, size_t index,
                      struct mt_sweep_result *result)
{
    struct mt_simulated_run *run = mt_memory_new(sizeof *run); /* too large for a small stack */
    struct mt_sweep_result again = {.outcome = MT_SWEEP_NOT_RUN};

    if (assuming->tells)
        mt_message("running the command again: what if %s?", others[index].words);
    mt_simulated_run_copy(run, assuming->first);
    run->recording.output = assuming->output;
    run->recording.json = false;
    run->recording.summarizes = false;
    run->recording.quiet = true;
    run->is_silent = true;
    run->assumption = others[index].assumption;
    inherit(&run->assumption, &assuming->first->assumption);
    mt_simulated_run_init(run);
    if (mt_simulated_run_prepare(run) < 0 && mt_assumption_finish(run) < 0) {
        struct mt_dry_run_answer answer = mt_simulated_run_answer(run);

        answer.common = assuming->common;
        measure(&again, &answer, result, others[index].which);
    }
    mt_simulated_run_release(run);
    free(run);
    remove_files(assuming->output);
}

void mt_assume_others(const struct mt_assuming *assuming, struct mt_sweep_result *result)
{
    bool has_peaks =
        result->outcome == MT_SWEEP_FINISHED || result->outcome == MT_SWEEP_OUT_OF_MEMORY;

    if (!has_peaks || !result->is_measured || !can_run_again(assuming->first))
        return;
    if (mt_is_undecided(&result->undecided))
        run_under(assuming, MT_ASSUMED_EARLY, result);
    if (mt_sweep_guess_weight(result) == MT_GUESSES_NONE)
        return;
    /* Both: another phase may have the peak with less of the data, but not with more. */
    for (unsigned i = MT_ASSUMED_LESS; i <= MT_ASSUMED_MORE; i++)
        run_under(assuming, i, result);
}

bool mt_assume_of_answer(const struct mt_assuming *assuming, const struct mt_dry_run_answer *answer,
                         struct mt_sweep_result *result)
{
    const struct mt_dry_run_trace *worst = mt_dry_run_worst_trace(answer);
    struct mt_assuming others_of = *assuming;
    struct mt_buf output = {0};
    size_t length = worst ? strlen(worst->path) : 0;

    *result = (struct mt_sweep_result){.outcome = MT_SWEEP_NOT_RUN};
    if (!answer->notes->sizes && !answer->notes->decisions &&
        !mt_is_undecided(&answer->notes->undecided))
        return false;
    measure(result, answer, NULL, MT_ASSUMED_EARLY);
    if (worst && length > strlen(MT_TRACE_SUFFIX) &&
        !strcmp(worst->path + length - strlen(MT_TRACE_SUFFIX), MT_TRACE_SUFFIX))
        length -= strlen(MT_TRACE_SUFFIX);
    mt_buf_add(&output, worst ? worst->path : "", length);
    mt_buf_add_text(&output, MT_AGAIN_SUFFIX);
    others_of.output = output.data;
    mt_assume_others(&others_of, result);
    mt_buf_release(&output);
    return true;
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

/* The end of the place is that which tells most. */
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

void mt_guess_cause_find(struct mt_guess_cause *cause, const struct mt_dry_run_notes *notes,
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

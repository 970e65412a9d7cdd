/* Opens the input of a command, and reports problems of the input after it is read. */
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "annexes.h"
#include "cli.h"
#include "feed.h"
#include "import.h"
#include "memory_limit.h"
#include "next_step.h"
#include "oom_text.h"
#include "open_input.h"
#include "pytorch_config.h"
#include "recover.h"
#include "screen.h"
#include "source.h"
#include "units.h"

enum { LINE_BYTES = 64 };

/* Follows a feed. `context` is a started struct mt_progress. Without the size of the input, the
 * progress is what was read so far. */
static void reading_of_feed(void *context, uint64_t read_bytes, uint64_t size_bytes)
{
    char bytes[MT_UNITS_TEXT], line[LINE_BYTES];

    if (size_bytes) {
        mt_progress_update(context, "reading", (double)read_bytes / (double)size_bytes);
        return;
    }
    snprintf(line, sizeof line, "reading, %s", mt_format_bytes(bytes, read_bytes));
    mt_progress_update(context, line, MT_SHARE_UNKNOWN);
}

static void was_read(void *context, const struct mt_source *source)
{
    struct mt_reading *reading = context;
    const uint64_t pass = source->readings - reading->readings_before;
    char line[LINE_BYTES], digits[MT_UNITS_TEXT];

    if (pass > 1)
        snprintf(line, sizeof line, "%s, pass %s", reading->what, mt_format_count(digits, pass));
    else
        snprintf(line, sizeof line, "%s", reading->what);
    mt_progress_update(&reading->progress, line, mt_source_share(source));
}

void mt_reading_start(struct mt_reading *reading, struct mt_source *source, const char *what,
                      bool quiet)
{
    *reading =
        (struct mt_reading){.source = source, .what = what, .readings_before = source->readings};
    mt_progress_start(&reading->progress, quiet);
    source->watch = (struct mt_source_watch){was_read, reading};
}

void mt_reading_end(struct mt_reading *reading)
{
    if (reading->source)
        memset(&reading->source->watch, 0, sizeof reading->source->watch);
    mt_progress_end(&reading->progress);
    reading->source = NULL;
}

/* Reports a trace whose process was killed together with `memtrace record`. */
static void say_tape(const char *path)
{
    if (strcmp(path, "-") == 0 || !mt_recover_is_needed(path))
        return;
    mt_message("'%s': a tape exists beside this trace: its recording still runs or was killed",
               path);
    mt_next_step_print("to complete the trace of a killed recording", "recover", path);
}

/* Returns true for a directory, which is not an input: a trace has one run, or one rank of a
 * run. */
static bool is_directory(const char *path)
{
    struct stat info;

    return strcmp(path, "-") != 0 && stat(path, &info) == 0 && S_ISDIR(info.st_mode);
}

static enum mt_status open_shown(const char *path, const struct mt_common *common,
                                 struct mt_source **source, struct mt_error *error)
{
    struct mt_progress progress;
    const struct mt_feed_watch watch = {reading_of_feed, &progress};

    mt_progress_start(&progress, common->quiet);
    enum mt_status status = mt_import_open_watched(path, &watch, source, error);
    mt_progress_end(&progress);
    return status;
}

/* A log, which another command explains. */
static int say_error_message(const char *path)
{
    struct mt_buf why = {0};

    mt_buf_printf(&why, "cannot read '%s': it has an error message about memory; to explain it",
                  path);
    mt_next_step_print(why.data, "oom", path);
    mt_buf_release(&why);
    return MT_EXIT_INPUT;
}

struct mt_source *mt_open_input(const char *path, const struct mt_common *common, int *exit_code)
{
    struct mt_source *source = NULL;
    struct mt_error error = {.offset = MT_NO_OFFSET};

    mt_memory_input_set(path);
    if (is_directory(path)) {
        if (mt_annex_files)
            mt_annex_files->say_folder(path);
        else
            mt_message("cannot read '%s': it is a directory", path);
        *exit_code = MT_EXIT_INPUT;
        return NULL;
    }
    if (mt_annex_files && mt_annex_files->is_own(path)) {
        mt_annex_files->say_own(path);
        *exit_code = MT_EXIT_INPUT;
        return NULL;
    }
    enum mt_status status = open_shown(path, common, &source, &error);
    if (!common->quiet)
        say_tape(path);
    if (status == MT_OK) {
        *exit_code = MT_EXIT_OK;
        return source;
    }
    error.status = status;
    *exit_code = status == MT_ERR_FORMAT && mt_oom_is_in_file(path) ? say_error_message(path)
                                                                    : mt_report_error(path, &error);
    return NULL;
}

static void say_count(bool aloud, const char *path, uint64_t count, const char *one,
                      const char *many)
{
    const char *what = count == 1 ? one : many;
    char digits[MT_UNITS_TEXT];

    if (count && aloud)
        mt_message("'%s': %s %s", path, mt_format_count(digits, count), what);
}

static void say_frames_cut(bool aloud, const char *path, uint64_t count)
{
    char digits[MT_UNITS_TEXT], depth[MT_UNITS_TEXT];

    if (count && aloud)
        mt_message("'%s': %s %s omitted from stacks deeper than %s frames", path,
                   mt_format_count(digits, count), count == 1 ? "frame was" : "frames were",
                   mt_format_count(depth, MT_MAX_STACK_DEPTH));
}

const char *mt_missing_events_text(const struct mt_source *source, char text[MT_MISSING_TEXT])
{
    const uint64_t count = source->integrity.events_dropped;
    char digits[MT_UNITS_TEXT];

    snprintf(text, MT_MISSING_TEXT, "at least %s %s", mt_format_counted(digits, count, "event"),
             mt_header_is_imported(&source->header)
                 ? count == 1 ? "is missing from the history" : "are missing from the history"
             : count == 1 ? "was dropped by the recorder"
                          : "were dropped by the recorder");
    return text;
}

/* Nothing of the file can be read. A tape beside it has the events: say_tape reports that. */
static bool is_empty(const struct mt_source *source, const char *path)
{
    return source->integrity.cut && !source->events_read && !mt_recover_is_needed(path);
}

/* Reports frames or events that are damaged, or that the file has no event. The command fails
 * because of them, so the message is printed even with --quiet. */
static bool say_damage(const struct mt_source *source, const char *path)
{
    const struct mt_integrity *integrity = &source->integrity;
    const struct mt_error *first = &integrity->first_error;
    const bool nothing = is_empty(source, path);
    char place[40] = "";

    say_count(true, path, integrity->frames_damaged, "damaged frame was skipped",
              "damaged frames were skipped");
    say_count(true, path, integrity->events_invalid, "event refers to a lost definition",
              "events refer to lost definitions");
    say_count(true, path, integrity->records_damaged, "record cannot be read and was skipped",
              "records cannot be read and were skipped");
    if (first->status != MT_OK) {
        if (first->offset != MT_NO_OFFSET)
            snprintf(place, sizeof place, " (at byte %llu)", (unsigned long long)first->offset);
        mt_message("'%s': first: %s%s", path, first->text, place);
    }
    if (nothing)
        mt_message("cannot read '%s': cut at byte %llu, before its first event", path,
                   (unsigned long long)integrity->cut_offset);
    return nothing || integrity->frames_damaged || integrity->events_invalid ||
           integrity->records_damaged;
}

/* Reports missing history of an undamaged file: as a note, or with --strict as an error. */
static bool say_incomplete(const struct mt_source *source, const char *path,
                           const struct mt_common *common)
{
    const struct mt_integrity *integrity = &source->integrity;
    uint64_t not_followed = (uint64_t)__builtin_popcountll(source->devices_not_followed);
    bool aloud = common->strict || !common->quiet;
    char missing[MT_MISSING_TEXT];

    if (integrity->cut && aloud && !is_empty(source, path))
        mt_message("'%s': cut at byte %llu; read up to that byte", path,
                   (unsigned long long)integrity->cut_offset);
    if (integrity->events_dropped && aloud)
        mt_message("'%s': %s", path, mt_missing_events_text(source, missing));
    say_count(aloud, path, integrity->events_unknown,
              "event has a kind that this version does not know",
              "events have kinds that this version does not know");
    say_frames_cut(!common->quiet, path, source->symbols.frames_cut);
    say_count(aloud, path, source->devices_left_out,
              "device is omitted: only devices 0 to 63 are replayed",
              "devices are omitted: only devices 0 to 63 are replayed");
    say_count(aloud, path, not_followed,
              "device is omitted: the trace has too many phases to follow it",
              "devices are omitted: the trace has too many phases to follow them");
    if (source->header.starts_in_middle && common->strict)
        mt_message("'%s': starts in the middle: earlier history is missing", path);
    return integrity->cut || integrity->events_dropped || integrity->events_unknown ||
           source->devices_left_out || not_followed || source->header.starts_in_middle;
}

/* Reports options of a newer PyTorch that this version of memtrace does not know. */
static void say_unknown_option(const struct mt_source *source, const char *path)
{
    struct mt_pytorch_config config;
    struct mt_error unused;

    if (mt_pytorch_config_recorded(&source->header, &config, &unused) == MT_OK && config.unknown[0])
        mt_message(
            "'%s': the run had the allocator option '%s', which this version does not know or "
            "cannot read: replays ignore it and are approximate",
            path, config.unknown);
}

int mt_input_verdict(const struct mt_source *source, const char *path,
                     const struct mt_common *common)
{
    const char *name = strcmp(path, "-") == 0 ? "standard input" : path;
    bool damaged = say_damage(source, name);
    bool incomplete = say_incomplete(source, name, common);

    if (!common->quiet)
        say_unknown_option(source, name);

    if (damaged)
        return MT_EXIT_INPUT;
    return incomplete && common->strict ? MT_EXIT_INCOMPLETE : MT_EXIT_OK;
}

int mt_answer_verdict(int code, const struct mt_source *source, const char *path,
                      const struct mt_common *common)
{
    int verdict = mt_input_verdict(source, path, common);

    return code ? code : verdict;
}

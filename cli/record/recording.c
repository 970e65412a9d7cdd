#include "recording.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "environment.h"
#include "foreign_text.h"
#include "info_recorded.h"
#include "manifest.h"
#include "monotonic_clock.h"
#include "next_step.h"
#include "options.h"
#include "outputs.h"
#include "probes.h"
#include "util.h"

enum {
    DEFAULT_ARENA_MIB = 32, /* as in collector/inject/collect/settings.c */
    ROOM_MIB = 16,    /* in addition to the arena: names, stacks, the beginning of the trace */
    TIMEOUT_MS = 1000 /* how long to wait for processes that outlive the command */
};

extern char **environ;

static bool takes_value(const struct mt_option *option)
{
    return option->kind != MT_OPTION_FLAG;
}

/* Returns true if the value of the option `word` is the next word. This holds for "--output" and
 * "-o", but not for "--output=x", "-ox" and "--quiet". Abbreviations work as in getopt_long. */
static bool consumes_next(const char *word, const struct mt_option *options)
{
    for (const struct mt_option *option = options; option->name; option++) {
        if (word[1] == '-' && strncmp(option->name, word + 2, strlen(word + 2)) == 0)
            return takes_value(option);
        if (word[1] == option->letter && option->letter && !word[2])
            return takes_value(option);
    }
    return false;
}

/* Returns the index of the command in argv, or argc if there is none. Sets *end_of_options to the
 * number of words that are options. */
static int find_command(const struct mt_option *options, int argc, char **argv, int *end_of_options)
{
    int i;

    for (i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--") == 0) {
            *end_of_options = i;
            return i + 1;
        }
        if (argv[i][0] != '-' || !argv[i][1])
            break;
        if (consumes_next(argv[i], options))
            i++;
    }
    *end_of_options = i < argc ? i : argc;
    return *end_of_options;
}

int mt_parse_command(const struct mt_command *command, const struct mt_option *options, int argc,
                     char **argv, char ***words)
{
    char **arguments;
    int end, count, start = find_command(options, argc, argv, &end);

    if (argc > 1 && strcmp(argv[1], MT_COMPLETION_WORD) == 0) {
        if (start < argc - 1)
            return MT_EXIT_OK; /* the word at the cursor is an argument of the recorded command */
        end = argc;            /* completion needs all words, also of an incomplete line */
    }
    int code = mt_options_parse(command, options, end, argv, 0, 0, &arguments, &count);
    if (code >= 0)
        return code;
    if (start >= argc)
        return mt_missing_argument(command);
    *words = argv + start;
    return -1;
}

int mt_record_read_time(const char *option, const char *text, uint64_t *time_ms)
{
    static const struct {
        const char *unit;
        uint64_t ms;
    } units[] = {{"", 1000}, {"s", 1000}, {"m", 60000}, {"min", 60000}, {"h", 3600000}};
    const char *at = text;
    uint64_t number = 0;
    bool fits = true;

    if (!at)
        return -1;
    for (; *at >= '0' && *at <= '9' && fits; at++)
        fits = mt_mul_ok(number, 10, &number) && mt_add_ok(number, (uint64_t)(*at - '0'), &number);
    for (size_t i = 0; i < MT_ARRAY_LEN(units) && fits && number; i++)
        if (!strcmp(at, units[i].unit) && mt_mul_ok(number, units[i].ms, time_ms))
            return -1;
    mt_message("option '--%s' needs seconds or a time such as 90s, 10m or 2h, not '%s'", option,
               text);
    return MT_EXIT_USAGE;
}

/* Reports a program that cannot be recorded, such as sudo. It can start memtrace instead. */
static void say_secure(const struct mt_recording *recording)
{
    struct mt_buf word = {0};

    mt_buf_add_shell_value(&word, recording->command[0]);
    mt_message("'%s' cannot be recorded: %s; put memtrace after it: %s memtrace %s ...",
               recording->command[0], mt_program_reason(&recording->program), word.data,
               recording->is_simulated ? "dry-run" : "record");
    mt_buf_release(&word);
}

/* Prints a line if the program cannot be recorded, completely or in part. The command runs in any
 * case. */
static void choose_library(struct mt_recording *recording)
{
    struct mt_record_settings *settings = &recording->settings;
    struct mt_program *program = &recording->program;
    const char *name = recording->command[0];
    struct mt_error error = {.offset = MT_NO_OFFSET};

    if (mt_collector_library(MT_COLLECTOR_NAME, recording->library, &error) != MT_OK) {
        mt_message("'%s' runs without being recorded: %s", name, error.text);
        return;
    }
    mt_program_try_preload(program, recording->library);
    settings->library = recording->library;
    switch (program->kind) {
    case MT_PROGRAM_STATIC:
        mt_message("'%s' itself is not recorded, only the processes that it starts: %s", name,
                   mt_program_reason(program));
        break;
    case MT_PROGRAM_SECURE: say_secure(recording); break;
    case MT_PROGRAM_OTHER_MACHINE:
    case MT_PROGRAM_OTHER_LOADER:
        settings->no_preload = true;
        mt_message("'%s' cannot be recorded: %s", name, mt_program_reason(program));
        break;
    case MT_PROGRAM_REFUSES:
        settings->library = NULL;
        mt_message("'%s' runs without being recorded: %s", name, mt_program_reason(program));
        break;
    default: break;
    }
}

/* If CUPTI cannot be used, chooses the interposer, which wraps the functions of the driver. */
static void choose_interposer(struct mt_recording *recording)
{
    struct mt_error error = {.offset = MT_NO_OFFSET};
    char why[480];

    if (recording->is_simulated || !recording->settings.library || recording->settings.no_preload ||
        !mt_cupti_needs_substitute(&recording->program, why, sizeof why))
        return;
    if (mt_collector_library(MT_INTERPOSER_NAME, recording->interposer, &error) == MT_OK)
        recording->settings.interposer = recording->interposer;
    if (*why && !recording->quiet)
        mt_message("%s; %s", why,
                   recording->settings.interposer ? "the driver's functions are wrapped instead"
                                                  : "calls of the driver may be missing");
}

/* How much room the files of a recording need at first. */
static uint64_t room_bytes(void)
{
    const char *arena = getenv("MEMTRACE_ARENA_MIB");
    long arena_mib = arena ? strtol(arena, NULL, 10) : DEFAULT_ARENA_MIB;

    return (uint64_t)(arena_mib > 0 && arena_mib <= 1024 ? arena_mib : DEFAULT_ARENA_MIB) * MT_MIB +
           ROOM_MIB * MT_MIB;
}

/* Claims the name of the trace and prepares the collector's list of traces in the output folder.
 * Returns -1 or an exit code. */
static int prepare_place(struct mt_recording *recording)
{
    const struct mt_trace_target_request request = {.output = recording->output,
                                                    .command = recording->command,
                                                    .room_bytes = room_bytes(),
                                                    .began_ns = recording->launch.began_t_ns,
                                                    .is_simulated = recording->is_simulated,
                                                    .unfinished = mt_outputs_unfinished()};
    struct mt_trace_target *place = &recording->place;
    struct mt_error error = {.offset = MT_NO_OFFSET};
    enum mt_status status = mt_trace_target_prepare(place, &request, &error);

    if (status == MT_OK) {
        mt_leftovers_remove(place->folder);
        status =
            mt_manifest_new(place->folder, recording->manifest, &recording->manifest_lock, &error);
    }
    if (status == MT_OK) {
        mt_unfinished_add(mt_outputs_unfinished(), recording->manifest);
        if (place->is_renamed)
            mt_message("the name of this trace belongs to another recording: this one writes '%s'",
                       mt_short_path(place->path));
        mt_trace_target_clear(place);
        recording->settings.manifest = recording->manifest;
        return -1;
    }
    mt_trace_target_leave(place);
    error.status = status;
    mt_report_error(recording->output ? recording->output : ".", &error);
    if (!recording->output)
        mt_message("to write the trace to another place, use -o");
    return MT_EXIT_OUTPUT;
}

int mt_recording_check_command(struct mt_recording *recording)
{
    mt_program_look(recording->command[0], &recording->program);
    if (mt_program_runs(&recording->program))
        return -1;
    mt_message("cannot run '%s': %s", recording->command[0],
               mt_program_reason(&recording->program));
    return mt_program_exit_code(&recording->program);
}

int mt_recording_prepare(struct mt_recording *recording)
{
    int code = mt_recording_check_command(recording);

    if (code >= 0)
        return code;
    if (recording->redact && mt_redaction_init(&recording->redaction) != MT_OK) {
        mt_message("cannot redact: the system provides no random numbers; the command was not run. "
                   "Without --redact the trace has paths, the host and names of threads");
        return MT_EXIT_USAGE;
    }
    choose_library(recording);
    choose_interposer(recording);
    return recording->settings.library ? prepare_place(recording) : -1;
}

/* Runs in the process of the command. */
static char **make_environment(void *context, pid_t pid)
{
    struct mt_recording *recording = context;
    struct mt_record_settings *settings = &recording->settings;

    mt_unfinished_forget(mt_outputs_unfinished());
    if (recording->before && !recording->before(recording->context))
        return NULL;
    settings->root = pid;
    settings->output = recording->trace;
    if (settings->library && !mt_trace_target_output(&recording->place, pid, recording->trace))
        return NULL;
    return mt_record_environment(environ, settings, &recording->arena);
}

static void remove_manifest(struct mt_recording *recording)
{
    if (mt_unfinished_take(mt_outputs_unfinished(), recording->manifest))
        unlink(recording->manifest);
}

/* Ends a recording that recorded nothing. */
static int leave(struct mt_recording *recording, int code)
{
    mt_memory_return_failures(false);
    if (recording->settings.library) {
        remove_manifest(recording);
        mt_trace_target_leave(&recording->place);
    }
    return code;
}

static void look(void *context, bool is_asked)
{
    mt_ring_saves_look(context, is_asked);
}

/* A ring may be saved meanwhile. */
static void wait_for_command(struct mt_recording *recording)
{
    const struct mt_launch_watch watch = {look, &recording->saves};

    recording->saves =
        (struct mt_ring_saves){.manifest = recording->manifest,
                               .manifest_lock = recording->manifest_lock,
                               .redaction = recording->redact ? &recording->redaction : NULL,
                               .is_quiet = recording->quiet,
                               .is_silent = recording->json,
                               .is_idle = recording->settings.idle,
                               .has_ring = recording->settings.ring_seconds != 0};
    if ((recording->settings.ring_seconds || recording->settings.idle) &&
        recording->settings.library)
        recording->launch.watch = &watch;
    mt_launch_wait(&recording->launch, recording->timeout_ms);
    recording->launch.watch = NULL;
}

int mt_recording_run(struct mt_recording *recording)
{
    const struct mt_launch_request request = {.command = recording->command,
                                              .environment = make_environment,
                                              .context = recording,
                                              .ends_with_us = recording->is_simulated};
    struct mt_launch *launch = &recording->launch;
    struct mt_error error = {.offset = MT_NO_OFFSET};

    /* the command and its traces must not be lost */
    mt_memory_return_failures(true);
    if (mt_launch_start(launch, &request, &error) != MT_OK) {
        mt_message("cannot run '%s': %s", recording->command[0], error.text);
        return leave(recording, 126);
    }
    if (launch->exec_errno) {
        mt_message("cannot run '%s': %s", recording->command[0], strerror(launch->exec_errno));
        return leave(recording, launch->exec_errno == ENOENT ? 127 : 126);
    }
    wait_for_command(recording);
    return -1;
}

static bool is_worth_a_summary(const struct mt_recording *recording, const struct mt_trace_end *end)
{
    return recording->summarizes && end->state != MT_TRACE_RUNNING &&
           end->state != MT_TRACE_FAILED && end->redaction_error.status == MT_OK &&
           end->summary.events;
}

static enum mt_recording_end worse(enum mt_recording_end one, enum mt_recording_end other)
{
    return one > other ? one : other;
}

static enum mt_recording_end judge(const struct mt_trace_end *end)
{
    if (mt_trace_end_is_lost(end))
        return MT_RECORDING_LOST;
    return mt_trace_end_is_complete(end) && end->redaction_error.status == MT_OK
               ? MT_RECORDING_COMPLETE
               : MT_RECORDING_INCOMPLETE;
}

/* All traces share a salt, so equal names stay equal. */
static enum mt_recording_end end_traces(struct mt_recording *recording,
                                        void (*on_trace)(void *context,
                                                         const struct mt_trace_end *end),
                                        void *context)
{
    const struct mt_process_end process = mt_launch_end(&recording->launch);
    struct mt_trace_end_options options = {.redaction =
                                               recording->redact ? &recording->redaction : NULL,
                                           .unfinished = mt_outputs_unfinished(),
                                           .process = &process,
                                           .timed_out = recording->launch.timed_out};
    struct mt_recorded_summaries summaries = {.is_quiet = recording->quiet || recording->json};
    struct mt_trace_end end;
    uint64_t last_ms = mt_now_ms() + TIMEOUT_MS;
    enum mt_recording_end all = MT_RECORDING_COMPLETE;
    bool redacted = true;

    for (size_t i = 0; i < recording->trace_count; i++) {
        uint64_t now = mt_now_ms();
        options.patience_ms = now < last_ms ? (unsigned)(last_ms - now) : 0;
        mt_trace_end(&end, recording->traces[i], &options);
        redacted &= end.redaction_error.status == MT_OK;
        all = worse(all, judge(&end));
        on_trace(context, &end);
        if (is_worth_a_summary(recording, &end))
            mt_recorded_summaries_add(&summaries, recording->traces[i]);
    }
    mt_recorded_summaries_finish(&summaries);
    /* print this even if memory ran out and the report was lost; the message allocates nothing */
    if (!redacted && mt_memory_has_failed())
        mt_message("not every trace is redacted: use 'memtrace import --redact'");
    return all;
}

enum mt_recording_end mt_recording_finish(struct mt_recording *recording,
                                          void (*on_trace)(void *context,
                                                           const struct mt_trace_end *end),
                                          void *context)
{
    struct mt_error error = {.offset = MT_NO_OFFSET};

    if (!recording->settings.library) {
        mt_memory_return_failures(false);
        return MT_RECORDING_COMPLETE;
    }
    mt_ring_saves_finish(&recording->saves, recording->json ? on_trace : NULL, context);
    bool listed = mt_manifest_read(recording->manifest, &recording->arena, &recording->traces,
                                   &recording->trace_count, &error) == MT_OK;
    if (!listed)
        mt_message("cannot read the list of traces: %s%s", error.text,
                   recording->redact
                       ? "; the traces are not redacted: use 'memtrace import --redact'"
                       : "");
    else if (!recording->trace_count && !recording->quiet && !recording->json)
        mt_message(
            "no trace was written: no process used CUDA, or processes that used CUDA could not "
            "be recorded; 'memtrace doctor' checks what can be recorded here");
    remove_manifest(recording);
    enum mt_recording_end end = end_traces(recording, on_trace, context);
    mt_trace_target_leave(&recording->place);
    mt_memory_return_failures(false);
    return listed ? end : MT_RECORDING_LOST;
}

void mt_recording_release(struct mt_recording *recording)
{
    mt_arena_release(&recording->arena);
}

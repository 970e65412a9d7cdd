/* memtrace record: runs a command under the collector and ends as it ended. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "cli.h"
#include "collector_library.h"
#include "environment.h"
#include "io.h"
#include "launch.h"
#include "leftovers.h"
#include "manifest.h"
#include "memory_limit.h"
#include "probe_cupti.h"
#include "outputs.h"
#include "program_kind.h"
#include "record_output.h"
#include "redaction.h"
#include "trace_place.h"
#include "util.h"

enum {
    DEFAULT_SAMPLE_HZ = 10,
    MAX_SAMPLE_HZ = 1000,
    DEFAULT_ARENA_MIB = 32, /* as in collector/inject/settings.c */
    ROOM_MIB = 16,          /* beyond the arena: names, stacks, the trace's beginning */
    TIMEOUT_MS = 1000       /* for processes that outlive the command */
};

extern char **environ;

struct recording {
    bool json, quiet, with_env, strict, redact;
    const char *output, *stacks, *phases, *follow;
    uint64_t sample_hz;
    char **command;
    struct mt_program program;
    struct mt_trace_place place;
    struct mt_record_settings settings;
    struct mt_arena arena;
    struct mt_launch launch;
    struct mt_redaction redaction;
    int manifest_lock; /* open until the process ends */
    char library[PATH_MAX], interposer[PATH_MAX], manifest[PATH_MAX], trace[PATH_MAX];
};

static bool takes_value(const struct mt_option *option)
{
    return option->kind != MT_OPTION_FLAG;
}

/* Does `word` consume the one behind it: "--output", "-o", but not "--output=x",
 * "-ox", "--quiet"? Abbreviations are as getopt_long has them. */
static bool consumes_next(const char *word, const struct mt_option *options)
{
    const struct mt_option *option;

    for (option = options; option->name; option++) {
        if (word[1] == '-' && strncmp(option->name, word + 2, strlen(word + 2)) == 0)
            return takes_value(option);
        if (word[1] == option->letter && option->letter && !word[2])
            return takes_value(option);
    }
    return false;
}

/* Where the command begins: behind "--", or at the first word that is no
 * option and no option's value. argc if there is none. */
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

static int refuse_word(const struct mt_command *command, const char *option, const char *word,
                       const char *const *allowed, size_t count)
{
    const char *near = mt_did_you_mean(word, allowed, count);

    if (near)
        mt_say("option '--%s': unknown word '%s'; did you mean '%s'?", option, word, near);
    else
        mt_say("option '--%s': unknown word '%s'", option, word);
    mt_say("see 'memtrace %s --help'", command->name);
    return MT_EXIT_USAGE;
}

static bool is_one_of(const char *word, size_t length, const char *const *allowed, size_t count)
{
    size_t i;

    for (i = 0; i < count; i++)
        if (strlen(allowed[i]) == length && memcmp(word, allowed[i], length) == 0)
            return true;
    return false;
}

/* A list of words with commas between; -1, or an exit code. */
static int check_words(const struct mt_command *command, const char *option, const char *list,
                       const char *const *allowed, size_t count)
{
    const char *at = list;
    char word[64];

    for (;; at++) {
        size_t length = strcspn(at, ",");
        if (!is_one_of(at, length, allowed, count)) {
            snprintf(word, sizeof word, "%.*s", (int)length, at);
            return refuse_word(command, option, word, allowed, count);
        }
        at += length;
        if (!*at)
            return -1;
    }
}

static int check_options(const struct mt_command *command, struct recording *recording)
{
    static const char *const stacks[] = {"auto", "none", "python", "native", "both"};
    static const char *const phases[] = {"none", "nvtx", "torch", "autograd"};
    static const char *const follow[] = {"all", "none"};
    struct mt_record_settings *settings = &recording->settings;
    int code = check_words(command, "stacks", recording->stacks, stacks, MT_ARRAY_LEN(stacks));

    if (code < 0)
        code = check_words(command, "phases", recording->phases, phases, MT_ARRAY_LEN(phases));
    if (code < 0)
        code = check_words(command, "follow", recording->follow, follow, MT_ARRAY_LEN(follow));
    if (code < 0 && recording->sample_hz > MAX_SAMPLE_HZ) {
        mt_say("option '--sample-hz' goes up to %d", MAX_SAMPLE_HZ);
        code = MT_EXIT_USAGE;
    }
    settings->auto_stacks = strstr(recording->stacks, "auto");
    settings->python_stacks =
        strstr(recording->stacks, "python") || strstr(recording->stacks, "both");
    settings->native_stacks =
        strstr(recording->stacks, "native") || strstr(recording->stacks, "both");
    settings->phases = recording->phases;
    settings->sample_hz = recording->sample_hz;
    settings->follow = strcmp(recording->follow, "all") == 0;
    settings->quiet = recording->quiet;
    settings->with_env = recording->with_env;
    return code;
}

static int parse(const struct mt_command *command, struct recording *recording, int argc,
                 char **argv)
{
    const struct mt_option options[] = {
        {"output", 'o', MT_OPTION_TEXT, "FILE|DIR", "write the trace, or one a process, here",
         &recording->output},
        {"stacks", 0, MT_OPTION_TEXT, "WHICH",
         "auto (default: Python's, or native), none, python, native, both", &recording->stacks},
        {"free-stacks", 0, MT_OPTION_FLAG, NULL, "record call stacks of frees as well (slower)",
         &recording->settings.free_stacks},
        {"phases", 0, MT_OPTION_TEXT, "LIST", "of nvtx,torch,autograd (default nvtx,torch)",
         &recording->phases},
        {"sample-hz", 0, MT_OPTION_COUNT, "N", "ask what the process uses N times a second (10)",
         &recording->sample_hz},
        {"follow", 0, MT_OPTION_TEXT, "WHICH", "all processes (default), or none but the first",
         &recording->follow},
        {"xla-requests", 0, MT_OPTION_FLAG, NULL, "make each request of JAX and TensorFlow visible",
         &recording->settings.xla_requests},
        {"with-env", 0, MT_OPTION_FLAG, NULL, "also write the command line into the trace",
         &recording->with_env},
        {"redact", 0, MT_OPTION_FLAG, NULL,
         "at the end replace folders, host, command and names of threads", &recording->redact},
        {"json", 0, MT_OPTION_FLAG, NULL, "end with one JSON document on standard error",
         &recording->json},
        {"quiet", 'q', MT_OPTION_FLAG, NULL, "say only what went wrong", &recording->quiet},
        {"strict", 0, MT_OPTION_FLAG, NULL,
         "exit with 5 if the command succeeds and events are missing", &recording->strict},
        {NULL, 0, MT_OPTION_FLAG, NULL, NULL, NULL},
    };
    char **arguments;
    int end, count, start = find_command(options, argc, argv, &end), code;

    code = mt_options_parse(command, options, end, argv, 0, 0, &arguments, &count);
    if (code >= 0)
        return code;
    if (start >= argc)
        return mt_missing_argument(command);
    recording->command = argv + start;
    return check_options(command, recording);
}

/* A line for what cannot be recorded, or only in part; the command runs. */
static void choose_library(struct recording *recording)
{
    struct mt_record_settings *settings = &recording->settings;
    struct mt_program *program = &recording->program;
    const char *name = recording->command[0];
    struct mt_error error = {.offset = MT_NO_OFFSET};

    if (mt_collector_library(MT_COLLECTOR_NAME, recording->library, &error) != MT_OK) {
        mt_say("'%s' runs without being recorded: %s", name, error.text);
        return;
    }
    mt_program_try_preload(program, recording->library);
    settings->library = recording->library;
    switch (program->kind) {
    case MT_PROGRAM_STATIC:
        mt_say("'%s' itself is not recorded, only what it starts: %s", name,
               mt_program_reason(program));
        break;
    case MT_PROGRAM_SECURE:
        mt_say("'%s' cannot be recorded: %s; put memtrace behind it: %s memtrace record ...", name,
               mt_program_reason(program), name);
        break;
    case MT_PROGRAM_OTHER_MACHINE:
    case MT_PROGRAM_OTHER_LOADER:
        settings->no_preload = true;
        mt_say("'%s' cannot be recorded: %s", name, mt_program_reason(program));
        break;
    case MT_PROGRAM_REFUSES:
        settings->library = NULL;
        mt_say("'%s' runs without being recorded: %s", name, mt_program_reason(program));
        break;
    default: break;
    }
}

/* Where CUPTI cannot be used, the driver's functions are wrapped. */
static void choose_interposer(struct recording *recording)
{
    struct mt_error error = {.offset = MT_NO_OFFSET};
    char why[480];

    if (!recording->settings.library || recording->settings.no_preload ||
        !mt_cupti_needs_substitute(&recording->program, why, sizeof why))
        return;
    if (mt_collector_library(MT_INTERPOSER_NAME, recording->interposer, &error) == MT_OK)
        recording->settings.interposer = recording->interposer;
    if (*why && !recording->quiet)
        mt_say("%s; %s", why,
               recording->settings.interposer ? "the driver's functions are wrapped instead"
                                              : "calls of the driver may be missing");
}

/* The collector's list of traces, in the folder where they go. -1 or an exit code. */
static int prepare_place(struct recording *recording)
{
    const char *arena = getenv("MEMTRACE_ARENA_MIB");
    long arena_mib = arena ? strtol(arena, NULL, 10) : DEFAULT_ARENA_MIB;
    uint64_t room_bytes =
        (uint64_t)(arena_mib > 0 && arena_mib <= 1024 ? arena_mib : DEFAULT_ARENA_MIB) * MT_MIB +
        ROOM_MIB * MT_MIB;
    struct mt_error error = {.offset = MT_NO_OFFSET};
    enum mt_status status = mt_trace_place_prepare(&recording->place, recording->output,
                                                   recording->command, room_bytes, &error);

    if (status == MT_OK) {
        mt_leftovers_remove(recording->place.folder);
        status = mt_manifest_new(recording->place.folder, recording->manifest,
                                 &recording->manifest_lock, &error);
    }
    if (status == MT_OK) {
        mt_trace_place_clear(&recording->place);
        recording->settings.manifest = recording->manifest;
        return -1;
    }
    error.status = status;
    mt_report_error(recording->output ? recording->output : ".", &error);
    if (!recording->output)
        mt_say("-o says where to write the trace");
    return MT_EXIT_OUTPUT;
}

static int prepare(struct recording *recording)
{
    mt_program_look(recording->command[0], &recording->program);
    if (!mt_program_runs(&recording->program)) {
        mt_say("cannot run '%s': %s", recording->command[0],
               mt_program_reason(&recording->program));
        return mt_program_exit_code(&recording->program);
    }
    if (recording->redact && mt_redaction_init(&recording->redaction) != MT_OK) {
        mt_say(
            "cannot redact: the system gives no random numbers; nothing was run. Without --redact "
            "the trace holds paths, host and names of threads");
        return MT_EXIT_USAGE;
    }
    choose_library(recording);
    choose_interposer(recording);
    return recording->settings.library ? prepare_place(recording) : -1;
}

/* In the command's process. */
static char **make_environment(void *context, pid_t pid)
{
    struct recording *recording = context;
    struct mt_record_settings *settings = &recording->settings;

    settings->root = pid;
    settings->output = recording->trace;
    if (settings->library && !mt_trace_place_output(&recording->place, pid, recording->trace))
        return NULL;
    return mt_record_environment(environ, settings, &recording->arena);
}

/* Runs it to its end; -1 or an exit code. */
static int run(struct recording *recording)
{
    const struct mt_launch_request request = {recording->command, make_environment, recording};
    struct mt_launch *launch = &recording->launch;
    struct mt_error error = {.offset = MT_NO_OFFSET};

    if (mt_launch_start(launch, &request, &error) != MT_OK) {
        mt_say("cannot run '%s': %s", recording->command[0], error.text);
        return 126;
    }
    if (launch->exec_errno) {
        mt_say("cannot run '%s': %s", recording->command[0], strerror(launch->exec_errno));
        return launch->exec_errno == ENOENT ? 127 : 126;
    }
    mt_launch_wait(launch);
    return -1;
}

static uint64_t now_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

static void json_begin(const struct recording *recording, struct mt_json *json, struct mt_buf *out)
{
    mt_json_init(json, out, false);
    mt_json_object_begin(json, NULL);
    mt_json_text(json, "schema", "memtrace.record/1");
    mt_json_i64(json, "exit_status", mt_launch_exit_code(&recording->launch));
    mt_json_array_begin(json, "traces");
}

static void json_end(struct mt_json *json)
{
    mt_json_array_end(json);
    mt_json_object_end(json);
    mt_buf_add_char(json->out, '\n');
}

/* Lines that are ready to be printed; the buffer is empty after it. */
static void say_buffer(struct mt_buf *out)
{
    (void)!mt_io_write(STDERR_FILENO, out->data, out->length);
    if (out->failed)
        (void)mt_say_no_memory("cannot report on the traces");
    mt_buf_release(out);
}

/* Ends every trace of the run and says what became of it, one by one. All traces share a
 * salt: what is equal in them stays equal. False if anything that was recorded is not in
 * them, or if one could not be redacted. */
static bool end_traces(const struct recording *recording, char **traces, size_t count)
{
    struct mt_buf out = {0};
    struct mt_json json;
    struct mt_trace_end_options options = {.redaction =
                                               recording->redact ? &recording->redaction : NULL,
                                           .unfinished = mt_outputs_unfinished()};
    struct mt_next_step next = {0};
    struct mt_trace_end end;
    uint64_t last_ms = now_ms() + TIMEOUT_MS, now;
    bool complete = true, redacted = true;
    size_t i;

    if (recording->json)
        json_begin(recording, &json, &out);
    for (i = 0; i < count; i++) {
        now = now_ms();
        options.patience_ms = now < last_ms ? (unsigned)(last_ms - now) : 0;
        mt_trace_end(&end, traces[i], &options);
        redacted &= end.redaction_error.status == MT_OK;
        complete &= mt_trace_end_is_complete(&end) && redacted;
        if (recording->json) {
            mt_json_trace_end(&json, &end);
            continue;
        }
        mt_add_trace_end(&out, &end, "memtrace: ", recording->quiet);
        say_buffer(&out);
        mt_next_step_note(&next, &end);
    }
    if (!recording->json && !recording->quiet)
        mt_add_next_step(&out, &next);
    if (recording->json)
        json_end(&json);
    /* a report that is lost for want of memory must not hide this; the line takes none */
    if (!redacted && mt_memory_ran_out())
        mt_say("not every trace is redacted: use 'memtrace import --redact'");
    say_buffer(&out);
    return complete;
}

/* False as end_traces. */
static bool finish(struct recording *recording)
{
    struct mt_error error = {.offset = MT_NO_OFFSET};
    char **traces = NULL;
    size_t count = 0;
    bool listed, complete;

    if (!recording->settings.library)
        return true;
    listed =
        mt_manifest_read(recording->manifest, &recording->arena, &traces, &count, &error) == MT_OK;
    if (!listed)
        mt_say("the list of traces cannot be read: %s%s", error.text,
               recording->redact ? "; the traces are not redacted: use 'memtrace import --redact'"
                                 : "");
    else if (!count && !recording->quiet && !recording->json)
        mt_say("no trace was written: no process used CUDA, or none that did could be recorded");
    unlink(recording->manifest);
    complete = end_traces(recording, traces, count);
    mt_trace_place_leave(&recording->place);
    return listed && complete;
}

int mt_cmd_record(const struct mt_command *command, int argc, char **argv)
{
    struct recording recording = {
        .stacks = "auto", .phases = "nvtx,torch", .follow = "all", .sample_hz = DEFAULT_SAMPLE_HZ};
    int code;

    mt_launch_init(&recording.launch);
    code = parse(command, &recording, argc, argv);
    if (code < 0)
        code = prepare(&recording);
    if (code < 0) {
        code = run(&recording);
        if (code < 0) {
            bool complete = finish(&recording);
            code = mt_launch_exit_code(&recording.launch);
            if (code == MT_EXIT_OK && recording.strict && !complete)
                code = MT_EXIT_INCOMPLETE;
            mt_arena_release(&recording.arena);
            mt_launch_die_likewise(&recording.launch);
        } else if (recording.settings.library) {
            unlink(recording.manifest);
            mt_trace_place_leave(&recording.place);
        }
    }
    mt_arena_release(&recording.arena);
    return code;
}

/* memtrace record: runs a command under the collector and exits with its status. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "io.h"
#include "memory_limit.h"
#include "next_step.h"
#include "process_memory.h"
#include "record_output.h"
#include "recording.h"
#include "util.h"

enum {
    DEFAULT_SAMPLE_HZ = 10,
    MAX_SAMPLE_HZ = 1000,
    MAX_RING_SECONDS = 7 * 24 * 3600,
};

struct record {
    struct mt_recording recording;
    const char *stacks, *phases, *follow, *ring;
    bool strict, no_summary;
};

/* How to print the end of a trace. */
struct telling {
    bool json, quiet;
    struct mt_buf out;
    struct mt_json document;
    struct mt_next_step next;
};

static int refuse_word(const struct mt_command *command, const char *option, const char *word,
                       const char *const *allowed, size_t count)
{
    const char *near = mt_did_you_mean(word, allowed, count);
    struct mt_buf list = {0};

    for (size_t i = 0; i < count; i++)
        mt_buf_printf(&list, "%s%s", i ? ", " : "", allowed[i]);
    if (near)
        mt_message("option '--%s': unknown value '%s'; did you mean '%s'?", option, word, near);
    else
        mt_message("option '--%s': unknown value '%s'; use %s", option, word, list.data);
    mt_buf_release(&list);
    mt_message("see 'memtrace %s --help'", command->name);
    return MT_EXIT_USAGE;
}

static bool is_one_of(const char *word, size_t length, const char *const *allowed, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (strlen(allowed[i]) == length && memcmp(word, allowed[i], length) == 0)
            return true;
    return false;
}

/* Checks a comma-separated list of words. Returns -1 or an exit code. */
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

/* The ring has whole seconds. */
static int read_ring(struct record *record)
{
    uint64_t time_ms = 0;
    int code = mt_record_read_time("ring", record->ring, &time_ms);

    if (code < 0 && time_ms / 1000 > MAX_RING_SECONDS) {
        mt_message("option '--ring' must be at most %dh", MAX_RING_SECONDS / 3600);
        code = MT_EXIT_USAGE;
    }
    record->recording.settings.ring_seconds = time_ms / 1000;
    if (code < 0 && record->recording.settings.ring_above_bytes && !record->ring) {
        mt_message("option '--ring-above' needs --ring");
        code = MT_EXIT_USAGE;
    }
    return code;
}

static int check_options(const struct mt_command *command, struct record *record)
{
    static const char *const stacks[] = {"auto", "none", "python", "native", "both"};
    static const char *const phases[] = {"none", "nvtx", "torch", "autograd"};
    static const char *const follow[] = {"all", "none"};
    struct mt_record_settings *settings = &record->recording.settings;
    int code = check_words(command, "stacks", record->stacks, stacks, MT_ARRAY_LEN(stacks));

    if (code < 0)
        code = check_words(command, "phases", record->phases, phases, MT_ARRAY_LEN(phases));
    if (code < 0)
        code = check_words(command, "follow", record->follow, follow, MT_ARRAY_LEN(follow));
    if (code < 0 && settings->sample_hz > MAX_SAMPLE_HZ) {
        mt_message("option '--sample-hz' must be at most %d", MAX_SAMPLE_HZ);
        code = MT_EXIT_USAGE;
    }
    if (code < 0)
        code = read_ring(record);
    settings->auto_stacks = strstr(record->stacks, "auto");
    settings->python_stacks = strstr(record->stacks, "python") || strstr(record->stacks, "both");
    settings->native_stacks = strstr(record->stacks, "native") || strstr(record->stacks, "both");
    settings->phases = record->phases;
    settings->follow = strcmp(record->follow, "all") == 0;
    settings->quiet = record->recording.quiet;
    record->recording.summarizes = !record->no_summary;
    return code;
}

static int parse(const struct mt_command *command, struct record *record, int argc, char **argv)
{
    struct mt_recording *recording = &record->recording;
    const struct mt_option options[] = {
        {"output", 'o', MT_OPTION_TEXT, "FILE|DIR",
         "write the trace to FILE, or one trace per process to DIR", &recording->output},
        {"stacks", 0, MT_OPTION_TEXT, "WHICH",
         "call stacks: auto (Python, else native; default), none, python, native, both",
         &record->stacks},
        {"free-stacks", 0, MT_OPTION_FLAG, NULL, "also record call stacks of frees (slower)",
         &recording->settings.free_stacks},
        {"phases", 0, MT_OPTION_TEXT, "LIST",
         "sources of phases: nvtx, torch, autograd (default nvtx,torch)", &record->phases},
        {"sample-hz", 0, MT_OPTION_COUNT, "N",
         "sample the memory of the process N times per second (default: 10)",
         &recording->settings.sample_hz},
        {"ring", 0, MT_OPTION_TEXT, "TIME",
         "keep only the last events, at least of this time (30s, 5m, 2h)", &record->ring},
        {"ring-above", 0, MT_OPTION_BYTES, "SIZE",
         "also save the ring when a process has more than SIZE on a device (70GiB)",
         &recording->settings.ring_above_bytes},
        {"idle", 0, MT_OPTION_FLAG, NULL, "record nothing until memtrace gets SIGUSR2",
         &recording->settings.idle},
        {"follow", 0, MT_OPTION_TEXT, "WHICH",
         "record all processes (default), or none except the first", &record->follow},
        {"xla-requests", 0, MT_OPTION_FLAG, NULL, "record each request of JAX and TensorFlow",
         &recording->settings.xla_requests},
        {"with-env", 0, MT_OPTION_FLAG, NULL, "write the command line into the trace",
         &recording->settings.with_env},
        {"redact", 0, MT_OPTION_FLAG, NULL,
         "at the end, replace names of folders, host, command and threads", &recording->redact},
        {"no-summary", 0, MT_OPTION_FLAG, NULL, "do not write a summary (.mtsum) beside a trace",
         &record->no_summary},
        {"json", 0, MT_OPTION_FLAG, NULL, "print one JSON document on standard error at the end",
         &recording->json},
        {"quiet", 'q', MT_OPTION_FLAG, NULL, "print only problems", &recording->quiet},
        {"strict", 0, MT_OPTION_FLAG, NULL,
         "exit with 5 if the command succeeds but events are missing", &record->strict},
        {NULL, 0, MT_OPTION_FLAG, NULL, NULL, NULL},
    };
    int code = mt_parse_command(command, options, argc, argv, &recording->command);

    return code < 0 ? check_options(command, record) : code;
}

static void json_begin(const struct mt_recording *recording, struct telling *telling)
{
    struct mt_json *json = &telling->document;

    mt_json_init(json, &telling->out, false);
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

/* Prints complete lines and empties the buffer. */
static void say_buffer(struct mt_buf *out)
{
    (void)!mt_io_write(STDERR_FILENO, out->data, out->length);
    mt_buf_release(out);
}

static void report_trace(void *context, const struct mt_trace_end *end)
{
    struct telling *telling = context;

    if (telling->json) {
        mt_json_trace_end(&telling->document, end);
        return;
    }
    mt_record_add_trace_end(&telling->out, end, "memtrace: ", telling->quiet);
    say_buffer(&telling->out);
    mt_next_step_note(&telling->next, end);
}

static enum mt_recording_end finish(struct mt_recording *recording)
{
    struct telling telling = {.json = recording->json, .quiet = recording->quiet};
    char reason[MT_MEMORY_TEXT];

    if (recording->json && recording->settings.library)
        json_begin(recording, &telling);
    enum mt_recording_end end = mt_recording_finish(recording, report_trace, &telling);
    if (recording->place.made_folders) /* so it has no traces of other runs */
        telling.next.folder = recording->place.folder;
    if (!recording->json && !recording->quiet)
        mt_next_step_add(&telling.out, &telling.next);
    if (recording->json && recording->settings.library)
        json_end(&telling.document);
    say_buffer(&telling.out);
    if (mt_memory_has_failed()) /* lines may be missing, or have another reason */
        mt_message("the report on the traces may be incomplete: %s", mt_memory_reason(reason));
    return end;
}

/* Returns the exit code of the command, or of memtrace. */
static int run(struct record *record, const struct mt_command *command, int argc, char **argv)
{
    struct mt_recording *recording = &record->recording;

    mt_launch_init(&recording->launch);
    int code = parse(command, record, argc, argv);
    if (code < 0 && (recording->settings.ring_seconds || recording->settings.idle))
        mt_launch_take_asks(&recording->launch);
    if (code < 0)
        code = mt_recording_prepare(recording);
    if (code < 0)
        code = mt_recording_run(recording);
    if (code >= 0)
        return code;
    mt_memory_exit_code_set(mt_launch_exit_code(&recording->launch));
    enum mt_recording_end end = finish(recording);
    code = mt_launch_exit_code(&recording->launch);
    if (code == MT_EXIT_OK &&
        (end == MT_RECORDING_LOST || (record->strict && end != MT_RECORDING_COMPLETE)))
        code = MT_EXIT_INCOMPLETE;
    mt_launch_reraise(&recording->launch);
    return code;
}

int mt_cmd_record(const struct mt_command *command, int argc, char **argv)
{
    struct record *record =
        mt_memory_zeroed(1, sizeof *record); /* has too many paths for a small stack */

    record->recording.settings.sample_hz = DEFAULT_SAMPLE_HZ;
    record->stacks = "auto";
    record->phases = "nvtx,torch";
    record->follow = "all";
    int code = run(record, command, argc, argv);
    mt_recording_release(&record->recording);
    free(record);
    return code;
}

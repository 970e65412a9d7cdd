/* memtrace import: writes any readable format as a trace. */
#define _GNU_SOURCE /* mkostemp */

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "buf.h"
#include "cli.h"
#include "importers.h"
#include "info_recorded.h"
#include "io.h"
#include "json.h"
#include "open_input.h"
#include "outputs.h"
#include "redacted_source.h"
#include "redaction.h"
#include "trace.h"
#include "units.h"

/* Keeps the salt of redactions in a file, so that all traces of a job are redacted consistently:
 * equal hosts, jobs and devices become equal texts in all traces. */

/* Writes the salt to a file next to `path` and then links the file at `path`, so other processes
 * see a complete file or none. On failure, returns false and sets errno, which is EEXIST if another
 * process was faster. */
static bool publish(const char *path, const struct mt_redaction *redaction)
{
    struct mt_buf part = {0};
    bool is_there = false;
    int reason = ENOMEM;

    mt_buf_printf(&part, "%s.XXXXXX", path);
    int fd = mkostemp(part.data, O_CLOEXEC);
    if (fd >= 0) {
        bool is_written = mt_io_write(fd, redaction->salt, sizeof redaction->salt);

        is_there = mt_io_close(fd) && is_written && link(part.data, path) == 0;
        reason = errno;
        unlink(part.data);
    } else {
        reason = errno;
    }
    mt_buf_release(&part);
    errno = reason;
    return is_there;
}

/* Returns 1 if the salt was read, 0 if there is no file, -1 after a message. */
static int read_salt(const char *path, struct mt_redaction *redaction)
{
    int fd = mt_io_open(path, O_RDONLY, 0);

    if (fd < 0 && errno == ENOENT)
        return 0;
    ssize_t got = fd < 0 ? -1 : mt_io_read_full(fd, redaction->salt, sizeof redaction->salt);
    if (got < 0)
        mt_message("cannot read the key '%s': %s", path, strerror(errno));
    else if (got < (ssize_t)sizeof redaction->salt)
        mt_message("the key '%s' has %zd bytes, but it needs at least %zu. To create a key, name a "
                   "file that does not exist",
                   path, got, sizeof redaction->salt);
    if (fd >= 0)
        (void)mt_io_close(fd);
    return got == (ssize_t)sizeof redaction->salt ? 1 : -1;
}

/* Reads the salt from the first bytes of the file. If the file does not exist, creates it with
 * random bytes, readable only by its owner. An existing file that is shorter than a salt is an
 * error and is not changed. Several processes may call the function at the same time. Prints
 * errors; returns an exit code. */
static int redaction_key_read(const char *path, struct mt_redaction *redaction)
{
    int found = read_salt(path, redaction);

    if (found)
        return found > 0 ? MT_EXIT_OK : MT_EXIT_INPUT;
    if (mt_redaction_init(redaction) != MT_OK) {
        mt_message("cannot redact: the system provides no random numbers");
        return MT_EXIT_INPUT;
    }
    if (publish(path, redaction))
        return MT_EXIT_OK;
    if (errno == EEXIST) {
        found = read_salt(path, redaction);
        if (!found) /* such as a symbolic link that points to nothing */
            mt_message("cannot read the key '%s': %s", path, strerror(ENOENT));
        return found > 0 ? MT_EXIT_OK : MT_EXIT_INPUT;
    }
    mt_message("cannot write the key '%s': %s", path, strerror(errno));
    return MT_EXIT_OUTPUT;
}

struct arguments {
    struct mt_common common;
    struct mt_outputs outputs;
    const char *output;
    bool no_summary;
    const char *groups; /* a dump of PyTorch's Flight Recorder; NULL = none */
    bool redact;
    const char *redaction_key; /* file with the salt; NULL: a new salt */
};

struct written {
    uint64_t events, bytes;
};

static enum mt_status write_trace(struct mt_source *source, int fd, struct written *written,
                                  struct mt_error *error)
{
    struct mt_writer *writer = NULL;
    struct stat info;
    enum mt_status status =
        mt_writer_new(fd, &source->header, &source->symbols, NULL, &writer, error);

    if (status == MT_OK)
        status = mt_writer_copy(writer, source, true, &written->events, error);
    if (status == MT_OK)
        status = mt_writer_finish(writer, error);
    mt_writer_free(writer);
    if (status == MT_OK && fstat(fd, &info) != 0)
        return mt_fail(error, MT_ERR_OUTPUT, MT_NO_OFFSET, "%s", strerror(errno));
    written->bytes = status == MT_OK ? (uint64_t)info.st_size : 0;
    return status;
}

static void add_text(const struct written *written, const char *path, struct mt_buf *out)
{
    char events[MT_UNITS_TEXT], bytes[MT_UNITS_TEXT];

    mt_buf_printf(out, "%s: %s, %s bytes, ", path,
                  mt_format_counted(events, written->events, "event"),
                  mt_format_count(bytes, written->bytes));
    mt_buf_add_decimal(out, written->events ? (double)written->bytes / (double)written->events : 0,
                       2);
    mt_buf_add_text(out, " bytes per event\n");
}

static void add_json(const struct written *written, const char *path, struct mt_buf *out)
{
    struct mt_json json;

    mt_json_document(&json, out, "memtrace.import/1", false);
    mt_json_text(&json, "path", path);
    mt_json_u64(&json, "events", written->events);
    mt_json_u64(&json, "bytes", written->bytes);
    mt_json_object_end(&json);
    mt_buf_add_char(out, '\n');
}

static int print_written(const struct written *written, const char *path,
                         const struct mt_common *common)
{
    struct mt_buf out = {0};

    if (common->json)
        add_json(written, path, &out);
    else if (!common->quiet && !mt_outputs_is_standard(path))
        add_text(written, path, &out);
    return mt_print_answer_and_release(&out, common->json);
}

/* Output to a pipe gets no summary. */
static bool has_summary(const struct mt_output *output, const struct arguments *arguments)
{
    struct stat facts;

    return !arguments->no_summary && !mt_outputs_is_standard(arguments->output) &&
           fstat(output->fd, &facts) == 0 && S_ISREG(facts.st_mode);
}

/* On failure, the message names the input or the output, whichever failed. */
static int import_to(struct mt_source *source, const char *input, const char *path,
                     const struct arguments *arguments)
{
    const struct mt_output_rules rules = mt_output_rules_of(&arguments->outputs, &mt_file_trace);
    struct mt_error error = {.offset = MT_NO_OFFSET};
    struct written written = {0, 0};
    struct mt_recorded_summaries summaries = {.is_quiet = arguments->common.quiet,
                                              .force = arguments->outputs.force};
    struct mt_output output;
    struct mt_reading reading;

    if (mt_output_open(&output, path, &rules, &error) != MT_OK)
        return mt_report_output_error(path, &error);
    bool summarizes = has_summary(&output, arguments);
    if (summarizes)
        mt_recorded_summaries_begin(&summaries, path, source);
    mt_reading_start(&reading, source, "writing", arguments->common.quiet);
    enum mt_status status = write_trace(source, output.fd, &written, &error);
    mt_reading_end(&reading);
    if (status != MT_OK) {
        mt_recorded_summaries_abandon(&summaries);
        mt_output_abandon(&output);
        error.status = status;
        return mt_report_error(status == MT_ERR_OUTPUT ? path : input, &error);
    }
    if (mt_output_finish(&output, &error) != MT_OK) {
        mt_recorded_summaries_abandon(&summaries);
        return mt_report_output_error(path, &error);
    }
    if (summarizes) {
        mt_recorded_summaries_add(&summaries, path);
        mt_recorded_summaries_finish(&summaries);
    }
    int verdict = mt_input_verdict(source, input, &arguments->common);
    int printed = print_written(&written, path, &arguments->common);
    return printed != MT_EXIT_OK ? printed : verdict;
}

static int check(struct arguments *arguments, const char *input)
{
    if (!arguments->output) {
        mt_message("import: no output file given: add -o TRACE");
        return MT_EXIT_USAGE;
    }
    if (arguments->common.json && mt_outputs_is_standard(arguments->output)) {
        mt_message("--json and -o - both write to standard output: name a file with -o");
        return MT_EXIT_USAGE;
    }
    mt_outputs_add_input(&arguments->outputs, input);
    if (arguments->groups)
        mt_outputs_add_input(&arguments->outputs, arguments->groups);
    if (arguments->redaction_key)
        mt_outputs_add_input(&arguments->outputs, arguments->redaction_key);
    return mt_output_precheck(arguments->output, &arguments->outputs, &mt_file_trace);
}

static int draw_salt(struct mt_redaction *redaction)
{
    if (mt_redaction_init(redaction) == MT_OK)
        return MT_EXIT_OK;
    mt_message("cannot redact: the system provides no random numbers");
    return MT_EXIT_INPUT;
}

/* Takes ownership of the source. Returns NULL after a message if that fails. */
static struct mt_source *redacted(struct mt_source *source, const struct arguments *arguments,
                                  struct mt_redaction *redaction, int *exit_code)
{
    *exit_code = arguments->redaction_key ? redaction_key_read(arguments->redaction_key, redaction)
                                          : draw_salt(redaction);
    if (*exit_code != MT_EXIT_OK) {
        mt_source_close(source);
        return NULL;
    }
    return mt_redacted_source(source, redaction);
}

/* The lines must stay until the source is closed. Returns -1 or an exit code. */
static int take_groups(const char *path, struct mt_source *source, struct mt_buf *lines)
{
    struct mt_error error = {.offset = MT_NO_OFFSET};

    if (!path)
        return -1;
    error.status = mt_flight_recorder_groups(path, lines, &error);
    if (error.status != MT_OK)
        return mt_report_error(path, &error);
    source->header.process_groups = lines->data;
    return -1;
}

/* A trace has no record of the frames that were left out of deep stacks. */
static void note_cut_frames(struct mt_source *source, struct mt_buf *missing)
{
    const char *before = source->header.not_recorded ? source->header.not_recorded : "";
    const uint64_t count = source->symbols.frames_cut;
    char digits[MT_UNITS_TEXT];

    if (!count)
        return;
    mt_buf_add_text(missing, before);
    if (missing->length && missing->data[missing->length - 1] != '\n')
        mt_buf_add_char(missing, '\n');
    mt_buf_printf(missing, "%s of deep stacks", mt_format_counted(digits, count, "frame"));
    source->header.not_recorded = missing->data;
}

static int import_source(struct mt_source *source, const char *input, struct arguments *arguments)
{
    struct mt_redaction redaction;
    struct mt_buf lines = {0}, missing = {0};
    int exit_code = take_groups(arguments->groups, source, &lines);
    bool stopped = exit_code >= 0;

    note_cut_frames(source, &missing);
    if (!stopped && (arguments->redact || arguments->redaction_key))
        source = redacted(source, arguments, &redaction, &exit_code);
    if (!stopped && source)
        exit_code = import_to(source, input, arguments->output, arguments);
    mt_source_close(source);
    mt_buf_release(&lines);
    mt_buf_release(&missing);
    return exit_code;
}

int mt_cmd_import(const struct mt_command *command, int argc, char **argv)
{
    struct arguments arguments = {.output = NULL};
    struct mt_option options[] = {
        {"output", 'o', MT_OPTION_TEXT, "TRACE", "write the trace to this file", &arguments.output},
        {"process-groups", 0, MT_OPTION_TEXT, "FILE",
         "add the process groups of a Flight Recorder dump", &arguments.groups},
        {"redact", 0, MT_OPTION_FLAG, NULL, "replace names of folders, host, command and threads",
         &arguments.redact},
        {"redact-key", 0, MT_OPTION_TEXT, "FILE",
         "redact with the key in FILE, so that the traces of a job still match",
         &arguments.redaction_key},
        {"no-summary", 0, MT_OPTION_FLAG, NULL, "do not write a summary (.mtsum) beside the trace",
         &arguments.no_summary},
        MT_FORCE_OPTION(arguments.outputs),
        MT_STRICT_OPTIONS(arguments.common),
        {NULL, 0, MT_OPTION_FLAG, NULL, NULL, NULL},
    };
    char **paths;
    int count, exit_code = mt_options_parse(command, options, argc, argv, 1, 1, &paths, &count);

    if (exit_code >= 0)
        return exit_code;
    exit_code = check(&arguments, paths[0]);
    if (exit_code != MT_EXIT_OK)
        return exit_code;
    struct mt_source *source = mt_open_input(paths[0], &arguments.common, &exit_code);
    return source ? import_source(source, paths[0], &arguments) : exit_code;
}

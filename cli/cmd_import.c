/* memtrace import: any format that can be read, written as a trace. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli.h"
#include "json.h"
#include "trace.h"
#include "units.h"

struct written {
    uint64_t events, bytes;
};

static enum mt_status copy_events(struct mt_source *source, struct mt_writer *writer,
                                  struct written *written, struct mt_error *error)
{
    struct mt_event_batch batch;
    enum mt_status status;
    size_t i;

    while ((status = mt_source_next(source, &batch, error)) == MT_OK) {
        for (i = 0; i < batch.count && status == MT_OK; i++)
            status = mt_writer_add(writer, &batch.events[i], error);
        if (status != MT_OK)
            return status;
        written->events += batch.count;
    }
    return status == MT_END ? mt_writer_finish(writer, error) : status;
}

static enum mt_status write_trace(struct mt_source *source, int fd, struct written *written,
                                  struct mt_error *error)
{
    struct mt_writer *writer = NULL;
    struct stat info;
    enum mt_status status =
        mt_writer_new(fd, &source->header, &source->symbols, NULL, &writer, error);

    if (status == MT_OK)
        status = copy_events(source, writer, written, error);
    mt_writer_free(writer);
    if (status == MT_OK && fstat(fd, &info) == 0)
        written->bytes = (uint64_t)info.st_size;
    return status;
}

static void add_text(const struct written *written, const char *path, struct mt_buf *out)
{
    char events[MT_UNITS_TEXT], bytes[MT_UNITS_TEXT];

    mt_buf_printf(out, "%s: %s events, %s bytes, ", path, mt_format_count(events, written->events),
                  mt_format_count(bytes, written->bytes));
    mt_buf_add_decimal(out, written->events ? (double)written->bytes / (double)written->events : 0,
                       2);
    mt_buf_add_text(out, " bytes an event\n");
}

static void add_json(const struct written *written, const char *path, struct mt_buf *out)
{
    struct mt_json json;

    mt_json_init(&json, out, true);
    mt_json_object_begin(&json, NULL);
    mt_json_text(&json, "schema", "memtrace.import/1");
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
    int exit_code;

    if (common->json)
        add_json(written, path, &out);
    else if (!common->quiet)
        add_text(written, path, &out);
    exit_code = mt_print(&out);
    mt_buf_release(&out);
    return exit_code;
}

static bool is_same_file(const char *a, const char *b)
{
    struct stat x, y;

    return stat(a, &x) == 0 && stat(b, &y) == 0 && x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}

/* Half a trace is of no use; a device or a pipe is not ours to remove. */
static void remove_partial(const char *path)
{
    struct stat info;

    if (lstat(path, &info) == 0 && S_ISREG(info.st_mode))
        unlink(path);
}

/* Writes to PATH only what is complete: a failed import leaves no file. */
static int import_to(struct mt_source *source, const char *input, const char *output,
                     const struct mt_common *common)
{
    struct mt_error error = {.offset = MT_NO_OFFSET};
    struct written written = {0, 0};
    int fd = open(output, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    int verdict, printed;
    enum mt_status status;

    if (fd < 0) {
        error.status = MT_ERR_OUTPUT;
        snprintf(error.text, sizeof error.text, "%s", strerror(errno));
        return mt_report_error(output, &error);
    }
    status = write_trace(source, fd, &written, &error);
    if (close(fd) < 0 && status == MT_OK)
        status = mt_fail(&error, MT_ERR_OUTPUT, MT_NO_OFFSET, "%s", strerror(errno));
    if (status != MT_OK) {
        remove_partial(output);
        error.status = status;
        return mt_report_error(status == MT_ERR_OUTPUT ? output : input, &error);
    }
    verdict = mt_input_verdict(source, input, common);
    printed = print_written(&written, output, common);
    return printed != MT_EXIT_OK ? printed : verdict;
}

int mt_cmd_import(const struct mt_command *command, int argc, char **argv)
{
    struct mt_common common = {false, false, false, NULL};
    const char *output = NULL;
    struct mt_option options[] = {
        {"output", 'o', MT_OPTION_TEXT, "TRACE", "write the trace here", &output},
        MT_COMMON_OPTIONS(common),
        {NULL, 0, MT_OPTION_FLAG, NULL, NULL, NULL},
    };
    struct mt_source *source;
    char **arguments;
    int count, exit_code = mt_options_parse(command, options, argc, argv, 1, 1, &arguments, &count);

    if (exit_code >= 0)
        return exit_code;
    if (!output) {
        mt_say("import needs -o TRACE, the file to write");
        return MT_EXIT_USAGE;
    }
    if (is_same_file(arguments[0], output)) {
        mt_say("'%s' is the input: write the trace to another file", output);
        return MT_EXIT_USAGE;
    }
    source = mt_open_input(arguments[0], &common, &exit_code);
    if (!source)
        return exit_code;
    exit_code = import_to(source, arguments[0], output, &common);
    mt_source_close(source);
    return exit_code;
}

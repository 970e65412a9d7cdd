#include "sweep_files.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "foreign_text.h"
#include "io.h"
#include "picture_option.h"
#include "sweep_output.h"
#include "temporary_folder.h"
#include "util.h"

char *mt_sweep_path(const struct mt_sweep_request *request, const struct mt_sweep_run *run,
                    const char *suffix)
{
    return mt_arena_printf(&request->plan->arena, "%s/%s%s", request->folder,
                           mt_sweep_plan_file(request->plan, run), suffix);
}

/* The beginning of a log, before the label of the run. */
#define LOG_MARK   "# memtrace dry-run: "
#define LOG_SUFFIX ".log"

static bool is_log(const void *start, size_t length)
{
    return mt_file_begins(start, length, LOG_MARK);
}

static const struct mt_file_kind log_kind = {
    .name = "the log of a dry run by memtrace", .is_own = is_log, .is_private = true};

int mt_sweep_log_open(const struct mt_sweep_request *request, const struct mt_sweep_run *run)
{
    const char *path = mt_sweep_path(request, run, LOG_SUFFIX);
    const struct mt_output_rules rules = mt_output_rules_of(request->arguments->outputs, &log_kind);
    struct mt_error error = {.offset = MT_NO_OFFSET};
    struct mt_buf mark = {0};
    struct mt_output output;
    int fd = -1;

    mt_buf_add_text(&mark, LOG_MARK);
    mt_buf_add_printable_text(&mark, run->label);
    mt_buf_add_char(&mark, '\n');
    if (mt_output_open(&output, path, &rules, &error) == MT_OK) {
        (void)mt_output_add(&output, mark.data, mark.length);
        fd = fcntl(output.fd, F_DUPFD_CLOEXEC, 0);
        if (mt_output_finish(&output, &error) == MT_OK && fd < 0)
            (void)mt_io_fail_output(&error);
    }
    mt_buf_release(&mark);
    if (!error.status && fcntl(fd, F_SETFL, O_APPEND) == 0)
        return fd;
    (void)mt_report_output_error(path, &error);
    if (fd >= 0)
        (void)close(fd);
    return -1;
}

enum {
    LOG_LINES = 10,  /* number of lines that are printed from the end of a log */
    LOG_BYTES = 4096 /* maximum size of these lines */
};

static const char *without_mark(const char *text, size_t *length)
{
    const char *newline = memchr(text, '\n', *length);
    size_t line = newline ? (size_t)(newline - text) + 1 : *length;

    *length -= line;
    return text + line;
}

/* Returns the last lines of a text. */
static const char *last_lines(const char *text, size_t *length)
{
    size_t begin = *length, lines = 0;

    while (begin && (lines < LOG_LINES || text[begin - 1] != '\n')) {
        begin--;
        lines += begin && text[begin - 1] == '\n';
    }
    *length -= begin;
    return text + begin;
}

/* Prints each line indented and safe for a terminal. */
static void print_lines(const char *lines, size_t length)
{
    struct mt_buf out = {0};

    while (length) {
        const char *newline = memchr(lines, '\n', length);
        size_t line = newline ? (size_t)(newline - lines) : length;

        mt_buf_add_text(&out, "  ");
        mt_buf_add_printable(&out, lines, line);
        mt_buf_add_char(&out, '\n');
        line += newline != NULL;
        lines += line;
        length -= line;
    }
    if (out.data)
        (void)!mt_io_write(STDERR_FILENO, out.data, out.length);
    mt_buf_release(&out);
}

/* Prints the last lines of the log of a run to standard error. */
static void show_log(const struct mt_sweep_request *request, const struct mt_sweep_run *run)
{
    const char *path = mt_sweep_path(request, run, LOG_SUFFIX);
    int fd = mt_io_open(path, O_RDONLY, 0);
    off_t end = fd < 0 ? 0 : lseek(fd, 0, SEEK_END);
    uint64_t begin = end > LOG_BYTES ? (uint64_t)end - LOG_BYTES : 0;
    char text[LOG_BYTES];
    ssize_t got = fd < 0 ? -1 : mt_io_pread_full(fd, text, sizeof text, begin);
    size_t length = got > 0 ? (size_t)got : 0;

    if (fd >= 0)
        close(fd);
    const char *lines = begin ? text : without_mark(text, &length);
    lines = last_lines(lines, &length);
    if (!length)
        return;
    mt_message("%s: the last lines of its output:", run->label);
    print_lines(lines, length);
}

static bool is_table(const void *start, size_t length)
{
    return mt_file_begins_json(start, length, "{\"schema\":\"memtrace.sweep/") ||
           mt_file_begins_json(start, length, "{\"schema\":\"memtrace.plan/");
}

static const struct mt_file_kind table_kind = {.name = "a table of dry runs by memtrace",
                                               .is_own = is_table};

static const struct {
    const char *ending;
    const struct mt_file_kind *kind;
} answer_files[] = {{"json", &table_kind}, {"svg", &mt_file_svg}, {"png", &mt_file_png}};

/* Returns the path of "sweep.json" and so on. */
static char *path_in(const struct mt_sweep_request *request, size_t file)
{
    struct mt_buf path = {0};

    mt_outputs_add_path(&path, request->folder, request->arguments->grid.stem);
    mt_buf_printf(&path, ".%s", answer_files[file].ending);
    char *copy = mt_arena_text(&request->plan->arena, path.data, path.length);
    mt_buf_release(&path);
    return copy;
}

static bool is_written(size_t file)
{
    return answer_files[file].kind != &mt_file_png || mt_png_available(NULL);
}

/* Creates the folder of -o, and checks that the files of the answer and the logs of the runs that
 * are known may be written. */
static int prepare_folder(const struct mt_sweep_request *request)
{
    const struct mt_outputs *outputs = request->arguments->outputs;
    const struct mt_sweep *sweep = &request->plan->sweep;
    struct mt_error error = {.offset = MT_NO_OFFSET};
    int code = MT_EXIT_OK;

    if (mt_output_file_make_folders(request->folder, &error) != MT_OK)
        return mt_report_output_error(request->folder, &error);
    for (size_t i = 0; !code && i < MT_ARRAY_LEN(answer_files); i++)
        if (is_written(i))
            code = mt_output_precheck(path_in(request, i), outputs, answer_files[i].kind);
    for (size_t i = 0; !code && i < sweep->run_count; i++)
        code = mt_output_precheck(mt_sweep_path(request, &sweep->runs[i], LOG_SUFFIX), outputs,
                                  &log_kind);
    return code ? code : -1;
}

enum { SHOWN_LOGS = 3 }; /* the last lines of this many failed runs are printed */

static bool is_unexpected(const struct mt_sweep_result *result)
{
    return result->outcome == MT_SWEEP_FAILED || result->outcome == MT_SWEEP_NOT_RUN ||
           result->outcome == MT_SWEEP_TIMED_OUT;
}

void mt_sweep_show_failures(const struct mt_sweep_request *request)
{
    const struct mt_sweep *sweep = &request->plan->sweep;
    size_t count = 0;

    for (size_t i = 0; i < sweep->run_count; i++) {
        const struct mt_sweep_run *run = &sweep->runs[i];

        if (is_unexpected(&run->result) && count++ < SHOWN_LOGS)
            show_log(request, run);
    }
    if (count > SHOWN_LOGS)
        mt_message("%zu more run%s failed%s", count - SHOWN_LOGS,
                   count == SHOWN_LOGS + 1 ? "" : "s",
                   request->keeps_traces ? "" : "; to keep their output, use -o DIR");
}

/* Writes the picture as SVG, and as PNG if this memtrace can write PNGs. */
static int write_pictures(const struct mt_sweep_request *request, const struct mt_sweep *drawn)
{
    const struct mt_chart_options options = {.width = 0};
    struct mt_drawing drawing;
    int code = MT_EXIT_OK;

    mt_sweep_draw(drawn, &options, &drawing);
    for (size_t i = 1; !code && i < MT_ARRAY_LEN(answer_files); i++) {
        struct mt_picture picture = {.output = path_in(request, i),
                                     .outputs = request->arguments->outputs,
                                     .is_png = answer_files[i].kind == &mt_file_png};
        size_t bytes;

        if (is_written(i))
            code = mt_picture_write(&picture, &drawing, &bytes);
    }
    mt_drawing_release(&drawing);
    return code;
}

int mt_sweep_write_files(const struct mt_sweep_request *request, const struct mt_buf *json,
                         const struct mt_sweep *drawn)
{
    const char *path = path_in(request, 0);
    int code = mt_outputs_write(path, request->arguments->outputs, answer_files[0].kind, json);

    return code ? code : write_pictures(request, drawn);
}

int mt_sweep_choose_folder(struct mt_sweep_request *request, struct mt_temporary_folder *temporary)
{
    request->folder = request->arguments->settings->output;
    request->keeps_traces = request->folder;
    if (request->keeps_traces)
        return prepare_folder(request);
    if (!mt_temporary_folder_new(temporary, "memtrace-sweep")) {
        mt_message(
            "cannot create a folder for the traces in $TMPDIR: %s; to name a folder, use -o DIR",
            strerror(errno));
        return MT_EXIT_OUTPUT;
    }
    request->folder = temporary->path;
    return -1;
}

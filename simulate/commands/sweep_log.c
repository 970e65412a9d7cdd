#include "sweep_log.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "io.h"
#include "memory_limit.h"

enum {
    LOG_LINES = 10,  /* number of lines that are printed from the end of a log */
    LOG_BYTES = 4096 /* maximum size of these lines */
};

/* The beginning of a log, before the label of the run. */
#define LOG_MARK "# memtrace dry-run: "

static bool is_log(const void *start, size_t length)
{
    return mt_file_begins(start, length, LOG_MARK);
}

static const struct mt_file_kind log_kind = {
    .name = "the log of a dry run by memtrace", .is_own = is_log, .is_private = true};

static char *log_path(struct mt_sweep_plan *plan, const char *folder,
                      const struct mt_sweep_run *run)
{
    return mt_sweep_path(plan, folder, run, ".log");
}

int mt_sweep_precheck_logs(struct mt_sweep_plan *plan, const char *folder,
                           const struct mt_outputs *outputs)
{
    int code = MT_EXIT_OK;

    for (size_t i = 0; !code && i < plan->sweep.run_count; i++) {
        const char *path = log_path(plan, folder, &plan->sweep.runs[i]);

        code = mt_output_precheck(path, outputs, &log_kind);
    }
    return code ? code : -1;
}

/* The file keeps its name and grows, so the output of the command can be read while it runs. */
int mt_sweep_log_open(const struct mt_sweep_request *request, const struct mt_sweep_run *run)
{
    const char *path = log_path(request->plan, request->folder, run);
    const struct mt_output_rules rules = mt_output_rules_of(request->outputs, &log_kind);
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

void mt_sweep_log_show(const struct mt_sweep_request *request, const struct mt_sweep_run *run)
{
    const char *path = log_path(request->plan, request->folder, run);
    int fd = mt_io_open(path, O_RDONLY, 0);
    off_t end = fd < 0 ? 0 : lseek(fd, 0, SEEK_END);
    uint64_t begin = end > LOG_BYTES ? (uint64_t)end - LOG_BYTES : 0;
    char text[LOG_BYTES];
    ssize_t got = fd < 0 ? -1 : mt_io_pread_full(fd, text, sizeof text, begin);
    size_t length = got > 0 ? (size_t)got : 0;
    const char *lines;

    if (fd >= 0)
        close(fd);
    lines = begin ? text : without_mark(text, &length);
    lines = last_lines(lines, &length);
    if (!length)
        return;
    mt_say("%s: the last lines of its output:", run->label);
    print_lines(lines, length);
}

#include "fleet_annex.h"

#include <string.h>
#include <sys/stat.h>

#include "fleet_job.h"
#include "identity.h"
#include "info_summary.h"
#include "next_step.h"
#include "summary_of_trace.h"
#include "units.h"

enum { MAX_LINES = 8 };

static bool ends_with(const char *text, const char *end)
{
    size_t length = strlen(text), wanted = strlen(end);

    return length >= wanted && strcmp(text + length - wanted, end) == 0;
}

static const char *kind_of(const char *path)
{
    if (ends_with(path, ".trace") || ends_with(path, ".trace.zst"))
        return "a trace";
    if (ends_with(path, ".pickle") || ends_with(path, ".pickle.zst"))
        return "a memory snapshot";
    if (ends_with(path, ".xplane.pb") || ends_with(path, ".xplane.pb.zst"))
        return "a profile of XLA";
    return "a file";
}

/* "rank 3 of 8, 78.1 GiB reserved at the peak, finished" */
static void add_record(struct mt_buf *line, const struct mt_rank_record *record)
{
    char bytes[MT_UNITS_TEXT];

    if (record->identity.rank >= 0)
        mt_buf_printf(line, "rank %d", (int)record->identity.rank);
    else
        mt_buf_add_text(line, "a process");
    if (record->identity.world > 0)
        mt_buf_printf(line, " of %d", (int)record->identity.world);
    mt_buf_printf(line, ", %s reserved at the peak",
                  mt_format_bytes(bytes, record->reserved_peak.bytes));
    if (record->outcome == MT_OUTCOME_OOM)
        mt_buf_add_text(line, ", out of memory");
    else if (record->outcome != MT_OUTCOME_UNKNOWN)
        mt_buf_printf(line, ", %s", mt_outcome_name(record->outcome));
}

/* Adds the contents of the summary of a trace, or of `path` if that is a summary. Returns false if
 * there is no summary. */
static bool add_summary(struct mt_buf *line, const char *path)
{
    struct mt_rank_set set = {0};
    struct mt_buf beside = {0};
    struct mt_error unused;
    bool is_summary = mt_summary_is_file(path), is_read;

    mt_summary_add_path(&beside, path);
    is_read = (is_summary || mt_fleet_has_summary(path)) &&
              mt_summary_read(is_summary ? path : beside.data, &set, &unused) == MT_OK &&
              set.record_count > 0;
    if (is_read)
        add_record(line, &set.records[0]);
    if (is_read && set.record_count > 1)
        mt_buf_printf(line, "; and %u more record%s", (unsigned)(set.record_count - 1),
                      set.record_count == 2 ? "" : "s");
    mt_rank_set_release(&set);
    mt_buf_release(&beside);
    return is_read;
}

/* For a summary next to its trace, returns the length of the path of the trace, because commands
 * read the trace. */
static size_t length_of_trace(const char *path)
{
    size_t length = strlen(path);
    struct mt_buf trace = {0};
    struct stat facts;

    if (!ends_with(path, ".mtsum"))
        return length;
    mt_buf_add(&trace, path, length - strlen(".mtsum"));
    if (trace.length && stat(trace.data, &facts) == 0)
        length = trace.length;
    mt_buf_release(&trace);
    return length;
}

/* "a directory of 8 traces" */
static void add_folder(struct mt_buf *line, const char *path)
{
    struct mt_fleet_files files = {0};
    struct mt_error unused;

    if (mt_fleet_files_add(&files, path, &unused) == MT_OK && files.count)
        mt_buf_printf(line, "a directory with %u trace%s or summar%s; 'memtrace fleet' reads it",
                      (unsigned)files.count, files.count == 1 ? "" : "s",
                      files.count == 1 ? "y" : "ies");
    else
        mt_buf_add_text(line, "a directory without traces");
    mt_fleet_files_release(&files);
}

static void say_file(const char *path)
{
    struct mt_buf line = {0};
    char bytes[MT_UNITS_TEXT];
    struct stat facts;
    int rank = (int)mt_rank_of_name(path);

    if (stat(path, &facts) != 0)
        return;
    if (S_ISDIR(facts.st_mode)) {
        add_folder(&line, path);
    } else if (!add_summary(&line, path)) {
        mt_buf_printf(&line, "%s of %s", kind_of(path),
                      mt_format_bytes(bytes, facts.st_size > 0 ? (uint64_t)facts.st_size : 0));
        if (rank >= 0)
            mt_buf_printf(&line, ", rank %d according to its name", rank);
    }
    mt_message("  %.*s: %s", (int)length_of_trace(path), path, line.data ? line.data : "");
    mt_buf_release(&line);
}

static void say_folder(const char *path)
{
    struct mt_fleet_files files = {0};
    struct mt_error unused;

    if (mt_fleet_files_add(&files, path, &unused) == MT_OK && files.count) {
        mt_fleet_files_sort(&files);
        mt_message("cannot read '%s': it is a directory", path);
        mt_next_step_print("to read all its traces together", "fleet", mt_fleet_path(path));
        mt_message("to read one trace, name it:");
        for (uint32_t i = 0; i < files.count && i < MAX_LINES; i++)
            say_file(files.paths[i]);
        if (files.count > MAX_LINES)
            mt_message("  and %u more", (unsigned)(files.count - MAX_LINES));
    } else {
        mt_message("cannot read '%s': it is a directory without traces", path);
    }
    mt_fleet_files_release(&files);
}

static void say_several(char *const *paths, int count)
{
    for (int i = 0; i < count && i < MAX_LINES; i++)
        say_file(paths[i]);
    if (count > MAX_LINES)
        mt_message("  and %d more", count - MAX_LINES);
    mt_message(
        "'memtrace fleet A B ...' reads the ranks of a job together, 'memtrace diff A B' compares "
        "two traces, and 'memtrace fleet diff A B' two jobs");
}

static void say_summary(const char *path)
{
    mt_message(
        "cannot read '%s': it is the summary of a rank, not a trace; 'memtrace info' shows it, "
        "and 'memtrace fleet' compares it with others",
        path);
}

static enum mt_status summarize(const char *trace, bool force, struct mt_error *error)
{
    struct mt_buf path = {0};
    enum mt_status status;

    mt_summary_add_path(&path, trace);
    status = mt_summary_of_trace(trace, path.data, force, error);
    mt_buf_release(&path);
    return status;
}

const struct mt_annex_files mt_fleet_annex = {mt_summary_is_file, mt_info_summary, say_summary,
                                              say_folder,         say_several,     summarize};

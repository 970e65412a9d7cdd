#include <string.h>
#include <sys/stat.h>

#include "annexes.h"
#include "ascii.h"
#include "cli.h"
#include "fleet_annex.h"
#include "fleet_job.h"
#include "identity.h"
#include "job_database.h"
#include "json.h"
#include "next_step.h"
#include "rank_record.h"
#include "summary_of_trace.h"
#include "units.h"

/* `memtrace info` for a summary of ranks (docs/internals/rank-summary.md). */

static void json_field(struct mt_json *json, const void *object,
                       const struct mt_record_field *field)
{
    if (field->kind == MT_FIELD_TEXT) {
        mt_json_text(json, field->name, mt_field_text(object, field));
        return;
    }
    uint64_t value = mt_field_get(object, field);
    if (field->kind == MT_FIELD_BOOL)
        mt_json_bool(json, field->name, value);
    else if (field->kind == MT_FIELD_I64 || field->kind == MT_FIELD_I32)
        mt_json_i64(json, field->name, (int64_t)value);
    else
        mt_json_u64_or_null(json, field->name, field->kind != MT_FIELD_PATH || value != MT_NO_PATH,
                            value);
}

static void json_fields(struct mt_json *json, const void *object,
                        const struct mt_record_field *fields, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        json_field(json, object, &fields[i]);
}

static void json_list(struct mt_json *json, const struct mt_rank_record *record,
                      const struct mt_record_list *table)
{
    uint64_t element[MT_ELEMENT_BYTES / sizeof(uint64_t)];

    for (struct mt_json_list row = mt_json_rows(json, table->name, mt_list_count(record, table));
         mt_json_next(&row);) {
        mt_list_get(record, table, (uint32_t)row.i, element);
        json_fields(json, element, table->fields, table->field_count);
    }
}

static void json_paths(struct mt_json *json, const struct mt_rank_set *set)
{
    for (struct mt_json_list row = mt_json_rows(json, "paths", set->path_count);
         mt_json_next(&row);) {
        mt_json_u64_or_null(json, "parent", set->paths[row.i].parent != MT_NO_PATH,
                            set->paths[row.i].parent);
        mt_json_text(json, "frame", mt_rank_set_frame(set, row.i));
    }
}

static void write_json(const struct mt_rank_set *set, const char *path, uint64_t bytes, bool all,
                       struct mt_buf *out)
{
    struct mt_json json;

    mt_json_document(&json, out, "memtrace.rank-summary/1", all);
    mt_json_text(&json, "path", path);
    mt_json_u64(&json, "bytes", bytes);
    for (struct mt_json_list row = mt_json_objects(&json, "records", set->record_count);
         mt_json_next(&row);) {
        json_fields(&json, &set->records[row.i], mt_record_fields, mt_record_field_count);
        for (uint32_t k = 0; k < mt_record_list_count; k++)
            json_list(&json, &set->records[row.i], &mt_record_lists[k]);
    }
    json_paths(&json, set);
    mt_json_object_end(&json);
}

enum { INFO_SUMMARY_MAX_LINES = 20 };

static void info_summary_add_record(struct mt_buf *out, const struct mt_rank_record *record)
{
    char reserved[MT_UNITS_TEXT], allocated[MT_UNITS_TEXT];

    mt_buf_add_text(out, "  ");
    if (record->identity.rank >= 0)
        mt_buf_printf(out, "rank %d", record->identity.rank);
    else
        mt_buf_add_text(out, "no rank");
    if (record->identity.world > 0)
        mt_buf_printf(out, " of %d", record->identity.world);
    if (*record->identity.host) {
        mt_buf_add_text(out, " on ");
        mt_buf_add_printable(out, record->identity.host, strlen(record->identity.host));
    }
    mt_buf_printf(out, ", device %u: %s, reserved peak %s, allocated peak %s\n", record->device,
                  record->is_dry_run ? "planned" : mt_outcome_name(record->outcome),
                  mt_format_bytes(reserved, record->reserved_peak.bytes),
                  mt_format_bytes(allocated, record->allocated_peak.bytes));
}

static void write_text(const struct mt_rank_set *set, const char *path, uint64_t bytes,
                       struct mt_buf *out)
{
    char count[MT_UNITS_TEXT], size[MT_UNITS_TEXT];

    mt_buf_add_printable(out, path, strlen(path));
    mt_buf_printf(out, ": summary of %s of a job, %s\n",
                  mt_format_counted(count, set->record_count, "device"),
                  mt_format_bytes(size, bytes));
    for (uint32_t i = 0; i < set->record_count && i < INFO_SUMMARY_MAX_LINES; i++)
        info_summary_add_record(out, &set->records[i]);
    if (set->record_count > INFO_SUMMARY_MAX_LINES)
        mt_buf_printf(out, "  (and %s more; 'memtrace fleet' reads all of them)\n",
                      mt_format_count(count, set->record_count - INFO_SUMMARY_MAX_LINES));
}

/* Prints the contents of the file. With --json, prints all fields of the records. Returns enum
 * mt_exit. */
static int info_summary(const char *path, const struct mt_common *common)
{
    struct mt_rank_set set = {0};
    struct mt_error error = {.offset = MT_NO_OFFSET};
    struct mt_buf out = {0};
    struct stat facts = {.st_size = 0};
    enum mt_status status = mt_summary_read(path, &set, &error);
    int code;

    if (status == MT_OK) {
        (void)stat(path, &facts);
        if (common->json)
            write_json(&set, path, (uint64_t)facts.st_size, common->all, &out);
        else
            write_text(&set, path, (uint64_t)facts.st_size, &out);
        code = mt_print_answer_and_release(&out, common->json);
    } else {
        code = mt_report_error(path, &error);
    }
    mt_rank_set_release(&set);
    return code;
}

enum { MAX_LINES = 8 };

static const char *kind_of(const char *path)
{
    if (mt_ends_with(path, ".trace") || mt_ends_with(path, ".trace.zst"))
        return "a trace";
    if (mt_ends_with(path, ".pickle") || mt_ends_with(path, ".pickle.zst"))
        return "a memory snapshot";
    if (mt_ends_with(path, ".xplane.pb") || mt_ends_with(path, ".xplane.pb.zst"))
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
    bool is_summary = mt_summary_is_file(path);

    mt_summary_add_path(&beside, path);
    bool is_read = (is_summary || mt_fleet_has_summary(path)) &&
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

    if (!mt_ends_with(path, ".mtsum"))
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

static enum mt_status summarize(const struct mt_summary_order *order, struct mt_error *error)
{
    struct mt_buf path = {0};

    mt_summary_add_path(&path, order->trace);
    enum mt_status status = mt_summary_of_trace(order, path.data, error);
    mt_buf_release(&path);
    return status;
}

const struct mt_annex_files mt_fleet_annex = {.is_own = mt_summary_is_file,
                                              .info = info_summary,
                                              .say_own = say_summary,
                                              .say_folder = say_folder,
                                              .say_several = say_several,
                                              .fill = mt_job_database_fill,
                                              .schema = &mt_job_database,
                                              .summarize = summarize};

#include "info_summary.h"

#include <string.h>
#include <sys/stat.h>

#include "json.h"
#include "rank_record.h"
#include "summary_of_trace.h"
#include "units.h"

static void json_field(struct mt_json *json, const void *object,
                       const struct mt_record_field *field)
{
    uint64_t value;

    if (field->kind == MT_FIELD_TEXT) {
        mt_json_text(json, field->name, mt_field_text(object, field));
        return;
    }
    value = mt_field_get(object, field);
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
    const unsigned char *element = mt_list_array(record, table);

    for (struct mt_json_list row = mt_json_rows(json, table->name, mt_list_count(record, table));
         mt_json_next(&row);)
        json_fields(json, element + row.i * table->element_bytes, table->fields,
                    table->field_count);
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

    mt_json_init(&json, out, true);
    json.all = all;
    mt_json_object_begin(&json, NULL);
    mt_json_text(&json, "schema", "memtrace.rank-summary/1");
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

enum { MAX_LINES = 20 };

static void add_record(struct mt_buf *out, const struct mt_rank_record *record)
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
    mt_buf_printf(out, ": summary of %s device%s of a job, %s\n",
                  mt_format_count(count, set->record_count), set->record_count == 1 ? "" : "s",
                  mt_format_bytes(size, bytes));
    for (uint32_t i = 0; i < set->record_count && i < MAX_LINES; i++)
        add_record(out, &set->records[i]);
    if (set->record_count > MAX_LINES)
        mt_buf_printf(out, "  (and %s more; 'memtrace fleet' reads all of them)\n",
                      mt_format_count(count, set->record_count - MAX_LINES));
}

int mt_info_summary(const char *path, const struct mt_common *common)
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

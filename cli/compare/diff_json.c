#include "diff_output.h"
#include "json_list.h"
#include "live_output.h"
#include "report_json.h"

static void add_change(struct mt_json *json, uint64_t a, uint64_t b)
{
    mt_json_u64(json, "a_bytes", a);
    mt_json_u64(json, "b_bytes", b);
    mt_json_i64(json, "change", (int64_t)(b - a));
}

static void add_runs(struct mt_json *json, const struct mt_diff *diff)
{
    mt_json_array_begin(json, "run_differences");
    for (size_t i = 0; i < diff->run_count; i++) {
        mt_json_row_begin(json);
        mt_json_text(json, "what", diff->runs[i].what);
        mt_json_text(json, "a", diff->runs[i].a);
        mt_json_text(json, "b", diff->runs[i].b);
        mt_json_row_end(json);
    }
    mt_json_array_end(json);
}

static void add_side(struct mt_json *json, const char *key, const struct mt_report *report,
                     const struct mt_device_report *device)
{
    mt_json_object_begin(json, key);
    mt_json_u64(json, "device", device->device);
    mt_json_text(json, "name", device->name);
    mt_json_answer(json, report, device->answer);
    mt_json_object_end(json);
}

/* Parts of the reserved bytes. The parts of A plus the changes are the parts of B. */
static void add_totals(struct mt_json *json, const struct mt_device_diff *diff)
{
    const struct mt_answer *a = diff->a->answer, *b = diff->b->answer;
    const struct {
        const char *what;
        uint64_t a, b;
    } parts[] = {{"requested", mt_requested_bytes(a), mt_requested_bytes(b)},
                 {"rounding", a->instant.bytes.allocated - mt_requested_bytes(a),
                  b->instant.bytes.allocated - mt_requested_bytes(b)},
                 {"allocated", a->instant.bytes.allocated, b->instant.bytes.allocated},
                 {"waiting", a->waiting_bytes, b->waiting_bytes},
                 {"unused", mt_unused_bytes(a), mt_unused_bytes(b)},
                 {"reserved", a->instant.bytes.reserved, b->instant.bytes.reserved}};

    mt_json_array_begin(json, "totals");
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        mt_json_row_begin(json);
        mt_json_text(json, "what", parts[i].what);
        add_change(json, parts[i].a, parts[i].b);
        mt_json_row_end(json);
    }
    mt_json_array_end(json);
}

static void add_row(struct mt_json *json, const char *key, const char *label,
                    const struct mt_diff_row *row)
{
    mt_json_row_begin(json);
    mt_json_text(json, key, label);
    add_change(json, row->a_bytes, row->b_bytes);
    mt_json_u64(json, "a_blocks", row->a_blocks);
    mt_json_u64(json, "b_blocks", row->b_blocks);
}

static void add_rows(struct mt_json *json, const struct mt_device_diff *diff)
{
    struct mt_json_list list;

    mt_json_list_begin(&list, json, "roles");
    for (uint32_t i = 0; i < diff->roles.count; i++) {
        if (!mt_json_list_takes(&list))
            continue;
        add_row(json, "role", diff->roles.rows[i].label, &diff->roles.rows[i]);
        mt_json_row_end(json);
    }
    mt_json_list_end(&list);
    mt_json_list_begin(&list, json, "phases");
    for (uint32_t i = 0; i < diff->phases.count; i++) {
        const char *phase = diff->phases.rows[i].label;

        if (!mt_json_list_takes(&list))
            continue;
        add_row(json, "phase", *phase ? phase : NULL, &diff->phases.rows[i]);
        mt_json_row_end(json);
    }
    mt_json_list_end(&list);
    mt_json_list_begin(&list, json, "sites");
    for (uint32_t i = 0; i < diff->sites.count; i++) {
        const struct mt_diff_row *row = &diff->sites.rows[i];

        if (!mt_json_list_takes(&list))
            continue;
        add_row(json, "site", row->label, row);
        mt_json_text(json, "site_in_a", row->label_a);
        mt_json_bool(json, "moved", row->moved);
        mt_json_text(json, "phase", *row->phase ? row->phase : NULL);
        mt_json_text(json, "role", row->several_roles ? NULL : mt_role_name(row->role));
        mt_json_text(json, "only_in", !row->a_blocks ? "b" : !row->b_blocks ? "a" : NULL);
        mt_json_row_end(json);
    }
    mt_json_list_end(&list);
}

void mt_diff_json(struct mt_buf *out, const struct mt_diff_output *output)
{
    const struct mt_diff *diff = output->diff;
    struct mt_json json;
    struct mt_json_list list;

    mt_json_init(&json, out, true);
    json.all = output->all;
    mt_json_object_begin(&json, NULL);
    mt_json_text(&json, "schema", "memtrace.diff/1");
    mt_json_object_begin(&json, "a");
    mt_json_input(&json, diff->a);
    mt_json_text(&json, "policy", diff->a->policy);
    mt_json_object_end(&json);
    mt_json_object_begin(&json, "b");
    mt_json_input(&json, diff->b);
    mt_json_text(&json, "policy", diff->b->policy);
    mt_json_object_end(&json);
    mt_json_bool(&json, "roles_inferred", diff->a->roles_inferred || diff->b->roles_inferred);
    mt_json_question(&json, output->question);
    add_runs(&json, diff);
    mt_json_objects_begin(&list, &json, "devices", diff->device_count);
    for (size_t i = 0; i < diff->device_count; i++) {
        if (!mt_json_list_takes(&list))
            continue;
        mt_json_object_begin(&json, NULL);
        add_side(&json, "a", diff->a, diff->devices[i].a);
        add_side(&json, "b", diff->b, diff->devices[i].b);
        add_totals(&json, &diff->devices[i]);
        add_rows(&json, &diff->devices[i]);
        mt_json_object_end(&json);
    }
    mt_json_list_end(&list);
    mt_json_object_end(&json);
    mt_buf_add_char(out, '\n');
}

#include "json.h"
#include "live_output.h"
#include "report_json.h"

/* Returns the name of the kind of instant in JSON: "peak", "time", ... */
static const char *question_at_name(enum mt_question_at at)
{
    static const char *const names[] = {"peak", "reserved-peak", "oom",  "end",
                                        "time", "event",         "phase"};

    return names[at];
}

static const char *missing_name(enum mt_no_answer missing)
{
    static const char *const names[] = {NULL, "no_oom", "no_such_phase", "not_in_history",
                                        "beyond_end"};

    return names[missing];
}

void mt_json_question(struct mt_json *json, const struct mt_question *question)
{
    mt_json_object_begin(json, "question");
    mt_json_text(json, "at", question_at_name(question->at));
    if (question->at == MT_AT_TIME || question->at == MT_AT_EVENT)
        mt_json_u64(json, "value", question->value);
    else
        mt_json_text(json, "value", question->at == MT_AT_PHASE ? question->phase : NULL);
    mt_json_text(json, "by", mt_group_by_name(question->by));
    mt_json_object_end(json);
}

static void add_selected_phase(struct mt_json *json, const struct mt_report *report,
                               const struct mt_answer *answer)
{
    if (answer->selected_phase == MT_NO_PHASE) {
        mt_json_null(json, "asked_phase");
        return;
    }
    mt_json_object_begin(json, "asked_phase");
    mt_json_text(json, "path", report->phases[answer->selected_phase].path);
    mt_json_u64(json, "number", answer->selected_number);
    mt_json_u64(json, "count", answer->selected_count);
    mt_json_object_end(json);
}

static void add_rows(struct mt_json *json, struct mt_arena *arena, const struct mt_report *report,
                     const struct mt_answer *answer)
{
    for (struct mt_json_list list = mt_json_lines(json, "rows", answer->row_count);
         mt_json_next(&list);) {
        const struct mt_live_row *row = &answer->rows[list.i];

        mt_json_text(json, "group", row->label);
        mt_json_text(json, "site", row->site);
        mt_json_text(json, "operation", row->operation);
        mt_json_text(json, "phase", row->phase && *row->phase ? row->phase : NULL);
        mt_json_step(json, "step", row->step);
        mt_json_text(json, "role", row->several_roles ? NULL : mt_role_name(row->role));
        mt_json_u64_or_null(json, "block_bytes", row->block_bytes, row->block_bytes);
        mt_json_u64(json, "bytes", row->bytes);
        mt_json_u64(json, "requested_bytes", row->requested_bytes);
        mt_json_u64(json, "blocks", row->blocks);
        mt_json_stack(json, arena, report, row->stack);
        if (row->module) {
            mt_json_object_begin(json, "module");
            mt_json_module(json, row->module);
            mt_json_object_end(json);
        }
    }
}

void mt_json_answer(struct mt_json *json, const struct mt_report *report,
                    const struct mt_answer *answer)
{
    const struct mt_instant *instant = &answer->instant;

    mt_json_object_begin(json, "instant");
    mt_json_u64(json, "t_ns", instant->t_ns);
    mt_json_u64(json, "event", instant->event);
    mt_json_step(json, "step", instant->step);
    mt_json_text(json, "phase", mt_json_path_of(report, instant->phase));
    mt_json_object_end(json);
    add_selected_phase(json, report, answer);
    mt_json_bytes(json, "bytes", &instant->bytes);
    mt_json_object_begin(json, "waiting");
    mt_json_u64(json, "blocks", answer->waiting_blocks);
    mt_json_u64(json, "bytes", answer->waiting_bytes);
    mt_json_u64(json, "requested_bytes", answer->waiting_requested_bytes);
    mt_json_object_end(json);
}

static void add_device(struct mt_json *json, struct mt_arena *arena, const struct mt_report *report,
                       const struct mt_device_report *device)
{
    mt_json_object_begin(json, NULL);
    mt_json_u64(json, "device", device->device);
    mt_json_text(json, "name", device->name);
    mt_json_text(json, "missing", missing_name(device->answer->missing));
    if (!device->answer->missing) {
        mt_json_answer(json, report, device->answer);
        add_rows(json, arena, report, device->answer);
    }
    mt_json_object_end(json);
}

void mt_live_json(struct mt_buf *out, const struct mt_live_output *live)
{
    const struct mt_report *report = live->report;
    struct mt_arena arena = {0};
    struct mt_json json;
    struct mt_json_list list;

    mt_json_init(&json, out, true);
    json.all = live->all;
    mt_json_object_begin(&json, NULL);
    mt_json_text(&json, "schema", "memtrace.live/1");
    mt_json_input(&json, report);
    mt_json_text(&json, "policy", report->policy);
    mt_json_bool(&json, "roles_inferred", report->roles_inferred);
    mt_json_question(&json, live->question);
    mt_json_objects_begin(&list, &json, "devices", report->device_count);
    for (uint32_t i = 0; i < report->device_count; i++)
        if (mt_live_shows_device(live, &report->devices[i]) && mt_json_list_takes(&list))
            add_device(&json, &arena, report, &report->devices[i]);
    mt_json_list_end(&list);
    mt_json_object_end(&json);
    mt_buf_add_char(out, '\n');
    mt_arena_release(&arena);
}

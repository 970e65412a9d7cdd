/* Parts of a report as JSON that several documents have. */
#include <inttypes.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "json.h"
#include "module_table.h"
#include "report.h"
#include "report_json.h"
#include "site.h"

void mt_json_communicator(struct mt_json *json, uint64_t id, uint64_t rank, uint64_t ranks,
                          uint64_t registered_peak_bytes)
{
    char text[sizeof "0x0123456789abcdef"];

    snprintf(text, sizeof text, "0x%" PRIx64, id);
    mt_json_text(json, "id", id ? text : NULL);
    mt_json_u64_or_null(json, "rank", ranks, rank);
    mt_json_u64_or_null(json, "ranks", ranks, ranks);
    mt_json_u64_or_null(json, "registered_peak_bytes", registered_peak_bytes,
                        registered_peak_bytes);
}

void mt_json_module(struct mt_json *json, const struct mt_module_row *row)
{
    mt_json_text(json, "kind", mt_module_kind_name(row->kind));
    mt_json_text(json, "path", row->path);
    mt_json_u64_or_null(json, "layer", row->layer != MT_NO_LAYER, row->layer);
    mt_json_object_begin(json, "roles");
    for (int role = 0; role < MT_ROLE_COUNT; role++)
        if (row->role_bytes[role])
            mt_json_u64(json, mt_role_name((enum mt_role)role), row->role_bytes[role]);
    mt_json_object_end(json);
    mt_json_u64(json, "parameters_requested_bytes", row->role_requested_bytes[MT_ROLE_PARAMETERS]);
}

void mt_json_modules(struct mt_json *json, const struct mt_modules *modules)
{
    if (!modules) {
        mt_json_null(json, "modules");
        return;
    }
    mt_json_object_begin(json, "modules");
    mt_json_u64(json, "event", modules->event);
    mt_json_u64(json, "layers", modules->layer_count);
    for (struct mt_json_list list = mt_json_lines(json, "rows", modules->row_count);
         mt_json_next(&list);) {
        const struct mt_module_row *row = &modules->rows[list.i];

        mt_json_module(json, row);
        mt_json_u64(json, "bytes", row->bytes);
        mt_json_u64(json, "requested_bytes", row->requested_bytes);
        mt_json_u64(json, "blocks", row->blocks);
    }
    mt_json_object_end(json);
}

/* Adds "stack": the labels of its frames, outermost first. Unless `all` of the writer is set, adds
 * only the innermost frames: at most MT_JSON_FRAMES with at most MT_JSON_STACK_BYTES of labels. */
enum { MT_JSON_FRAMES = 128, MT_JSON_STACK_BYTES = 32 * 1024 };

const char *mt_json_path_of(const struct mt_report *report, int32_t phase)
{
    return phase == MT_NO_PHASE ? NULL : report->phases[phase].path;
}

void mt_json_step(struct mt_json *json, const char *key, int64_t step)
{
    if (step == MT_NO_STEP)
        mt_json_null(json, key);
    else
        mt_json_i64(json, key, step);
}

void mt_json_bytes(struct mt_json *json, const char *key, const struct mt_bytes *bytes)
{
    mt_json_object_begin(json, key);
    mt_json_u64(json, "requested", bytes->requested);
    mt_json_u64(json, "allocated", bytes->allocated);
    mt_json_u64(json, "active", bytes->active);
    mt_json_u64(json, "reserved", bytes->reserved);
    mt_json_object_end(json);
}

void mt_json_card(struct mt_json *json, const struct mt_card_use *use)
{
    if (!use) {
        mt_json_null(json, "card");
        return;
    }
    mt_json_object_begin(json, "card");
    mt_json_u64(json, "bytes", use->bytes);
    mt_json_u64(json, "allocator_bytes", use->allocator_bytes);
    mt_json_u64(json, "libraries_bytes", use->libraries_bytes);
    mt_json_u64(json, "cuda_bytes", use->cuda_bytes);
    mt_json_text(json, "cuda_from", mt_card_cuda_name(use->cuda_from));
    mt_json_bool(json, "at_least", use->why_more);
    mt_json_text(json, "why_more", use->why_more);
    mt_json_array_begin(json, "fits");
    for (const struct mt_card *card = mt_cards; card->name; card++)
        if (!use->why_more && mt_card_use_fits(use, card))
            mt_json_text(json, NULL, card->name);
    mt_json_array_end(json);
    mt_json_object_end(json);
}

void mt_json_peak_orders(struct mt_json *json, const struct mt_peak_orders *orders)
{
    if (!orders) {
        mt_json_null(json, "peak_orders");
        return;
    }
    mt_json_object_begin(json, "peak_orders");
    mt_json_u64(json, "order_count", orders->order_count);
    mt_json_u64(json, "reserved_low_bytes", orders->reserved_low_bytes);
    mt_json_u64(json, "reserved_high_bytes", orders->reserved_high_bytes);
    mt_json_u64(json, "allocated_low_bytes", orders->allocated_low_bytes);
    mt_json_u64(json, "allocated_high_bytes", orders->allocated_high_bytes);
    mt_json_object_end(json);
}

void mt_json_peak_roles(struct mt_json *json, const uint64_t role_bytes[MT_ROLE_COUNT])
{
    mt_json_object_begin(json, "peak_roles");
    for (int role = 0; role < MT_ROLE_COUNT; role++)
        if (role_bytes[role])
            mt_json_u64(json, mt_role_name((enum mt_role)role), role_bytes[role]);
    mt_json_object_end(json);
}

void mt_json_row_begin(struct mt_json *json)
{
    mt_json_object_begin(json, NULL);
    json->pretty = false;
}

void mt_json_row_end(struct mt_json *json)
{
    mt_json_object_end(json);
    json->pretty = true;
}

static bool takes_label(const struct mt_json *json, size_t bytes)
{
    return json->all || bytes < MT_JSON_STACK_BYTES;
}

/* Walks from the allocation outwards, and writes the outermost frame first. */
void mt_json_stack(struct mt_json *json, struct mt_arena *arena, const struct mt_report *report,
                   uint32_t stack)
{
    const struct mt_symbols *symbols = report->symbols;
    uint32_t depth = stack < symbols->stack_count ? symbols->stacks[stack].depth : 0;
    uint32_t most = json->all || depth < MT_JSON_FRAMES ? depth : MT_JSON_FRAMES;
    const char **labels = mt_arena_array(arena, (size_t)most + 1, sizeof *labels);
    uint32_t count = 0;
    size_t bytes = 0;

    mt_json_array_begin(json, "stack");
    for (; count < most && stack < symbols->stack_count && takes_label(json, bytes);
         stack = symbols->stacks[stack].parent) {
        labels[count] = mt_frame_label(arena, symbols, symbols->stacks[stack].frame);
        bytes += strlen(labels[count]);
        count++;
    }
    for (uint32_t i = count; i; i--)
        mt_json_text(json, NULL, labels[i - 1]);
    mt_json_array_end(json);
    mt_json_omitted(json, "stack", depth - count);
}

void mt_json_dry_run(struct mt_json *json, const struct mt_dry_run *dry_run)
{
    mt_json_object_begin(json, "dry_run");
    mt_json_text(json, "card", *dry_run->card ? dry_run->card : NULL);
    mt_json_u64_or_null(json, "devices", dry_run->devices, dry_run->devices);
    mt_json_u64_or_null(json, "memory_bytes", dry_run->memory_bytes, dry_run->memory_bytes);
    mt_json_object_end(json);
}

void mt_json_input(struct mt_json *json, const struct mt_report *report)
{
    uint64_t left_out =
        report->devices_left_out + (uint64_t)__builtin_popcountll(report->devices_not_followed);
    struct mt_json_list list;

    mt_json_object_begin(json, "input");
    mt_json_text(json, "path", report->path);
    mt_json_text(json, "format", report->format);
    mt_json_text(json, "sha256", report->sha256[0] ? report->sha256 : NULL);
    mt_json_text(json, "framework", report->framework);
    mt_json_list_begin(&list, json, "device_names");
    for (uint32_t i = 0; i < report->device_count; i++)
        if (mt_json_list_takes(&list))
            mt_json_text(json, NULL, report->devices[i].name);
    mt_json_list_end(&list);
    if (left_out)
        mt_json_u64(json, "devices_left_out", left_out);
    mt_json_text(json, "options", report->options);
    if (report->is_dry_run)
        mt_json_dry_run(json, &report->dry_run);
    mt_json_bool(json, "starts_in_middle", report->starts_in_middle);
    mt_json_u64(json, "events_read", report->integrity.events_read);
    mt_json_u64(json, "events_dropped", report->integrity.events_dropped);
    mt_json_bool(json, "cut", report->integrity.cut);
    mt_json_u64(json, "first_t_ns", report->first_t_ns);
    mt_json_u64(json, "last_t_ns", report->last_t_ns);
    mt_json_object_end(json);
}

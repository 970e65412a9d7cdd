#include "module_json.h"

#include "json_list.h"
#include "report_json.h"

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
    struct mt_json_list list;

    if (!modules) {
        mt_json_null(json, "modules");
        return;
    }
    mt_json_object_begin(json, "modules");
    mt_json_u64(json, "event", modules->event);
    mt_json_u64(json, "layers", modules->layer_count);
    mt_json_list_begin(&list, json, "rows");
    for (uint32_t i = 0; i < modules->row_count; i++) {
        const struct mt_module_row *row = &modules->rows[i];

        if (!mt_json_list_takes(&list))
            continue;
        mt_json_row_begin(json);
        mt_json_module(json, row);
        mt_json_u64(json, "bytes", row->bytes);
        mt_json_u64(json, "requested_bytes", row->requested_bytes);
        mt_json_u64(json, "blocks", row->blocks);
        mt_json_row_end(json);
    }
    mt_json_list_end(&list);
    mt_json_object_end(json);
}

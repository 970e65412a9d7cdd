#include "summarize_parts.h"

#include <stdlib.h>
#include <string.h>

static const char *text_or_empty(const char *text)
{
    return text ? text : "";
}

static int by_name(const void *a, const void *b)
{
    const struct mt_record_group *x = a, *y = b;
    int order = strcmp(x->name, y->name);

    if (order)
        return order;
    return (x->members_hash > y->members_hash) - (x->members_hash < y->members_hash);
}

static void fill_groups(const struct mt_summarizing *work)
{
    struct mt_record_identity *out = &work->record->identity;

    out->group_count = work->identity->group_count;
    out->groups = mt_arena_array(work->arena, out->group_count + 1, sizeof *out->groups);
    for (uint32_t i = 0; i < out->group_count; i++) {
        const struct mt_identity_group *group = &work->identity->groups[i];

        out->groups[i] = (struct mt_record_group){.name = group->name,
                                                  .size = group->size,
                                                  .first = group->first,
                                                  .stride = group->stride,
                                                  .position = group->position,
                                                  .members_hash = group->members_hash};
    }
    qsort(out->groups, out->group_count, sizeof *out->groups, by_name);
}

static void fill_axes(const struct mt_summarizing *work)
{
    const struct mt_mesh *mesh = &work->identity->mesh;
    struct mt_record_identity *out = &work->record->identity;

    out->axis_count = mesh->count;
    out->axes = mt_arena_array(work->arena, mesh->count + 1, sizeof *out->axes);
    for (uint32_t i = 0; i < mesh->count; i++)
        out->axes[i] = (struct mt_record_axis){
            .name = mesh->axes[i].name,
            .coordinate = mesh->axes[i].coordinate,
            .size = mesh->axes[i].size,
        };
}

static void fill_device(const struct mt_summarizing *work)
{
    const struct mt_identity *identity = work->identity;
    struct mt_rank_record *record = work->record;

    record->device_name = text_or_empty(work->device->name);
    record->device_uuid = record->device_pci = record->device_mig = "";
    for (uint32_t i = 0; i < identity->device_count; i++) {
        if (identity->devices[i].index != work->device->device)
            continue;
        record->device_uuid = identity->devices[i].uuid;
        record->device_pci = identity->devices[i].pci;
        record->device_mig = identity->devices[i].mig;
    }
}

enum mt_status mt_summarize_identity(const struct mt_summarizing *work)
{
    const struct mt_identity *identity = work->identity;
    struct mt_record_identity *out = &work->record->identity;

    out->host = identity->host;
    out->boot_id = identity->boot_id;
    out->job = identity->job;
    out->process_id = identity->process_id;
    out->rank = identity->rank;
    out->local_rank = identity->local_rank;
    out->world = identity->world;
    out->restart = identity->restart;
    out->rank_origin = identity->rank_origin;
    out->memory_limit_bytes = identity->memory_limit_bytes;
    out->cgroup_limit_bytes = identity->cgroup_limit_bytes;
    out->ended = identity->ended;
    out->ended_number = identity->ended_number;
    out->ended_t_ns = identity->ended_t_ns;
    fill_device(work);
    fill_axes(work);
    fill_groups(work);
    return MT_OK;
}

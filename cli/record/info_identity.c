#include "info_identity.h"

#include <string.h>

#include "foreign_text.h"
#include "identity.h"
#include "json.h"
#include "units.h"

static void add_label(struct mt_buf *out, const char *label)
{
    mt_buf_printf(out, "  %-12s", label);
}

static void add_fact(struct mt_buf *out, const char *label, const char *value)
{
    if (!*value)
        return;
    add_label(out, label);
    mt_buf_add_printable_text(out, value);
    mt_buf_add_char(out, '\n');
}

static void add_rank(struct mt_buf *out, const struct mt_identity *identity)
{
    if (identity->rank < 0)
        return;
    add_label(out, "rank");
    mt_buf_printf(out, "%d", identity->rank);
    if (identity->world >= 0)
        mt_buf_printf(out, " of %d", identity->world);
    if (identity->local_rank >= 0)
        mt_buf_printf(out, ", local rank %d", identity->local_rank);
    if (identity->restart > 0)
        mt_buf_printf(out, ", restart %d", identity->restart);
    mt_buf_add_text(out, identity->rank_origin == MT_RANK_OF_NAME ? " (from the name of the file)\n"
                                                                  : "\n");
}

static void add_mesh(struct mt_buf *out, const struct mt_mesh *mesh)
{
    struct mt_buf text = {0};

    mt_mesh_write(mesh, &text);
    if (mesh->count)
        add_fact(out, "mesh", text.data ? text.data : "");
    mt_buf_release(&text);
}

static void add_groups(struct mt_buf *out, const struct mt_identity *identity)
{
    for (uint32_t i = 0; i < identity->group_count; i++) {
        const struct mt_identity_group *group = &identity->groups[i];

        add_label(out, i ? "" : "groups");
        mt_buf_add_printable_text(out, group->name);
        mt_buf_printf(out, "  %u rank%s", group->size, group->size == 1 ? "" : "s");
        if (group->stride > 1)
            mt_buf_printf(out, " starting at %u, every %u", group->first, group->stride);
        else if (group->stride)
            mt_buf_printf(out, " starting at %u", group->first);
        mt_buf_add_char(out, '\n');
    }
    if (identity->groups_left_out)
        mt_buf_printf(out, "  %-12s%u more\n", "", identity->groups_left_out);
}

static void add_device_ids(struct mt_buf *out, const struct mt_identity *identity)
{
    for (uint32_t i = 0; i < identity->device_count; i++) {
        const struct mt_identity_device *device = &identity->devices[i];
        const char *const texts[] = {device->uuid, device->pci, device->mig};

        add_label(out, i ? "" : "device ids");
        mt_buf_printf(out, "gpu %u", device->index);
        for (size_t k = 0; k < sizeof texts / sizeof *texts; k++) {
            mt_buf_add_text(out, !*texts[k] ? "" : k == 2 ? "  MIG " : "  ");
            mt_buf_add_printable_text(out, texts[k]);
        }
        mt_buf_add_char(out, '\n');
    }
}

/* Returns false for a value that no version of memtrace writes. Such a value is not printed. */
static bool is_ending(const char *text)
{
    enum mt_ending ending;
    int32_t number;

    return mt_ending_read(text, &ending, &number);
}

static void add_ending(struct mt_buf *out, const struct mt_trace_header *header,
                       const struct mt_identity *identity)
{
    if (!is_ending(header->ended))
        return;
    add_label(out, "ended");
    switch (identity->ended) {
    case MT_ENDED_EXIT: mt_buf_printf(out, "exit status %d\n", identity->ended_number); return;
    case MT_ENDED_SIGNAL: mt_buf_printf(out, "signal %d\n", identity->ended_number); return;
    case MT_ENDED_TIMEOUT: mt_buf_add_text(out, "by memtrace, after a timeout\n"); return;
    case MT_ENDED_OOM_KILLED:
        mt_buf_add_text(out, "signal 9; the kernel had killed a process of its control group "
                             "because memory ran out\n");
        return;
    case MT_ENDED_UNKNOWN: break;
    }
    mt_buf_add_text(out, "abnormal; the cause is unknown\n");
}

void mt_info_identity_text(struct mt_buf *out, const struct mt_trace_header *header,
                           const char *path)
{
    struct mt_identity identity;
    char bytes[MT_UNITS_TEXT];

    mt_identity_read(header, path, &identity);
    add_fact(out, "job", identity.job);
    add_rank(out, &identity);
    add_mesh(out, &identity.mesh);
    add_groups(out, &identity);
    add_ending(out, header, &identity);
    add_fact(out, "boot", identity.boot_id);
    if (identity.cgroup_limit_bytes)
        add_fact(out, "host limit", mt_format_bytes(bytes, identity.cgroup_limit_bytes));
    add_device_ids(out, &identity);
}

static void json_text(struct mt_json *json, const char *key, const char *text)
{
    mt_json_text(json, key, *text ? text : NULL);
}

static void json_number(struct mt_json *json, const char *key, int32_t number)
{
    mt_json_u64_or_null(json, key, number >= 0, (uint64_t)(number >= 0 ? number : 0));
}

static void json_mesh(struct mt_json *json, const struct mt_mesh *mesh)
{
    mt_json_array_begin(json, "mesh");
    for (uint32_t i = 0; i < mesh->count; i++) {
        mt_json_object_begin(json, NULL);
        mt_json_text(json, "axis", mesh->axes[i].name);
        mt_json_u64(json, "coordinate", mesh->axes[i].coordinate);
        mt_json_u64(json, "size", mesh->axes[i].size);
        mt_json_object_end(json);
    }
    mt_json_array_end(json);
}

static void json_devices(struct mt_json *json, const struct mt_identity *identity)
{
    mt_json_array_begin(json, "devices");
    for (uint32_t i = 0; i < identity->device_count; i++) {
        const struct mt_identity_device *device = &identity->devices[i];

        mt_json_object_begin(json, NULL);
        mt_json_u64(json, "device", device->index);
        json_text(json, "uuid", device->uuid);
        json_text(json, "pci", device->pci);
        json_text(json, "mig", device->mig);
        mt_json_object_end(json);
    }
    mt_json_array_end(json);
}

static void json_groups(struct mt_json *json, const struct mt_identity *identity)
{
    for (struct mt_json_list row = mt_json_rows(json, "process_groups", identity->group_count);
         mt_json_next(&row);) {
        const struct mt_identity_group *group = &identity->groups[row.i];

        mt_json_text(json, "name", group->name);
        mt_json_u64(json, "size", group->size);
        json_number(json, "position", group->position);
        mt_json_u64(json, "first", group->first);
        mt_json_u64_or_null(json, "stride", group->stride, group->stride);
    }
}

static const char *origin_word(enum mt_rank_origin origin)
{
    return origin == MT_RANK_RECORDED ? "recorded" : origin == MT_RANK_OF_NAME ? "file_name" : NULL;
}

void mt_info_identity_json(struct mt_json *json, const struct mt_trace_header *header,
                           const char *path)
{
    struct mt_identity identity;
    char text[MT_ENDING_TEXT];

    mt_identity_read(header, path, &identity);
    mt_json_object_begin(json, "identity");
    json_text(json, "job", identity.job);
    json_text(json, "host", identity.host);
    json_text(json, "boot_id", identity.boot_id);
    mt_json_u64_or_null(json, "process_id", identity.process_id, identity.process_id);
    json_number(json, "rank", identity.rank);
    mt_json_text(json, "rank_origin", origin_word(identity.rank_origin));
    json_number(json, "local_rank", identity.local_rank);
    json_number(json, "world_size", identity.world);
    json_number(json, "restart", identity.restart);
    mt_json_bool(json, "is_planned", identity.is_planned);
    mt_json_text(json, "ended",
                 is_ending(header->ended)
                     ? mt_ending_text(identity.ended, identity.ended_number, text)
                     : NULL);
    mt_json_u64_or_null(json, "ended_t_ns", identity.ended_t_ns, identity.ended_t_ns);
    mt_json_u64_or_null(json, "cgroup_limit_bytes", identity.cgroup_limit_bytes,
                        identity.cgroup_limit_bytes);
    json_mesh(json, &identity.mesh);
    json_devices(json, &identity);
    json_groups(json, &identity);
    mt_json_u64(json, "process_groups_left_out", identity.groups_left_out);
    mt_json_object_end(json);
}

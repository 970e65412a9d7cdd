#include "identity.h"

#include <string.h>

#include "decimal.h"
#include "ending.h"

/* A text that does not fit is unknown: a truncated one could equal another. */
static void copy_text(char *out, size_t capacity, const char *text)
{
    size_t length = text ? strnlen(text, capacity) : 0;

    if (length < capacity && length)
        memcpy(out, text, length);
    out[length < capacity ? length : 0] = '\0';
}

/* Returns -1 unless the text is a number from 0 to MT_MAX_RANK. */
static int32_t small_number(const char *text)
{
    uint64_t number;

    return text && mt_decimal_read(text, strlen(text), &number) && number <= MT_MAX_RANK
               ? (int32_t)number
               : -1;
}

static void read_rank(const struct mt_trace_header *header, const char *path,
                      struct mt_identity *identity)
{
    identity->rank = header->rank >= 0 && header->rank <= MT_MAX_RANK ? header->rank : -1;
    identity->rank_origin = identity->rank >= 0 ? MT_RANK_RECORDED : MT_RANK_UNKNOWN;
    if (identity->rank < 0 && path) {
        identity->rank = mt_rank_of_name(path);
        identity->rank_origin = identity->rank >= 0 ? MT_RANK_OF_NAME : MT_RANK_UNKNOWN;
    }
    identity->world =
        header->world_size > identity->rank && header->world_size > 0 ? header->world_size : -1;
    identity->local_rank = small_number(header->local_rank);
    identity->restart = small_number(header->restart);
}

static void read_devices(const struct mt_trace_header *header, struct mt_identity *identity)
{
    for (uint32_t i = 0; i < MT_IDENTITY_DEVICES; i++) {
        struct mt_identity_device *device = &identity->devices[identity->device_count];

        if (!header->device_uuid[i] && !header->device_pci[i] && !header->device_mig[i])
            continue;
        device->index = i;
        copy_text(device->uuid, sizeof device->uuid, header->device_uuid[i]);
        copy_text(device->pci, sizeof device->pci, header->device_pci[i]);
        copy_text(device->mig, sizeof device->mig, header->device_mig[i]);
        identity->device_count++;
    }
}

void mt_identity_read(const struct mt_trace_header *header, const char *path,
                      struct mt_identity *identity)
{
    memset(identity, 0, sizeof *identity);
    copy_text(identity->host, sizeof identity->host, header->host);
    copy_text(identity->boot_id, sizeof identity->boot_id, header->boot_id);
    copy_text(identity->job, sizeof identity->job, header->job);
    identity->process_id = header->process_id;
    identity->is_planned = header->dry_run != NULL;
    identity->start_t_ns = header->start_t_ns;
    identity->memory_limit_bytes = header->memory_limit_bytes;
    identity->cgroup_limit_bytes = header->cgroup_limit_bytes;
    identity->ended_t_ns = header->ended_t_ns;
    (void)mt_ending_read(header->ended, &identity->ended, &identity->ended_number);
    (void)mt_mesh_read(header->mesh, &identity->mesh);
    read_rank(header, path, identity);
    read_devices(header, identity);
    mt_process_groups_read(header->process_groups, identity->rank, identity->groups,
                           &identity->group_count, &identity->groups_left_out);
}

#include "alloc_log.h"

#include "check.h"
#include "grow.h"

#include <stdlib.h>
#include <string.h>

#define UNIT_BYTES 512
#define ODD        UINT32_MAX

static void add_odd(struct mt_alloc_log *log, uint64_t block_bytes)
{
    if (log->odd_count == log->odd_capacity)
        mt_grow_to(&log->odd_sizes, &log->odd_capacity, log->odd_count + 1, sizeof *log->odd_sizes);
    log->odd_sizes[log->odd_count++] = block_bytes;
}

void mt_alloc_log_add(struct mt_alloc_log *log, uint64_t block_bytes, uint8_t role)
{
    uint64_t units = block_bytes / UNIT_BYTES;

    if (log->count == log->capacity)
        mt_grow_to(&log->roles, &log->capacity, (size_t)log->count + 1, sizeof *log->roles);
    if (units >= ODD || block_bytes % UNIT_BYTES) {
        units = ODD;
        add_odd(log, block_bytes);
    }
    MT_ASSERT(log->odd_count <= log->count + 1 && log->count == log->units.count);
    mt_block_units_add(&log->units, (uint32_t)units);
    log->roles[log->count++] = role;
}

static void add_number(struct mt_alloc_log *log, uint64_t value)
{
    for (; value >= 0x80; value >>= 7)
        log->reserved[log->reserved_bytes++] = (uint8_t)(value | 0x80);
    log->reserved[log->reserved_bytes++] = (uint8_t)value;
}

static uint64_t read_number(struct mt_alloc_log *log)
{
    uint64_t value = 0;
    unsigned shift = 0;
    uint8_t byte;

    do {
        MT_ASSERT(log->next_reserved < log->reserved_bytes && shift < 70);
        byte = log->reserved[log->next_reserved++];
        value |= (uint64_t)(byte & 0x7F) << shift;
        shift += 7;
    } while (byte & 0x80);
    return value;
}

void mt_alloc_log_reserved(struct mt_alloc_log *log, uint64_t event, uint32_t device,
                           int64_t change)
{
    if (log->reserved_capacity - log->reserved_bytes < 30)
        mt_grow_to(&log->reserved, &log->reserved_capacity, log->reserved_bytes + 30,
                   sizeof *log->reserved);
    MT_ASSERT(event >= log->last_change_event);
    add_number(log, event - log->last_change_event);
    add_number(log, device);
    add_number(log, change < 0 ? ~((uint64_t)change << 1) : (uint64_t)change << 1);
    log->last_change_event = event;
}

void mt_alloc_log_next_change(struct mt_alloc_log *log)
{
    if (log->next_reserved >= log->reserved_bytes) {
        log->next_change_event = UINT64_MAX;
        return;
    }
    log->next_change_event += read_number(log);
    log->next_change_device = (uint32_t)read_number(log);
    uint64_t zigzag = read_number(log);
    log->next_change = (int64_t)(zigzag >> 1) ^ -(int64_t)(zigzag & 1);
}

/* Checks that every mark of an odd size has its size, and that the numbers end with the last
 * change. */
bool mt_alloc_log_is_sound(struct mt_alloc_log *log, const char **why)
{
    uint64_t odd = 0, numbers = 0;

    MT_SOUND(why, log->count <= log->capacity && log->odd_count <= log->odd_capacity);
    for (uint64_t i = 0; i < log->count; i++)
        odd += mt_block_units_at(&log->units, i) == ODD;
    MT_SOUND(why, odd == log->odd_count);
    for (uint64_t i = 0; i < log->reserved_bytes; i++)
        numbers += !(log->reserved[i] & 0x80);
    MT_SOUND(why, numbers % 3 == 0);
    MT_SOUND(why, !log->reserved_bytes || !(log->reserved[log->reserved_bytes - 1] & 0x80));
    return true;
}

void mt_alloc_log_rewind(struct mt_alloc_log *log)
{
    const char *why = "";

    MT_ASSERT_SOUND(mt_alloc_log_is_sound(log, &why), why);
    log->next = 0;
    log->next_odd = 0;
    log->next_reserved = 0;
    log->next_change_event = 0;
    mt_alloc_log_next_change(log);
}

bool mt_alloc_log_next(struct mt_alloc_log *log, uint64_t *block_bytes, uint8_t *role)
{
    if (log->next >= log->count)
        return false;
    uint32_t units = mt_block_units_at(&log->units, log->next);
    MT_ASSERT(units != ODD || log->next_odd < log->odd_count);
    *role = log->roles[log->next++];
    *block_bytes = units == ODD ? log->odd_sizes[log->next_odd++] : (uint64_t)units * UNIT_BYTES;
    return true;
}

uint64_t mt_alloc_log_bytes(const struct mt_alloc_log *log)
{
    return mt_block_units_bytes(&log->units) + log->capacity * sizeof *log->roles +
           log->odd_capacity * sizeof *log->odd_sizes + log->reserved_capacity;
}

void mt_alloc_log_release(struct mt_alloc_log *log)
{
    mt_block_units_release(&log->units);
    free(log->roles);
    free(log->odd_sizes);
    free(log->reserved);
    memset(log, 0, sizeof *log);
}

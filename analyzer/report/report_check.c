/* Whole-structure check of a report: its tables agree with the counters of the replay, which come
 * from another pass over the trace. */
#include "report_check.h"

#include "check.h"
#include "module_table.h"

static bool sums_to_peak(const struct mt_device_report *device, const char **why)
{
    uint64_t sites = 0, roles = 0, ties = 0;

    for (uint32_t i = 0; i < device->peak_site_count; i++) {
        sites += device->peak_sites[i].bytes;
        MT_SOUND(why, !i || device->peak_sites[i - 1].bytes >= device->peak_sites[i].bytes);
    }
    for (uint32_t i = 0; i < MT_ROLE_COUNT; i++) {
        roles += device->peak_role_bytes[i];
        MT_SOUND(why, device->peak_recorded_role_bytes[i] <= device->peak_role_bytes[i]);
    }
    for (uint32_t i = 0; i < MT_TIE_COUNT; i++)
        ties += device->tie_peak_bytes[i];
    MT_SOUND(why, sites == device->allocated_peak.bytes);
    MT_SOUND(why, roles == device->allocated_peak.bytes);
    MT_SOUND(why, device->peak_start_role_bytes <= device->tie_peak_bytes[MT_TIE_BEFORE]);
    MT_SOUND(why, ties == device->frameless_peak_bytes);
    return true;
}

/* For the peak, or the instant of a question. */
static bool modules_are_sound(const struct mt_device_report *device, const char **why)
{
    const struct mt_modules *modules = device->modules;
    uint64_t bytes = 0, whole = device->answer ? device->answer->instant.bytes.allocated
                                               : device->allocated_peak.bytes;

    for (uint32_t i = 0; modules && i < modules->row_count; i++) {
        uint64_t roles = 0;

        for (uint32_t role = 0; role < MT_ROLE_COUNT; role++)
            roles += modules->rows[i].role_bytes[role];
        MT_SOUND(why, roles == modules->rows[i].bytes);
        MT_SOUND(why, (modules->rows[i].layer != MT_NO_LAYER) == (i < modules->layer_count));
        bytes += roles;
    }
    MT_SOUND(why, !modules || bytes == whole);
    return true;
}

static bool parts_close(const struct mt_device_report *device, const char **why)
{
    uint64_t sum = 0;

    for (int i = 0; device->device_parts && i < MT_DEVICE_PART_COUNT; i++)
        sum += device->device_parts->parts[i];
    MT_SOUND(why, !device->device_parts || sum == device->device_parts->total_bytes);
    return true;
}

static bool instant_is_sound(const struct mt_instant *instant, const char **why)
{
    uint64_t held = 0;
    int64_t told = 0;

    for (uint32_t i = 0; i < instant->holding_count; i++)
        held += instant->holdings[i].bytes;
    for (uint32_t i = 0; i < instant->holder_count; i++)
        told += instant->holders[i].bytes;
    MT_SOUND(why, held == instant->bytes.allocated);
    MT_SOUND(why, !instant->holders || told == (int64_t)instant->bytes.allocated);
    return true;
}

/* The pools sum to the device. */
static bool pools_are_sound(const struct mt_device_report *device, const char **why)
{
    uint64_t allocated = 0;

    for (uint32_t i = 0; i < device->pool_count; i++) {
        const struct mt_pool_use *pool = &device->pools[i];

        MT_SOUND(why, pool->allocated_bytes <= pool->allocated_peak_bytes);
        MT_SOUND(why, pool->reserved_bytes <= pool->reserved_peak_bytes);
        allocated += pool->allocated_bytes;
    }
    MT_SOUND(why, !device->pool_count || allocated == device->end.allocated);
    return true;
}

static bool device_is_sound(const struct mt_device_report *device, const char **why)
{
    MT_SOUND(why, device->allocated_peak.bytes == device->allocated_peak.then.allocated);
    MT_SOUND(why, device->reserved_peak.bytes == device->reserved_peak.then.reserved);
    MT_SOUND(why, device->allocated_peak.bytes <= device->active_peak.bytes);
    MT_SOUND(why, device->fragmentation_at_reserved_peak >= 0);
    MT_SOUND(why, device->fragmentation_at_reserved_peak <= 1);
    for (uint32_t i = 0; i < device->instant_count; i++)
        if (!instant_is_sound(&device->instants[i], why))
            return false;
    return modules_are_sound(device, why) && pools_are_sound(device, why) &&
           sums_to_peak(device, why) && parts_close(device, why);
}

bool mt_report_is_sound(const struct mt_report *report, const char **why)
{
    for (uint32_t i = 0; i < report->device_count; i++)
        if (!device_is_sound(&report->devices[i], why))
            return false;
    return true;
}

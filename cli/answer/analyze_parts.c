/* The parts of the whole device while a model is served, and the largest KV cache that fits. */
#include "analyze_output.h"
#include "report_query.h"
#include "text_table.h"
#include "units.h"

enum { SMALL_PART = 100 }; /* parts below a hundredth of the device are small */

/* True if the part has its own row. Free memory always has one. */
static bool has_row(const struct mt_reporter *reporter, const struct mt_device_parts *device_parts,
                    int part)
{
    if (part == MT_DEVICE_FREE)
        return true;
    if (reporter->detail->small_parts)
        return device_parts->parts[part];
    return device_parts->parts[part] >= device_parts->total_bytes / SMALL_PART;
}

static void report_parts(const struct mt_reporter *reporter,
                         const struct mt_device_parts *device_parts)
{
    uint64_t rest_bytes = 0;
    struct mt_table table;

    mt_table_begin(&table, "#bytes|#share|~");
    for (int i = 0; i < MT_DEVICE_PART_COUNT; i++)
        if (has_row(reporter, device_parts, i))
            MT_CELLS(&table, MT_BYTES(device_parts->parts[i]),
                     MT_SHARE(device_parts->parts[i], device_parts->total_bytes),
                     MT_TEXT(mt_device_part_name((enum mt_device_part)i)));
        else
            rest_bytes += device_parts->parts[i];
    if (rest_bytes)
        MT_CELLS(&table, MT_BYTES(rest_bytes), MT_SHARE(rest_bytes, device_parts->total_bytes),
                 MT_TEXT("parts below 1% each"));
    MT_CELLS(&table, MT_BYTES(device_parts->total_bytes),
             MT_SHARE(device_parts->total_bytes, device_parts->total_bytes),
             MT_TEXT("the whole device"));
    mt_add_text_table(reporter->out, &table, 2, reporter->style);
}

static void report_sample(const struct mt_reporter *reporter,
                          const struct mt_device_parts *device_parts)
{
    char count[MT_UNITS_TEXT];

    if (!device_parts->context_is_known)
        return;
    mt_reporter_line(
        reporter, 2,
        mt_reporter_format(
            reporter, "Context and modules: use reported by NVML at %s minus all allocations, %s",
            mt_reporter_when(reporter, device_parts->context_t_ns),
            device_parts->samples == 1
                ? "the only sample"
                : mt_reporter_format(reporter, "the sample nearest the peak (of %s)",
                                     mt_format_count(count, device_parts->samples))));
}

static void report_limit(const struct mt_reporter *reporter,
                         const struct mt_device_parts *device_parts)
{
    uint64_t most = mt_largest_kv_cache(device_parts);
    char bytes[MT_UNITS_TEXT], exact[MT_UNITS_TEXT], spare[MT_UNITS_TEXT];

    mt_reporter_line(
        reporter, 2,
        mt_reporter_format(reporter,
                           "These requests leave room for a KV cache of %s (%s B), %s more "
                           "than it has, if no other process uses the device%s",
                           mt_format_bytes(bytes, most), mt_format_count(exact, most),
                           mt_format_bytes(spare, device_parts->spare_bytes),
                           device_parts->context_is_known
                               ? ""
                               : ", minus what CUDA itself takes, which was not sampled"));
}

void mt_report_device_parts(const struct mt_reporter *reporter)
{
    const struct mt_device_parts *device_parts = reporter->device->device_parts;

    if (!device_parts)
        return;
    mt_reporter_heading(reporter, "The whole device at the allocated peak");
    report_parts(reporter, device_parts);
    report_sample(reporter, device_parts);
    if (!device_parts->died)
        report_limit(reporter, device_parts);
}

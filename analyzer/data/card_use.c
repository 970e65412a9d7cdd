#include "card_use.h"

#include <string.h>

#include "cards.h"
#include "report_query.h"
#include "util.h"

enum { MEASURED_RANKS = 4 }; /* of a communicator: MT_COST_NCCL_ONE_RANK, MT_COST_NCCL_TWO_RANKS */

/* 13 of "PyTorch 2.11.0+cu130": the last digit is the minor version. */
static unsigned cuda_major_of(const char *framework)
{
    const char *at = framework ? strstr(framework, "+cu") : NULL;
    unsigned number = 0;

    for (at = at ? at + strlen("+cu") : ""; *at >= '0' && *at <= '9' && number < 1000; at++)
        number = number * 10 + (unsigned)(*at - '0');
    return number / 10;
}

/* The simulated library took memory itself, which is in the trace. */
static bool has_owner(const struct mt_driver_report *driver, const char *library)
{
    for (uint32_t i = 0; driver && i < driver->owner_count; i++)
        if (driver->owners[i].library && !strcmp(driver->owners[i].library, library))
            return true;
    return false;
}

static void add(struct mt_card_overhead *overhead, const char *card, enum mt_card_cost_kind kind,
                uint64_t count)
{
    const struct mt_card_cost *cost = mt_card_cost(card, overhead->cuda_major, kind);
    uint64_t bytes;

    if (!cost) {
        overhead->lacks_rows = true;
        return;
    }
    overhead->rows[overhead->row_count++] = (struct mt_card_overhead_row){cost, count};
    if (!mt_mul_ok(cost->most_bytes, count, &bytes))
        bytes = UINT64_MAX;
    overhead->most_bytes = mt_add_most_u64(overhead->most_bytes, bytes);
}

/* Largest number of ranks, of the run and of each communicator that the process made without a
 * launcher. */
static uint64_t most_ranks(const struct mt_report *report, const struct mt_driver_report *driver)
{
    uint64_t most = report->world_size > 0 ? (uint64_t)report->world_size : 0;

    for (uint32_t i = 0; driver && i < driver->told_communicator_count; i++)
        most = mt_max_u64(most, driver->communicators[i].ranks);
    return most;
}

struct mt_card_overhead mt_card_overhead_of(const struct mt_report *report,
                                            const struct mt_device_report *device)
{
    const struct mt_driver_report *driver = mt_driver_of(report, device->device);
    struct mt_card_overhead overhead = {.cuda_major = cuda_major_of(report->framework)};
    bool has_nccl = has_owner(driver, "NCCL") || (driver && driver->communicator_count);

    if (driver && driver->has_then)
        overhead.outside_bytes = mt_sub_or_0_u64(driver->then.bytes, driver->then.framework_bytes);
    overhead.most_bytes = overhead.outside_bytes;
    add(&overhead, report->dry_run.card, has_nccl ? MT_COST_CUDA_WITH_NCCL : MT_COST_CUDA, 1);
    if (has_nccl && most_ranks(report, driver) > MEASURED_RANKS)
        overhead.unmeasured_ranks = most_ranks(report, driver);
    if (!has_owner(driver, "cuBLAS"))
        add(&overhead, report->dry_run.card, MT_COST_CUBLAS_HANDLE, report->saw_backward ? 2 : 1);
    overhead.is_known = !overhead.lacks_rows && !overhead.unmeasured_ranks;
    return overhead;
}

const char *mt_peaks_doubt(const struct mt_report *report, const struct mt_device_report *device)
{
    const struct mt_integrity *integrity = &report->integrity;

    if (integrity->cut)
        return "the trace is cut";
    if (integrity->frames_damaged || integrity->events_invalid)
        return "parts of the trace are damaged";
    if (integrity->events_dropped)
        return report->is_imported ? "events are missing" : "the recorder dropped events";
    if (device->has_failure)
        return "the simulated run runs out of memory";
    if (mt_fatal_oom(device))
        return "the run ran out of memory";
    if (report->starts_in_middle)
        return "the trace starts in the middle of the run";
    return report->doubt;
}

/* What the run certainly needed: the memory at one time; if it ended out of memory, also its last
 * request, and the limit that replays found to get past that request. */
static uint64_t least_bytes(const struct mt_device_report *device)
{
    const struct mt_oom *oom = mt_fatal_oom(device);
    const struct mt_oom_answer *answer = device->oom_answer;
    uint64_t least = device->allocated_peak.bytes;

    if (oom)
        least = mt_max_u64(least, mt_add_most_u64(oom->then.allocated, oom->request_bytes));
    if (answer && answer->way_count && answer->ways[0].fits)
        least = mt_max_u64(least, answer->ways[0].low_bytes);
    return least;
}

static const char *why_more(const struct mt_report *report, const struct mt_device_report *device)
{
    const struct mt_driver_report *driver = mt_driver_of(report, device->device);

    if (mt_is_one_instant(report, device))
        return "no history was recorded";
    if (driver &&
        (driver->fatal || driver->no_space || (report->is_driver_level && driver->failures_in_all)))
        return "the driver refused a request";
    if (report->lacks_rules && !report->has_segments && !report->is_driver_level && !device->need)
        return "the allocator's own memory was not recorded";
    return mt_peaks_doubt(report, device);
}

static void fill_allocator(const struct mt_report *report, const struct mt_device_report *device,
                           struct mt_card_use *use)
{
    use->why_more = why_more(report, device);
    if (device->need)
        use->allocator_bytes = device->need->bytes;
    else if (use->why_more || report->is_driver_level)
        use->allocator_bytes = least_bytes(device);
    else
        use->allocator_bytes = device->reserved_peak.bytes;
}

/* A sample that NVML takes while the program allocates or frees differs from the trace by that
 * memory. The sample of highest use decides what the card must have, so it is the one that counts.
 */
static bool has_residual(const struct mt_driver_report *driver)
{
    const struct mt_residual *residual = driver ? &driver->residual : NULL;

    return residual && residual->samples && residual->tracked_from == MT_TRACKED_DRIVER &&
           residual->used_bytes > residual->tracked_bytes;
}

static void fill_beside(const struct mt_report *report, const struct mt_device_report *device,
                        struct mt_card_use *use)
{
    const struct mt_driver_report *driver = mt_driver_of(report, device->device);

    if (driver && driver->has_then && !report->is_driver_level)
        use->libraries_bytes = mt_sub_or_0_u64(driver->then.bytes, driver->then.framework_bytes);
    use->cuda_from = has_residual(driver) ? MT_CUDA_MEASURED : MT_CUDA_ASSUMED;
    use->cuda_bytes = has_residual(driver)
                          ? driver->residual.used_bytes - driver->residual.tracked_bytes
                          : mt_sub_or_0_u64(MT_CARD_OVERHEAD_BYTES, use->libraries_bytes);
}

static void fill_beside_simulated(const struct mt_report *report,
                                  const struct mt_device_report *device, struct mt_card_use *use)
{
    const struct mt_card_overhead overhead = mt_card_overhead_of(report, device);

    use->libraries_bytes = overhead.most_bytes;
    use->cuda_from = overhead.is_known ? MT_CUDA_TABLE : MT_CUDA_ASSUMED;
    if (overhead.lacks_rows) {
        use->libraries_bytes = overhead.outside_bytes;
        use->cuda_bytes = mt_sub_or_0_u64(MT_CARD_OVERHEAD_BYTES, use->libraries_bytes);
        return;
    }
    for (uint32_t i = 0; i < overhead.row_count; i++) {
        const enum mt_card_cost_kind kind = overhead.rows[i].cost->kind;

        if (kind == MT_COST_CUDA || kind == MT_COST_CUDA_WITH_NCCL)
            use->cuda_bytes = overhead.rows[i].cost->most_bytes;
    }
    use->libraries_bytes = mt_sub_or_0_u64(overhead.most_bytes, use->cuda_bytes);
}

const char *mt_card_cuda_name(enum mt_card_cuda cuda)
{
    static const char *const names[] = {[MT_CUDA_UNKNOWN] = "assumed",
                                        [MT_CUDA_MEASURED] = "measured",
                                        [MT_CUDA_TABLE] = "table",
                                        [MT_CUDA_ASSUMED] = "assumed"};

    return names[cuda];
}

/* Whether it is an arena in host memory, which involves no card and no CUDA. */
static bool is_host_memory(const struct mt_device_report *device)
{
    return device->name && !strcmp(device->name, MT_HOST_MEMORY);
}

bool mt_card_use_of(const struct mt_report *report, const struct mt_device_report *device,
                    struct mt_card_use *use)
{
    *use = (struct mt_card_use){0};
    if (is_host_memory(device) || mt_lacks_requests(device) || (report->what_if && !device->need))
        return false;
    if (mt_fatal_oom(device) && mt_card_exceeds_all(mt_fatal_oom(device)->request_bytes))
        return false; /* the size of the request is wrong */
    fill_allocator(report, device, use);
    if (!use->allocator_bytes)
        return false;
    if (report->is_dry_run)
        fill_beside_simulated(report, device, use);
    else
        fill_beside(report, device, use);
    use->bytes = mt_add_most_u64(use->allocator_bytes,
                                 mt_add_most_u64(use->libraries_bytes, use->cuda_bytes));
    return true;
}

bool mt_card_use_fits(const struct mt_card_use *use, const struct mt_card *card)
{
    return use->bytes <= card->memory_bytes;
}

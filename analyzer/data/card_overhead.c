#include "card_overhead.h"

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

uint64_t mt_card_overhead_fit_bytes(const struct mt_card_overhead *overhead, uint64_t need_bytes)
{
    uint64_t beyond_bytes = mt_sub_or_0_u64(overhead->most_bytes, MT_CARD_OVERHEAD_BYTES);

    return mt_add_most_u64(need_bytes, mt_max_u64(overhead->outside_bytes, beyond_bytes));
}

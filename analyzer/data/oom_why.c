#include "oom_why.h"

#include "card_use.h"
#include "util.h"

/* A step that adds 1.3 times as much as the largest before it had a larger input. */
static const double larger_step = 1.3;

/* Less may be an error of what CUDA itself takes. */
enum { MIN_SHARE_OF_OTHERS = 20 };
#define MIN_OTHERS_BYTES ((uint64_t)1 << 30)

/* The driver may refuse a request although slightly more is free. */
#define DRIVER_MARGIN_BYTES ((uint64_t)256 << 20)

/* Sets the rest of a card that neither is free nor belongs to this process; false: unknown. */
static bool others_of(const struct mt_report *report, const struct mt_device_report *device,
                      const struct mt_oom *oom, uint64_t *others_bytes)
{
    struct mt_card_use use;

    if (!device->total_memory_bytes || !mt_card_use_of(report, device, &use))
        return false;
    uint64_t own =
        mt_add_most_u64(oom->then.reserved, mt_add_most_u64(use.libraries_bytes, use.cuda_bytes));
    *others_bytes =
        mt_sub_or_0_u64(device->total_memory_bytes, mt_add_most_u64(own, oom->device_free_bytes));
    return true;
}

static enum mt_oom_kind kind_of_full(const struct mt_report *report,
                                     const struct mt_device_report *device,
                                     const struct mt_oom *oom, struct mt_oom_why *why)
{
    const uint64_t missing_bytes = mt_sub_or_0_u64(oom->request_bytes, oom->device_free_bytes);

    if (!others_of(report, device, oom, &why->others_bytes))
        return MT_OOM_CARD_FULL_BY;
    return why->others_bytes > MIN_OTHERS_BYTES && why->others_bytes >= missing_bytes &&
                   why->others_bytes > device->total_memory_bytes / MIN_SHARE_OF_OTHERS
               ? MT_OOM_BY_OTHERS
               : MT_OOM_CARD_FULL;
}

static enum mt_oom_kind kind_of(const struct mt_report *report,
                                const struct mt_device_report *device, const struct mt_oom *oom,
                                struct mt_oom_why *why)
{
    const struct mt_oom_answer *answer = device->oom_answer;

    if (mt_card_exceeds_all(oom->request_bytes))
        return MT_OOM_IMPOSSIBLE;
    if (answer && answer->oom == oom && answer->cause == MT_OOM_ADDRESS_SPACE)
        return MT_OOM_NO_ADDRESSES;
    if (why->waiting_bytes >= oom->request_bytes)
        return MT_OOM_WAITING;
    if (answer && answer->oom == oom && answer->cause == MT_OOM_FRAGMENTATION)
        return MT_OOM_FRAGMENTED;
    if (why->under_own_limit)
        return MT_OOM_OWN_LIMIT;
    return kind_of_full(report, device, oom, why);
}

/* Only steps that ended before the request count. */
static double times_last_step(const struct mt_device_report *device, const struct mt_oom *oom)
{
    uint64_t most = 0, added = 0;

    for (uint32_t i = 0; i < device->step_count; i++) {
        const struct mt_step_use *step = &device->steps[i];

        if (step->end_event < oom->event)
            most = mt_max_u64(most, mt_sub_or_0_u64(step->peak.allocated, step->enter.allocated));
        else if (step->begin_event <= oom->event)
            added = mt_sub_or_0_u64(oom->then.allocated, step->enter.allocated);
    }
    if (!most || (double)added < larger_step * (double)most)
        return 0;
    return (double)added / (double)most;
}

static bool ended_a_step(const struct mt_device_report *device, const struct mt_oom *oom)
{
    for (uint32_t i = 0; i < device->step_count; i++)
        if (device->steps[i].end_event < oom->event)
            return true;
    return false;
}

/* The roles are those of the allocated peak, which is that instant if nothing was freed between. */
static void fill_to_come(const struct mt_report *report, const struct mt_device_report *device,
                         const struct mt_oom *oom, struct mt_oom_why *why)
{
    const uint64_t *bytes = device->peak_role_bytes;

    why->is_first_pass = !report->starts_in_middle && !report->saw_backward &&
                         !ended_a_step(device, oom) && !bytes[MT_ROLE_GRADIENTS] &&
                         !bytes[MT_ROLE_OPTIMIZER_STATE] && bytes[MT_ROLE_PARAMETERS];
    /* Activations are kept only for a backward pass. */
    if (why->is_first_pass && bytes[MT_ROLE_ACTIVATIONS])
        why->to_come_bytes = bytes[MT_ROLE_PARAMETERS];
}

struct mt_oom_why mt_oom_why_of(const struct mt_report *report,
                                const struct mt_device_report *device, const struct mt_oom *oom)
{
    struct mt_oom_why why = {
        .waiting_bytes = mt_sub_or_0_u64(oom->then.active, oom->then.allocated),
        .under_own_limit =
            oom->device_free_bytes >= mt_add_most_u64(oom->request_bytes, DRIVER_MARGIN_BYTES)};

    why.times_last_step = times_last_step(device, oom);
    why.kind = kind_of(report, device, oom, &why);
    fill_to_come(report, device, oom, &why);
    return why;
}

const char *mt_oom_kind_name(enum mt_oom_kind kind)
{
    static const char *const names[] = {
        [MT_OOM_IMPOSSIBLE] = "impossible_size",  [MT_OOM_NO_ADDRESSES] = "address_space",
        [MT_OOM_WAITING] = "waiting_for_streams", [MT_OOM_FRAGMENTED] = "fragmentation",
        [MT_OOM_OWN_LIMIT] = "own_limit",         [MT_OOM_BY_OTHERS] = "other_processes",
        [MT_OOM_CARD_FULL] = "card_full",         [MT_OOM_CARD_FULL_BY] = "card_full_by_unknown"};

    return names[kind];
}

/* Gradients that stay through forward: zero_grad(set_to_none=False) writes zeros into them, so they
 * occupy memory while the activations grow. Required: the program has zero_grad, and gradients of
 * the first two steps exist until the last. */
#include "finding.h"

#include "units.h"

static bool has_zero_grad(const struct mt_report *report)
{
    uint32_t i;

    for (i = 0; i < report->phase_count; i++)
        if (mt_phase_kind_of(report->phases[i].name) == MT_PHASE_ZERO_GRAD)
            return true;
    return false;
}

/* DDP's buckets stay by design. */
static bool is_bucket(const struct mt_finding_search *search, uint32_t stack)
{
    return mt_stack_kind(&search->analysis->survey.roles.stacks, stack) & MT_STACK_BUCKETS;
}

static enum mt_status find(struct mt_finding_search *search)
{
    const struct mt_device_report *device = search->device;
    struct mt_arena *arena = &search->analysis->report->arena;
    const uint64_t peak = device->allocated_peak.bytes;
    const struct mt_lives *lives;
    uint64_t kept = 0, others = 0, blocks = 0;
    uint32_t i;
    const char *evidence[1];
    char n[2][MT_UNITS_TEXT];
    struct mt_finding finding = {.id = "kept-gradients",
                                 .severity = "info",
                                 .evidence = evidence,
                                 .evidence_count = 1,
                                 .advice = "call zero_grad(set_to_none=True), the default: it "
                                           "frees gradients before forward runs"};

    if (!has_zero_grad(search->analysis->report) ||
        !mt_finding_matters(device->peak_role_bytes[MT_ROLE_GRADIENTS], peak))
        return MT_OK;
    mt_finding_lives(search, &lives);
    if (lives->too_many || lives->step_count < 3)
        return MT_OK;
    for (i = 0; i < lives->count; i++) {
        const struct mt_life *life = &lives->lives[i];
        if (life->role != MT_ROLE_GRADIENTS || is_bucket(search, life->stack))
            continue;
        if (life->birth_step < 2 && life->end_step + 1 >= lives->step_count) {
            kept += life->bytes;
            blocks++;
        } else {
            others += life->bytes;
        }
    }
    if (!mt_finding_matters(kept, peak) || others > kept)
        return MT_OK;
    finding.bytes = kept;
    finding.title = mt_arena_printf(arena,
                                    "%s of gradients (%s of the peak) stays allocated during "
                                    "forward: zero_grad(set_to_none=False)",
                                    mt_format_bytes(n[0], kept),
                                    mt_format_percent(n[1], (double)kept / (double)peak));
    evidence[0] = mt_arena_printf(
        arena, "%s blocks of the first steps are still allocated in step %lld",
        mt_format_count(n[0], blocks), (long long)device->steps[device->step_count - 1].step);
    mt_finding_publish(search, &finding);
    return MT_OK;
}

const struct mt_finding_ops mt_finding_kept_gradients = {.find = find};

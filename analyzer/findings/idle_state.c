/* Moving the optimizer's state to the host, except during the optimizer's step: nothing else reads
 * it. Peaks of forward and backward would be lower by its size, that of the step would not. The
 * claimed saving is that of a replay in which each block of the state ends after a step and is
 * requested again before the next.
 *
 * The peaks of phases first give an upper bound without another pass: phases that need the state,
 * and earlier phases, save nothing. */
#include "retime.h"

#include <stdlib.h>

#include "units.h"

#define MAX_MOVES  (1u << 20) /* moves of a block, in both directions, that are replayed */
#define MAX_EVENTS 500000     /* of the device: a replay takes as long as the first pass */

struct look {
    struct mt_finding_search *search;
    const struct mt_phases *phases;
    struct mt_arena *arena;
    const struct mt_idle_use *idle; /* of the state in the peak's phase */
    struct away {                   /* from the end of one step to the start of the next */
        uint64_t from, until;       /* events: away before `from`, back before `until` */
    } * aways;
    uint32_t away_count;
    const struct mt_life **state; /* in order of allocation */
    uint32_t state_count;
    uint64_t moved_bytes; /* in one direction, each time; at its maximum */
    struct mt_retime retime;
    struct mt_retimed_peaks after;
};

/* For the phase of the peak: the row of the state that stays through it. */
static const struct mt_idle_use *idle_at_peak(const struct mt_finding_search *search)
{
    const struct mt_device_report *device = search->device;
    const struct mt_phase *phases = search->analysis->report->phases;
    const uint64_t peak = device->allocated_peak.event;
    uint32_t i;

    for (i = 0; i < device->idle_count; i++) {
        const struct mt_idle_use *idle = &device->idle[i];
        const struct mt_phase *phase = &phases[idle->phase];
        if (idle->role == MT_ROLE_OPTIMIZER_STATE && peak >= phase->begin_event &&
            peak <= phase->end_event)
            return idle;
    }
    return NULL;
}

static bool is_optimizer(const struct look *look, uint32_t phase)
{
    return look->phases->facts[phase].kind == MT_PHASE_OPTIMIZER;
}

/* The highest peak of a phase in which the state exists, or does not exist yet. */
static uint64_t least_peak(const struct look *look)
{
    const struct mt_device_report *device = look->search->device;
    uint64_t least = 0;
    bool stepped = false;
    uint32_t i;

    for (i = 0; i < look->phases->count; i++) {
        uint64_t peak = device->phase_uses[i].peak.allocated;
        if (look->phases->phases[i].is_step || !look->search->analysis->report->main_phase[i])
            continue;
        stepped |= is_optimizer(look, i);
        if ((!stepped || is_optimizer(look, i)) && peak > least)
            least = peak;
    }
    return least;
}

static bool may_pay(struct look *look)
{
    const struct mt_finding_search *search = look->search;
    const uint64_t peak = search->device->allocated_peak.bytes, least = least_peak(look);

    look->idle = idle_at_peak(search);
    return look->idle && peak > least && mt_finding_matters(peak - least, peak) &&
           mt_finding_matters(look->idle->bytes, peak);
}

/* From the end of a step of the optimizer to the start of the next, if backward is in between:
 * parts of one step are not separated. */
static void note_aways(struct look *look)
{
    uint64_t over = 0, backward = 0;
    uint32_t i;

    look->aways = mt_arena_array(look->arena, (size_t)look->phases->count + 1, sizeof *look->aways);
    for (i = 0; i < look->phases->count; i++) {
        const struct mt_phase *phase = &look->phases->phases[i];
        if (look->phases->facts[i].kind == MT_PHASE_BACKWARD)
            backward = phase->begin_event;
        if (!is_optimizer(look, i))
            continue;
        if (over && backward >= over && phase->begin_event > backward)
            look->aways[look->away_count++] = (struct away){over, phase->begin_event};
        if (phase->end_event >= over)
            over = phase->end_event + 1;
    }
}

static bool is_away(const struct mt_life *life, const struct away *away)
{
    return life->birth_event < away->from && life->end_event >= away->until;
}

static int by_birth(const void *a, const void *b)
{
    const struct mt_life *const *x = a, *const *y = b;

    return ((*x)->birth_event > (*y)->birth_event) - ((*x)->birth_event < (*y)->birth_event);
}

static void gather_state(struct look *look, const struct mt_lives *lives)
{
    uint32_t i;

    look->state = mt_arena_array(look->arena, (size_t)lives->count + 1, sizeof *look->state);
    for (i = 0; i < lives->count; i++)
        if (lives->lives[i].role == MT_ROLE_OPTIMIZER_STATE)
            look->state[look->state_count++] = &lives->lives[i];
    if (look->state_count)
        qsort(look->state, look->state_count, sizeof *look->state, by_birth);
}

/* All blocks leave in order of allocation, and return in that order. */
static void send_away(struct look *look, const struct away *away)
{
    const uint16_t device = look->search->device->device;
    uint64_t bytes = 0;
    uint32_t i;

    for (i = 0; i < look->state_count; i++) {
        if (!is_away(look->state[i], away))
            continue;
        bytes += look->state[i]->requested_bytes;
        mt_retime_free(&look->retime, device, away->from, look->state[i]);
        mt_retime_alloc(&look->retime, device, away->until, look->state[i]);
    }
    if (bytes > look->moved_bytes)
        look->moved_bytes = bytes;
}

static enum mt_status replay(struct look *look)
{
    const struct mt_lives *lives;
    uint32_t i;

    mt_finding_lives(look->search, &lives);
    if (lives->too_many)
        return MT_OK;
    gather_state(look, lives);
    note_aways(look);
    if ((uint64_t)look->state_count * look->away_count > MAX_MOVES)
        return MT_OK;
    for (i = 0; i < look->away_count; i++)
        send_away(look, &look->aways[i]);
    return look->moved_bytes ? mt_retime_replay(&look->retime, look->search, &look->after) : MT_OK;
}

static void say(struct look *look)
{
    const struct mt_device_report *device = look->search->device;
    const struct mt_phase *phase = &look->phases->phases[look->idle->phase];
    const char *evidence[4];
    char n[2][MT_UNITS_TEXT];
    struct mt_finding finding = {
        .id = "idle-state",
        .severity = "info",
        .bytes = device->allocated_peak.bytes - look->after.allocated_bytes,
        .evidence = evidence,
        .evidence_count = 4,
        .advice = "keep it in host memory and copy it to the device for the step, if there is time "
                  "for the transfer (ZeRO-Offload, FSDP's CPUOffload, a paged optimizer)"};

    finding.title = mt_arena_printf(look->arena,
                                    "%s less at the peak if the optimizer state is on the device "
                                    "only during the optimizer step",
                                    mt_format_bytes(n[0], finding.bytes));
    evidence[0] = mt_arena_printf(
        look->arena,
        "%s of it stays allocated throughout %s, where the peak is, and is not used there",
        mt_format_bytes(n[0], look->idle->bytes), phase->path);
    evidence[1] = mt_arena_printf(
        look->arena,
        "replay with the state absent between optimizer steps: %s allocated instead of %s",
        mt_format_bytes(n[0], look->after.allocated_bytes),
        mt_format_bytes(n[1], device->allocated_peak.bytes));
    evidence[2] = mt_arena_printf(look->arena, "in the same replay: %s reserved instead of %s",
                                  mt_format_bytes(n[0], look->after.reserved_bytes),
                                  mt_format_bytes(n[1], device->reserved_peak.bytes));
    evidence[3] =
        mt_arena_printf(look->arena, "%s to transfer in each direction for each optimizer step",
                        mt_format_bytes(n[0], look->moved_bytes));
    mt_finding_publish(look->search, &finding);
}

static enum mt_status find(struct mt_finding_search *search)
{
    struct look look = {.search = search,
                        .retime = {.within_reserved = true},
                        .phases = &search->analysis->survey.phases,
                        .arena = &search->analysis->report->arena};
    const struct mt_device_report *device = search->device;
    enum mt_status status = MT_OK;

    if (!mt_finding_replayable(search) || search->analysis->source->header.starts_in_middle ||
        device->events > MAX_EVENTS || !may_pay(&look))
        return MT_OK;
    status = replay(&look);
    if (status == MT_OK && look.after.known &&
        look.after.allocated_bytes < device->allocated_peak.bytes &&
        mt_finding_matters(device->allocated_peak.bytes - look.after.allocated_bytes,
                           device->allocated_peak.bytes))
        say(&look);
    mt_retime_release(&look.retime);
    return status;
}

const struct mt_finding_ops mt_finding_idle_state = {.find = find};

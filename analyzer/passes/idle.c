#include "idle.h"

#include <string.h>

#define KIND(kind) (1u << (kind))

bool mt_role_is_idle_in(enum mt_role role, enum mt_phase_kind kind)
{
    static const uint32_t idle[MT_ROLE_COUNT] = {
        [MT_ROLE_OPTIMIZER_STATE] = KIND(MT_PHASE_DATA) | KIND(MT_PHASE_FORWARD) |
                                    KIND(MT_PHASE_LOSS) | KIND(MT_PHASE_BACKWARD) |
                                    KIND(MT_PHASE_ZERO_GRAD),
        [MT_ROLE_GRADIENTS] = KIND(MT_PHASE_DATA) | KIND(MT_PHASE_FORWARD) | KIND(MT_PHASE_LOSS),
        [MT_ROLE_ACTIVATIONS] =
            KIND(MT_PHASE_DATA) | KIND(MT_PHASE_ZERO_GRAD) | KIND(MT_PHASE_OPTIMIZER),
    };

    return (idle[role] & KIND(kind)) != 0;
}

/* Whether it is idle in all nested phases. */
static bool is_idle_in(enum mt_role role, uint32_t kinds)
{
    int kind;

    for (kind = MT_PHASE_UNKNOWN; kind <= MT_PHASE_OPTIMIZER; kind++)
        if ((kinds & KIND(kind)) && !mt_role_is_idle_in(role, (enum mt_phase_kind)kind))
            return false;
    return true;
}

static uint64_t movable_bytes(const struct mt_idle_phase *phase, enum mt_role role)
{
    if (is_idle_in(role, phase->kinds))
        return phase->bytes[role];
    if (role == MT_ROLE_ACTIVATIONS && phase->kinds == KIND(MT_PHASE_LOSS))
        return phase->bytes[role] - phase->output_bytes;
    return 0;
}

static bool has_name(const struct mt_phases *phases, int32_t phase, const char *name)
{
    return strcmp(phases->phases[phase].name, name) == 0;
}

/* Slot for a phase: that of its name, otherwise a free one, otherwise that of the lowest. */
static uint32_t place_for(const struct mt_idle_watch *watch, const struct mt_phases *phases,
                          const struct mt_phase_use *uses, const char *name)
{
    uint32_t i, lowest = 0;

    for (i = 0; i < watch->count; i++) {
        if (has_name(phases, watch->phases[i].phase, name))
            return i;
        if (uses[watch->phases[i].phase].peak.allocated <
            uses[watch->phases[lowest].phase].peak.allocated)
            lowest = i;
    }
    return watch->count < MT_IDLE_PHASES ? watch->count : lowest;
}

static uint32_t kinds_within(const struct mt_phases *phases, int32_t phase)
{
    uint32_t i, kinds = KIND(phases->facts[phase].kind);

    for (i = (uint32_t)phase + 1;
         i < phases->count && phases->phases[i].begin_event <= phases->phases[phase].end_event; i++)
        kinds |= KIND(phases->facts[i].kind);
    return kinds;
}

static void sort(struct mt_idle_watch *watch)
{
    uint32_t i, at;

    for (i = 1; i < watch->count; i++) {
        const struct mt_idle_phase moved = watch->phases[i];
        for (at = i; at > 0 && watch->phases[at - 1].phase > moved.phase; at--)
            watch->phases[at] = watch->phases[at - 1];
        watch->phases[at] = moved;
    }
}

void mt_idle_choose(struct mt_idle_watch *watch, const struct mt_survey *survey,
                    const struct mt_survey_device *device, const bool *is_main)
{
    const struct mt_phases *phases = &survey->phases;
    const struct mt_phase_use *uses = device->uses;
    uint32_t i, at;

    for (i = 0; i < phases->count; i++) {
        if (!is_main[i] || phases->phases[i].end_event < device->first_event)
            continue;
        at = place_for(watch, phases, uses, phases->phases[i].name);
        if (at < watch->count &&
            uses[i].peak.allocated <= uses[watch->phases[at].phase].peak.allocated)
            continue;
        watch->count += at == watch->count;
        watch->phases[at] = (struct mt_idle_phase){.phase = (int32_t)i};
    }
    sort(watch);
    for (i = 0; i < watch->count; i++) {
        struct mt_idle_phase *phase = &watch->phases[i];
        phase->eve = mt_phase_last_event_before(&phases->phases[phase->phase]);
        phase->kinds = kinds_within(phases, phase->phase);
    }
}

static struct mt_idle_phase *find(struct mt_idle_watch *watch, int32_t phase)
{
    uint32_t i;

    for (i = 0; i < watch->count; i++)
        if (watch->phases[i].phase == phase)
            return &watch->phases[i];
    return NULL;
}

static bool is_live_activation(const struct mt_block_life *block, uint16_t device)
{
    return mt_block_is_live(block, device) && block->role == MT_ROLE_ACTIVATIONS;
}

/* Outputs of the model's last line: the newest activation, and all with its stack. */
static void note_outputs(const struct mt_block_life *blocks, size_t count, uint16_t device,
                         struct mt_idle_phase *phase)
{
    const struct mt_block_life *newest = NULL;

    for (size_t i = 0; i < count; i++)
        if (is_live_activation(&blocks[i], device) &&
            (!newest || blocks[i].birth_event > newest->birth_event))
            newest = &blocks[i];
    for (size_t i = 0; newest && i < count; i++)
        if (is_live_activation(&blocks[i], device) && blocks[i].stack == newest->stack)
            phase->output_bytes += blocks[i].block_bytes;
    phase->output_stack = newest ? newest->stack : MT_NO_ID;
}

void mt_idle_begin(struct mt_idle_watch *watch, int32_t index, uint16_t device,
                   const uint64_t role_bytes[MT_ROLE_COUNT], const struct mt_block_life *blocks,
                   size_t block_count)
{
    struct mt_idle_phase *phase = find(watch, index);

    if (!phase)
        return;
    memcpy(phase->bytes, role_bytes, sizeof phase->bytes);
    if (phase->kinds == KIND(MT_PHASE_LOSS))
        note_outputs(blocks, block_count, device, phase);
    phase->open = true;
    watch->open_count++;
}

void mt_idle_end(struct mt_idle_watch *watch, int32_t index)
{
    struct mt_idle_phase *phase = find(watch, index);

    if (!phase || !phase->open)
        return;
    phase->open = false;
    phase->ended = true;
    watch->open_count--;
}

void mt_idle_leave(struct mt_idle_watch *watch, const struct mt_block_life *block)
{
    uint32_t i;

    for (i = 0; i < watch->count; i++) {
        struct mt_idle_phase *phase = &watch->phases[i];
        if (!phase->open || block->birth_event > phase->eve)
            continue;
        phase->bytes[block->role] -= block->block_bytes;
        if (phase->output_bytes && block->role == MT_ROLE_ACTIVATIONS &&
            block->stack == phase->output_stack)
            phase->output_bytes -= block->block_bytes;
    }
}

void mt_idle_fill(const struct mt_idle_watch *watch, struct mt_arena *arena, bool saw_backward,
                  struct mt_device_report *device)
{
    uint32_t i, role;

    device->idle =
        mt_arena_array(arena, (size_t)watch->count * MT_ROLE_COUNT + 1, sizeof *device->idle);
    for (i = 0; i < watch->count; i++) {
        const struct mt_idle_phase *phase = &watch->phases[i];
        for (role = 0; phase->ended && role < MT_ROLE_COUNT; role++) {
            if (!phase->bytes[role])
                continue;
            device->idle[device->idle_count++] = (struct mt_idle_use){
                .phase = phase->phase,
                .role = (enum mt_role)role,
                .bytes = phase->bytes[role],
                .movable_bytes = saw_backward ? movable_bytes(phase, (enum mt_role)role) : 0};
        }
    }
}

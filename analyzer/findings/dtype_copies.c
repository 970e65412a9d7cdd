/* Findings about a model that is on the device twice: in two dtypes, or in two generations.
 *
 * A model that is on the device twice during set-up, in two dtypes: converted to half precision
 * after it was moved there, or loaded there and then copied. If the peak is in set-up, blocks that
 * are gone when the first phase begins are compared with those that stay. If nearly all of them
 * have twice, or half, the size of blocks that stay, one for one, they are copies. The finding
 * first examines blocks that modules made when they were moved or converted, which cannot be
 * anything else; then all others, which must be many and of several sizes. The claimed saving is
 * that of a replay in which each copy ends as soon as it is allocated. */
#include <stdlib.h>

#include "analysis.h"
#include "finding.h"
#include "grow.h"
#include "map.h"
#include "process_memory.h"
#include "site.h"
#include "sorted.h"
#include "units.h"
#include "util.h"
#include "work_kinds.h"

/* Copies of the weights in half precision, as autocast makes and keeps them (weight_copies.h). */

enum { MIN_SHARE = 10 /* of the peak */ };

static void say_cast_weights(struct mt_finding_search *search, uint64_t blocks,
                             const struct mt_holding *largest)
{
    struct mt_arena *arena = &search->analysis->report->arena;
    const uint64_t peak = search->device->allocated_peak.bytes,
                   bytes = search->device->peak_role_bytes[MT_ROLE_WEIGHT_COPIES];
    const char *evidence[2],
        *label = mt_site_label(arena, &search->analysis->source->symbols, largest->stack, false);
    char n[2][MT_UNITS_TEXT];
    struct mt_finding finding = {
        .id = "cast-weights",
        .severity = "info",
        .bytes = bytes,
        .evidence = evidence,
        .evidence_count = 2,
        .advice = mt_run_trains(search)
                      ? "keep the parameters in bfloat16 (model.to(torch.bfloat16)) if training "
                        "tolerates it; backward needs the copies, so torch.autocast("
                        "cache_enabled=False) frees them only in checkpointed layers"
                      : "convert the weights once (model.to(torch.bfloat16)) if nothing needs "
                        "them in full precision; or torch.autocast(cache_enabled=False), which "
                        "casts them at each use"};

    finding.title = mt_arena_printf(
        arena, "%s (%s) of the peak: half-precision copies of the weights",
        mt_format_bytes(n[0], bytes), mt_format_percent(n[1], (double)bytes / (double)peak));
    evidence[0] = mt_arena_printf(arena, "%s blocks, each half as large as a parameter",
                                  mt_format_count(n[0], blocks));
    evidence[1] = mt_arena_printf(arena, "most bytes come from %s", label);
    mt_finding_publish(search, &finding);
}

static enum mt_status find_cast_weights(struct mt_finding_search *search)
{
    const struct mt_device_report *device = search->device;
    const uint64_t peak = device->allocated_peak.bytes,
                   bytes = device->peak_role_bytes[MT_ROLE_WEIGHT_COPIES];
    const struct mt_holding *largest = NULL;
    uint64_t blocks = 0;

    if (!device->instant_count || search->analysis->report->is_driver_level ||
        !mt_finding_matters(bytes, peak) || bytes < peak / MIN_SHARE)
        return MT_OK;
    for (uint32_t i = 0; i < device->instants->holding_count; i++) {
        const struct mt_holding *holding = &device->instants->holdings[i];

        if (holding->role != MT_ROLE_WEIGHT_COPIES)
            continue;
        blocks += holding->blocks;
        if (!largest || holding->bytes > largest->bytes)
            largest = holding;
    }
    mt_finding_mark_role(search, MT_ROLE_WEIGHT_COPIES);
    if (largest)
        say_cast_weights(search, blocks, largest);
    return MT_OK;
}

const struct mt_finding_ops mt_finding_cast_weights = {.find = find_cast_weights};

enum {
    PAIRED_PARTS = 10, /* everything except this part must be paired, in bytes */
    MIN_PAIRS = 4,     /* for blocks that may be anything: */
    MIN_SIZES = 3      /* different sizes */
};

#define MAX_BLOCKS (1u << 20) /* in set-up */

struct setup {
    struct mt_finding_search *search;
    uint64_t until; /* the last event of set-up */
    struct mt_life *blocks;
    size_t count, capacity;
    struct mt_map slots; /* address -> live block */

    bool moved; /* examines only blocks of modules that were moved or converted */
    struct mt_life **gone, **stays; /* of these, by size */
    size_t gone_count, stay_count;
    uint64_t gone_bytes; /* at the peak */
};

/* Pairs of a block that is gone and one that stays. */
struct pairs {
    struct mt_life **gone;
    const struct mt_life *stays; /* of the largest */
    uint64_t bytes;              /* of those alive at the peak */
    uint32_t count, at_peak, sizes;
};

static enum mt_status on_event(void *context, struct mt_event *event)
{
    struct setup *setup = context;

    if (event->seq > setup->until)
        return MT_END;
    if (event->device != setup->search->device->device)
        return MT_OK;
    if (event->kind == MT_EVENT_FREE_REQUESTED || event->kind == MT_EVENT_FREE_COMPLETED) {
        uint32_t slot = mt_map_take(&setup->slots, event->addr);
        if (slot != MT_MAP_NONE)
            setup->blocks[slot].end_event = event->seq;
        return MT_OK;
    }
    if (event->kind != MT_EVENT_ALLOC || setup->count == MAX_BLOCKS)
        return MT_OK;
    mt_grow_to(&setup->blocks, &setup->capacity, setup->count + 1, sizeof *setup->blocks);
    setup->blocks[setup->count] = mt_life_of_event(event, 0);
    setup->blocks[setup->count].end_event = UINT64_MAX;
    mt_map_put(&setup->slots, event->addr, (uint32_t)setup->count++);
    return MT_OK;
}

static bool is_there(const struct setup *setup, const struct mt_life *block)
{
    const uint64_t peak = setup->search->device->allocated_peak.event;

    return block->birth_event <= peak && block->end_event > peak;
}

MT_DEFINE_POINTER_ORDER(by_size, struct mt_life,
                        MT_ASCENDING(requested_bytes) || MT_ASCENDING(birth_event))

static bool was_moved(const struct setup *setup, const struct mt_life *block)
{
    const struct mt_stack_kinds *kinds = &setup->search->analysis->survey.roles.stacks;

    return mt_stack_kind(kinds, block->stack) & MT_STACK_MOVES;
}

/* Divides the examined blocks: gone, or alive when set-up ends. */
static void divide(struct setup *setup)
{
    setup->gone_count = setup->stay_count = 0;
    setup->gone_bytes = 0;
    for (size_t i = 0; i < setup->count; i++) {
        struct mt_life *block = &setup->blocks[i];
        bool stays = block->end_event == UINT64_MAX;
        if (was_moved(setup, block) != setup->moved && (setup->moved || !stays))
            continue;
        if (stays) {
            setup->stays[setup->stay_count++] = block;
            continue;
        }
        setup->gone[setup->gone_count++] = block;
        setup->gone_bytes += is_there(setup, block) ? block->requested_bytes : 0;
    }
    if (setup->gone_count)
        qsort(setup->gone, setup->gone_count, sizeof *setup->gone, by_size);
    if (setup->stay_count)
        qsort(setup->stays, setup->stay_count, sizeof *setup->stays, by_size);
}

static void add_pair(const struct setup *setup, struct pairs *pairs, struct mt_life *gone,
                     const struct mt_life *stays)
{
    if (!pairs->count || pairs->gone[pairs->count - 1]->requested_bytes != gone->requested_bytes)
        pairs->sizes++;
    if (is_there(setup, gone)) {
        pairs->bytes += gone->requested_bytes;
        pairs->at_peak++;
    }
    pairs->gone[pairs->count++] = gone;
    pairs->stays = stays;
}

/* Pairs each freed block with a surviving one: the sizes differ by the ratio of `gone_times` and
 * `stay_times`. */
static void pair(const struct setup *setup, uint64_t gone_times, uint64_t stay_times,
                 struct pairs *pairs)
{
    size_t i = 0, j = 0;

    *pairs = (struct pairs){.gone = pairs->gone};
    while (i < setup->gone_count && j < setup->stay_count) {
        uint64_t gone = setup->gone[i]->requested_bytes * gone_times,
                 stays = setup->stays[j]->requested_bytes * stay_times;
        if (gone == stays)
            add_pair(setup, pairs, setup->gone[i], setup->stays[j]);
        i += gone <= stays;
        j += stays <= gone;
    }
}

static bool are_copies(const struct setup *setup, const struct pairs *pairs)
{
    const struct mt_finding_search *search = setup->search;

    return (setup->moved || (pairs->at_peak >= MIN_PAIRS && pairs->sizes >= MIN_SIZES)) &&
           setup->gone_bytes - pairs->bytes <= setup->gone_bytes / PAIRED_PARTS &&
           mt_finding_matters(pairs->bytes, search->device->allocated_peak.bytes);
}

static const char *advice_for(const struct setup *setup)
{
    return setup->moved ? "give the model its final dtype before it reaches the device: "
                          "model.to(device, dtype) in one call, torch_dtype=... in "
                          "from_pretrained(), or torch.set_default_dtype(); or create it under "
                          "torch.device('meta') and call to_empty()"
                        : "load the checkpoint with map_location='cpu', or save it in the model's "
                          "dtype and load it with load_state_dict(..., assign=True)";
}

static void say(const struct setup *setup, const struct pairs *pairs,
                const struct mt_retimed_peaks *after)
{
    const struct mt_device_report *device = setup->search->device;
    const struct mt_symbols *symbols = &setup->search->analysis->source->symbols;
    struct mt_arena *arena = &setup->search->analysis->report->arena;
    const struct mt_life *largest = pairs->gone[pairs->count - 1];
    const char *gone = mt_site_label(arena, symbols, largest->stack, false),
               *stays = mt_site_label(arena, symbols, pairs->stays->stack, false), *evidence[4];
    char n[3][MT_UNITS_TEXT];
    struct mt_finding finding = {.id = "dtype-copies",
                                 .severity = "warning",
                                 .bytes = device->allocated_peak.bytes - after->allocated_bytes,
                                 .saving = MT_SAVING_ESTIMATED,
                                 .saves_bytes = mt_reserved_saving(setup->search, after),
                                 .evidence = evidence,
                                 .evidence_count = 4,
                                 .advice = advice_for(setup)};

    finding.title = mt_arena_printf(
        arena, "%s less at the peak if setup does not hold the model in two dtypes at once",
        mt_format_bytes(n[0], finding.bytes));
    evidence[0] = mt_arena_printf(
        arena,
        "at the peak, before the first phase, %s blocks (%s) are alive that setup frees later; "
        "each is %s as large as a block that stays",
        mt_format_count(n[0], pairs->at_peak), mt_format_bytes(n[1], pairs->bytes),
        largest->requested_bytes > pairs->stays->requested_bytes ? "twice" : "half");
    evidence[1] = mt_arena_printf(arena, "the freed blocks come from %s, those that stay from %s",
                                  gone, stays);
    evidence[2] =
        mt_arena_printf(arena, "replay with each of them freed at once: %s allocated instead of %s",
                        mt_format_bytes(n[0], after->allocated_bytes),
                        mt_format_bytes(n[1], device->allocated_peak.bytes));
    evidence[3] = mt_arena_printf(arena, "in the same replay: %s reserved instead of %s",
                                  mt_format_bytes(n[0], after->reserved_bytes),
                                  mt_format_bytes(n[1], device->reserved_peak.bytes));
    mt_finding_publish(setup->search, &finding);
}

static enum mt_status prove(const struct setup *setup, const struct pairs *pairs)
{
    const struct mt_device_report *device = setup->search->device;
    struct mt_retime retime = {.within_reserved = true};
    struct mt_retimed_peaks after;
    enum mt_status status = MT_OK;

    for (uint32_t i = 0; i < pairs->count; i++)
        mt_retime_free(&retime, device->device, pairs->gone[i]->birth_event + 1, pairs->gone[i]);
    status = mt_retime_replay(&retime, setup->search, &after);
    if (status == MT_OK && after.known && after.allocated_bytes < device->allocated_peak.bytes &&
        mt_finding_matters(device->allocated_peak.bytes - after.allocated_bytes,
                           device->allocated_peak.bytes))
        say(setup, pairs, &after);
    mt_retime_release(&retime);
    return status;
}

/* In one dtype and then in one of half its size, or the reverse. */
static bool find_copies(struct setup *setup, bool moved, struct pairs *pairs)
{
    setup->moved = moved;
    divide(setup);
    pair(setup, 1, 2, pairs);
    if (are_copies(setup, pairs))
        return true;
    pair(setup, 2, 1, pairs);
    return are_copies(setup, pairs);
}

static enum mt_status look_at(struct setup *setup)
{
    struct pairs pairs = {0};
    enum mt_status status = mt_read_again_events(setup->search->analysis, setup, on_event);

    if (status != MT_OK || setup->count == MAX_BLOCKS)
        return status;
    setup->gone = mt_memory_zeroed(setup->count + 1, sizeof *setup->gone);
    setup->stays = mt_memory_zeroed(setup->count + 1, sizeof *setup->stays);
    pairs.gone = mt_memory_zeroed(setup->count + 1, sizeof *pairs.gone);
    if (find_copies(setup, true, &pairs) || find_copies(setup, false, &pairs))
        status = prove(setup, &pairs);
    free(pairs.gone);
    return status;
}

/* Whether the peak is in set-up, and later ones are well below it. */
static bool may_pay(const struct mt_finding_search *search)
{
    const struct mt_report *report = search->analysis->report;
    const uint64_t peak = search->device->allocated_peak.bytes;
    uint64_t most = 0;

    if (!report->phase_count ||
        search->device->allocated_peak.event >= report->phases[0].begin_event)
        return false;
    for (uint32_t i = 0; i < report->phase_count; i++)
        most = mt_max_u64(most, search->device->phase_uses[i].peak.allocated);
    return most < peak && mt_finding_matters(peak - most, peak);
}

static enum mt_status find(struct mt_finding_search *search)
{
    struct setup setup = {.search = search};

    if (!mt_finding_replayable(search) || search->analysis->source->header.starts_in_middle ||
        !may_pay(search))
        return MT_OK;
    setup.until = mt_phase_last_event_before(&search->analysis->report->phases[0]);
    enum mt_status status = look_at(&setup);
    mt_map_release(&setup.slots);
    free(setup.blocks);
    free(setup.gone);
    free(setup.stays);
    return status;
}

const struct mt_finding_ops mt_finding_dtype_copies = {.find = find};

/* A step of JAX that returns new parameters and state while its arguments still exist: they are not
 * donated. At the peak, the blocks of these roles are two generations of equal sizes: all of one
 * are made before all of the other, and end first. */

enum {
    MAX_GENERATION = 1 << 16, /* blocks at the peak */
    SMALL_PARTS = 100         /* that much of the bytes may differ */
};

struct generations {
    struct mt_finding_search *search;
    struct mt_life *blocks; /* alive at the peak, or now */
    size_t count, capacity;
    struct mt_map slots; /* address -> live block */
    size_t pairs;
    uint64_t last_old; /* event: the newest block of the older half */
};

static void end_generation(struct generations *both, const struct mt_event *event)
{
    const uint32_t slot = mt_map_take(&both->slots, event->addr);

    if (slot == MT_MAP_NONE)
        return;
    both->blocks[slot].end_event = event->seq;
    if (event->seq > both->search->device->allocated_peak.event || slot == --both->count)
        return;
    both->blocks[slot] = both->blocks[both->count];
    mt_map_put(&both->slots, both->blocks[slot].addr, slot);
}

static enum mt_status on_event_of_step(void *context, struct mt_event *event)
{
    struct generations *both = context;
    struct mt_survey *survey = &both->search->analysis->survey;
    const bool is_here = event->device == both->search->device->device;
    uint64_t bytes;
    uint8_t code;

    if (is_here &&
        (event->kind == MT_EVENT_FREE_REQUESTED || event->kind == MT_EVENT_FREE_COMPLETED))
        end_generation(both, event);
    if (event->kind != MT_EVENT_ALLOC || !mt_alloc_log_next(&survey->log, &bytes, &code) ||
        !is_here)
        return MT_OK; /* the log has those of every device */
    if (mt_alloc_log_ends_old(event, bytes))
        end_generation(both, event);
    enum mt_role role = mt_role_resolve(&survey->roles, code, event->stack, event->size_bytes);
    if (!bytes || event->seq > both->search->device->allocated_peak.event ||
        (role != MT_ROLE_PARAMETERS && role != MT_ROLE_OPTIMIZER_STATE))
        return MT_OK;
    if (both->count == MAX_GENERATION)
        return MT_END;
    mt_grow_to(&both->blocks, &both->capacity, both->count + 1, sizeof *both->blocks);
    both->blocks[both->count] = mt_life_of_event(event, bytes);
    both->blocks[both->count].end_event = UINT64_MAX;
    mt_map_put(&both->slots, event->addr, (uint32_t)both->count++);
    return MT_OK;
}

MT_DEFINE_ORDER(by_birth, struct mt_life, MT_ASCENDING(birth_event))
MT_DEFINE_ORDER(by_bytes, struct mt_life, MT_DESCENDING(bytes) || MT_THEN(by_birth))

/* About half of the bytes, in order of birth. */
static size_t older_half(const struct generations *both, uint64_t total)
{
    uint64_t bytes = 0;
    size_t i = 0;

    while (i < both->count && bytes + both->blocks[i].bytes / 2 <= total / 2)
        bytes += both->blocks[i++].bytes;
    return i;
}

/* Bytes of the blocks of the older half that have a new one of equal size, if those are nearly all
 * and end before the new ones; otherwise 0. Scalars may have other lives. */
static uint64_t generation_of(struct generations *both)
{
    uint64_t total = 0, bytes = 0, last_end = 0, first_end = UINT64_MAX;

    for (size_t k = 0; k < both->count; k++)
        total += both->blocks[k].bytes;
    if (both->count)
        qsort(both->blocks, both->count, sizeof *both->blocks, by_birth);
    size_t half = older_half(both, total);
    if (!half || half == both->count)
        return 0;
    both->last_old = both->blocks[half - 1].birth_event;
    qsort(both->blocks, half, sizeof *both->blocks, by_bytes);
    qsort(both->blocks + half, both->count - half, sizeof *both->blocks, by_bytes);
    for (size_t i = 0, j = half; i < half && j < both->count;) {
        const struct mt_life *old = &both->blocks[i], *new = &both->blocks[j];

        if (old->bytes == new->bytes) {
            bytes += old->bytes;
            both->pairs++;
            if (old->bytes >= total / SMALL_PARTS) {
                last_end = mt_max_u64(last_end, old->end_event);
                first_end = mt_min_u64(first_end, new->end_event);
            }
        }
        i += old->bytes >= new->bytes;
        j += new->bytes >= old->bytes;
    }
    return bytes * 2 >= total - total / SMALL_PARTS && last_end < first_end ? bytes : 0;
}

/* Marks the older generation. */
static void mark_old(struct mt_finding_search *search, uint64_t last_old)
{
    const struct mt_instant *peak = search->device->instants;

    for (uint32_t i = 0; i < peak->holding_count; i++)
        if ((peak->holdings[i].role == MT_ROLE_PARAMETERS ||
             peak->holdings[i].role == MT_ROLE_OPTIMIZER_STATE) &&
            peak->holdings[i].first_birth_event <= last_old)
            mt_finding_mark(search, i);
}

static void say_generations(const struct generations *both, uint64_t bytes)
{
    struct mt_finding_search *search = both->search;
    struct mt_arena *arena = &search->analysis->report->arena;
    const uint64_t peak = search->device->allocated_peak.bytes;
    const char *evidence[1];
    char n[2][MT_UNITS_TEXT];
    struct mt_finding finding = {
        .id = "not-donated",
        .severity = "info",
        .bytes = bytes,
        .saving = MT_SAVING_AT_MOST,
        .saves_bytes = bytes,
        .evidence = evidence,
        .evidence_count = 1,
        .advice = "jax.jit(..., donate_argnums=...) for the arguments that the step replaces "
                  "(parameters, optimizer state): the new ones take their memory",
        .cost = "the old arrays cannot be used after the call"};

    finding.title = mt_arena_printf(
        arena,
        "%s (%s) of the peak: old parameters and optimizer state, alive while %s makes new ones",
        mt_format_bytes(n[0], bytes), mt_format_percent(n[1], (double)bytes / (double)peak),
        mt_site_label(arena, &search->analysis->source->symbols, both->blocks[0].stack, false));
    evidence[0] = mt_arena_printf(
        arena, "%s old blocks, each with a new one of equal size; the old ones end first",
        mt_format_count(n[0], both->pairs));
    mark_old(search, both->last_old);
    mt_finding_publish(search, &finding);
}

static enum mt_status find_not_donated(struct mt_finding_search *search)
{
    const struct mt_device_report *device = search->device;
    const uint64_t *bytes = device->peak_role_bytes, peak = device->allocated_peak.bytes;
    struct generations both = {.search = search};

    if (mt_framework_of(search) != MT_FRAMEWORK_JAX || !device->instant_count ||
        !bytes[MT_ROLE_OPTIMIZER_STATE] ||
        !mt_finding_matters((bytes[MT_ROLE_PARAMETERS] + bytes[MT_ROLE_OPTIMIZER_STATE]) / 2, peak))
        return MT_OK;
    mt_alloc_log_rewind(&search->analysis->survey.log);
    enum mt_status status = mt_read_again_events(search->analysis, &both, on_event_of_step);
    uint64_t old = status == MT_OK && both.count < MAX_GENERATION ? generation_of(&both) : 0;
    if (mt_finding_matters(old, peak))
        say_generations(&both, old);
    mt_map_release(&both.slots);
    free(both.blocks);
    return status;
}

const struct mt_finding_ops mt_finding_not_donated = {.find = find_not_donated};

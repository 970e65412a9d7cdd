/* A peak in the optimizer's step, made by temporaries of all parameters at once: the foreach
 * implementation of torch.optim makes lists of them. The memory of a step that handles one
 * parameter after the other is that of a replay in which each temporary ends before the next one is
 * made. How many exist at a time in a loop that did not run is unknown: as many as foreach has
 * lists at a time; one more, because the loop may not do in place what foreach does (Adam's root,
 * and its quotient); and the last one of the previous parameter, which its name keeps. So only the
 * smallest possible saving is claimed. */
#include "finding.h"
#include "process_memory.h"
#include "read_again.h"

#include <stdlib.h>
#include <string.h>

#include "grow.h"
#include "map.h"
#include "retime.h"
#include "units.h"

enum {
    MIN_SHARE = 10,    /* of the peak */
    BEYOND_LISTS = 2,  /* see above */
    MAX_LISTS = 8,     /* at a time */
    MAX_MADE = 1 << 18 /* temporaries of a run that is replayed */
};

#define COPY_ADDRESSES (UINT64_C(1) << 62) /* an address range without blocks of the run */

static const char *const has_fused[] = {"_multi_tensor_adam", "_multi_tensor_adamw",
                                        "_multi_tensor_sgd"};

/* Whether it is a function of torch.optim that makes lists. */
static uint8_t makes_lists(const struct mt_symbols *symbols, const struct mt_frame *frame)
{
    static const char prefix[] = "_multi_tensor_";

    return strncmp(mt_symbols_text(symbols, frame->function), prefix, sizeof prefix - 1) == 0;
}

/* The innermost such function of a stack that has one. */
static const char *foreach_of(const struct mt_symbols *symbols, uint32_t stack)
{
    while (!makes_lists(symbols, &symbols->frames[symbols->stacks[stack].frame]))
        stack = symbols->stacks[stack].parent;
    return mt_symbols_text(symbols, symbols->frames[symbols->stacks[stack].frame].function);
}

struct look {
    struct mt_finding_search *search;
    const struct mt_symbols *symbols;
    const struct mt_stack_marks *foreach;
    uint64_t bytes, blocks; /* at the peak */
    const char *function;   /* that makes them */

    struct mt_life *made; /* temporaries of foreach, in order of their births */
    size_t made_count, made_capacity;
    bool too_many;
    uint32_t lists;                        /* at a time */
    struct mt_retimed_peaks loop, nothing; /* with temporaries as in a loop; with one at a time */
};

static void look_at_peak(struct look *look)
{
    const struct mt_device_report *device = look->search->device;
    uint32_t i, stack = MT_NO_ID;

    for (i = 0; device->instant_count && i < device->instants[0].holding_count; i++) {
        const struct mt_holding *holding = &device->instants[0].holdings[i];

        if (holding->role != MT_ROLE_TEMPORARIES || !mt_stack_mark(look->foreach, holding->stack))
            continue;
        stack = holding->stack;
        look->bytes += holding->bytes;
        look->blocks += holding->blocks;
    }
    if (stack != MT_NO_ID)
        look->function = foreach_of(look->symbols, stack);
}

struct reading {
    struct look *look;
    uint64_t *alive_bytes;  /* by stack: of its temporaries */
    struct mt_map slots;    /* address -> index in `made` */
    uint64_t now_bytes;     /* live, over all stacks */
    uint64_t most_bytes;    /* at most */
    uint64_t longest_bytes; /* at most, of one stack: a list */
};

static enum mt_status add_made(struct reading *reading, const struct mt_event *event,
                               uint64_t bytes)
{
    struct look *look = reading->look;
    uint64_t *alive = &reading->alive_bytes[event->stack];

    look->too_many = look->made_count == MAX_MADE;
    if (look->too_many)
        return MT_END;
    mt_grow_to(&look->made, &look->made_capacity, look->made_count + 1, sizeof *look->made);
    look->made[look->made_count] = mt_life_of_event(event, bytes);
    *alive += bytes;
    reading->now_bytes += bytes;
    reading->most_bytes = mt_max_u64(reading->most_bytes, reading->now_bytes);
    reading->longest_bytes = mt_max_u64(reading->longest_bytes, *alive);
    mt_map_put(&reading->slots, event->addr, (uint32_t)look->made_count++);
    return MT_OK;
}

static void end_made(struct reading *reading, uint64_t addr)
{
    uint32_t slot = mt_map_take(&reading->slots, addr);

    if (slot == MT_MAP_NONE)
        return;
    reading->now_bytes -= reading->look->made[slot].bytes;
    reading->alive_bytes[reading->look->made[slot].stack] -= reading->look->made[slot].bytes;
}

static enum mt_status on_event(void *context, struct mt_event *event)
{
    struct reading *reading = context;
    struct mt_survey *survey = &reading->look->search->analysis->survey;
    bool is_here = event->device == reading->look->search->device->device;
    uint64_t bytes;
    uint8_t code;

    if (is_here &&
        (event->kind == MT_EVENT_FREE_REQUESTED || event->kind == MT_EVENT_FREE_COMPLETED))
        end_made(reading, event->addr);
    if (event->kind != MT_EVENT_ALLOC)
        return MT_OK;
    if (!mt_alloc_log_next(&survey->log, &bytes, &code) || !is_here)
        return MT_OK; /* the log has those of every device */
    if (mt_alloc_log_ends_old(event, bytes))
        end_made(reading, event->addr);
    if (!bytes)
        return MT_OK;
    if (!mt_stack_mark(reading->look->foreach, event->stack) ||
        mt_role_resolve(&survey->roles, code, event->stack, event->size_bytes) !=
            MT_ROLE_TEMPORARIES)
        return MT_OK;
    return add_made(reading, event, bytes);
}

static enum mt_status read_all(struct look *look)
{
    struct mt_analysis *analysis = look->search->analysis;
    const size_t stacks = (size_t)look->symbols->stack_count + 1;
    struct reading reading = {.look = look,
                              .alive_bytes = mt_memory_zeroed(stacks, sizeof *reading.alive_bytes)};
    enum mt_status status;

    mt_alloc_log_rewind(&analysis->survey.log);
    status = mt_read_again_events(analysis, &reading, on_event);
    if (status == MT_OK && reading.longest_bytes)
        look->lists = (uint32_t)mt_min_u64(
            (reading.most_bytes + reading.longest_bytes - 1) / reading.longest_bytes, MAX_LISTS);
    free(reading.alive_bytes);
    mt_map_release(&reading.slots);
    return status;
}

/* Where it is made, `count` blocks of its size exist briefly, including itself. */
static void make_for_a_moment(const struct look *look, struct mt_retime *retime,
                              const struct mt_life *made, uint32_t count)
{
    const uint16_t device = look->search->device->device;
    const uint64_t then = made->birth_event + 1;
    struct mt_life copy = *made;
    uint32_t i;

    for (i = 1; i < count; i++) {
        copy.addr = COPY_ADDRESSES + i;
        mt_retime_alloc(retime, device, then, &copy);
    }
    for (i = 1; i < count; i++) {
        copy.addr = COPY_ADDRESSES + i;
        mt_retime_free(retime, device, then, &copy);
    }
    mt_retime_free(retime, device, then, made);
}

static enum mt_status replay_with(struct look *look, uint32_t count, struct mt_retimed_peaks *peaks)
{
    struct mt_retime retime = {0};
    enum mt_status status = MT_OK;
    size_t i;

    for (i = 0; i < look->made_count; i++)
        make_for_a_moment(look, &retime, &look->made[i], count);
    status = mt_retime_replay(&retime, look->search, peaks);
    mt_retime_release(&retime);
    return status;
}

static enum mt_status replay(struct look *look)
{
    enum mt_status status = MT_OK;

    if (!mt_finding_replayable(look->search))
        return MT_OK;
    status = read_all(look);
    if (status != MT_OK || look->too_many || !look->lists)
        return status;
    status = replay_with(look, look->lists + BEYOND_LISTS, &look->loop);
    return status == MT_OK ? replay_with(look, 1, &look->nothing) : status;
}

static bool is_fused(const struct look *look)
{
    size_t i;

    for (i = 0; i < MT_ARRAY_LEN(has_fused); i++)
        if (strcmp(look->function, has_fused[i]) == 0)
            return true;
    return false;
}

/* 0 if it is too little. */
static uint64_t saving_of(const struct look *look, const struct mt_retimed_peaks *peaks)
{
    const struct mt_device_report *device = look->search->device;
    const uint64_t peak = device->allocated_peak.bytes;

    if (!peaks->known || peaks->allocated_bytes >= peak ||
        peaks->reserved_bytes > device->reserved_peak.bytes ||
        !mt_finding_matters(peak - peaks->allocated_bytes, peak))
        return 0;
    return peak - peaks->allocated_bytes;
}

static const char *tell_peak(const struct look *look)
{
    const uint64_t peak = look->search->device->allocated_peak.bytes;
    char n[3][MT_UNITS_TEXT];

    return mt_arena_printf(&look->search->analysis->report->arena,
                           "%s (%s) of the peak: temporaries of the optimizer step for all "
                           "parameters at once, %s blocks of its foreach implementation",
                           mt_format_bytes(n[0], look->bytes),
                           mt_format_percent(n[1], (double)look->bytes / (double)peak),
                           mt_format_count(n[2], look->blocks));
}

static const char *tell_replay(const struct look *look, const struct mt_retimed_peaks *peaks,
                               const char *with)
{
    const struct mt_device_report *device = look->search->device;
    char n[4][MT_UNITS_TEXT];

    return mt_arena_printf(&look->search->analysis->report->arena,
                           "replay with %s: %s allocated instead of %s, %s reserved instead of %s",
                           with, mt_format_bytes(n[0], peaks->allocated_bytes),
                           mt_format_bytes(n[1], device->allocated_peak.bytes),
                           mt_format_bytes(n[2], peaks->reserved_bytes),
                           mt_format_bytes(n[3], device->reserved_peak.bytes));
}

static void say(struct look *look)
{
    struct mt_arena *arena = &look->search->analysis->report->arena;
    const uint64_t by_loop = saving_of(look, &look->loop),
                   by_fused = is_fused(look) ? saving_of(look, &look->nothing) : 0;
    const char *evidence[3];
    char n[2][MT_UNITS_TEXT];
    struct mt_finding finding = {
        .id = "foreach-peak",
        .severity = by_loop || by_fused ? "warning" : "info",
        .bytes = by_loop    ? by_loop
                 : by_fused ? by_fused
                            : look->bytes,
        .evidence = evidence,
        .evidence_count = 1,
        .advice = !is_fused(look)
                      ? "pass foreach=False to the optimizer: it updates one parameter at a time"
                  : by_loop || !by_fused ? "pass fused=True or foreach=False to the optimizer: no "
                                           "temporaries of all parameters at once"
                                         : "pass fused=True to the optimizer: no temporaries "
                                           "(foreach=False has those of the largest parameter)"};

    evidence[0] = tell_peak(look);
    if (look->loop.known)
        evidence[finding.evidence_count++] = tell_replay(
            look, &look->loop,
            mt_arena_printf(
                arena, "at most %s temporaries, of one parameter at a time, as with foreach=False",
                mt_format_count(n[0], look->lists + BEYOND_LISTS)));
    if (look->nothing.known && is_fused(look))
        evidence[finding.evidence_count++] =
            tell_replay(look, &look->nothing, "one temporary at a time (fused=True has none)");
    finding.title =
        by_loop || by_fused
            ? mt_arena_printf(arena, "At least %s less at the peak %s",
                              mt_format_bytes(n[0], finding.bytes),
                              by_loop ? "if the optimizer updates one parameter at a time"
                                      : "if the optimizer step is fused and has no temporaries")
            : mt_arena_printf(
                  arena,
                  "%s of the peak: temporaries of the optimizer step, for all parameters at once",
                  mt_format_bytes(n[0], look->bytes));
    mt_finding_publish(look->search, &finding);
}

static enum mt_status find(struct mt_finding_search *search)
{
    const uint64_t peak = search->device->allocated_peak.bytes;
    struct look look = {.search = search, .symbols = &search->analysis->source->symbols};
    enum mt_status status;

    mt_stack_marks_make(&search->marks->foreach, look.symbols, makes_lists);
    look.foreach = &search->marks->foreach;
    look_at_peak(&look);
    if (!mt_finding_matters(look.bytes, peak) || look.bytes < peak / MIN_SHARE)
        return MT_OK;
    status = replay(&look);
    if (status == MT_OK)
        say(&look);
    free(look.made);
    return status;
}

const struct mt_finding_ops mt_finding_foreach_peak = {.find = find};

/* An exception that holds frames: memory of a failed attempt remains while the next one runs. In an
 * `except` block, and as long as anything refers to the exception, its traceback holds the frames
 * of all calls that it passed through, and with them their local variables. Evidence: blocks of the
 * failed attempt exist when the program returns to a place which that attempt had passed, and then
 * they end all together, or never. Working data ends one by one. */
#include <stdlib.h>
#include <string.h>

#include "analysis.h"
#include "block_watches.h"
#include "finding.h"
#include "grow.h"
#include "map.h"
#include "process_memory.h"
#include "report_query.h"
#include "roles.h"
#include "site.h"
#include "units.h"

/* Memory that a failed attempt leaves behind: blocks that the attempt allocated before a request
 * failed, and that still exist when the program returns to a place that the attempt had passed. A
 * program that catches an out-of-memory error and drops it has freed these blocks by then.
 *
 * An attempt begins with a step, or where the previous attempt failed. A place is a stack reduced
 * to the frames from its site inward. The program has returned to a place if it made more requests
 * from there, in the failed attempt and after it, than in the whole previous step. In the first
 * step, only places with one request in the attempt count, and the next request is the return. */

#define MT_MAX_ATTEMPTS 8 /* maximum number of failures */

struct attempt {
    uint64_t oom_event, oom_t_ns;
    uint64_t again_event; /* event at which the program returned to the place; 0 = never */
    uint32_t again_stack;
    /* Blocks that were allocated after the first pass of that place, and exist when the program
     * returns. */
    struct mt_life *blocks; /* without their ends and steps */
    uint32_t count, stacks; /* number of blocks, and of their stacks */
    uint64_t bytes;
    /* Those of them that ended together, without a request between their ends. */
    uint64_t together_bytes, together_t_ns;
    uint64_t left_bytes; /* bytes of `blocks` that still exist at the end of the trace */
};

struct attempts {
    struct attempt attempts[MT_MAX_ATTEMPTS];
    uint32_t count;
};

enum {
    MAX_MARKS = 64, /* places recorded per attempt */
    MAX_STEPS = 2 /* steps after a failure without a return to one of these places, after which the
                     attempt is over */
};

/* Every failure examines all live blocks. No further failures are followed after this many examined
 * blocks: a thousand failures with a hundred thousand live blocks each. */
static const uint64_t MAX_LOOKS = UINT64_C(100000000);

struct live {
    struct mt_life block;
    uint32_t attempt; /* index + 1 of the attempt that left it, 0 = none */
    bool by_forward;
};

struct mark {
    uint64_t place;
    uint32_t stack; /* the first of that place */
    uint32_t left;  /* remaining requests of it without a new attempt */
    uint64_t event;
};

/* A failed attempt that is being followed. */
struct watch {
    struct mark marks[MAX_MARKS];
    uint32_t mark_count;
    uint32_t steps;   /* begun since */
    bool over;        /* no place is expected any more */
    uint64_t ends_at; /* number of requests at its last block's end */
    uint64_t ending_bytes;
};

struct reading {
    struct mt_analysis *analysis;
    const struct mt_device_report *device;
    struct attempts *attempts;
    struct watch *watches; /* parallel to attempts */
    struct mt_map slots;   /* address -> live block */
    struct live *live;     /* in no order */
    size_t live_count, live_capacity;
    uint64_t requests;
    uint64_t looks;
    uint32_t next_step; /* index of the device's */
    bool in_step;
    /* The current attempt. */
    uint64_t begin;
    struct mark *births; /* the first of each place */
    size_t birth_count, birth_capacity;
    struct mt_map counts, counts_before; /* births by place, of the step before */
};

/* A stack's frames from the user's inwards: the same for all requests of that place. */
static uint64_t place_of(const struct reading *reading, uint32_t stack)
{
    const struct mt_symbols *symbols = &reading->analysis->source->symbols;
    struct mt_site site = mt_site_table_at(&reading->analysis->attribution.sites, stack);
    uint32_t outermost = site.own == MT_NO_ID ? site.frame : site.own;
    uint64_t place = 0;

    for (; stack < symbols->stack_count; stack = symbols->stacks[stack].parent) {
        place = mt_hash_u64(place + symbols->stacks[stack].frame + 1);
        if (symbols->stacks[stack].frame == outermost)
            break;
    }
    return place;
}

static void count_birth(struct reading *reading, const struct mt_event *event, uint64_t place)
{
    uint32_t count = mt_map_get(&reading->counts, place);

    if (count == MT_MAP_NONE) {
        mt_grow_to(&reading->births, &reading->birth_capacity, reading->birth_count + 1,
                   sizeof *reading->births);
        reading->births[reading->birth_count++] =
            (struct mark){.place = place, .stack = event->stack, .event = event->seq};
        count = 0;
    }
    mt_map_put(&reading->counts, place, count + 1);
}

static void begin_attempt(struct reading *reading, uint64_t event)
{
    reading->begin = event;
    reading->birth_count = 0;
    mt_map_release(&reading->counts);
}

/* For a step with failed attempts, the last attempt determines the count of each place. */
static void begin_step(struct reading *reading, uint64_t event)
{
    for (uint32_t i = 0; i < reading->attempts->count; i++)
        reading->watches[i].over |= ++reading->watches[i].steps == MAX_STEPS;
    mt_map_release(&reading->counts_before);
    if (reading->in_step) {
        reading->counts_before = reading->counts;
        memset(&reading->counts, 0, sizeof reading->counts);
    }
    reading->in_step = true;
    begin_attempt(reading, event);
}

/* How many more requests of that place a step has; UINT32_MAX: unknown. */
static uint32_t left_of(const struct reading *reading, uint64_t place)
{
    uint32_t now = mt_map_get(&reading->counts, place),
             before = mt_map_get(&reading->counts_before, place);

    if (!reading->counts_before.count)
        before = 1;
    return before == MT_MAP_NONE || now > before ? UINT32_MAX : before - now;
}

static void set_marks(const struct reading *reading, struct watch *watch)
{
    for (size_t i = 0; i < reading->birth_count && watch->mark_count < MAX_MARKS; i++) {
        struct mark mark = reading->births[i];
        mark.left = left_of(reading, mark.place);
        if (mark.left != UINT32_MAX)
            watch->marks[watch->mark_count++] = mark;
    }
}

/* Blocks by stack: of the attempt, and those from before it. */
struct held {
    struct mt_map now, before;
};

static bool is_of_attempt(const struct reading *reading, const struct live *live)
{
    return !live->attempt && live->by_forward && live->block.birth_event >= reading->begin;
}

static void count_held(const struct reading *reading, struct held *held)
{
    for (size_t i = 0; i < reading->live_count; i++) {
        const struct live *live = &reading->live[i];
        struct mt_map *map = is_of_attempt(reading, live) ? &held->now : &held->before;
        uint32_t count = mt_map_get(map, live->block.stack);
        if (live->by_forward && !live->attempt)
            mt_map_put(map, live->block.stack, count == MT_MAP_NONE ? 1 : count + 1);
    }
}

/* The earlier blocks are not from a failed attempt: if there are half as many, the program keeps
 * such blocks anyway. A single one may be a library's, which keeps its first allocation. */
static bool is_kept_anyway(const struct held *held, uint32_t stack)
{
    uint32_t now = mt_map_get(&held->now, stack), before = mt_map_get(&held->before, stack);

    return before != MT_MAP_NONE && before >= (now + 1) / 2;
}

/* An attempt that is over without a result makes room. MT_MAX_ATTEMPTS = none. */
static uint32_t free_place(struct reading *reading)
{
    struct attempts *attempts = reading->attempts;
    uint32_t place = 0;

    while (place < attempts->count &&
           (!reading->watches[place].over || attempts->attempts[place].count))
        place++;
    for (size_t i = 0; place < attempts->count && i < reading->live_count; i++)
        if (reading->live[i].attempt == place + 1)
            reading->live[i].attempt = 0;
    return place;
}

static void begin_watch(struct reading *reading, uint32_t place, const struct mt_event *event,
                        const struct held *held)
{
    reading->attempts->attempts[place] =
        (struct attempt){.oom_event = event->seq, .oom_t_ns = event->t_ns};
    memset(&reading->watches[place], 0, sizeof reading->watches[place]);
    set_marks(reading, &reading->watches[place]);
    reading->attempts->count += place == reading->attempts->count;
    for (size_t i = 0; i < reading->live_count; i++) {
        struct live *live = &reading->live[i];
        if (is_of_attempt(reading, live) && !is_kept_anyway(held, live->block.stack))
            live->attempt = place + 1;
    }
}

static void follow_oom(struct reading *reading, const struct mt_event *event)
{
    struct held held = {0};
    uint32_t place = free_place(reading);

    if (place < MT_MAX_ATTEMPTS) {
        count_held(reading, &held);
        begin_watch(reading, place, event, &held);
    }
    mt_map_release(&held.now);
    mt_map_release(&held.before);
}

static void on_oom(struct reading *reading, const struct mt_event *event)
{
    reading->looks += reading->live_count;
    if (reading->looks <= MAX_LOOKS)
        follow_oom(reading, event);
    begin_attempt(reading, event->seq + 1);
}

static void keep_block(struct attempt *attempt, size_t *capacity, struct mt_map *stacks,
                       const struct mt_life *block)
{
    mt_grow_to(&attempt->blocks, capacity, (size_t)attempt->count + 1, sizeof *attempt->blocks);
    attempt->blocks[attempt->count++] = *block;
    attempt->bytes += block->bytes;
    mt_map_put(stacks, block->stack, 1);
}

static void keep_blocks(struct reading *reading, uint32_t index, uint64_t since)
{
    struct attempt *attempt = &reading->attempts->attempts[index];
    struct mt_map stacks = {0};
    size_t capacity = 0;

    for (size_t i = 0; i < reading->live_count; i++) {
        struct live *live = &reading->live[i];
        if (live->attempt != index + 1)
            continue;
        if (live->block.birth_event < since)
            live->attempt = 0;
        else
            keep_block(attempt, &capacity, &stacks, &live->block);
    }
    attempt->stacks = (uint32_t)stacks.count;
    mt_map_release(&stacks);
}

static void look_for(struct reading *reading, uint32_t index, const struct mt_event *event,
                     uint64_t place)
{
    struct attempt *attempt = &reading->attempts->attempts[index];
    struct watch *watch = &reading->watches[index];

    for (uint32_t i = 0; i < watch->mark_count; i++) {
        if (watch->marks[i].place != place || watch->marks[i].left--)
            continue;
        attempt->again_event = event->seq;
        attempt->again_stack = watch->marks[i].stack;
        watch->over = true;
        keep_blocks(reading, index, watch->marks[i].event);
        return;
    }
}

static void pass_place(struct reading *reading, const struct mt_event *event)
{
    uint64_t place = place_of(reading, event->stack);

    for (uint32_t i = 0; i < reading->attempts->count; i++)
        if (!reading->watches[i].over)
            look_for(reading, i, event, place);
    count_birth(reading, event, place);
}

/* For an attempt to whose place the program returned. */
static void note_end(struct reading *reading, const struct live *live, uint64_t t_ns)
{
    if (!live->attempt)
        return;
    struct attempt *attempt = &reading->attempts->attempts[live->attempt - 1];
    struct watch *watch = &reading->watches[live->attempt - 1];
    if (!attempt->again_event)
        return;
    if (watch->ends_at != reading->requests)
        watch->ending_bytes = 0;
    watch->ends_at = reading->requests;
    watch->ending_bytes += live->block.bytes;
    if (watch->ending_bytes > attempt->together_bytes) {
        attempt->together_bytes = watch->ending_bytes;
        attempt->together_t_ns = t_ns;
    }
}

static void end_block(struct reading *reading, const struct mt_event *event)
{
    uint32_t slot = mt_map_take(&reading->slots, event->addr);

    if (slot == MT_MAP_NONE)
        return;
    note_end(reading, &reading->live[slot], event->t_ns);
    if (slot == --reading->live_count)
        return;
    reading->live[slot] = reading->live[reading->live_count];
    mt_map_put(&reading->slots, reading->live[slot].block.addr, slot);
}

static bool is_by_forward(const struct mt_role_clock *roles, const struct mt_event *event,
                          uint8_t code)
{
    uint8_t kind = mt_stack_kind(&roles->stacks, event->stack) & MT_STACK_KIND_MASK;

    if (event->stack == MT_NO_ID)
        return false;
    switch (mt_role_resolve(roles, code, event->stack, event->size_bytes)) {
    case MT_ROLE_ACTIVATIONS:
    case MT_ROLE_WEIGHT_COPIES:
    case MT_ROLE_TEMPORARIES: return true;
    case MT_ROLE_OTHER: return mt_phase_is_forward(kind);
    default: return false;
    }
}

static void add_block(struct reading *reading, const struct mt_event *event, uint64_t bytes,
                      uint8_t code)
{
    mt_grow_to(&reading->live, &reading->live_capacity, reading->live_count + 1,
               sizeof *reading->live);
    reading->live[reading->live_count] =
        (struct live){.block = mt_life_of_event(event, bytes),
                      .by_forward = is_by_forward(&reading->analysis->survey.roles, event, code)};
    mt_map_put(&reading->slots, event->addr, (uint32_t)reading->live_count++);
}

static void on_alloc(struct reading *reading, const struct mt_event *event)
{
    uint64_t bytes;
    uint8_t code;

    if (!mt_alloc_log_next(&reading->analysis->survey.log, &bytes, &code) ||
        event->device != reading->device->device)
        return;
    if (mt_alloc_log_ends_old(event, bytes))
        end_block(reading, event);
    if (!bytes)
        return;
    reading->requests++;
    if (event->stack != MT_NO_ID)
        pass_place(reading, event);
    add_block(reading, event, bytes, code);
}

static void enter_steps(struct reading *reading, uint64_t event)
{
    const struct mt_device_report *device = reading->device;

    while (reading->next_step < device->step_count &&
           event >= mt_step_begin(reading->analysis->report, &device->steps[reading->next_step])) {
        begin_step(reading, event);
        reading->next_step++;
    }
}

static enum mt_status on_event(void *context, struct mt_event *event)
{
    struct reading *reading = context;

    enter_steps(reading, event->seq);
    if (event->kind == MT_EVENT_ALLOC) {
        on_alloc(reading, event);
        return MT_OK;
    } /* of every device: the log has them all */
    if (event->device != reading->device->device)
        return MT_OK;
    switch (event->kind) {
    case MT_EVENT_FREE_REQUESTED:
    case MT_EVENT_FREE_COMPLETED: end_block(reading, event); return MT_OK;
    case MT_EVENT_OOM: on_oom(reading, event); return MT_OK;
    default: return MT_OK;
    }
}

static void count_what_is_left(struct reading *reading)
{
    for (size_t i = 0; i < reading->live_count; i++) {
        const struct live *live = &reading->live[i];
        if (live->attempt && reading->attempts->attempts[live->attempt - 1].again_event)
            reading->attempts->attempts[live->attempt - 1].left_bytes += live->block.bytes;
    }
}

/* Reads the source once, from its start to its end, for the failures of the device after which the
 * program continued. Release *attempts even after an error. */
static enum mt_status attempts_read(struct mt_analysis *analysis,
                                    const struct mt_device_report *device,
                                    struct attempts *attempts)
{
    struct reading reading = {.analysis = analysis,
                              .device = device,
                              .attempts = attempts,
                              .watches = mt_memory_zeroed(MT_MAX_ATTEMPTS, sizeof *reading.watches),
                              .next_step = mt_first_step(analysis->report, device)};

    memset(attempts, 0, sizeof *attempts);
    mt_alloc_log_rewind(&analysis->survey.log);
    enum mt_status status = mt_read_again_events(analysis, &reading, on_event);
    if (status == MT_OK)
        count_what_is_left(&reading);
    free(reading.watches);
    free(reading.live);
    free(reading.births);
    mt_map_release(&reading.slots);
    mt_map_release(&reading.counts);
    mt_map_release(&reading.counts_before);
    return status;
}

static void attempts_release(struct attempts *attempts)
{
    for (uint32_t i = 0; i < attempts->count; i++)
        free(attempts->attempts[i].blocks);
    memset(attempts, 0, sizeof *attempts);
}

enum {
    MIN_BLOCKS = 3,    /* of... */
    MIN_STACKS = 2,    /* fewer may be a value that is held by its name */
    TOGETHER_PARTS = 4 /* of four parts, three end together, or stay */
};

static bool is_most(uint64_t bytes, uint64_t of_bytes)
{
    return of_bytes - mt_min_u64(bytes, of_bytes) <= of_bytes / TOGETHER_PARTS;
}

static bool is_held(const struct mt_finding_search *search, const struct attempt *attempt)
{
    return attempt->count >= MIN_BLOCKS && attempt->stacks >= MIN_STACKS &&
           (is_most(attempt->together_bytes, attempt->bytes) ||
            is_most(attempt->left_bytes, attempt->bytes)) &&
           mt_finding_matters(attempt->bytes, search->device->allocated_peak.bytes);
}

static enum mt_status replay_without(struct mt_finding_search *search,
                                     const struct attempts *attempts,
                                     struct mt_retimed_peaks *peaks)
{
    struct mt_retime retime = {0};
    enum mt_status status = MT_OK;

    for (uint32_t i = 0; i < attempts->count; i++) {
        const struct attempt *attempt = &attempts->attempts[i];
        for (uint32_t j = 0; is_held(search, attempt) && j < attempt->count; j++)
            mt_retime_free(&retime, search->device->device, attempt->oom_event + 1,
                           &attempt->blocks[j]);
    }
    status = mt_retime_replay(&retime, search, peaks);
    mt_retime_release(&retime);
    return status;
}

static enum mt_status tell_replay(struct mt_finding_search *search, const struct attempts *attempts,
                                  const char **text)
{
    const struct mt_device_report *device = search->device;
    struct mt_retimed_peaks peaks;
    char n[2][MT_UNITS_TEXT];

    *text = NULL;
    if (!mt_finding_replayable(search))
        return MT_OK;
    enum mt_status status = replay_without(search, attempts, &peaks);
    if (status != MT_OK || !peaks.known || peaks.allocated_bytes >= device->allocated_peak.bytes)
        return status;
    *text = mt_arena_printf(&search->analysis->report->arena,
                            "replay with these blocks freed when the request failed: %s allocated "
                            "at the peak instead of %s",
                            mt_format_bytes(n[0], peaks.allocated_bytes),
                            mt_format_bytes(n[1], device->allocated_peak.bytes));
    return MT_OK;
}

static bool is_before(const struct mt_life *a, const struct mt_life *b)
{
    return a->bytes != b->bytes ? a->bytes > b->bytes : a->birth_event < b->birth_event;
}

static const char *tell_blocks(const struct mt_finding_search *search,
                               const struct attempt *attempt)
{
    struct mt_arena *arena = &search->analysis->report->arena;
    const struct mt_life *largest = &attempt->blocks[0];
    char n[3][MT_UNITS_TEXT];

    for (uint32_t i = 1; i < attempt->count; i++)
        if (is_before(&attempt->blocks[i], largest))
            largest = &attempt->blocks[i];
    const char *label =
        mt_site_label(arena, &search->analysis->source->symbols, largest->stack, false);
    return mt_arena_printf(arena, "%s blocks from %s stacks; the largest, %s, is from %s",
                           mt_format_count(n[0], attempt->count),
                           mt_format_count(n[1], attempt->stacks),
                           mt_format_bytes(n[2], largest->bytes), label);
}

static const char *tell_end(const struct mt_finding_search *search, const struct attempt *attempt)
{
    struct mt_arena *arena = &search->analysis->report->arena;
    const char *after = "after";
    char n[2][MT_UNITS_TEXT];

    if (is_most(attempt->left_bytes, attempt->bytes))
        return mt_arena_printf(arena, "%s of it stays allocated until the trace ends",
                               mt_format_bytes(n[0], attempt->left_bytes));
    if (mt_report_has_times(search->analysis->report))
        after =
            mt_arena_printf(arena, "%s after",
                            mt_format_duration(n[1], attempt->together_t_ns - attempt->oom_t_ns));
    return mt_arena_printf(arena,
                           "%s of it is freed together, %s the request failed, with no request "
                           "in between",
                           mt_format_bytes(n[0], attempt->together_bytes), after);
}

static enum mt_status say(struct mt_finding_search *search, const struct attempts *attempts,
                          const struct attempt *most, uint32_t held)
{
    struct mt_arena *arena = &search->analysis->report->arena;
    const char *evidence[4], *replayed,
        *label = mt_site_label(arena, &search->analysis->source->symbols, most->again_stack, false);
    enum mt_status status = tell_replay(search, attempts, &replayed);
    char n[2][MT_UNITS_TEXT];
    struct mt_finding finding = {
        .id = "exception-holds-frame",
        .severity = "warning",
        .bytes = most->bytes,
        .saving = MT_SAVING_AT_MOST,
        .saves_bytes = most->bytes,
        .evidence = evidence,
        .evidence_count = 2,
        .advice = "retry after the except block, not inside it: the exception keeps the frames "
                  "that it passed through, and their tensors, alive. Store str(e) instead of e "
                  "(traceback.clear_frames, sys.last_value)"};

    if (status != MT_OK)
        return status;
    finding.title =
        mt_arena_printf(arena, "%s from a failed attempt stays allocated while %s runs again",
                        mt_format_bytes(n[0], most->bytes), label);
    evidence[0] = tell_blocks(search, most);
    evidence[1] = tell_end(search, most);
    if (replayed)
        evidence[finding.evidence_count++] = replayed;
    if (held > 1)
        evidence[finding.evidence_count++] =
            mt_arena_printf(arena, "%s left memory behind",
                            mt_format_counted(n[0], held - 1, "more failed attempt"));
    mt_finding_publish(search, &finding);
    return MT_OK;
}

/* Whether there is a failure after which the program continued. */
static bool may_be(const struct mt_finding_search *search)
{
    const struct mt_device_report *device = search->device;

    for (uint32_t i = 0; i < device->oom_count; i++)
        if (!device->oom_list[i].fatal)
            return search->analysis->report->has_stacks && !search->analysis->report->what_if;
    return false;
}

static enum mt_status find(struct mt_finding_search *search)
{
    struct attempts attempts = {0};
    const struct attempt *most = NULL;
    uint32_t held = 0;

    if (!may_be(search))
        return MT_OK;
    enum mt_status status = attempts_read(search->analysis, search->device, &attempts);
    for (uint32_t i = 0; status == MT_OK && i < attempts.count; i++) {
        if (!is_held(search, &attempts.attempts[i]))
            continue;
        if (!most || attempts.attempts[i].bytes > most->bytes)
            most = &attempts.attempts[i];
        held++;
    }
    if (status == MT_OK && most)
        status = say(search, &attempts, most, held);
    attempts_release(&attempts);
    return status;
}

const struct mt_finding_ops mt_finding_exception_frames = {.find = find};

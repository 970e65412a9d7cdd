/* Numbers are dense, so the events of all slots need no sorting: the event with number n goes to
 * place n - next of a window. A place is empty while its thread is between taking the number and
 * committing the event.
 *
 * Every number that the process took ends up in the trace, as an event or in a count of missing
 * events. An event that violates the numbering (its number was never taken, or another event has
 * it) is counted as damage. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "alive_state.h"
#include "drain.h"
#include "drain_parts.h"
#include "grow.h"
#include "sorted.h"
#include "status.h"
#include "symbols.h"
#include "tape.h"
#include "tape_symbols.h"
#include "ticks.h"
#include "trace.h"
#include "util.h"

static void given_up_release(struct mt_given_up *self)
{
    free(self->ranges);
    *self = (struct mt_given_up){0};
}

/* Adds the numbers in [first, end). If memory runs out, the numbers are not kept. If such an event
 * arrives, it then also counts as damaged. */
static void given_up_add(struct mt_given_up *self, uint64_t first, uint64_t end)
{
    if (first < end &&
        (self->count < self->capacity ||
         !mt_grow(&self->ranges, &self->capacity, self->count + 1, sizeof *self->ranges)))
        self->ranges[self->count++] = (struct mt_number_range){first, end};
}

/* Returns true if the number is in the list, and removes it. A second event with this number is
 * thus an error. */
static bool given_up_take(struct mt_given_up *self, uint64_t number)
{
    size_t i = 0;

    while (i < self->count && (number < self->ranges[i].first || number >= self->ranges[i].end))
        i++;
    if (i == self->count)
        return false;
    uint64_t end = self->ranges[i].end;
    self->ranges[i].end = number;
    if (self->ranges[i].first == number)
        self->ranges[i] = self->ranges[--self->count];
    given_up_add(self, number + 1, end);
    return true;
}

static void raw_resolver_release(struct mt_raw_resolver *self)
{
    free(self->devices);
    *self = (struct mt_raw_resolver){0};
}

static uint64_t time_of(struct mt_raw_resolver *self, uint64_t ticks)
{
    uint64_t t_ns = mt_ticks_unix_ns(self->first, self->last, ticks);

    /* numbers and ticks are taken at slightly different times, so they may disagree; the numbers
     * determine the order */
    if (t_ns < self->last_t_ns)
        t_ns = self->last_t_ns;
    self->last_t_ns = t_ns;
    return t_ns;
}

static uint16_t device_of(struct mt_raw_resolver *self, uint32_t thread, uint8_t device)
{
    if (thread >= self->device_capacity) {
        size_t old = self->device_capacity;
        if (thread > UINT16_MAX ||
            mt_grow(&self->devices, &self->device_capacity, (size_t)thread + 1, 1))
            return device == UINT8_MAX ? 0 : device;
        memset(self->devices + old, 0, self->device_capacity - old);
    }
    if (device != UINT8_MAX)
        self->devices[thread] = device;
    return self->devices[thread];
}

/* A communicator may use another device than the current one of its thread. */
static bool tells_device(const struct mt_raw_event *raw)
{
    return raw->kind != MT_EVENT_COMMUNICATOR;
}

static bool has_name(const struct mt_raw_event *raw)
{
    switch (raw->kind) {
    case MT_EVENT_PHASE_PUSH:
    case MT_EVENT_PHASE_POP:
    case MT_EVENT_MARK:
    case MT_EVENT_CONTEXT:
    case MT_EVENT_COMMUNICATOR:
    case MT_EVENT_BUFFER_REGISTERED:
    case MT_EVENT_BUFFER_DEREGISTERED:
    case MT_EVENT_DROPPED: return true;
    default: return false;
    }
}

/* Fills all of *event except its number. `thread` is the number of the thread in the tape. Events
 * must come in the order of their numbers. MT_ERR_MEMORY. */
static enum mt_status raw_resolve(struct mt_raw_resolver *self, const struct mt_raw_event *raw,
                                  uint32_t thread, struct mt_event *event)
{
    uint32_t owner =
        raw->kind == MT_EVENT_PHASE_POP && raw->aux_bytes && raw->aux_bytes <= UINT16_MAX
            ? (uint32_t)raw->aux_bytes
            : thread;

    *event = (struct mt_event){
        .t_ns = time_of(self, raw->ticks),
        .addr = raw->addr,
        .size_bytes = raw->size_bytes,
        .aux_bytes = raw->kind == MT_EVENT_PHASE_POP ? 0 : raw->aux_bytes,
        .stack = MT_NO_ID,
        .name = MT_NO_ID,
        .device = device_of(self, thread, tells_device(raw) ? raw->device : UINT8_MAX),
        .kind = raw->kind,
        .flags = raw->flags};
    if (!tells_device(raw) && raw->device != UINT8_MAX)
        event->device = raw->device;
    enum mt_status status =
        mt_tape_symbols_stack(self->symbols, raw->python_stack, raw->native_stack, &event->stack);
    if (status == MT_OK && has_name(raw))
        status = mt_tape_symbols_name(self->symbols, raw->id, &event->name);
    else if (status == MT_OK)
        status = mt_tape_symbols_pool(self->symbols, raw->id, &event->pool);
    if (status == MT_OK)
        status = mt_symbols_stream(self->trace_symbols, raw->stream, &event->stream);
    if (status == MT_OK)
        status = mt_tape_symbols_thread(self->symbols, owner, &event->thread);
    if (status == MT_OK)
        status = mt_tape_symbols_heap(self->symbols, raw->heap, &event->heap);
    if (status == MT_OK && event->device)
        status = mt_symbols_device(self->trace_symbols, event->device, MT_NO_ID, 0);
    return status;
}

enum mt_status mt_drain_new(struct mt_tape *tape, struct mt_symbols *symbols,
                            const struct mt_tape_commit *from, struct mt_drain **out,
                            struct mt_error *error)
{
    struct mt_drain *drain = calloc(1, sizeof *drain);

    if (drain) {
        drain->tape = tape;
        drain->symbols = mt_tape_symbols_new(tape, symbols);
        drain->resolver = (struct mt_raw_resolver){
            .symbols = drain->symbols, .trace_symbols = symbols, .last_t_ns = from->last_t_ns};
        drain->taken = calloc(tape->slot_count, sizeof *drain->taken);
        drain->seen = calloc(tape->slot_count, sizeof *drain->seen);
        drain->next_raw = from->next_raw;
        drain->next_seq = from->events_written;
        drain->dropped = from->dropped_written;
        drain->part = from->part;
        drain->events_before = from->events_before;
        drain->save_reasons = from->save_reasons;
        drain->began_t_ns = from->began_t_ns;
        drain->part_t_ns = tape->started_unix_ns;
    }
    if (!drain || !drain->symbols || !drain->taken || !drain->seen) {
        mt_drain_free(drain);
        return mt_fail_memory(error);
    }
    *out = drain;
    return MT_OK;
}

void mt_drain_free(struct mt_drain *drain)
{
    if (!drain)
        return;
    mt_tape_symbols_free(drain->symbols);
    free(drain->taken);
    free(drain->seen);
    free(drain->window);
    free(drain->threads);
    mt_alive_state_free(drain->alive);
    raw_resolver_release(&drain->resolver);
    given_up_release(&drain->given_up);
    free(drain);
}

enum mt_status mt_drain_definitions(struct mt_drain *drain, bool *header_changed)
{
    enum mt_status status = mt_tape_symbols_read(drain->symbols);

    *header_changed = mt_tape_symbols_header_changed(drain->symbols);
    return status;
}

void mt_drain_header(struct mt_drain *drain, struct mt_trace_header *header)
{
    const uint64_t began_t_ns = drain->began_t_ns && !mt_drain_is_idle(drain)
                                    ? drain->began_t_ns
                                    : drain->tape->started_unix_ns;

    header->recording_id = drain->tape->recording_id;
    mt_tape_symbols_header(drain->symbols, header);
    if (!header->start_t_ns)
        header->start_t_ns = began_t_ns;
    header->ring_ns = drain->tape->ring_ns;
    if (header->ring_ns)
        header->ring_began_t_ns = began_t_ns;
    header->starts_in_middle |= drain->began_t_ns != 0;
}

/* Committed events of a slot. A dead tape may claim too many. */
static uint32_t committed_in(const struct mt_slot *slot)
{
    uint32_t count = atomic_load_explicit(&slot->committed, memory_order_acquire);

    return count <= MT_SLOT_EVENTS ? count : 0;
}

/* Committed events of this pass that are not taken yet. */
static size_t count_left(const struct mt_drain *drain)
{
    size_t count = 0;

    for (uint32_t i = 0; i < drain->tape->slot_count; i++)
        if (drain->seen[i] > drain->taken[i])
            count += drain->seen[i] - drain->taken[i];
    return count;
}

/* Reads the state of all slots once. Later commits belong to a later pass. A thread takes its
 * number before it commits, so next_seq is read after the slots. */
static size_t look(struct mt_drain *drain)
{
    for (uint32_t i = 0; i < drain->tape->slot_count; i++)
        drain->seen[i] = committed_in(mt_tape_slot(drain->tape, i));
    drain->end_raw = atomic_load(&drain->tape->next_seq);
    return count_left(drain);
}

static enum mt_status make_window(struct mt_drain *drain, size_t count)
{
    if (count > drain->window_capacity &&
        mt_grow(&drain->window, &drain->window_capacity, count, sizeof(void *)))
        return MT_ERR_MEMORY;
    if (count > drain->thread_capacity &&
        mt_grow(&drain->threads, &drain->thread_capacity, count, sizeof *drain->threads))
        return MT_ERR_MEMORY;
    if (count)
        memset(drain->window, 0, count * sizeof(void *));
    return MT_OK;
}

/* Returns whether the event can still get a place: its number was taken and not passed yet. */
static bool has_place(const struct mt_drain *drain, const struct mt_raw_event *event)
{
    return event->seq >= drain->next_raw && event->seq < drain->end_raw;
}

/* Puts the events of a slot into the window, from the first one not taken to the first one after
 * the window. If two events have the same number, the first keeps the place. */
static void lay_slot(struct mt_drain *drain, uint32_t index, size_t window)
{
    const struct mt_slot *slot = mt_tape_slot(drain->tape, index);

    for (uint32_t i = drain->taken[index]; i < drain->seen[index]; i++) {
        const struct mt_raw_event *event = &slot->events[i];
        uint64_t place = event->seq - drain->next_raw;
        if (!has_place(drain, event))
            continue;
        if (place >= window)
            break;
        if (drain->window[place])
            continue;
        drain->window[place] = event;
        drain->threads[place] = slot->thread;
    }
}

/* Takes the events of a slot up to the first one that still waits. Returns the number of those that
 * were not given up earlier, because the latter are already counted as missing. */
static uint64_t advance_slot(struct mt_drain *drain, uint32_t index)
{
    const struct mt_slot *slot = mt_tape_slot(drain->tape, index);
    uint64_t taken = 0;

    for (; drain->taken[index] < drain->seen[index]; drain->taken[index]++) {
        const struct mt_raw_event *event = &slot->events[drain->taken[index]];
        if (has_place(drain, event))
            break;
        taken += !given_up_take(&drain->given_up, event->seq);
    }
    return taken;
}

/* Returns the number of taken events without a number of their own. */
static uint64_t advance_slots(struct mt_drain *drain)
{
    uint64_t taken = 0;

    for (uint32_t index = 0; index < drain->tape->slot_count; index++)
        taken += advance_slot(drain, index);
    uint64_t matched = mt_min_u64(taken, drain->unmatched);
    drain->unmatched -= matched;
    return taken - matched;
}

static enum mt_status add(struct mt_drain *drain, struct mt_writer *writer,
                          const struct mt_event *event, struct mt_drain_result *result,
                          struct mt_error *error)
{
    if (mt_drain_is_idle(drain)) {
        result->followed++;
        return drain->alive ? mt_drain_ring_add(drain, event, error) : MT_OK;
    }
    enum mt_status status = mt_writer_add(writer, event, error);
    if (status == MT_OK) {
        drain->next_seq = event->seq + 1;
        result->events++;
        if (drain->alive)
            status = mt_drain_ring_add(drain, event, error);
    }
    return status;
}

/* Reported in the trace at the end of the pass. */
static void count_damaged(struct mt_drain *drain, uint64_t count, struct mt_drain_result *result)
{
    drain->damaged += count;
    result->missing += count;
}

static enum mt_status pass_on(struct mt_drain *drain, struct mt_writer *writer,
                              const struct mt_raw_event *raw, uint32_t thread,
                              struct mt_drain_result *result, struct mt_error *error)
{
    struct mt_event event;

    if (!raw->kind || raw->kind >= MT_EVENT_KIND_COUNT || raw->kind == MT_EVENT_END) {
        count_damaged(drain, 1, result);
        return MT_OK;
    }
    enum mt_status status = raw_resolve(&drain->resolver, raw, thread, &event);
    event.seq = drain->next_seq;
    if (status != MT_OK)
        return mt_fail_status(error, status);
    return add(drain, writer, &event, result, error);
}

/* Records in the trace that `count` events are missing. */
static enum mt_status say_dropped(struct mt_drain *drain, struct mt_writer *writer, uint64_t count,
                                  const char *why, struct mt_drain_result *result,
                                  struct mt_error *error)
{
    struct mt_event event = {.seq = drain->next_seq,
                             .t_ns = drain->resolver.last_t_ns,
                             .size_bytes = count,
                             .stack = MT_NO_ID,
                             .kind = MT_EVENT_DROPPED};
    enum mt_status status =
        mt_symbols_string(drain->resolver.trace_symbols, why, strlen(why), &event.name);

    if (status != MT_OK)
        return mt_fail_status(error, status);
    return add(drain, writer, &event, result, error);
}

static const char ended_while_recording[] = "the process ended while they were recorded";
static const char tape_is_damaged[] = "the tape is damaged";

static void take_clock(struct mt_drain *drain)
{
    const struct mt_tape *tape = drain->tape;
    uint32_t which = atomic_load_explicit(&tape->last_point, memory_order_acquire) & 1u;

    drain->resolver.first = tape->first_point;
    drain->resolver.last = tape->last_points[which];
}

/* Writes events up to the first empty place of the window. */
static enum mt_status pass_window(struct mt_drain *drain, struct mt_writer *writer, size_t window,
                                  struct mt_drain_result *result, struct mt_error *error)
{
    size_t place;

    for (place = 0; place < window; place++) {
        if (!drain->window[place])
            break;
        drain->next_raw++;
        enum mt_status status =
            pass_on(drain, writer, drain->window[place], drain->threads[place], result, error);
        if (status != MT_OK)
            return status;
    }
    drain->unmatched += place;
    count_damaged(drain, advance_slots(drain), result);
    return MT_OK;
}

/* The lowest number that is committed and not taken, UINT64_MAX if none is. */
static uint64_t lowest_left(const struct mt_drain *drain)
{
    uint64_t lowest = UINT64_MAX;

    for (uint32_t index = 0; index < drain->tape->slot_count; index++) {
        const struct mt_slot *slot = mt_tape_slot(drain->tape, index);
        if (drain->taken[index] < drain->seen[index])
            lowest = mt_min_u64(lowest, slot->events[drain->taken[index]].seq);
    }
    return lowest;
}

/* Skips the numbers from next_raw to `until`, which have no event and will not get one. */
static enum mt_status skip_to(struct mt_drain *drain, struct mt_writer *writer, uint64_t until,
                              const char *why, struct mt_drain_result *result,
                              struct mt_error *error)
{
    uint64_t count = until - drain->next_raw;

    drain->next_raw = until;
    result->missing += count;
    return say_dropped(drain, writer, count, why, result, error);
}

static enum mt_status say_new_drops(struct mt_drain *drain, struct mt_writer *writer,
                                    struct mt_drain_result *result, struct mt_error *error)
{
    uint64_t dropped = atomic_load_explicit(&drain->tape->dropped_events, memory_order_relaxed);
    uint64_t fresh = dropped > drain->dropped ? dropped - drain->dropped : 0;

    drain->dropped = mt_max_u64(dropped, drain->dropped);
    if (!drain->definitions_told && atomic_load(&drain->tape->dropped_definitions)) {
        enum mt_status status =
            say_dropped(drain, writer, 0,
                        "no room for more names and stacks: later events lack them", result, error);
        if (status != MT_OK)
            return status;
        drain->definitions_told = true;
    }
    if (drain->damaged) {
        enum mt_status status =
            say_dropped(drain, writer, drain->damaged, tape_is_damaged, result, error);
        if (status != MT_OK)
            return status;
        drain->damaged = 0;
    }
    return fresh ? say_dropped(drain, writer, fresh, "the trace could not be written fast enough",
                               result, error)
                 : MT_OK;
}

/* Makes a window for all committed events, and reads the definitions that they refer to.
 * Definitions precede these events in the tape, so they are read after the slots. */
static enum mt_status begin_window(struct mt_drain *drain, size_t *window, struct mt_error *error)
{
    bool header_changed;

    *window = look(drain);
    enum mt_status status = mt_drain_definitions(drain, &header_changed);
    if (status == MT_OK)
        status = make_window(drain, *window);
    return status == MT_OK ? MT_OK : mt_fail_status(error, status);
}

/* Writes everything up to the first number that is taken but not committed. */
static enum mt_status pass_dense(struct mt_drain *drain, struct mt_writer *writer,
                                 struct mt_drain_result *result, struct mt_error *error)
{
    size_t window;
    enum mt_status status = begin_window(drain, &window, error);

    if (status != MT_OK)
        return status;
    for (uint32_t index = 0; index < drain->tape->slot_count; index++)
        lay_slot(drain, index, window);
    status = pass_window(drain, writer, window, result, error);
    result->waiting = count_left(drain);
    return status;
}

/* For a living process: handles one gap at a time, each after a separate waiting time. */
static enum mt_status pass_gap(struct mt_drain *drain, struct mt_writer *writer,
                               struct mt_drain_result *result, struct mt_error *error)
{
    uint64_t lowest = lowest_left(drain);

    if (lowest == UINT64_MAX)
        return MT_OK;
    given_up_add(&drain->given_up, drain->next_raw, lowest);
    enum mt_status status = skip_to(drain, writer, lowest,
                                    "a thread stopped while it was recording them", result, error);
    return status == MT_OK ? pass_dense(drain, writer, result, error) : status;
}

/* Events with the same number are ordered by place, so the result is always the same. */
MT_DEFINE_POINTER_ORDER(by_number, struct mt_raw_event, MT_ASCENDING(seq) || MT_BY_PLACE)

static uint32_t thread_of(const struct mt_drain *drain, const struct mt_raw_event *event)
{
    const char *slots = (const char *)mt_tape_slot(drain->tape, 0);
    size_t index = (size_t)((const char *)event - slots) / MT_SLOT_BYTES;

    return mt_tape_slot(drain->tape, (uint32_t)index)->thread;
}

/* Takes all committed events into the window, in order of their numbers. */
static void take_all(struct mt_drain *drain)
{
    size_t count = 0;

    for (uint32_t index = 0; index < drain->tape->slot_count; index++) {
        const struct mt_slot *slot = mt_tape_slot(drain->tape, index);
        for (uint32_t i = drain->taken[index]; i < drain->seen[index]; i++)
            drain->window[count++] = &slot->events[i];
        drain->taken[index] = (uint32_t)mt_max_u64(drain->taken[index], drain->seen[index]);
    }
    if (count)
        qsort(drain->window, count, sizeof(void *), by_number);
}

/* A dead process leaves at most one gap per thread. Further gaps are damage. */
static enum mt_status skip_dead(struct mt_drain *drain, struct mt_writer *writer, uint64_t until,
                                uint32_t *gaps, struct mt_drain_result *result,
                                struct mt_error *error)
{
    if (until <= drain->next_raw)
        return MT_OK;
    const char *why = (*gaps)++ < drain->tape->slot_count ? ended_while_recording : tape_is_damaged;
    return skip_to(drain, writer, until, why, result, error);
}

/* The numbers of a dead process may be arbitrary, so they are sorted: one pass per gap would be
 * quadratic. Events below the first number are already in the trace, or were given up. */
static enum mt_status pass_dead(struct mt_drain *drain, struct mt_writer *writer,
                                struct mt_drain_result *result, struct mt_error *error)
{
    const uint64_t first = drain->next_raw;
    uint32_t gaps = 0;
    size_t window;
    enum mt_status status = begin_window(drain, &window, error);

    if (status == MT_OK)
        take_all(drain);
    for (size_t i = 0; i < window && status == MT_OK; i++) {
        const struct mt_raw_event *event = drain->window[i];
        if (event->seq < first)
            continue;
        if (!has_place(drain, event)) {
            count_damaged(drain, 1, result);
            continue;
        }
        status = skip_dead(drain, writer, event->seq, &gaps, result, error);
        drain->next_raw = event->seq + 1;
        if (status == MT_OK)
            status = pass_on(drain, writer, event, thread_of(drain, event), result, error);
    }
    return status == MT_OK ? skip_dead(drain, writer, drain->end_raw, &gaps, result, error)
                           : status;
}

enum mt_status mt_drain_pass(struct mt_drain *drain, struct mt_writer *writer,
                             enum mt_drain_mode mode, struct mt_drain_result *result,
                             struct mt_error *error)
{
    *result = (struct mt_drain_result){0};
    take_clock(drain);
    enum mt_status status = mode == MT_DRAIN_DEAD ? pass_dead(drain, writer, result, error)
                                                  : pass_dense(drain, writer, result, error);
    if (status == MT_OK && mode == MT_DRAIN_SKIP)
        status = pass_gap(drain, writer, result, error);
    return status == MT_OK ? say_new_drops(drain, writer, result, error) : status;
}

void mt_drain_commit(struct mt_drain *drain, uint64_t trace_bytes)
{
    struct mt_tape *tape = drain->tape;
    uint32_t next = (atomic_load(&tape->current_commit) + 1u) & 1u;

    tape->commits[next] = (struct mt_tape_commit){
        trace_bytes,          drain->next_raw,           drain->next_seq,
        drain->dropped,       drain->resolver.last_t_ns, drain->part,
        drain->events_before, drain->save_reasons,       drain->part_before_events,
        drain->began_t_ns};
    atomic_store_explicit(&tape->current_commit, next, memory_order_release);
    for (uint32_t index = 0; index < tape->slot_count; index++) {
        struct mt_slot *slot = mt_tape_slot(tape, index);
        if (atomic_load_explicit(&slot->state, memory_order_acquire) != MT_SLOT_FULL ||
            drain->taken[index] < committed_in(slot))
            continue;
        drain->taken[index] = 0;
        atomic_store_explicit(&slot->committed, 0, memory_order_relaxed);
        atomic_store_explicit(&slot->state, MT_SLOT_FREE, memory_order_release);
    }
}

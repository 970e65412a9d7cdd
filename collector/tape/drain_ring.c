/* A drain that follows what is alive: for a ring (ring.h), and while recording has not begun. */
#include "alive_state.h"
#include "drain.h"
#include "drain_parts.h"
#include "event.h"
#include "util.h"

/* A refusal of the driver is final only if no allocator above it tries again. */
static void count_refusal(struct mt_drain *drain, const struct mt_event *event)
{
    drain->has_segments |= mt_event_is_segment(event) != 0;
    drain->save_reasons += event->kind == MT_EVENT_OOM ||
                           (event->kind == MT_EVENT_ALLOC_FAILED && !drain->has_segments);
}

enum mt_status mt_drain_ring_add(struct mt_drain *drain, const struct mt_event *event,
                                 struct mt_error *error)
{
    const uint64_t exceeded = mt_alive_state_exceeded(drain->alive);

    count_refusal(drain, event);
    if (mt_alive_state_add(drain->alive, event) != MT_OK)
        return mt_fail_memory(error);
    drain->save_reasons += mt_alive_state_exceeded(drain->alive) - exceeded;
    return MT_OK;
}

enum mt_status mt_drain_follow(struct mt_drain *drain)
{
    drain->alive = mt_alive_state_new(drain->resolver.trace_symbols);
    if (!drain->alive)
        return MT_ERR_MEMORY;
    mt_alive_state_watch(drain->alive, drain->tape->ring_above_bytes);
    return MT_OK;
}

bool mt_drain_part_is_full(const struct mt_drain *drain)
{
    return drain->tape->ring_ns && drain->alive && !mt_drain_is_idle(drain) &&
           drain->resolver.last_t_ns - mt_min_u64(drain->resolver.last_t_ns, drain->part_t_ns) >=
               drain->tape->ring_ns;
}

uint64_t mt_drain_part(const struct mt_drain *drain)
{
    return drain->part;
}

void mt_drain_begin_part(struct mt_drain *drain)
{
    drain->events_before += drain->next_seq - drain->part_initial;
    drain->part_before_events = drain->next_seq;
    drain->part++;
    drain->part_t_ns = drain->resolver.last_t_ns;
    drain->next_seq = 0;
}

enum mt_status mt_drain_write_state(struct mt_drain *drain, struct mt_writer *writer,
                                    struct mt_error *error)
{
    enum mt_status status =
        mt_alive_state_write(drain->alive, writer, drain->part_t_ns, &drain->next_seq, error);

    drain->part_initial = drain->next_seq;
    return status;
}

bool mt_drain_is_idle(const struct mt_drain *drain)
{
    return drain->began_t_ns == MT_TAPE_IDLE;
}

enum mt_status mt_drain_begin(struct mt_drain *drain, struct mt_writer *writer,
                              struct mt_error *error)
{
    uint64_t *last_t_ns = &drain->resolver.last_t_ns;

    *last_t_ns = mt_max_u64(*last_t_ns, drain->resolver.last.unix_ns);
    drain->began_t_ns = drain->part_t_ns = *last_t_ns;
    enum mt_status status = mt_drain_write_state(drain, writer, error);
    if (!drain->tape->ring_ns) {
        mt_alive_state_free(drain->alive);
        drain->alive = NULL;
    }
    return status;
}

void mt_drain_renumber(struct mt_drain *drain, uint64_t next_seq)
{
    drain->next_seq = next_seq;
}

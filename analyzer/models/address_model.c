/* Currently reserved segments are in one array, sorted by address. A block finds its segment there
 * by bisection, and its rows by its offset. Everything else is bookkeeping of sums. */
#include "address_model.h"

#include "event.h"
#include "grow.h"
#include "map.h"
#include "process_memory.h"
#include "sorted.h"
#include "util.h"

#include <stdlib.h>
#include <string.h>

#define STANDARD_ROWS    2048
#define STANDARD_COLUMNS 2048
#define NOWHERE          UINT32_MAX
#define FAR              (UINT64_C(64) << 30) /* bytes between parts of one reservation */

enum { PARTS = 2 }; /* maximum number of segments that a block spans */

/* A place under construction. */
struct place {
    struct mt_address_range out;
    size_t row_capacity;
    uint64_t allocated, reserved;
    uint64_t settled_t_ns;   /* used and held are summed up to this time */
    uint64_t since_event;    /* the segment was allocated */
    uint64_t emptied_event;  /* its last block was freed */
    uint64_t segment_blocks; /* that were in this segment */
    uint32_t next_free;      /* of the free places of the same size, NOWHERE */
};

/* Currently reserved memory. */
struct held {
    uint64_t base, end; /* base first: sorted.h */
    uint32_t place;
};

/* Position of a part of a live block. */
struct seat {
    uint64_t offset, bytes; /* bytes: the part in the segment */
    uint32_t place;
};

struct mt_address_builder {
    struct mt_arena *arena;
    struct mt_address_options options;
    struct mt_mosaic_rows rows;
    struct mt_mosaic mosaics[2]; /* time, events */
    struct place *places;
    uint32_t place_count;
    size_t place_capacity;
    struct held *held; /* by address */
    uint32_t held_count;
    size_t held_capacity;
    struct mt_map free; /* size -> the place that was freed last */
    struct seats {
        struct seat parts[PARTS];
    } * seats; /* by number of the block */
    size_t seat_count, seat_capacity;
    uint32_t span; /* of the last event */
    uint64_t span_offset;
    uint64_t now_t_ns, now_event;
    struct mt_kept_blocks kept;
    struct mt_address *address;
};

static uint64_t busy_time(const struct mt_address_options *options)
{
    uint64_t busy = 0;

    for (uint32_t i = 0; i < options->span_count; i++)
        busy += options->spans[i].end_t_ns - options->spans[i].begin_t_ns;
    return busy;
}

void mt_address_builder_new(struct mt_arena *arena, const struct mt_address_options *options,
                            struct mt_address_builder **out)
{
    struct mt_address_builder *builder = mt_memory_zeroed(1, sizeof *builder);
    uint64_t rows = options->rows ? mt_min_u64(options->rows, MT_ADDRESS_ROWS) : STANDARD_ROWS;
    uint32_t columns = options->columns ? options->columns : STANDARD_COLUMNS;
    uint64_t events =
        options->last_event - mt_min_u64(options->first_event, options->last_event) + 1;

    builder->arena = arena;
    builder->address = mt_arena_alloc(arena, sizeof *builder->address);
    builder->options = *options;
    builder->now_event = UINT64_MAX;
    builder->rows.bytes_per_row = mt_max_u64((options->reserved_peak_bytes + rows - 1) / rows, 512);
    mt_kept_blocks_init(&builder->kept, arena, options->blocks);
    mt_mosaic_init(&builder->mosaics[0], &builder->rows, busy_time(options) + 1, columns);
    mt_mosaic_init(&builder->mosaics[1], &builder->rows, events, columns);
    *out = builder;
}

void mt_address_builder_release(void *context)
{
    struct mt_address_builder *builder = context;

    if (!builder)
        return;
    for (uint32_t i = 0; i < builder->place_count; i++)
        free(builder->places[i].out.rows);
    mt_mosaic_release(&builder->mosaics[0]);
    mt_mosaic_release(&builder->mosaics[1]);
    mt_map_release(&builder->free);
    free(builder->rows.rows);
    free(builder->places);
    free(builder->held);
    free(builder->seats);
    free(builder);
}

static uint64_t time_place(struct mt_address_builder *builder, uint64_t t_ns)
{
    const struct mt_span *spans = builder->options.spans;

    while (builder->span + 1 < builder->options.span_count &&
           t_ns >= spans[builder->span + 1].begin_t_ns) {
        builder->span_offset += spans[builder->span].end_t_ns - spans[builder->span].begin_t_ns;
        builder->span++;
    }
    if (builder->span >= builder->options.span_count)
        return 0;
    t_ns = mt_min_u64(mt_max_u64(t_ns, spans[builder->span].begin_t_ns),
                      spans[builder->span].end_t_ns);
    return builder->span_offset + (t_ns - spans[builder->span].begin_t_ns);
}

static void go_to(struct mt_address_builder *builder, uint64_t t_ns, uint64_t event)
{
    const struct mt_address_options *options = &builder->options;
    uint64_t at = mt_min_u64(mt_max_u64(event, options->first_event), options->last_event);

    if (event == builder->now_event && t_ns <= builder->now_t_ns)
        return; /* the state after a block of the same event */
    builder->now_event = event;
    builder->now_t_ns = mt_max_u64(builder->now_t_ns, t_ns);
    mt_mosaic_advance(&builder->mosaics[0], time_place(builder, builder->now_t_ns));
    if (at >= options->first_event)
        mt_mosaic_advance(&builder->mosaics[1], at - options->first_event);
}

/* Sums bytes x time until now. */
static void settle(struct mt_address_builder *builder, struct place *place)
{
    uint64_t from = mt_max_u64(place->settled_t_ns, builder->options.count_from_t_ns);
    double seconds = builder->now_t_ns > from ? (double)(builder->now_t_ns - from) * 1e-9 : 0;

    place->out.used += (double)place->allocated * seconds;
    place->out.held += (double)place->reserved * seconds;
    place->settled_t_ns = builder->now_t_ns;
}

/* Rows for the first `bytes` of a place; false if none are left. */
static bool has_rows(const struct mt_address_builder *builder, const struct place *place,
                     uint64_t bytes)
{
    uint64_t wanted = (bytes - 1) / builder->rows.bytes_per_row + 1;

    return wanted <= place->out.row_count ||
           wanted - place->out.row_count <= MT_ADDRESS_ROWS - builder->rows.count;
}

static void make_rows(struct mt_address_builder *builder, struct place *place, uint64_t bytes)
{
    uint64_t wanted = (bytes - 1) / builder->rows.bytes_per_row + 1;
    struct mt_mosaic_rows *rows = &builder->rows;

    if (wanted <= place->out.row_count)
        return;
    mt_grow_to(&place->out.rows, &place->row_capacity, wanted, sizeof *place->out.rows);
    mt_grow_to(&rows->rows, &rows->capacity, rows->count + (wanted - place->out.row_count),
               sizeof *rows->rows);
    while (place->out.row_count < wanted) {
        memset(&rows->rows[rows->count], 0, sizeof *rows->rows);
        place->out.rows[place->out.row_count++] = rows->count++;
    }
}

/* Adds (or removes) a stretch of a place; role MT_ROLE_COUNT: of reserved bytes. */
static void change_rows(struct mt_address_builder *builder, const struct place *place,
                        const struct seat *seat, unsigned role, bool take)
{
    uint64_t per_row = builder->rows.bytes_per_row, offset = seat->offset;
    uint64_t end = offset + seat->bytes;

    while (offset < end) {
        uint64_t row = offset / per_row, part = mt_min_u64(end, (row + 1) * per_row) - offset;
        struct mt_mosaic_change change = {0, (uint8_t)role, take ? -(int64_t)part : (int64_t)part};

        change.row = place->out.rows[row];
        struct mt_mosaic_row *now = &builder->rows.rows[change.row];
        if (role == MT_ROLE_COUNT) {
            if (take && now->reserved < part) /* was never reserved: damaged input */
                change.bytes = -(int64_t)now->reserved;
            now->reserved += (uint64_t)change.bytes;
        } else {
            now->covered += (uint64_t)change.bytes;
            now->role_bytes[role] += (uint64_t)change.bytes;
        }
        mt_mosaic_change(&builder->mosaics[0], &change);
        mt_mosaic_change(&builder->mosaics[1], &change);
        offset += part;
    }
}

static void reserve(struct mt_address_builder *builder, const struct place *place, uint64_t offset,
                    uint64_t bytes, bool take)
{
    const struct seat range = {offset, bytes, NOWHERE};

    change_rows(builder, place, &range, MT_ROLE_COUNT, take);
}

/* Index of the first that begins above `addr`. */
static uint32_t first_above(const struct mt_address_builder *builder, uint64_t addr)
{
    return (uint32_t)mt_sorted_count_to(builder->held, builder->held_count, sizeof *builder->held,
                                        addr);
}

static struct held *held_at(const struct mt_address_builder *builder, uint64_t addr)
{
    uint32_t at = first_above(builder, addr);

    return at && addr < builder->held[at - 1].end ? &builder->held[at - 1] : NULL;
}

static void hold(struct mt_address_builder *builder, uint64_t base, uint64_t end, uint32_t place)
{
    uint32_t at = first_above(builder, base);

    mt_grow_to(&builder->held, &builder->held_capacity, (size_t)builder->held_count + 1,
               sizeof *builder->held);
    memmove(builder->held + at + 1, builder->held + at,
            (builder->held_count++ - at) * sizeof *builder->held);
    builder->held[at] = (struct held){base, end, place};
}

static void let_go(struct mt_address_builder *builder, const struct held *held)
{
    uint32_t at = (uint32_t)(held - builder->held);

    memmove(builder->held + at, builder->held + at + 1,
            (--builder->held_count - at) * sizeof *builder->held);
}

/* Returns the most recently freed place of that size. */
static uint32_t take_free(struct mt_address_builder *builder, uint64_t bytes)
{
    uint32_t place = mt_map_take(&builder->free, bytes);

    if (place == MT_MAP_NONE)
        return NOWHERE;
    if (builder->places[place].next_free != NOWHERE)
        mt_map_put(&builder->free, bytes, builder->places[place].next_free);
    return place;
}

static void give_free(struct mt_address_builder *builder, uint32_t place)
{
    uint64_t bytes = builder->places[place].out.bytes;
    uint32_t last = mt_map_get(&builder->free, bytes);

    builder->places[place].next_free = last == MT_MAP_NONE ? NOWHERE : last;
    mt_map_put(&builder->free, bytes, place);
}

static void new_place(struct mt_address_builder *builder, const struct mt_event *event,
                      bool expandable, uint32_t *place)
{
    mt_grow_to(&builder->places, &builder->place_capacity, (size_t)builder->place_count + 1,
               sizeof *builder->places);
    *place = builder->place_count++;
    builder->places[*place] = (struct place){.out = {.base = event->addr,
                                                     .bytes = expandable ? 0 : event->size_bytes,
                                                     .created_t_ns = event->t_ns,
                                                     .created_event = event->seq,
                                                     .is_expandable = expandable,
                                                     .pool = event->pool,
                                                     .initial = event->flags & MT_EVENT_INITIAL},
                                             .settled_t_ns = builder->now_t_ns};
}

static void homeless(struct mt_address_builder *builder, uint64_t bytes)
{
    builder->address->homeless_segments++;
    builder->address->homeless_bytes += bytes;
}

static void on_segment_alloc(struct mt_address_builder *builder, const struct mt_event *event)
{
    const struct place nothing = {.out.row_count = 0};
    uint32_t index = take_free(builder, event->size_bytes);

    if (index == NOWHERE && (!has_rows(builder, &nothing, event->size_bytes) ||
                             builder->place_count == MT_ADDRESS_ROWS)) {
        homeless(builder, event->size_bytes);
        return;
    }
    if (index == NOWHERE)
        new_place(builder, event, false, &index);
    struct place *place = &builder->places[index];
    make_rows(builder, place, event->size_bytes);
    hold(builder, event->addr, event->addr + event->size_bytes, index);
    settle(builder, place);
    place->out.base = event->addr;
    place->out.pool = event->pool;
    place->out.segments++;
    place->reserved = event->size_bytes;
    place->since_event = place->emptied_event = event->seq;
    place->segment_blocks = 0;
    reserve(builder, place, 0, event->size_bytes, false);
}

static void on_segment_free(struct mt_address_builder *builder, const struct mt_event *event)
{
    struct held *held = held_at(builder, event->addr);

    if (!held || held->base != event->addr || builder->places[held->place].out.is_expandable)
        return;
    struct place *place = &builder->places[held->place];
    settle(builder, place);
    reserve(builder, place, 0, place->reserved, true);
    place->reserved = 0;
    give_free(builder, held->place);
    let_go(builder, held);
}

/* The expandable segment that an address is reserved for. Addresses for more than the device's
 * memory are reserved at once, so the mapped part may have holes. */
static struct held *band_of(const struct mt_address_builder *builder, uint64_t addr)
{
    uint32_t at = first_above(builder, addr);
    struct held *held = at ? &builder->held[at - 1] : NULL;
    uint64_t reach = builder->options.reservation_bytes;

    if (!held || !builder->places[held->place].out.is_expandable)
        return NULL;
    if (!reach)
        reach = held->end - held->base + FAR;
    return addr - held->base < reach ? held : NULL;
}

static void new_band(struct mt_address_builder *builder, const struct mt_event *event,
                     uint64_t addr)
{
    uint32_t index;

    new_place(builder, event, true, &index);
    hold(builder, addr, addr, index);
    builder->places[index].out.base = addr;
    builder->places[index].out.segments = 1;
    builder->places[index].since_event = builder->places[index].emptied_event = event->seq;
}

/* Maps addresses of one band, which is created if necessary. */
static void map_piece(struct mt_address_builder *builder, const struct mt_event *event,
                      uint64_t addr, uint64_t end)
{
    struct held *band = band_of(builder, addr);

    if (!band ||
        (band->end < addr && !has_rows(builder, &builder->places[band->place], end - band->base))) {
        if (builder->place_count == MT_ADDRESS_ROWS) {
            homeless(builder, end - addr);
            return;
        }
        new_band(builder, event, addr);
        band = band_of(builder, addr);
    }
    struct place *place = &builder->places[band->place];
    if (!has_rows(builder, place, end - band->base)) {
        homeless(builder, end - addr);
        return;
    }
    make_rows(builder, place, end - band->base);
    settle(builder, place);
    band->end = mt_max_u64(band->end, end);
    place->out.bytes = mt_max_u64(place->out.bytes, end - band->base);
    place->reserved += end - addr;
    reserve(builder, place, addr - band->base, end - addr, false);
}

static void unmap_piece(struct mt_address_builder *builder, uint64_t addr, uint64_t end)
{
    struct held *band = band_of(builder, addr);
    struct place *place = band ? &builder->places[band->place] : NULL;

    if (!band || addr >= band->end)
        return;
    uint64_t bytes = mt_min_u64(mt_min_u64(end, band->end) - addr, place->reserved);
    settle(builder, place);
    place->reserved -= bytes;
    reserve(builder, place, addr - band->base, bytes, true);
}

/* A range may be in two bands, if there was a hole between them when the trace began. */
static uint64_t piece_end(const struct mt_address_builder *builder, uint64_t addr, uint64_t end)
{
    uint32_t at = first_above(builder, addr);

    return at < builder->held_count ? mt_min_u64(end, builder->held[at].base) : end;
}

static void on_range(struct mt_address_builder *builder, const struct mt_event *event)
{
    uint64_t addr = event->addr, end = addr + event->size_bytes;

    while (addr < end) {
        uint64_t piece = piece_end(builder, addr, end);

        if (event->kind == MT_EVENT_SEGMENT_MAP)
            map_piece(builder, event, addr, piece);
        else
            unmap_piece(builder, addr, piece);
        addr = piece;
    }
}

static void on_segment(struct mt_address_builder *builder, const struct mt_event *event)
{
    /* Empty, or past the end of all addresses: damaged input. */
    if (!event->size_bytes && event->kind != MT_EVENT_SEGMENT_FREE)
        return;
    if (event->addr + event->size_bytes < event->addr || event->size_bytes >> 62)
        return;
    switch (event->kind) {
    case MT_EVENT_SEGMENT_ALLOC: on_segment_alloc(builder, event); return;
    case MT_EVENT_SEGMENT_FREE: on_segment_free(builder, event); return;
    default: on_range(builder, event); return;
    }
}

static void seats_for(struct mt_address_builder *builder, uint32_t block)
{
    if (block >= builder->seat_count) {
        mt_grow_to(&builder->seats, &builder->seat_capacity, block + (size_t)1,
                   sizeof *builder->seats);
        for (; builder->seat_count <= block; builder->seat_count++)
            for (int i = 0; i < PARTS; i++)
                builder->seats[builder->seat_count].parts[i].place = NOWHERE;
    }
    for (int i = 0; i < PARTS; i++) /* no block may remain */
        builder->seats[block].parts[i].place = NOWHERE;
}

/* The part of a block in the segment at `addr`. */
static struct seat sit(struct mt_address_builder *builder, uint64_t addr, uint64_t end)
{
    const struct held *held = held_at(builder, addr);
    struct seat seat = {0, 0, NOWHERE};

    if (!held)
        return seat;
    end = piece_end(builder, addr, mt_min_u64(end, held->end));
    return (struct seat){addr - held->base, end - addr, held->place};
}

static void occupy(struct mt_address_builder *builder, const struct seat *seat, unsigned role)
{
    struct place *place = &builder->places[seat->place];

    settle(builder, place);
    place->allocated += seat->bytes;
    place->out.blocks++;
    place->segment_blocks++;
    change_rows(builder, place, seat, role, false);
}

static void leave(struct mt_address_builder *builder, struct seat *seat, unsigned role,
                  uint64_t event)
{
    struct place *place = &builder->places[seat->place];

    settle(builder, place);
    place->allocated -= seat->bytes;
    if (!place->allocated)
        place->emptied_event = event;
    change_rows(builder, place, seat, role, true);
    seat->place = NOWHERE;
}

void mt_address_builder_birth(void *context, const struct mt_block_life *life)
{
    struct mt_address_builder *builder = context;
    uint64_t addr = life->addr, end = addr + life->block_bytes;

    go_to(builder, life->birth_t_ns, life->birth_event);
    seats_for(builder, life->block);
    if (end < addr)
        return;
    struct seat *seats = builder->seats[life->block].parts;
    for (int i = 0; i < PARTS; i++) {
        seats[i] = addr < end ? sit(builder, addr, end) : (struct seat){0, 0, NOWHERE};
        if (seats[i].place != NOWHERE)
            occupy(builder, &seats[i], life->role);
        addr += seats[i].bytes;
    }
    builder->address->outside_blocks += seats[0].place == NOWHERE;
    builder->address->outside_bytes += end - addr;
}

static void keep(struct mt_address_builder *builder, const struct mt_block_life *life,
                 struct mt_block_end end)
{
    const struct seat *seat = builder->seats[life->block].parts;
    uint64_t end_t_ns = end.event == UINT64_MAX ? builder->options.last_t_ns : end.t_ns;
    uint64_t length = end_t_ns > life->birth_t_ns ? end_t_ns - life->birth_t_ns : 1;

    if (seat->place == NOWHERE)
        return;
    struct mt_block_shape *shape =
        mt_kept_blocks_add(&builder->kept, life, end, (double)life->block_bytes * (double)length);
    if (!shape)
        return;
    shape->place = seat->place;
    shape->offset = seat->offset;
}

void mt_address_builder_end(void *context, const struct mt_block_life *life,
                            struct mt_block_end end)
{
    struct mt_address_builder *builder = context;

    if (life->block >= builder->seat_count)
        return;
    keep(builder, life, end);
    if (end.event == UINT64_MAX)
        return;
    go_to(builder, end.t_ns, end.event);
    for (int i = 0; i < PARTS; i++)
        if (builder->seats[life->block].parts[i].place != NOWHERE)
            leave(builder, &builder->seats[life->block].parts[i], life->role, end.event);
}

void mt_address_builder_state(void *context, const struct mt_model_state *state)
{
    struct mt_address_builder *builder = context;
    const struct mt_event *event = state->event;
    const struct mt_mosaic_column now = {event->t_ns, event->seq, state->now->allocated,
                                         state->now->reserved};

    go_to(builder, event->t_ns, event->seq);
    if (mt_event_is_segment(event))
        on_segment(builder, event);
    mt_mosaic_state(&builder->mosaics[0], &now);
    mt_mosaic_state(&builder->mosaics[1], &now);
}

static void sum_up(const struct mt_address_builder *builder, const struct place *place,
                   struct mt_address *address, struct mt_address_range *out)
{
    out->reserved_end = place->reserved;
    out->allocated_end = place->allocated;
    out->was_idle = place->reserved && !place->allocated && !out->is_expandable &&
                    place->since_event < builder->options.last_step_event &&
                    place->emptied_event < builder->options.last_step_event;
    address->used += out->used;
    address->held += out->held;
    address->reserved_end += place->reserved;
    address->allocated_end += place->allocated;
    address->segments_end += place->reserved > 0;
    if (!out->was_idle)
        return;
    address->idle_segments++;
    address->idle_bytes += place->reserved;
    if (place->segment_blocks <= 1) {
        address->once_segments++;
        address->once_bytes += place->reserved;
    }
}

static void finish_places(struct mt_address_builder *builder, struct mt_address *address)
{
    address->places =
        mt_arena_array(builder->arena, builder->place_count + (size_t)1, sizeof *address->places);
    builder->now_t_ns = mt_max_u64(builder->now_t_ns, builder->options.last_t_ns);
    for (uint32_t i = 0; i < builder->place_count; i++) {
        struct place *place = &builder->places[i];
        struct mt_address_range *out = &address->places[i];

        settle(builder, place);
        *out = place->out;
        out->rows = mt_arena_array(builder->arena, out->row_count + (size_t)1, sizeof *out->rows);
        if (out->row_count)
            memcpy(out->rows, place->out.rows, out->row_count * sizeof *out->rows);
        sum_up(builder, place, address, out);
    }
    address->place_count = builder->place_count;
}

static void finish_axis(struct mt_address_builder *builder, struct mt_mosaic *mosaic,
                        struct mt_address_axis *axis)
{
    mt_mosaic_finish(mosaic, builder->arena, &axis->runs, &axis->first_run);
    axis->column_count = mosaic->column_count;
    axis->columns = mt_arena_array(builder->arena, axis->column_count, sizeof *axis->columns);
    memcpy(axis->columns, mosaic->columns, axis->column_count * sizeof *axis->columns);
}

void mt_address_builder_finish(struct mt_address_builder *builder, struct mt_address **out)
{
    struct mt_address *address = builder->address;

    address->bytes_per_row = builder->rows.bytes_per_row;
    address->row_count = builder->rows.count;
    address->has_steps = builder->options.last_step_event != UINT64_MAX;
    address->block_count = builder->kept.count;
    address->blocks = mt_kept_blocks_list(&builder->kept, builder->arena);
    finish_places(builder, address);
    finish_axis(builder, &builder->mosaics[0], &address->time);
    finish_axis(builder, &builder->mosaics[1], &address->event);
    *out = address;
}

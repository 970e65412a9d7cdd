/* A text of numbers in base 64 (report_page.h). */
#include "page_blocks.h"

#include <stdlib.h>
#include <string.h>

#include "grow.h"
#include "process_memory.h"
#include "sorted.h"
#include "time_axis.h"
#include "util.h"

/* Returns the phase and the step in which a block was allocated. */
static const char *birth_of(struct mt_page_data *writer, const struct mt_block_shape *block)
{
    const struct mt_report *report = writer->report;
    bool known = block->life.phase >= 0 && (uint32_t)block->life.phase < report->phase_count;

    if (block->life.initial)
        return "before the recorded history";
    return mt_chart_frame_where(&writer->drawing, report, block->life.phase,
                                known ? report->phases[block->life.phase].step : MT_NO_STEP);
}

/* Adds a number in base 64 as source maps do (VLQ): five bits a digit, the lowest first, and a
 * sixth that is set unless the digit is the last one. */
static void add_digits(struct mt_buf *out, uint64_t value)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    char text[13]; /* 64 bits */
    size_t length = 0;

    for (; value >= 32; value >>= 5)
        text[length++] = digits[32 | (value & 31)];
    text[length++] = digits[value];
    mt_buf_add(out, text, length);
}

/* A difference: its sign is the lowest bit. It wraps around, as addresses do. */
static void add_difference(struct mt_buf *out, uint64_t value, uint64_t before)
{
    uint64_t difference = value - before;

    add_digits(out, difference >> 63 ? ~difference << 1 | 1 : difference << 1);
}

/* What blocks of a kind have in common, and the last of them. */
struct kind {
    int64_t facts[8];
    uint64_t addr;
};

struct kinds {
    struct kind *list;
    uint32_t count;
    size_t capacity;
    struct mt_map ids; /* hash of the facts -> kind */
};

static struct kind *kind_of(struct kinds *kinds, const struct kind *like, uint32_t *number)
{
    uint64_t key = 0;

    for (size_t i = 0; i < MT_ARRAY_LEN(like->facts); i++)
        key = mt_hash_u64(key ^ (uint64_t)like->facts[i]);
    for (;; key++) {
        *number = mt_map_get(&kinds->ids, key);
        if (*number == MT_MAP_NONE)
            break;
        if (!memcmp(kinds->list[*number].facts, like->facts, sizeof like->facts))
            return &kinds->list[*number];
    }
    *number = kinds->count;
    mt_map_put(&kinds->ids, key, kinds->count);
    mt_grow_to(&kinds->list, &kinds->capacity, (size_t)kinds->count + 1, sizeof *kinds->list);
    kinds->list[kinds->count] = *like;
    return &kinds->list[kinds->count++];
}

static struct kind facts_of(struct mt_page_data *writer, const struct mt_block_shape *block,
                            uint32_t group)
{
    uint32_t node = mt_page_node(writer, block->life.stack);

    return (struct kind){
        .facts = {(int64_t)block->life.block_bytes, (int64_t)block->life.requested_bytes,
                  block->life.role, mt_page_string(writer, block->site ? block->site : ""),
                  block->operation ? (int64_t)mt_page_string(writer, block->operation) : -1,
                  node == MT_PAGE_NO_NODE ? -1 : (int64_t)node, group, block->life.initial}};
}

/* How long other streams used a freed block: 0 = not at all, 1 = to the end of the trace. */
static uint64_t wait_of(const struct mt_block_shape *block)
{
    if (block->end.event == UINT64_MAX)
        return 0;
    if (block->completed.event == UINT64_MAX)
        return 1;
    /* without another stream, the next event completes the request */
    return block->completed.event - block->end.event <= 1
               ? 0
               : block->completed.event - block->end.event;
}

/* The numbers of the previous row. */
struct row {
    uint64_t where, event, t;
    int32_t phase;
    bool initial;
};

static void add_block(struct mt_page_data *writer, const struct mt_block_shape *block,
                      struct row *last)
{
    struct mt_buf *out = &writer->block_text;
    const struct mt_block_life *life = &block->life;
    bool ended = block->end.event != UINT64_MAX;
    uint64_t zero = writer->report->first_t_ns, unit = writer->time_unit, wait = wait_of(block);
    struct row row = {last->where, life->birth_event,
                      life->initial ? last->t : (life->birth_t_ns - zero) / unit, life->phase,
                      life->initial};

    if (row.phase != last->phase || row.initial != last->initial)
        row.where = mt_page_string(writer, birth_of(writer, block));

    add_difference(out, row.where, last->where);
    add_difference(out, row.event, last->event);
    add_difference(out, row.t, last->t);
    add_digits(out, ended ? block->end.event - life->birth_event : 0);
    if (ended) {
        add_difference(out, (block->end.t_ns - zero) / unit, row.t);
        add_digits(out, wait);
    }
    if (wait > 1)
        add_difference(out, block->completed.t_ns / unit, block->end.t_ns / unit);
    *last = row;
}

MT_DEFINE_POINTER_ORDER(by_birth, struct mt_history_block,
                        MT_ASCENDING(shape.life.birth_event) || MT_ASCENDING(shape.life.addr))

bool mt_page_add_blocks(struct mt_page_data *writer, uint32_t count, size_t most_bytes)
{
    const struct mt_history *history = writer->history;
    const struct mt_history_block **blocks =
        mt_memory_new(((size_t)count + 1) * sizeof(const struct mt_history_block *));
    uint32_t *groups = mt_memory_new(((size_t)count + 1) * sizeof *groups), number;
    struct kinds kinds = {0};
    struct row last = {.phase = INT32_MIN};

    for (uint32_t i = 0; i < count; i++) {
        blocks[i] = &history->blocks[i];
        writer->addr_unit =
            mt_greatest_divisor(history->blocks[i].shape.life.addr, writer->addr_unit);
    }
    writer->addr_unit = mt_max_u64(writer->addr_unit, 1);
    mt_history_group_blocks(history, count, groups);
    qsort(blocks, count, sizeof *blocks, by_birth);
    for (uint32_t i = 0; i < count && writer->block_text.length <= most_bytes; i++) {
        const struct mt_block_shape *block = &blocks[i]->shape;
        const struct kind like = facts_of(writer, block, groups[blocks[i] - history->blocks]);
        struct kind *kind = kind_of(&kinds, &like, &number);

        add_digits(&writer->block_text, number);
        add_difference(&writer->block_text, block->life.addr / writer->addr_unit, kind->addr);
        kind->addr = block->life.addr / writer->addr_unit;
        add_block(writer, block, &last);
    }
    for (uint32_t i = 0; i < kinds.count; i++)
        for (size_t j = 0; j < MT_ARRAY_LEN(kinds.list[i].facts); j++)
            mt_page_add_number(&writer->kind_text, kinds.list[i].facts[j]);
    free(kinds.list);
    mt_map_release(&kinds.ids);
    free(groups);
    free(blocks);
    return writer->block_text.length <= most_bytes;
}

void mt_page_add_block_rows(const struct mt_page_data *writer, struct mt_buf *out)
{
    const struct mt_buf *rows = &writer->block_text;

    mt_buf_printf(out, ",\"blocks_in_all\":%llu,\"address_unit\":%llu,\"time_unit\":%llu",
                  (unsigned long long)writer->history->blocks_in_all,
                  (unsigned long long)writer->addr_unit, (unsigned long long)writer->time_unit);
    mt_page_add_part(out, "kinds", &writer->kind_text);
    mt_buf_add_text(out, ",\"blocks\":\"");
    mt_buf_add(out, rows->data ? rows->data : "", rows->length);
    mt_buf_add_char(out, '"');
}

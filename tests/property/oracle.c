#include "oracle.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "event.h"

void oracle_begin(struct oracle *oracle, const struct oracle_rules *rules, uint64_t device_limit,
                  uint64_t memory)
{
    memset(oracle, 0, offsetof(struct oracle, piece));
    memset(&oracle->count, 0, sizeof *oracle - offsetof(struct oracle, count));
    oracle->rules = rules;
    oracle->device_limit = oracle->limit = device_limit;
    oracle->memory = memory;
}

void oracle_event(struct oracle *oracle, const struct mt_device_model *log)
{
    oracle->device = log;
    oracle->op_count = oracle->placed = 0;
}

void oracle_option(char *text, size_t size, const char *name, uint64_t value)
{
    size_t length = strlen(text);

    snprintf(text + length, size - length, "%s%s=%" PRIu64, length ? "," : "", name, value);
}

bool oracle_fits_limit(const struct oracle *oracle, uint64_t bytes)
{
    return !oracle->limit || oracle->counters.reserved.now + bytes <= oracle->limit;
}

void oracle_expect(struct oracle *oracle, uint8_t kind, uint64_t addr, uint64_t bytes)
{
    if (oracle->op_count == ORACLE_OPS)
        oracle->complaint = "the model has no room for another operation";
    else
        oracle->op[oracle->op_count++] = (struct oracle_op){kind, addr, bytes};
}

uint64_t oracle_address(struct oracle *oracle, uint8_t kind)
{
    if (oracle->rules->unlogged)
        return oracle->answer_addr;
    for (; oracle->placed < oracle->device->op_count; oracle->placed++) {
        if (oracle->device->ops[oracle->placed].kind == kind)
            return oracle->device->ops[oracle->placed++].addr;
    }
    oracle->complaint = "the policy did not ask the device for memory that it needs";
    return 0;
}

static struct oracle_piece *insert(struct oracle *oracle, size_t at)
{
    if (oracle->count == ORACLE_PIECES) {
        oracle->complaint = "the model has no room for another piece";
        return &oracle->piece[at];
    }
    memmove(&oracle->piece[at + 1], &oracle->piece[at],
            (oracle->count - at) * sizeof oracle->piece[0]);
    oracle->count++;
    return &oracle->piece[at];
}

void oracle_remove(struct oracle *oracle, size_t at)
{
    oracle->count--;
    memmove(&oracle->piece[at], &oracle->piece[at + 1],
            (oracle->count - at) * sizeof oracle->piece[0]);
}

size_t oracle_place(struct oracle *oracle, uint64_t addr, uint64_t bytes, uint32_t stream,
                    uint64_t list)
{
    size_t at = oracle->count;
    struct oracle_piece *piece = insert(oracle, at < ORACLE_PIECES ? at : at - 1);

    *piece = (struct oracle_piece){.addr = addr,
                                   .size = bytes,
                                   .list = list,
                                   .filed = ++oracle->clock,
                                   .segment = oracle->segments_made++,
                                   .stream = stream,
                                   .state = ORACLE_FREE};
    return oracle->count - 1;
}

size_t oracle_new_segment(struct oracle *oracle, uint64_t bytes, uint32_t stream, uint64_t list)
{
    uint64_t addr = oracle_address(oracle, MT_EVENT_SEGMENT_ALLOC);

    oracle_expect(oracle, MT_EVENT_SEGMENT_ALLOC, addr, bytes);
    oracle->counters.reserved.now += bytes;
    oracle->counters.segments.now++;
    oracle->counters.device_allocs++;
    return oracle_place(oracle, addr, bytes, stream, list);
}

static bool are_neighbours(const struct oracle *oracle, size_t low)
{
    return low + 1 < oracle->count && oracle->piece[low].segment == oracle->piece[low + 1].segment;
}

bool oracle_is_whole(const struct oracle *oracle, size_t at)
{
    return !are_neighbours(oracle, at) && (at == 0 || !are_neighbours(oracle, at - 1));
}

void oracle_drop(struct oracle *oracle, size_t at)
{
    const struct oracle_piece *piece = &oracle->piece[at];

    oracle_expect(oracle, MT_EVENT_SEGMENT_FREE, piece->addr, piece->size);
    oracle->counters.reserved.now -= piece->size;
    oracle->counters.segments.now--;
    oracle->counters.device_frees++;
    oracle_remove(oracle, at);
}

void oracle_drop_idle(struct oracle *oracle)
{
    size_t end;

    for (size_t first = 0; first < oracle->count; first = end) {
        bool idle = true;
        for (end = first;
             end < oracle->count && oracle->piece[end].segment == oracle->piece[first].segment;
             end++)
            idle = idle && oracle->piece[end].state == ORACLE_FREE;
        if (!idle)
            continue;
        for (; end > first + 1; end--) {
            oracle->piece[first].size += oracle->piece[first + 1].size;
            oracle_remove(oracle, first + 1);
        }
        oracle_drop(oracle, first);
        end = first;
    }
}

size_t oracle_grow_or_flush(struct oracle *oracle, uint64_t bytes, uint32_t stream, uint64_t list)
{
    if (!oracle_fits_limit(oracle, bytes)) {
        oracle->counters.retries++;
        oracle_drop_idle(oracle);
    }
    return oracle_fits_limit(oracle, bytes) ? oracle_new_segment(oracle, bytes, stream, list)
                                            : ORACLE_NONE;
}

size_t oracle_shortest(const struct oracle *oracle, uint64_t list, uint64_t bytes)
{
    size_t i, best = ORACLE_NONE;

    for (i = 0; i < oracle->count; i++) {
        const struct oracle_piece *piece = &oracle->piece[i];
        if (piece->state != ORACLE_FREE || piece->list != list || piece->size < bytes)
            continue;
        if (best == ORACLE_NONE || piece->size < oracle->piece[best].size ||
            (piece->size == oracle->piece[best].size && piece->addr < oracle->piece[best].addr))
            best = i;
    }
    return best;
}

void oracle_cut(struct oracle *oracle, size_t at, uint64_t bytes)
{
    if (oracle->piece[at].size == bytes)
        return;
    struct oracle_piece *rest = insert(oracle, at + 1);
    *rest = oracle->piece[at];
    rest->addr += bytes;
    rest->size -= bytes;
    rest->filed = ++oracle->clock;
    oracle->piece[at].size = bytes;
}

static bool may_join(const struct oracle *oracle, size_t low)
{
    const struct oracle_piece *piece = &oracle->piece[low];

    return are_neighbours(oracle, low) && piece[0].state == piece[1].state &&
           piece[0].list == piece[1].list;
}

size_t oracle_merge(struct oracle *oracle, size_t at)
{
    if (may_join(oracle, at)) {
        oracle->piece[at].size += oracle->piece[at + 1].size;
        oracle_remove(oracle, at + 1);
    }
    if (at > 0 && may_join(oracle, at - 1)) {
        at--;
        oracle->piece[at].size += oracle->piece[at + 1].size;
        oracle_remove(oracle, at + 1);
    }
    oracle->piece[at].filed = ++oracle->clock;
    return at;
}

size_t oracle_alloc(struct oracle *oracle, const struct oracle_request *request)
{
    size_t at = oracle->rules->take(oracle, request);

    if (at == ORACLE_NONE) {
        oracle->counters.ooms++;
        return at;
    }
    struct oracle_piece *piece = &oracle->piece[at];
    piece->state = ORACLE_LIVE;
    piece->requested = request->size;
    oracle->counters.allocations++;
    oracle->counters.requested.now += request->size;
    oracle->counters.allocated.now += piece->size;
    oracle->counters.active.now += piece->size;
    return at;
}

static size_t find_used(struct oracle *oracle, uint64_t addr, enum oracle_state state)
{
    for (size_t i = 0; i < oracle->count; i++) {
        if (oracle->piece[i].addr == addr && oracle->piece[i].state == state)
            return i;
    }
    oracle->complaint = "the model does not know the block that is freed";
    return 0;
}

void oracle_free_requested(struct oracle *oracle, uint64_t addr)
{
    struct oracle_piece *piece = &oracle->piece[find_used(oracle, addr, ORACLE_LIVE)];

    piece->state = ORACLE_PENDING;
    oracle->counters.frees++;
    oracle->counters.allocated.now -= piece->size;
}

void oracle_free_completed(struct oracle *oracle, uint64_t addr)
{
    size_t at = find_used(oracle, addr, ORACLE_PENDING);

    oracle->counters.active.now -= oracle->piece[at].size;
    oracle->counters.requested.now -= oracle->piece[at].requested;
    oracle->piece[at].state = ORACLE_FREE;
    oracle->rules->give(oracle, at);
}

void oracle_complete_waiting(struct oracle *oracle)
{
    size_t i = 0;

    while (i < oracle->count) {
        if (oracle->piece[i].state == ORACLE_PENDING) {
            oracle_free_completed(oracle, oracle->piece[i].addr);
            i = 0; /* pieces have merged and moved */
        } else {
            i++;
        }
    }
}

void oracle_empty_cache(struct oracle *oracle)
{
    if (oracle->rules->empty)
        oracle->rules->empty(oracle);
}

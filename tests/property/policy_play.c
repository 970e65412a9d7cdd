#include "policy_play.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "policy.h"
#include "policy_observer.h"
#include "util.h"

enum {
    STREAMS = 3,
    POOLS = 3,
    LIVE = 200,
    PALETTE = 6,
    EVENTS = 200,
    LONG = 3 /* times as long, occasionally */
};

/* Places for segments: the device model hands out what lies below them. */
enum { PLACES = 1023, PLACE_BITS = 36 };

/* How a trace is made; thrown once a trace. */
struct shape {
    unsigned events, least_bits, most_bits;
    unsigned streams, pools;
    unsigned wait_in,
        empty_in;   /* one free in this many waits; one event in this many empties the cache */
    unsigned swing; /* events after which taking and giving change places */
    bool edgy;      /* only sizes at which the policy's rules turn */
    uint64_t palette[PALETTE]; /* sizes that come again and again */
    uint64_t slot_step;        /* 0: the driver's own order of segments */
};

struct play {
    struct played *result;
    struct dice dice;
    struct shape shape;
    struct mt_symbols symbols;
    struct mt_device_model device;
    struct policy_observer observer;
    struct mt_policy *policy;
    unsigned event;
};

static struct play play;
static struct oracle model;
static bool told; /* every event is printed */

#define TELL(...)                                                                                  \
    do {                                                                                           \
        if (told)                                                                                  \
            printf(__VA_ARGS__);                                                                   \
    } while (0)

__attribute__((format(printf, 1, 2))) static void trouble(const char *format, ...)
{
    va_list arguments;

    if (play.result->trouble[0])
        return;
    va_start(arguments, format);
    vsnprintf(play.result->trouble, sizeof play.result->trouble, format, arguments);
    va_end(arguments);
}

static uint64_t fresh_size(void)
{
    static const uint64_t edges[] = {1,           256,         512,         1024,
                                     4096,        MT_MIB,      2 * MT_MIB,  10 * MT_MIB,
                                     20 * MT_MIB, 32 * MT_MIB, 64 * MT_MIB, 128 * MT_MIB};
    struct dice *dice = &play.dice;
    uint64_t edge;

    switch (dice_below(dice, 8)) {
    case 0: edge = edges[dice_below(dice, MT_ARRAY_LEN(edges))]; break;
    case 1:
        edge = (uint64_t)1 << dice_between(dice, play.shape.least_bits, play.shape.most_bits);
        break;
    case 2: edge = model.edge[dice_below(dice, ORACLE_EDGES)]; break;
    default:
        return 1 + dice_below(dice, (uint64_t)1 << dice_between(dice, play.shape.least_bits,
                                                                play.shape.most_bits));
    }
    return mt_max_u64(edge, 1) + dice_below(dice, 3) - 1;
}

static uint64_t random_size(void)
{
    return play.shape.edgy || dice_one_in(&play.dice, 2)
               ? play.shape.palette[dice_below(&play.dice, PALETTE)]
               : fresh_size();
}

static void throw_shape(void)
{
    struct shape *shape = &play.shape;
    struct dice *dice = &play.dice;

    shape->events = 20 + (unsigned)dice_below(dice, 1 + dice_below(dice, EVENTS - 20));
    shape->least_bits = (unsigned)dice_between(dice, 6, 20);
    shape->most_bits = (unsigned)dice_between(dice, shape->least_bits, 27);
    shape->streams = (unsigned)dice_between(dice, 1, STREAMS);
    shape->pools = dice_one_in(dice, 3) ? (unsigned)dice_between(dice, 1, POOLS) : 1;
    shape->wait_in = dice_one_in(dice, 2) ? (unsigned)dice_between(dice, 2, 8) : 0;
    shape->empty_in = dice_one_in(dice, 3) ? (unsigned)dice_between(dice, 8, 60) : 0;
    shape->swing = (unsigned)dice_between(dice, 4, 40);
    if (dice_one_in(dice, 20)) {
        shape->events = LONG * EVENTS;
        shape->swing = LONG * EVENTS / 2;
    }
    shape->edgy = dice_one_in(dice, 10);
    shape->slot_step = dice_one_in(dice, 2) ? (uint64_t)1 << dice_below(dice, 10) : 0;
}

/* Sizes that come again and again, once the model's edges are known. */
static void throw_palette(void)
{
    for (size_t i = 0; i < PALETTE; i++)
        play.shape.palette[i] =
            play.shape.edgy ? mt_max_u64(model.edge[dice_below(&play.dice, ORACLE_EDGES)], 1)
                            : fresh_size();
}

/* A device that puts segments here and there: each event has a place of its own,
 * 1023 = 3 * 11 * 31 of them, all different in one trace. */
static void move_device(void)
{
    if (!play.shape.slot_step)
        return;
    play.device.space.count = 0;
    mt_address_space_end_at(&play.device.space, (1 + play.event * play.shape.slot_step % PLACES)
                                                    << PLACE_BITS);
}

static int by_kind_and_address(const void *left, const void *right)
{
    const struct oracle_op *a = left, *b = right;

    if (a->kind != b->kind)
        return a->kind < b->kind ? -1 : 1;
    return a->addr < b->addr ? -1 : a->addr > b->addr;
}

static void compare_ops(void)
{
    static struct oracle_op done[ORACLE_OPS];
    size_t i, count = play.device.op_count;

    if (model.rules->unlogged)
        return;
    if (count != model.op_count) {
        trouble("%zu calls to the device, not %zu", count, model.op_count);
        return;
    }
    for (i = 0; i < count; i++)
        done[i] = (struct oracle_op){play.device.ops[i].kind, play.device.ops[i].addr,
                                     play.device.ops[i].size_bytes};
    if (!model.rules->in_order) {
        qsort(done, count, sizeof done[0], by_kind_and_address);
        qsort(model.op, count, sizeof model.op[0], by_kind_and_address);
    }
    for (i = 0; i < count; i++) {
        if (done[i].kind != model.op[i].kind || done[i].addr != model.op[i].addr ||
            done[i].size != model.op[i].size) {
            trouble("call %zu to the device: kind %u, %#llx, %llu B, not kind %u, %#llx, %llu B", i,
                    done[i].kind, (unsigned long long)done[i].addr,
                    (unsigned long long)done[i].size, model.op[i].kind,
                    (unsigned long long)model.op[i].addr, (unsigned long long)model.op[i].size);
            return;
        }
    }
}

static void compare_number(const char *name, uint64_t policy, uint64_t expected)
{
    if (policy != expected)
        trouble("%s: %llu, not %llu", name, (unsigned long long)policy,
                (unsigned long long)expected);
}

static void compare_counters(void)
{
    const struct mt_counters *counters = play.observer.ops->counters(play.policy);
    const struct mt_counters *expected = &model.counters;

    compare_number("requested", counters->requested.now, expected->requested.now);
    compare_number("allocated", counters->allocated.now, expected->allocated.now);
    compare_number("active", counters->active.now, expected->active.now);
    compare_number("reserved", counters->reserved.now, expected->reserved.now);
    compare_number("inactive split", counters->inactive_split.now, expected->inactive_split.now);
    compare_number("segments", counters->segments.now, expected->segments.now);
    compare_number("allocations", counters->allocations, expected->allocations);
    compare_number("frees", counters->frees, expected->frees);
    compare_number("device allocs", counters->device_allocs, expected->device_allocs);
    compare_number("device frees", counters->device_frees, expected->device_frees);
    compare_number("retries", counters->retries, expected->retries);
    compare_number("ooms", counters->ooms, expected->ooms);
}

static void check_event(void)
{
    compare_ops();
    compare_counters();
    observer_compare(&play.observer);
    if (play.event % 8 == 0)
        observer_look_inside(&play.observer);
    if (play.observer.trouble[0])
        trouble("%s", play.observer.trouble);
    if (model.complaint)
        trouble("%s", model.complaint);
}

static void must(enum mt_status status)
{
    if (status != MT_OK)
        trouble("it fails with status %d", (int)status);
}

/* Before the allocator fails, all frees complete. */
static enum mt_status complete_in_policy(void *unused)
{
    (void)unused;
    for (size_t i = play.observer.count; i-- > 0;) {
        struct observed_block held = play.observer.blocks[i];
        if (!held.pending)
            continue;
        must(play.observer.ops->free_completed(play.policy, held.block.handle));
        observer_free_completed(&play.observer, i);
        observer_look(&play.observer);
    }
    return MT_OK;
}

static void take(void)
{
    struct mt_policy_request request = {random_size(),
                                        (uint32_t)dice_below(&play.dice, play.shape.streams),
                                        (uint16_t)dice_below(&play.dice, play.shape.pools), 0, 0};
    struct oracle_request asked = {request.size_bytes, request.stream, request.pool};
    struct mt_policy_block block = {0};
    enum mt_status status = play.observer.ops->alloc(play.policy, &request, &block);

    TELL("%3u take %llu B, stream %u, pool %u: ", play.event,
         (unsigned long long)request.size_bytes, request.stream, request.pool);
    if (status == MT_OK)
        observer_took(&play.observer, request.size_bytes, &block);
    else if (status != MT_ERR_DEVICE_OOM)
        must(status);
    oracle_event(&model, &play.device);
    model.answer_addr = block.addr;
    size_t at = oracle_alloc(&model, &asked);
    if (status == MT_OK)
        TELL("%#llx, %llu B\n", (unsigned long long)block.addr,
             (unsigned long long)block.size_bytes);
    else
        TELL("out of memory\n");
    if ((status == MT_OK) != (at != ORACLE_NONE))
        trouble("a request of %llu B %s", (unsigned long long)request.size_bytes,
                status == MT_OK ? "is served and should not be" : "fails and should not");
    else if (status == MT_OK &&
             (block.addr != model.piece[at].addr || block.size_bytes != model.piece[at].size))
        trouble("a request of %llu B gets %#llx, %llu B, not %#llx, %llu B",
                (unsigned long long)request.size_bytes, (unsigned long long)block.addr,
                (unsigned long long)block.size_bytes, (unsigned long long)model.piece[at].addr,
                (unsigned long long)model.piece[at].size);
}

/* No device is that large: the only effect is a failed request. */
static void ask_the_impossible(void)
{
    struct mt_policy_request request = {UINT64_MAX - dice_below(&play.dice, MT_GIB), 0, 0, 0, 0};
    struct mt_policy_block block;

    TELL("%3u take %llu B\n", play.event, (unsigned long long)request.size_bytes);
    oracle_event(&model, &play.device);
    if (play.observer.ops->alloc(play.policy, &request, &block) != MT_ERR_DEVICE_OOM)
        trouble("2^64 bytes are found");
    model.counters.ooms++;
}

static void give(size_t i)
{
    struct observed_block held = play.observer.blocks[i];

    oracle_event(&model, &play.device);
    if (!held.pending) {
        TELL("%3u free %#llx\n", play.event, (unsigned long long)held.block.addr);
        must(play.observer.ops->free_requested(play.policy, held.block.handle));
        observer_free_requested(&play.observer, i);
        oracle_free_requested(&model, held.block.addr);
        if (play.shape.wait_in && dice_one_in(&play.dice, play.shape.wait_in))
            return;
    }
    TELL("%3u complete %#llx\n", play.event, (unsigned long long)held.block.addr);
    must(play.observer.ops->free_completed(play.policy, held.block.handle));
    observer_free_completed(&play.observer, i);
    oracle_free_completed(&model, held.block.addr);
}

static void empty_cache(void)
{
    TELL("%3u empty the cache\n", play.event);
    must(play.observer.ops->empty_cache(play.policy));
    oracle_event(&model, &play.device);
    oracle_empty_cache(&model);
}

static void random_event(void)
{
    bool taking = play.event / play.shape.swing % 2 == 0;
    size_t held = play.observer.count;

    if (play.shape.empty_in && dice_one_in(&play.dice, play.shape.empty_in))
        empty_cache();
    else if (dice_one_in(&play.dice, 200))
        ask_the_impossible();
    else if (held < LIVE && (!held || dice_below(&play.dice, 10) < (taking ? 8 : 1)))
        take();
    else
        give(dice_below(&play.dice, held));
}

/* At the end, everything is freed, and a cache that can be emptied holds nothing. */
static void check_baseline(void)
{
    const struct mt_counters *counters = play.observer.ops->counters(play.policy);

    compare_number("active at the end", counters->active.now, 0);
    compare_number("requested at the end", counters->requested.now, 0);
    if (model.rules->empty && play.shape.pools == 1)
        compare_number("reserved at the end", counters->reserved.now, 0);
}

static void next_event(void (*event)(void))
{
    mt_device_clear(&play.device);
    observer_new_log(&play.observer);
    move_device();
    event();
    check_event();
    play.event++;
}

static void give_first(void)
{
    give(0);
}

static void run(void)
{
    while (play.event < play.shape.events && !play.result->trouble[0])
        next_event(random_event);
    while (play.observer.count && !play.result->trouble[0])
        next_event(give_first);
    if (!play.result->trouble[0])
        next_event(empty_cache);
    if (!play.result->trouble[0])
        check_baseline();
}

static void make_symbols(void)
{
    uint32_t id;

    must(mt_symbols_init(&play.symbols));
    for (uint32_t i = 1; i < STREAMS; i++)
        must(mt_symbols_stream(&play.symbols, 0x1000 - i, &id));
    must(mt_symbols_pool(&play.symbols, 0, 1, &id)); /* a MemPool */
    must(mt_symbols_pool(&play.symbols, 1, 0, &id)); /* a captured graph */
}

/* A limit of a few requests, of a few segments, or none. */
static void throw_device(void)
{
    static const uint64_t units[] = {1, 2 * MT_MIB, 20 * MT_MIB};
    struct dice *dice = &play.dice;
    uint64_t limit = 0, memory = 0;

    if (!dice_one_in(dice, 3)) {
        limit = dice_between(dice, 2, 30) *
                mt_max_u64((uint64_t)1 << play.shape.most_bits, units[dice_below(dice, 3)]);
        limit += dice_one_in(dice, 2) ? dice_below(dice, 2 * MT_MIB) : 0;
    }
    if (!dice_one_in(dice, 3))
        memory = mt_max_u64(limit, 4 * MT_MIB) +
                 dice_below(dice, dice_one_in(dice, 2) ? MT_GIB : 40 * MT_GIB);
    if (!memory) /* reservations of address space would not fit into a place */
        play.shape.slot_step = 0;
    mt_device_init(&play.device, limit, memory, false);
    play.device.complete_waiting = complete_in_policy;
}

bool play_trace(const struct oracle_rules *rules, uint64_t seed, bool tell, struct played *result)
{
    const struct mt_policy_ops *ops = mt_policy_find(rules->policy, strlen(rules->policy));
    struct mt_trace_header header = {0};
    struct mt_error error;
    char spelling[160];

    memset(&play, 0, sizeof play);
    memset(result, 0, sizeof *result);
    play.result = result;
    told = tell;
    play.dice.state = seed;
    throw_shape();
    throw_device();
    make_symbols();
    oracle_begin(&model, rules, play.device.limit_bytes, play.device.total_memory_bytes);
    rules->configure(&model, &play.dice, play.result->options, sizeof play.result->options);
    header.free_order = model.free_order;
    throw_palette();
    play.observer = (struct policy_observer){.ops = ops,
                                             .device = &play.device,
                                             .alignment = rules->alignment,
                                             .overshoot = model.overshoot,
                                             .unlogged = rules->unlogged};
    TELL("%s:%s, limit %llu, memory %llu\n", rules->policy, play.result->options,
         (unsigned long long)play.device.limit_bytes,
         (unsigned long long)play.device.total_memory_bytes);
    if (mt_policy_create(ops,
                         &(struct mt_policy_setup){play.result->options, &header, &play.symbols,
                                                   &play.device, spelling, sizeof spelling},
                         &play.policy, &error) != MT_OK)
        trouble("options refused: %s", error.text);
    else {
        play.observer.policy = play.policy;
        run();
        ops->destroy(play.policy);
    }
    mt_device_release(&play.device);
    mt_symbols_release(&play.symbols);
    result->event = play.event;
    result->counters = model.counters;
    return !play.result->trouble[0];
}

/* Packs buffers: bounds, orders and the improvement of a plan. */
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "buffers.h"
#include "grow.h"
#include "hash.h"
#include "map.h"
#include "monotonic_clock.h"
#include "optimal.h"
#include "placement.h"
#include "process_memory.h"
#include "util.h"

enum {
    ORDERS = 3,
    ORDERS_BY_LOAD = 2,
    TARGETS = 3,
    FIRST_STEPS = 4,
    WORK_WITHOUT_CLOCK = 500000,
    RESTART_NODES = 50000,
    SHUFFLE_REACH = 4,
    ITEM_SHAPE_BYTES = offsetof(struct mt_item, origin) /* what decides where an item fits */
};

/* A part of time that is to become lower. */
struct part_search {
    struct mt_instance instance; /* borrows memory */
    struct mt_improver improver;
    struct mt_exact *exact; /* NULL: none yet, or too large */
    uint32_t *orders[ORDERS], *shuffled;
    uint64_t lower; /* proven bound */
    uint64_t nodes; /* for one exact search of the next round */
    uint64_t work;
};

struct solver {
    const struct mt_optimal_options *options;
    struct mt_instance whole;
    uint64_t *addresses; /* of its items */
    struct mt_draft draft;
    struct part_search **parts; /* those whose first plan is too high */
    size_t part_count;
    uint64_t unit; /* every height is a multiple of it */
    uint64_t deadline_ns;
};

static void part_release(struct part_search *part)
{
    mt_improver_release(&part->improver);
    mt_exact_free(part->exact);
    for (int i = 0; i < ORDERS; i++)
        free(part->orders[i]);
    free(part->shuffled);
    free(part);
}

/* Creates the state of the exact search on first use. */
static void part_prepare_exact(struct part_search *part)
{
    static const char *const criteria[ORDERS] = {"WA", "AW", "WAT"};

    if (part->exact || part->instance.count > MT_EXACT_MAX_ITEMS)
        return;
    for (int i = 0; i < ORDERS; i++) {
        part->orders[i] = mt_memory_zeroed((size_t)part->instance.count + 1, sizeof(uint32_t));
        mt_placement_sort(&part->instance, criteria[i], part->orders[i]);
    }
    part->shuffled = mt_memory_zeroed((size_t)part->instance.count + 1, sizeof *part->shuffled);
    part->exact = mt_exact_new(&part->instance);
}

static uint64_t lower_bound(const struct solver *solver)
{
    uint64_t lower = solver->whole.bound;

    for (size_t i = 0; i < solver->part_count; i++)
        lower = mt_max_u64(lower, solver->parts[i]->lower);
    return lower;
}

static struct part_search *highest_part(const struct solver *solver)
{
    struct part_search *highest = NULL;

    for (size_t i = 0; i < solver->part_count; i++)
        if (!highest || solver->parts[i]->improver.height > highest->improver.height)
            highest = solver->parts[i];
    return highest;
}

/* A part of at most this height is finished. */
static uint64_t goal(const struct solver *solver)
{
    return mt_max_u64(lower_bound(solver),
                      mt_round_down(solver->options->capacity_bytes, solver->unit));
}

static enum mt_exact_answer search_below(const struct solver *solver, struct part_search *part,
                                         uint64_t target, const uint32_t *order, bool by_load,
                                         uint64_t limit)
{
    uint64_t nodes = limit, height = 0;
    struct mt_improver *improver = &part->improver;
    enum mt_exact_answer answer = mt_exact_search(part->exact, target, order, by_load, &nodes,
                                                  solver->deadline_ns, improver->draft->addresses);

    part->work += limit - nodes;
    if (answer == MT_EXACT_IMPOSSIBLE)
        part->lower = target + solver->unit;
    if (answer != MT_EXACT_FOUND)
        return answer;
    for (uint32_t i = 0; i < part->instance.count; i++)
        height = mt_max_u64(height, improver->draft->addresses[i] + part->instance.items[i].bytes);
    improver->height = height;
    memcpy(improver->addresses, improver->draft->addresses,
           part->instance.count * sizeof *improver->addresses);
    return answer;
}

/* Target t of a round: the goal itself, half way, a little below the current height. */
static uint64_t target_of(const struct solver *solver, const struct part_search *part, int t)
{
    uint64_t least = goal(solver), most = part->improver.height - solver->unit;

    if (t == 0 || least >= most)
        return least;
    return t == 1 ? least + mt_round_down((most - least) / 2, solver->unit) : most;
}

/* The next number of the improver's own sequence, which is always the same. */
static uint64_t improver_random(struct mt_improver *improver)
{
    improver->random ^= improver->random << 13;
    improver->random ^= improver->random >> 7;
    improver->random ^= improver->random << 17;
    return improver->random;
}

/* Swaps two of three items with one of the next few. */
static void shuffle_a_little(struct part_search *part, const uint32_t *order)
{
    uint32_t count = part->instance.count, i;

    memcpy(part->shuffled, order, count * sizeof *order);
    for (i = 0; i + 1 < count; i++) {
        uint64_t random = improver_random(&part->improver);
        uint32_t j = i + (uint32_t)(random / 3 % SHUFFLE_REACH), spare = part->shuffled[i];
        if (random % 3 == 0 || j >= count)
            continue;
        part->shuffled[i] = part->shuffled[j];
        part->shuffled[j] = spare;
    }
}

static void show_progress(const struct solver *solver)
{
    if (solver->options->progress)
        solver->options->progress(solver->options->context);
}

/* Exact searches for `target`, with each order, until one has an answer: one long search, which may
 * also prove that there is no plan, and as much work again in short ones. If a long one is lost
 * after a bad start, a short one with a slightly different start often is not. */
static void search_exactly(const struct solver *solver, struct part_search *part, uint64_t target)
{
    uint64_t restarts = part->nodes / RESTART_NODES;

    for (int i = 0; i < ORDERS; i++) {
        bool by_load = i < ORDERS_BY_LOAD;
        if (search_below(solver, part, target, part->orders[i], by_load, part->nodes) !=
            MT_EXACT_GAVE_UP)
            return;
        for (uint64_t r = 0; r < restarts && !mt_deadline_passed(solver->deadline_ns); r++) {
            show_progress(solver);
            shuffle_a_little(part, part->orders[i]);
            if (search_below(solver, part, target, part->shuffled, by_load, RESTART_NODES) !=
                MT_EXACT_GAVE_UP)
                return;
        }
    }
}

/* Places the draft's order below `limit`; a complete plan becomes the best. */
static void try_order(struct mt_improver *improver, enum mt_fit fit, uint64_t limit,
                      uint64_t deadline_ns, uint32_t *placed)
{
    uint32_t count = improver->instance->count;
    struct mt_draft *draft = improver->draft;
    uint64_t height;

    mt_placement_run(&draft->occupancy, draft->order, fit, limit, deadline_ns, draft->addresses,
                     placed, &height);
    improver->placements += *placed;
    if (*placed < count)
        return;
    improver->height = height;
    improver->fit = fit;
    improver->since_progress = 0;
    memcpy(improver->addresses, draft->addresses, count * sizeof *draft->addresses);
    memcpy(improver->best_order, draft->order, count * sizeof *draft->order);
}

/* Moves the item at `from` to an earlier position, near ones more often. */
static void move_forward(struct mt_improver *improver, uint32_t from)
{
    uint64_t a = improver_random(improver) % from, b = improver_random(improver) % from;
    uint32_t to = (uint32_t)(a > b ? a : b), *order = improver->draft->order, item = order[from];

    memmove(order + to + 1, order + to, (from - to) * sizeof *order);
    order[to] = item;
}

enum { RESTART_INTERVAL = 64 };

static void prepare_draft(const struct mt_improver *improver)
{
    struct mt_draft *draft = improver->draft;
    size_t count = improver->instance->count;

    mt_grow_to(&draft->order, &draft->order_capacity, count, sizeof *draft->order);
    mt_grow_to(&draft->addresses, &draft->address_capacity, count, sizeof *draft->addresses);
    mt_occupancy_prepare(&draft->occupancy, improver->instance);
}

/* `steps` attempts at a plan of at most `target` (below the height). */
static void improver_run(struct mt_improver *improver, uint64_t target, uint32_t steps,
                         uint64_t deadline_ns)
{
    uint32_t count = improver->instance->count, placed, *order = improver->draft->order;

    memcpy(order, improver->best_order, count * sizeof *order);
    for (; steps > 0 && improver->height > target; steps--) {
        if (mt_deadline_passed(deadline_ns))
            return;
        try_order(improver, improver->fit, target, deadline_ns, &placed);
        if (placed > 0 && placed < count)
            move_forward(improver, placed);
        if (++improver->since_progress % RESTART_INTERVAL == 0)
            memcpy(order, improver->best_order, count * sizeof *order);
    }
}

/* The exact searches are for a requested capacity; without one they also come from above. */
static void round_of(const struct solver *solver, struct part_search *part)
{
    part_prepare_exact(part);
    prepare_draft(&part->improver);
    uint64_t before = part->improver.placements;

    uint32_t steps =
        FIRST_STEPS + (uint32_t)mt_min_u64(part->nodes / part->instance.count, 1 << 20);
    for (int t = 0; t < TARGETS; t++) {
        show_progress(solver);
        if (part->exact && part->improver.height > goal(solver) &&
            (t == 0 || !solver->options->capacity_bytes))
            search_exactly(solver, part, target_of(solver, part, t));
        if (part->improver.height > goal(solver))
            improver_run(&part->improver, target_of(solver, part, t), steps, solver->deadline_ns);
    }
    part->work += part->improver.placements - before;
    part->nodes *= 2;
}

static bool has_time(const struct solver *solver, const struct part_search *part)
{
    if (solver->options->time_ns)
        return !mt_deadline_passed(solver->deadline_ns);
    return part->work < WORK_WITHOUT_CLOCK;
}

/* The highest part determines the result; when it cannot become lower, all is done. */
static void improve_all(struct solver *solver)
{
    struct part_search *part;

    while ((part = highest_part(solver)) != NULL && part->improver.height > goal(solver) &&
           has_time(solver, part)) {
        round_of(solver, part);
        if (part->improver.height <= goal(solver)) { /* this part is finished */
            mt_exact_free(part->exact);
            part->exact = NULL;
        }
    }
}

/* The first plans of all parts: each thread takes the next part that is not equal to one before. */
struct construction {
    struct solver *solver;
    const struct mt_part *parts;
    uint32_t *models;              /* of each part: the first that is equal to it */
    struct part_search **searches; /* of each part; NULL = its plan reached the goal and is final */
    uint32_t count;
    _Atomic uint32_t next;
};

/* Makes a new search with a first plan. */
static struct part_search *construct(struct solver *solver, const struct mt_part *part,
                                     struct mt_draft *draft)
{
    struct part_search *search = mt_memory_zeroed(1, sizeof *search);

    search->instance = mt_instance_part(&solver->whole, part);
    search->lower = search->instance.bound;
    search->nodes = 2 * (uint64_t)search->instance.count;
    mt_improver_init(&search->improver, &search->instance, draft,
                     solver->addresses + part->first_item);
    mt_improver_construct(&search->improver, goal(solver), solver->deadline_ns);
    search->improver.draft = &solver->draft;
    if (search->improver.height > goal(solver))
        return search;
    part_release(search);
    return NULL;
}

/* Whether the parts have equal items in the same order: then every attempt makes equal plans. */
static bool parts_are_equal(const struct mt_instance *a, const struct mt_instance *b)
{
    bool equal = a->count == b->count;

    for (uint32_t i = 0; equal && i < a->count; i++)
        equal = !memcmp(&a->items[i], &b->items[i], ITEM_SHAPE_BYTES);
    return equal;
}

/* A part that differs from the first with its hash is its own model, which costs only time. */
static uint32_t *find_models(const struct mt_instance *whole, const struct mt_part *parts,
                             uint32_t count)
{
    uint32_t *models = mt_memory_new(((size_t)count + 1) * sizeof *models);
    struct mt_map known = {0}; /* hash of a part -> the first such part */

    for (uint32_t p = 0; p < count; p++) {
        struct mt_instance part = mt_instance_part(whole, &parts[p]), model;
        uint64_t hash = 0;
        for (uint32_t i = 0; i < part.count; i++)
            hash = mt_hash_u64(hash ^ mt_hash_bytes(&part.items[i], ITEM_SHAPE_BYTES));
        models[p] = mt_map_find(&known, hash);
        if (models[p] == MT_MAP_NONE)
            mt_map_put(&known, hash, models[p] = p);
        model = mt_instance_part(whole, &parts[models[p]]);
        if (!parts_are_equal(&part, &model))
            models[p] = p;
    }
    mt_map_release(&known);
    return models;
}

/* Gives a part the plan of its model, and the state of the model's search if that has one. */
static struct part_search *copy_model(struct solver *solver, const struct mt_part *part,
                                      const struct mt_part *model, const struct part_search *from)
{
    size_t count = part[1].first_item - part->first_item;
    struct part_search *search;

    memcpy(solver->addresses + part->first_item, solver->addresses + model->first_item,
           count * sizeof *solver->addresses);
    if (!from)
        return NULL;
    search = mt_memory_new(sizeof *search);
    *search = *from;
    search->instance = mt_instance_part(&solver->whole, part);
    search->improver.instance = &search->instance;
    search->improver.addresses = solver->addresses + part->first_item;
    search->improver.best_order = mt_memory_new(count * sizeof(uint32_t));
    memcpy(search->improver.best_order, from->improver.best_order, count * sizeof(uint32_t));
    return search;
}

static void *construct_parts(void *context)
{
    struct construction *all = context;
    struct mt_draft draft = {0};
    uint32_t i;

    while ((i = atomic_fetch_add(&all->next, 1)) < all->count)
        if (all->models[i] == i)
            all->searches[i] = construct(all->solver, &all->parts[i], &draft);
    mt_draft_release(&draft);
    return NULL;
}

static void construct_all(struct solver *solver)
{
    struct construction all = {.solver = solver};
    struct mt_part *parts;
    pthread_t thread;

    mt_instance_split(&solver->whole, &parts, &all.count);
    solver->addresses =
        mt_memory_new(((size_t)solver->whole.count + 1) * sizeof *solver->addresses);
    all.parts = parts;
    all.models = find_models(&solver->whole, parts, all.count);
    all.searches = mt_memory_zeroed((size_t)all.count + 1, sizeof(struct part_search *));
    bool helps = all.count > 1 && !pthread_create(&thread, NULL, construct_parts, &all);
    (void)construct_parts(&all);
    if (helps)
        pthread_join(thread, NULL);
    for (uint32_t i = 0; i < all.count; i++)
        if (all.models[i] != i)
            all.searches[i] =
                copy_model(solver, &parts[i], &parts[all.models[i]], all.searches[all.models[i]]);
    for (uint32_t i = 0; i < all.count; i++)
        if (all.searches[i])
            all.searches[solver->part_count++] = all.searches[i];
    solver->parts = all.searches;
    free(all.models);
    free(parts);
}

static void prepare(struct solver *solver, const struct mt_buffers *buffers)
{
    mt_instance_build(buffers, &solver->whole);
    for (size_t i = 0; i < buffers->count; i++)
        solver->unit = mt_greatest_divisor(solver->unit, buffers->items[i].bytes);
    solver->unit = solver->unit ? solver->unit : 1;
}

static void searches_release(struct solver *solver)
{
    for (size_t i = 0; i < solver->part_count; i++)
        part_release(solver->parts[i]);
    free(solver->parts);
    mt_draft_release(&solver->draft);
}

/* Ends the searches, whose memory the check needs. */
static enum mt_status collect(struct solver *solver, const struct mt_buffers *buffers,
                              struct mt_optimal_result *result, struct mt_error *error)
{
    bool valid;

    result->max_load_bytes = solver->whole.bound;
    result->lower_bound_bytes = lower_bound(solver);
    searches_release(solver);
    result->addresses = mt_memory_zeroed(buffers->count + 1, sizeof *result->addresses);
    for (uint32_t i = 0; i < solver->whole.count; i++)
        result->addresses[solver->whole.items[i].origin] = solver->addresses[i];
    mt_instance_release(&solver->whole);
    free(solver->addresses);
    mt_placement_check(buffers, result->addresses, &valid, &result->plan_bytes);
    if (!valid)
        return mt_fail(error, MT_ERR_UNSUPPORTED, MT_NO_OFFSET, "the plan is not valid");
    result->proven_optimal = result->plan_bytes == result->lower_bound_bytes;
    return MT_OK;
}

enum mt_status mt_optimal_solve(const struct mt_buffers *buffers,
                                const struct mt_optimal_options *options,
                                struct mt_optimal_result *result, struct mt_error *error)
{
    uint64_t begin_ns = mt_now_ns();
    struct solver solver = {.options = options, .deadline_ns = MT_NO_DEADLINE};

    memset(result, 0, sizeof *result);
    if (options->time_ns)
        solver.deadline_ns = begin_ns + options->time_ns;
    prepare(&solver, buffers);
    construct_all(&solver);
    improve_all(&solver);
    enum mt_status status = collect(&solver, buffers, result, error);
    result->used_ns = mt_now_ns() - begin_ns;
    return status;
}

void mt_optimal_release(struct mt_optimal_result *result)
{
    free(result->addresses);
    memset(result, 0, sizeof *result);
}

#define SEED UINT64_C(0x9e3779b97f4a7c15)

void mt_draft_release(struct mt_draft *draft)
{
    mt_occupancy_release(&draft->occupancy);
    free(draft->order);
    free(draft->addresses);
    memset(draft, 0, sizeof *draft);
}

void mt_improver_init(struct mt_improver *improver, const struct mt_instance *instance,
                      struct mt_draft *draft, uint64_t *addresses)
{
    memset(improver, 0, sizeof *improver);
    improver->instance = instance;
    improver->draft = draft;
    improver->addresses = addresses;
    improver->best_order = mt_memory_zeroed((size_t)instance->count + 1, sizeof(uint32_t));
    improver->height = UINT64_MAX;
    improver->random = SEED;
}

void mt_improver_release(struct mt_improver *improver)
{
    free(improver->best_order);
    memset(improver, 0, sizeof *improver);
}

void mt_improver_construct(struct mt_improver *improver, uint64_t goal, uint64_t deadline_ns)
{
    static const char *const orders[] = {"WZ",  "AZ", "ZW", "TAW", "WTA",
                                         "TWA", "UW", "LW", "ZUW", "TU"};
    uint32_t placed;
    int fit;

    prepare_draft(improver);
    for (size_t i = 0; i < MT_ARRAY_LEN(orders); i++)
        for (fit = MT_FIT_FIRST; fit <= MT_FIT_BEST; fit++) {
            bool first = improver->height == UINT64_MAX;
            if (improver->height <= goal || (!first && mt_deadline_passed(deadline_ns)))
                return;
            if (fit == MT_FIT_FIRST)
                mt_placement_sort(improver->instance, orders[i], improver->draft->order);
            try_order(improver, (enum mt_fit)fit, improver->height - 1,
                      first ? MT_NO_DEADLINE : deadline_ns, &placed);
        }
}

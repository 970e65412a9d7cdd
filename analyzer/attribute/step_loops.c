#include <stdlib.h>
#include <string.h>

#include "grow.h"
#include "map.h"
#include "process_memory.h"
#include "sorted.h"
#include "step_loops.h"

/* Bounds of the work for hostile or strange input: if there are more, no loops are inferred. */
#define MAX_LOOPS 4096       /* pairs of lines between which control returns */
#define MAX_PAIRS (1u << 22) /* of these with lines of passes */
#define MAX_CALLS 256        /* loops that call a model */
#define MAX_DEPTH 256        /* callers that are tried for a name */

/* Turns from one line to another. Neighbors of one first line become one loop. */
struct search {
    const struct mt_work_intervals *intervals;
    const struct mt_loop_places *places;
    const bool *taken;
    struct mt_step_loop *all; /* by first line, then by last line */
    size_t count, capacity;
    struct lines {
        uint32_t *list; /* of forward passes, each once */
        size_t count, capacity;
        struct mt_map known;
    } lines, taken_lines;      /* those that belong to other steps */
    bool has_forward, *chosen; /* by loop */
    uint64_t compared;         /* pairs, by only_repeats */
};

static void add_line(struct lines *lines, uint32_t line)
{
    if (line == MT_NO_ID || mt_map_get(&lines->known, line) != MT_MAP_NONE)
        return;
    mt_map_put(&lines->known, line, 1);
    mt_grow_to(&lines->list, &lines->capacity, lines->count + 1, sizeof *lines->list);
    lines->list[lines->count++] = line;
}

static void release_lines(struct lines *lines)
{
    mt_map_release(&lines->known);
    free(lines->list);
}

static bool has_line(const struct search *search, const struct lines *lines,
                     const struct mt_step_loop *loop)
{
    for (size_t i = 0; i < lines->count; i++)
        if (mt_line_is_in_loop(search->places, lines->list[i], loop->at, loop->end))
            return true;
    return false;
}

static void add_turn(struct search *search, struct mt_map *known, const struct mt_turn *turn)
{
    uint64_t key = (uint64_t)turn->at << 32 | turn->from;
    uint32_t index = mt_map_get(known, key);

    if (index != MT_MAP_NONE) {
        search->all[index].turns++;
        return;
    }
    mt_map_put(known, key, (uint32_t)search->count);
    mt_grow_to(&search->all, &search->capacity, search->count + 1, sizeof *search->all);
    search->all[search->count++] =
        (struct mt_step_loop){.at = turn->at, .end = turn->from, .turns = 1};
}

static void gather(struct search *search)
{
    const struct mt_work_intervals *intervals = search->intervals;
    struct mt_map turns = {0};

    for (size_t i = 0; i < intervals->count; i++) {
        const struct mt_work_interval *interval = &intervals->list[i];
        bool is_taken = search->taken && search->taken[i];

        if (mt_phase_is_forward(interval->kind))
            add_line(is_taken ? &search->taken_lines : &search->lines, interval->line);
        if (!is_taken && interval->passes)
            add_turn(search, &turns, &interval->pass.turn);
        search->has_forward |= !is_taken && mt_phase_is_forward(interval->kind);
    }
    mt_map_release(&turns);
}

/* Keeps the loops that call a model, if any does. Returns false if there are too many. */
static bool keep_calls(struct search *search)
{
    size_t kept = 0;

    if (search->count > MAX_LOOPS || search->count * search->lines.count > MAX_PAIRS)
        return false;
    if (!search->has_forward)
        return true;
    for (size_t i = 0; i < search->count; i++)
        if (has_line(search, &search->lines, &search->all[i]))
            search->all[kept++] = search->all[i];
    search->count = kept;
    return kept <= MAX_CALLS;
}

MT_DEFINE_ORDER(by_lines, struct mt_step_loop, MT_ASCENDING(at) || MT_ASCENDING(end))

/* Whether another loop begins between the ends of two that have one first line: the longer one
 * then contains both. Otherwise the last line varies. */
static bool is_another(const struct search *search, const struct mt_step_loop *shorter,
                       const struct mt_step_loop *longer)
{
    for (size_t i = 0; i < search->count; i++) {
        const struct mt_step_loop *other = &search->all[i];

        if (other->at != longer->at &&
            mt_line_is_in_loop(search->places, other->at, longer->at, longer->end) &&
            !mt_line_is_in_loop(search->places, other->at, longer->at, shorter->end))
            return true;
    }
    return false;
}

static void join(struct search *search)
{
    size_t kept = 0;

    for (size_t i = 0; i < search->count; i++) {
        struct mt_step_loop *last = kept ? &search->all[kept - 1] : NULL, loop = search->all[i];

        if (last && last->at == loop.at && !is_another(search, last, &loop)) {
            last->end = loop.end;
            last->turns += loop.turns;
        } else {
            search->all[kept++] = loop;
        }
    }
    search->count = kept;
}

static uint32_t depth_of(const struct search *search, const struct mt_step_loop *loop)
{
    return search->places->tree.nodes[loop->at].depth;
}

static uint32_t first_line(const struct search *search, const struct mt_step_loop *loop)
{
    return mt_loop_places_at(search->places, loop->at).line;
}

/* Whether all of loop `a` is in loop `b`. */
static bool is_within(const struct search *search, const struct mt_step_loop *a,
                      const struct mt_step_loop *b)
{
    return mt_line_is_in_loop(search->places, a->at, b->at, b->end) &&
           (depth_of(search, a) > depth_of(search, b) || a->end <= b->end);
}

static bool is_repeated_by(const struct search *search, const struct mt_step_loop *a,
                           const struct mt_step_loop *b)
{
    return a != b && a->turns >= 2 && depth_of(search, a) == depth_of(search, b) &&
           is_within(search, a, b);
}

/* Whether all passes of loop `b` are in at least two shorter loops of the same function. If there
 * is one, a turn of `b` may be a request, or `a` a comprehension. */
static bool only_repeats(struct search *search, const struct mt_step_loop *b)
{
    uint32_t loops = 0;

    for (size_t j = 0; j < search->count; j++)
        loops += is_repeated_by(search, &search->all[j], b);
    if (loops < 2 || search->compared > MAX_PAIRS)
        return false;
    search->compared += search->lines.count * search->count;
    for (size_t i = 0; i < search->lines.count; i++) {
        uint32_t line = search->lines.list[i];
        bool inner = !mt_line_is_in_loop(search->places, line, b->at, b->end);

        for (size_t j = 0; j < search->count && !inner; j++) {
            const struct mt_step_loop *a = &search->all[j];

            inner = is_repeated_by(search, a, b) &&
                    mt_line_is_in_loop(search->places, line, a->at, a->end);
        }
        if (!inner)
            return false;
    }
    return true;
}

/* Outer loops come before those within them. */
static bool is_outer(const struct search *search, const struct mt_step_loop *a,
                     const struct mt_step_loop *b)
{
    uint32_t depths[2] = {depth_of(search, a), depth_of(search, b)};

    if (depths[0] != depths[1])
        return depths[0] < depths[1];
    if (first_line(search, a) != first_line(search, b))
        return first_line(search, a) < first_line(search, b);
    return a->end > b->end;
}

/* Without a model, it is unknown which loops are the program's work: the outermost one counts. */
static void choose_outermost(struct search *search)
{
    size_t best = search->count;

    for (size_t i = 0; i < search->count; i++)
        if (search->all[i].turns >= 2 &&
            (best == search->count || is_outer(search, &search->all[i], &search->all[best])))
            best = i;
    if (best < search->count)
        search->chosen[best] = true;
}

static bool is_in_chosen(const struct search *search, const struct mt_step_loop *loop)
{
    for (size_t i = 0; i < search->count; i++)
        if (search->chosen[i] && is_within(search, loop, &search->all[i]))
            return true;
    return false;
}

static void choose(struct search *search)
{
    bool *seen = mt_memory_zeroed(search->count + 1, sizeof *seen);

    for (size_t n = 0; n < search->count; n++) {
        size_t next = search->count;

        for (size_t i = 0; i < search->count; i++)
            if (!seen[i] &&
                (next == search->count || is_outer(search, &search->all[i], &search->all[next])))
                next = i;
        seen[next] = true;
        search->chosen[next] = search->all[next].turns >= 2 &&
                               !has_line(search, &search->taken_lines, &search->all[next]) &&
                               !is_in_chosen(search, &search->all[next]) &&
                               !only_repeats(search, &search->all[next]);
    }
    free(seen);
}

/* Whether the loop has all calls of models, and one line makes some before and after its turn. */
static bool calls_again(const struct search *search, const struct mt_step_loop *loop)
{
    struct mt_map before = {0};
    bool has_turned = false, again = false, has_all = true;

    for (size_t i = 0; i < search->intervals->count && has_all; i++) {
        const struct mt_work_interval *interval = &search->intervals->list[i];
        const struct mt_turn *turn = &interval->pass.turn;

        has_turned |= interval->passes && turn->at == loop->at && turn->from == loop->end;
        if (!mt_phase_is_forward(interval->kind) || interval->line == MT_NO_ID)
            continue;
        has_all = mt_line_is_in_loop(search->places, interval->line, loop->at, loop->end);
        again |= has_turned && mt_map_get(&before, interval->line) != MT_MAP_NONE;
        if (!has_turned)
            mt_map_put(&before, interval->line, 1);
    }
    mt_map_release(&before);
    return has_all && again;
}

/* A loop of two turns, if no loop turns more often: the outermost one. */
static void choose_pair(struct search *search)
{
    size_t best = search->count;

    for (size_t i = 0; i < search->count; i++) {
        if (search->chosen[i])
            return;
        if (best == search->count || is_outer(search, &search->all[i], &search->all[best]))
            best = i;
    }
    if (best < search->count)
        search->chosen[best] = calls_again(search, &search->all[best]);
}

/* Events without a line continue what was before. */
static void assign(struct mt_step_loops *loops, const struct search *search)
{
    struct mt_map known = {0};
    uint32_t last = 0;

    for (size_t i = 0; i < search->intervals->count; i++) {
        uint32_t line = search->intervals->list[i].line, of = last;

        if (search->taken && search->taken[i]) {
            last = 0;
            continue;
        }
        if (line != MT_NO_ID && (of = mt_map_get(&known, line)) == MT_MAP_NONE) {
            of = 0;
            for (uint32_t j = 0; j < loops->count; j++)
                if (mt_line_is_in_loop(search->places, line, loops->list[j].at, loops->list[j].end))
                    of = j + 1;
            mt_map_put(&known, line, of);
        }
        loops->of[i] = last = of;
    }
    mt_map_release(&known);
}

static uint32_t add(struct mt_step_loops *loops, const struct mt_step_loop *loop)
{
    mt_grow_to(&loops->list, &loops->capacity, loops->count + 1, sizeof *loops->list);
    loops->list[loops->count++] = *loop;
    return (uint32_t)loops->count;
}

uint32_t mt_step_loops_add(struct mt_step_loops *loops, uint32_t at)
{
    return add(loops, &(struct mt_step_loop){.at = at});
}

uint32_t mt_step_loops_take(struct mt_step_loops *loops, const struct mt_step_loops *others,
                            uint32_t loop)
{
    const struct mt_step_loop *other = &others->list[loop - 1];

    for (uint32_t i = 0; i < loops->count; i++)
        if (loops->list[i].at == other->at && loops->list[i].end == other->end)
            return i + 1;
    return add(loops, other);
}

void mt_step_loops_find(struct mt_step_loops *loops, const struct mt_work_intervals *intervals,
                        const bool *taken)
{
    struct search search = {.intervals = intervals, .places = &intervals->places, .taken = taken};

    memset(loops, 0, sizeof *loops);
    loops->of = mt_memory_zeroed(intervals->count + 1, sizeof *loops->of);
    gather(&search);
    if (keep_calls(&search) && search.count) {
        qsort(search.all, search.count, sizeof *search.all, by_lines);
        join(&search);
        search.chosen = mt_memory_zeroed(search.count, sizeof *search.chosen);
        if (search.has_forward)
            choose(&search);
        if (search.has_forward && !taken)
            choose_pair(&search);
        if (!search.has_forward && !taken)
            choose_outermost(&search);
        for (size_t i = 0; i < search.count; i++)
            if (search.chosen[i])
                add(loops, &search.all[i]);
        assign(loops, &search);
    }
    free(search.chosen);
    free(search.all);
    release_lines(&search.lines);
    release_lines(&search.taken_lines);
}

bool mt_step_loops_turns(const struct mt_step_loops *loops,
                         const struct mt_work_intervals *intervals, size_t i)
{
    const struct mt_step_loop *loop = loops->of[i] ? &loops->list[loops->of[i] - 1] : NULL;
    const struct mt_turn *turn = &intervals->list[i].pass.turn;

    return loop && intervals->list[i].passes && turn->at == loop->at && turn->from <= loop->end;
}

/* Whether two nodes have one line of one function. */
static bool look_alike(const struct mt_loop_places *places, uint32_t a, uint32_t b)
{
    return mt_line_is_of_function(places, a, b) &&
           mt_loop_places_at(places, a).line == mt_loop_places_at(places, b).line;
}

uint32_t *mt_step_loops_lines(const struct mt_step_loops *loops,
                              const struct mt_loop_places *places)
{
    uint32_t *lines = mt_memory_zeroed(loops->count + 1, sizeof *lines);
    bool *alike = mt_memory_zeroed(loops->count + 1, sizeof *alike), any = true;

    for (size_t i = 0; i < loops->count; i++)
        lines[i] = loops->list[i].at;
    for (uint32_t depth = 0; any && depth < MAX_DEPTH; depth++) {
        any = false;
        for (size_t i = 0; i < loops->count; i++) {
            alike[i] = false;
            for (size_t j = 0; j < loops->count; j++)
                alike[i] |= i != j && look_alike(places, lines[i], lines[j]);
        }
        for (size_t i = 0; i < loops->count; i++) {
            uint32_t caller = mt_line_of_program(places, mt_loop_places_at(places, lines[i]).body);

            if (!alike[i] || caller == MT_NO_ID)
                continue;
            lines[i] = caller;
            any = true;
        }
    }
    free(alike);
    return lines;
}

void mt_step_loops_release(struct mt_step_loops *loops)
{
    free(loops->list);
    free(loops->of);
    memset(loops, 0, sizeof *loops);
}

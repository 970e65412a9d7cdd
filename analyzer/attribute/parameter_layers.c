/* The layers of parameters, from repeats among them; the owners of optimizer state. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "hash.h"
#include "parameter_layers.h"
#include "process_memory.h"
#include "sorted.h"
#include "symbols.h"

enum { MIN_PERIOD = 2, MIN_TIMES = 2 };

static bool differ(const uint64_t *tokens, size_t count)
{
    for (size_t i = 1; i < count; i++)
        if (tokens[i] != tokens[0])
            return true;
    return false;
}

/* Considers a run of `length` tokens that equal those one period later. */
static void consider(const uint64_t *tokens, struct mt_repeat run, size_t length,
                     struct mt_repeat *best)
{
    run.times = length / run.period + 1;
    run.more = length % run.period;
    if (run.times < MIN_TIMES || run.times * run.period <= best->times * best->period ||
        !differ(tokens + run.begin, run.period))
        return;
    *best = run;
}

static void try_period(const uint64_t *tokens, size_t begin, size_t end, size_t period,
                       struct mt_repeat *best)
{
    size_t first = begin;

    for (size_t i = begin; i + period <= end; i++) {
        bool is_equal = i + period < end && tokens[i] == tokens[i + period];

        if (is_equal)
            continue;
        consider(tokens, (struct mt_repeat){first, period, 0, 0}, i - first, best);
        first = i + 1;
    }
}

MT_DEFINE_ORDER(by_begin, struct mt_repeat, MT_ASCENDING(begin))

void mt_repeats_find(const uint64_t *tokens, size_t count, struct mt_repeats *repeats)
{
    struct span {
        size_t begin, end;
    } open[MT_REPEATS_MAX + 1] = {{0, count}};
    uint32_t open_count = count <= MT_REPEATS_TOKENS_MAX;

    repeats->count = 0;
    while (open_count && repeats->count < MT_REPEATS_MAX) {
        struct span span = open[--open_count];
        struct mt_repeat best = {0, 0, 0, 0};

        for (size_t period = MIN_PERIOD; period <= (span.end - span.begin) / 2; period++)
            try_period(tokens, span.begin, span.end, period, &best);
        if (!best.times)
            continue;
        repeats->list[repeats->count++] = best;
        if (open_count + 2 > MT_REPEATS_MAX)
            continue;
        open[open_count++] = (struct span){span.begin, best.begin};
        open[open_count++] = (struct span){best.begin + best.period * best.times, span.end};
    }
    qsort(repeats->list, repeats->count, sizeof *repeats->list, by_begin);
}

/* Share of the bytes of all parameters; a smaller one may be an accident. */
#define MIN_PERMILLE_OF_REPEAT 1
/* Without a second piece of evidence. */
#define MIN_TIMES_ALONE 3

static uint64_t bytes_of(const struct mt_parameter *parameters, size_t begin, size_t end)
{
    uint64_t bytes = 0;

    for (size_t i = begin; i < end; i++)
        bytes += parameters[i].requested_bytes;
    return bytes;
}

static size_t end_of(const struct mt_repeat *repeat)
{
    return repeat->begin + repeat->period * repeat->times;
}

/* In doubles: products of hostile sizes would overflow. */
static bool has_share(uint64_t part, uint64_t whole, unsigned permille)
{
    return (double)part * 1000 >= (double)whole * permille;
}

static void drop_small(struct mt_repeats *repeats, const struct mt_parameter *parameters,
                       size_t count)
{
    uint64_t whole = bytes_of(parameters, 0, count);
    uint32_t kept = 0;

    for (uint32_t i = 0; i < repeats->count; i++) {
        const struct mt_repeat *repeat = &repeats->list[i];

        if (has_share(bytes_of(parameters, repeat->begin, end_of(repeat)), whole,
                      MIN_PERMILLE_OF_REPEAT))
            repeats->list[kept++] = *repeat;
    }
    repeats->count = kept;
}

static void number_layers(struct mt_parameter *parameters, const struct mt_repeat *repeat,
                          uint32_t group, uint32_t first_layer)
{
    for (size_t i = repeat->begin; i < end_of(repeat); i++) {
        parameters[i].group = group;
        parameters[i].layer = first_layer + (uint32_t)((i - repeat->begin) / repeat->period);
    }
}

#define NO_REPEAT MT_REPEATS_MAX

struct match {
    struct mt_parameter *parameters;
    struct mt_repeats all, repeats; /* repeats: without the small ones */
    struct mt_layer_group *groups;
    uint32_t count;
};

static bool fits(const struct mt_layer_group *group, const struct mt_repeat *repeat, uint32_t more)
{
    return repeat->times + more == group->times ||
           (group->is_cut && repeat->times + more > group->times);
}

/* Whether there are as many groups like this one as repeats that fit it; otherwise the match is
 * ambiguous. For a call that did not end, those at and after `next` remain. */
static bool is_even(const struct match *match, const struct mt_layer_group *group, uint32_t more,
                    uint32_t next)
{
    uint32_t groups = group->is_cut, repeats = 0;

    for (uint32_t g = 0; g < match->count && !group->is_cut; g++)
        groups += !match->groups[g].is_cut && match->groups[g].times == group->times;
    for (uint32_t r = group->is_cut ? next : 0; r < match->repeats.count; r++)
        repeats += fits(group, &match->repeats.list[r], more);
    return groups == repeats;
}

/* First and last event of the gradients of a repeat; false: there are none. */
static bool find_gradients(const struct match *match, const struct mt_repeat *repeat,
                           uint64_t *first, uint64_t *last)
{
    bool is_found = false;

    *first = UINT64_MAX;
    *last = 0;
    for (size_t i = repeat->begin; i < end_of(repeat); i++) {
        const struct mt_parameter *one = &match->parameters[i];

        if (!one->has_gradient || one->is_buffer)
            continue;
        is_found = true;
        *first = one->gradient_event < *first ? one->gradient_event : *first;
        *last = one->gradient_event > *last ? one->gradient_event : *last;
    }
    return is_found;
}

/* Backward runs in reverse: all gradients of later calls come first. */
static bool is_called_before(const struct match *match, uint32_t repeat, uint32_t later)
{
    uint64_t first, last, later_first, later_last;

    return find_gradients(match, &match->repeats.list[repeat], &first, &last) &&
           find_gradients(match, &match->repeats.list[later], &later_first, &later_last) &&
           later_last < first;
}

/* A program may make first what it calls last. Two groups with one number are known to be in the
 * order of their parameters if a group with another number is between them, as among the stages of
 * a ResNet, or from their gradients. */
static bool is_in_order(const struct match *match, const uint32_t *repeat_of, uint32_t g,
                        uint32_t later)
{
    const struct mt_layer_group *groups = match->groups;

    if (groups[g].call != groups[later].call)
        return false;
    for (uint32_t between = g + 1; between < later; between++)
        if (repeat_of[between] != NO_REPEAT && groups[between].times != groups[g].times &&
            groups[between].call == groups[g].call)
            return true;
    return is_called_before(match, repeat_of[g], repeat_of[later]);
}

/* The group before `g` with its number that has a repeat, or `g`. */
static uint32_t equal_before(const struct match *match, const uint32_t *repeat_of, uint32_t g)
{
    for (uint32_t before = g; before-- > 0;)
        if (match->groups[before].times == match->groups[g].times &&
            !match->groups[before].is_cut && repeat_of[before] != NO_REPEAT)
            return before;
    return g;
}

/* Groups whose order is not known have no repeats. */
static void drop_doubtful(const struct match *match, uint32_t *repeat_of)
{
    for (uint32_t g = 0; g < match->count; g++) {
        uint32_t before = equal_before(match, repeat_of, g);

        if (repeat_of[g] == NO_REPEAT || match->groups[g].is_cut || before == g ||
            is_in_order(match, repeat_of, before, g))
            continue;
        for (uint32_t other = 0; other < match->count; other++)
            if (match->groups[other].times == match->groups[g].times)
                repeat_of[other] = NO_REPEAT;
    }
}

/* Calls and parameters are both in order. Sets the repeat of each group if it comes `more` times
 * less than the calls, or NO_REPEAT. */
static void pair_in_order(const struct match *match, uint32_t more, uint32_t *repeat_of)
{
    uint32_t next = 0;

    for (uint32_t g = 0; g < match->count; g++) {
        const struct mt_layer_group *group = &match->groups[g];
        uint32_t r = next;

        repeat_of[g] = NO_REPEAT;
        if (!is_even(match, group, more, next))
            continue;
        while (r < match->repeats.count && !fits(group, &match->repeats.list[r], more))
            r++;
        if (r == match->repeats.count)
            continue;
        repeat_of[g] = r;
        next = r + 1;
    }
}

/* Returns how many groups have a repeat; *in_layers: parameters that are then in layers. */
static uint32_t pair(const struct match *match, uint32_t more, uint32_t *repeat_of,
                     size_t *in_layers)
{
    uint32_t paired = 0;

    *in_layers = 0;
    pair_in_order(match, more, repeat_of);
    drop_doubtful(match, repeat_of);
    for (uint32_t g = 0; g < match->count; g++) {
        if (repeat_of[g] == NO_REPEAT)
            continue;
        paired++;
        *in_layers += match->repeats.list[repeat_of[g]].period *
                      (match->repeats.list[repeat_of[g]].times + more);
    }
    return paired;
}

/* Start of the first layer that differs from those of the repeat: where modules are less deep, or
 * another repeat ends. SIZE_MAX: a small repeat is between them, which may be layers of something
 * else. */
static size_t begin_of_first(const struct match *match, const struct mt_repeat *repeat)
{
    uint32_t depth = UINT32_MAX;
    size_t begin = repeat->begin, floor = 0;

    for (size_t i = repeat->begin; i < end_of(repeat); i++)
        depth = match->parameters[i].depth < depth ? match->parameters[i].depth : depth;
    for (uint32_t r = 0; r < match->repeats.count; r++)
        if (match->repeats.list[r].begin < repeat->begin - repeat->more)
            floor = end_of(&match->repeats.list[r]) + match->repeats.list[r].more;
    while (begin > floor && match->parameters[begin - 1].depth >= depth)
        begin--;
    for (uint32_t r = 0; r < match->all.count; r++)
        if (match->all.list[r].begin >= begin &&
            match->all.list[r].begin < repeat->begin - repeat->more)
            return SIZE_MAX;
    return begin;
}

static void confirm_group(struct match *match, uint32_t g, const struct mt_repeat *repeat)
{
    match->groups[g].is_confirmed = true;
    number_layers(match->parameters, repeat, g, 0);
}

/* The repeat ends with its last layer; the blocks before it may look like a part. A first layer of
 * less than half the size does not count. */
static void confirm_with_first(struct match *match, uint32_t g, const struct mt_repeat *repeat)
{
    struct mt_repeat others = *repeat;

    others.begin += others.more;
    size_t begin = begin_of_first(match, &others);
    if (begin == SIZE_MAX || 2 * (others.begin - begin) < others.period)
        return;
    match->groups[g].is_confirmed = true;
    number_layers(match->parameters, &others, g, 1);
    for (size_t i = begin; i < others.begin; i++) {
        match->parameters[i].group = g;
        match->parameters[i].layer = 0;
    }
}

static void confirm(struct match *match, uint32_t more, const uint32_t *repeat_of)
{
    for (uint32_t g = 0; g < match->count; g++) {
        if (repeat_of[g] == NO_REPEAT)
            continue;
        if (more)
            confirm_with_first(match, g, &match->repeats.list[repeat_of[g]]);
        else
            confirm_group(match, g, &match->repeats.list[repeat_of[g]]);
    }
}

/* Layers that are all alike, or first ones that differ: the one that explains more. Less than half
 * of the parameters may be an accident. */
static void match_groups(struct match *match, size_t parameter_count)
{
    uint32_t *equal = mt_memory_zeroed(2 * (size_t)match->count + 1, sizeof *equal);
    uint32_t *differ = equal + match->count;
    size_t in_equal, in_differ;
    uint32_t equal_groups = pair(match, 0, equal, &in_equal);
    uint32_t differ_groups = pair(match, 1, differ, &in_differ);

    if (differ_groups > equal_groups && 2 * in_differ >= parameter_count)
        confirm(match, 1, differ);
    else if (equal_groups && 2 * in_equal >= parameter_count)
        confirm(match, 0, equal);
    free(equal);
}

/* Layers of another model may be among the rest, so these may also be layers. */
static void mark_repeated(struct match *match)
{
    for (uint32_t r = 0; r < match->repeats.count; r++) {
        const struct mt_repeat *repeat = &match->repeats.list[r];

        for (size_t i = repeat->begin; i < end_of(repeat); i++)
            match->parameters[i].is_repeated = match->parameters[i].layer == MT_NO_LAYER;
    }
}

/* No call shows layers: uses the repeat with most parameters, if it has half of them. */
static uint32_t number_alone(struct match *match, size_t count)
{
    const struct mt_repeat *largest = NULL;
    size_t most = 0;

    for (uint32_t i = 0; i < match->repeats.count; i++) {
        const struct mt_repeat *repeat = &match->repeats.list[i];

        if (repeat->period * repeat->times > most) {
            most = repeat->period * repeat->times;
            largest = repeat;
        }
    }
    if (!largest || largest->times < MIN_TIMES_ALONE || 2 * most < count)
        return 0;
    number_layers(match->parameters, largest, match->count, 0);
    return (uint32_t)largest->times;
}

void mt_parameter_layers_find(struct mt_parameter *parameters, size_t parameter_count,
                              struct mt_layer_group *groups, uint32_t count, uint32_t *own)
{
    struct match match = {.parameters = parameters, .groups = groups, .count = count};
    uint64_t *tokens = mt_memory_zeroed(parameter_count + 1, sizeof *tokens);

    if (own)
        *own = 0;
    for (size_t i = 0; i < parameter_count; i++) {
        parameters[i].group = parameters[i].layer = MT_NO_LAYER;
        parameters[i].is_repeated = false;
        tokens[i] = mt_hash_u64(parameters[i].requested_bytes) ^ parameters[i].node;
    }
    mt_repeats_find(tokens, parameter_count, &match.all);
    free(tokens);
    match.repeats = match.all;
    drop_small(&match.repeats, parameters, parameter_count);
    match_groups(&match, parameter_count);
    if (own && !count)
        *own = number_alone(&match, parameter_count);
    mark_repeated(&match);
}

/* A block of state, or a parameter, by its key. */
struct entry {
    uint32_t node; /* of state */
    uint64_t bytes;
    uint32_t index;
};

MT_DEFINE_ORDER(by_tensor, struct entry,
                MT_ASCENDING(node) || MT_ASCENDING(bytes) || MT_ASCENDING(index))

static size_t list_parameters(const struct mt_parameter *parameters, size_t count,
                              bool with_gradient, struct entry *entries)
{
    size_t listed = 0;

    for (size_t i = 0; i < count; i++)
        if (!parameters[i].is_buffer && (!with_gradient || parameters[i].has_gradient))
            entries[listed++] =
                (struct entry){MT_NO_ID, parameters[i].requested_bytes, (uint32_t)i};
    qsort(entries, listed, sizeof *entries, by_tensor);
    return listed;
}

/* Entries of `bytes` in a list by bytes: the first, and how many. */
static size_t of_bytes(const struct entry *entries, size_t count, uint64_t bytes, size_t *first)
{
    size_t low = 0, end;

    MT_BISECT(low, count, middle, entries[middle].bytes < bytes);
    for (end = low; end < count && entries[end].bytes == bytes;)
        end++;
    *first = low;
    return end - low;
}

struct owners {
    struct mt_state_block *states;
    struct entry *sorted; /* states, by tensor */
    size_t state_count;
    struct entry *lists[2]; /* of parameters: all; those with a gradient */
    size_t counts[2];
};

/* States [begin, end) of one stack and size. */
static size_t tie_size(struct owners *owners, size_t begin, size_t end)
{
    for (int list = 0; list < 2; list++) {
        size_t first, count = of_bytes(owners->lists[list], owners->counts[list],
                                       owners->sorted[begin].bytes, &first);

        if (count != end - begin)
            continue;
        for (size_t i = 0; i < count; i++)
            owners->states[owners->sorted[begin + i].index].parameter =
                owners->lists[list][first + i].index;
        return count;
    }
    return 0;
}

/* States [begin, end) of one stack, size by size: returns whether all were tied. */
static bool tie_tensor(struct owners *owners, size_t begin, size_t end)
{
    size_t tied = 0;

    for (size_t i = begin, next; i < end; i = next) {
        for (next = i; next < end && owners->sorted[next].bytes == owners->sorted[i].bytes;)
            next++;
        tied += tie_size(owners, i, next);
    }
    return tied == end - begin;
}

MT_DEFINE_ORDER(by_index, struct entry, MT_ASCENDING(index))

/* Blocks of one size, as many as in the tensor [model, model + count) that was tied. */
static void follow(struct owners *owners, size_t begin, size_t model, size_t count)
{
    if (owners->sorted[begin].bytes != owners->sorted[begin + count - 1].bytes ||
        owners->states[owners->sorted[begin].index].parameter != MT_NO_LAYER)
        return;
    for (size_t i = 0; i < count; i++)
        owners->states[owners->sorted[begin + i].index].parameter =
            owners->states[owners->sorted[model + i].index].parameter;
}

static size_t tensor_end(const struct owners *owners, size_t begin)
{
    size_t end = begin;

    while (end < owners->state_count && owners->sorted[end].node == owners->sorted[begin].node)
        end++;
    return end;
}

static void tie_all(struct owners *owners)
{
    size_t model = 0, model_count = 0;

    for (size_t i = 0, end; i < owners->state_count; i = end) {
        end = tensor_end(owners, i);
        if (tie_tensor(owners, i, end) && end - i > model_count) {
            model = i;
            model_count = end - i;
        }
    }
    if (!model_count)
        return;
    qsort(owners->sorted + model, model_count, sizeof *owners->sorted, by_index);
    for (size_t i = 0, end; i < owners->state_count; i = end) {
        end = tensor_end(owners, i);
        if (end - i == model_count)
            follow(owners, i, model, model_count);
    }
}

void mt_state_owners_find(struct mt_state_block *states, size_t state_count,
                          const struct mt_parameter *parameters, size_t parameter_count)
{
    struct owners owners = {.states = states, .state_count = state_count};
    struct entry *entries =
        mt_memory_zeroed(state_count + 2 * parameter_count + 1, sizeof *entries);

    owners.sorted = entries;
    for (int list = 0; list < 2; list++) {
        owners.lists[list] = entries + state_count + (size_t)list * parameter_count;
        owners.counts[list] =
            list_parameters(parameters, parameter_count, list == 1, owners.lists[list]);
    }
    for (size_t i = 0; i < state_count; i++) {
        states[i].parameter = MT_NO_LAYER;
        entries[i] = (struct entry){states[i].node, states[i].requested_bytes, (uint32_t)i};
    }
    qsort(entries, state_count, sizeof *entries, by_tensor);
    tie_all(&owners);
    free(entries);
}

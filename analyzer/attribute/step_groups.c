/* Steps as groups of equal work; those of XLA programs are the runs of a module. */
#include <stdlib.h>
#include <string.h>

#include "map.h"
#include "process_memory.h"
#include "step_groups.h"
#include "work_intervals.h"

/* Turns of a program of XLA. Lines alone cannot distinguish the loop over requests from an inner
 * one that makes the arrays of each layer: both turn at the same line. In a real turn the program's
 * own module runs (xla_runs.h). */

/* `starts`, by interval: removes turns, except the first one, before which the module has not run
 * since the previous turn. Nothing changes if the program runs no module. O(intervals + runs). */
static void xla_steps_merge(const struct mt_work_intervals *intervals, bool *starts)
{
    const struct mt_xla_runs *runs = &intervals->xla_runs;
    uint32_t module = mt_xla_runs_main(runs);
    bool has_run = true;
    size_t run = 0;

    if (module == MT_NO_ID)
        return;
    for (size_t i = 0; i < intervals->count; i++) {
        uint64_t begin_seq = intervals->list[i].begin_seq;

        for (; run < runs->count && runs->list[run].begin_seq < begin_seq; run++)
            has_run |= runs->list[run].module == module;
        starts[i] = starts[i] && has_run;
        has_run = has_run && !starts[i];
    }
}

/* Splits the work of the program's own threads between two runs of autograd's: the forward pass is
 * the part after the lowest allocation. */
static void split(struct mt_work_interval *left, struct mt_work_interval *right)
{
    *right = *left;
    left->end_seq = left->low_seq;
    left->end_t_ns = left->low_t_ns;
    right->begin_seq = left->low_seq + 1;
    right->begin_t_ns = left->low_t_ns;
    right->kind = MT_PHASE_FORWARD;
    right->source = MT_PHASE_THREADS;
    right->turns = true;
}

static void split_by_level(struct mt_work_intervals *intervals)
{
    struct mt_work_interval *list = mt_memory_zeroed(2 * intervals->count + 1, sizeof *list);
    size_t count = 0;

    for (size_t i = 0; i < intervals->count; i++) {
        bool is_last = i + 1 == intervals->count;
        bool unknown = intervals->list[i].kind == MT_PHASE_UNKNOWN && !intervals->list[i].covered;

        list[count] = intervals->list[i];
        if (unknown && i && !is_last && intervals->list[i + 1].kind == MT_PHASE_BACKWARD) {
            split(&list[count], &list[count + 1]);
            if (list[count].end_seq < list[count].begin_seq)
                list[count] = list[count + 1]; /* nothing is left of it */
            else
                count++;
        } else if (unknown && i && intervals->list[i - 1].kind == MT_PHASE_OPTIMIZER) {
            list[count].turns = true;
        }
        count++;
    }
    free(intervals->list);
    intervals->list = list;
    intervals->count = count;
    intervals->capacity = 2 * count + 1;
}

/* For each interval: whether a zero_grad follows before the model is called. */
static void find_clearing(struct mt_step_groups *groups)
{
    const struct mt_work_intervals *intervals = groups->intervals;
    bool clears = false;

    for (size_t i = intervals->count; i-- > 0;) {
        uint8_t kind = intervals->list[i].kind;

        if (kind == MT_PHASE_ZERO_GRAD)
            clears = true;
        else if (kind != MT_PHASE_UNKNOWN && kind != MT_PHASE_DATA)
            clears = false;
        groups->clears[i] = clears;
    }
}

/* Contents of the current turn. */
struct turn {
    bool backward, update;
};

static void follow(struct turn *turn, uint8_t kind, bool has_backward)
{
    turn->backward |= kind == MT_PHASE_BACKWARD;
    if (kind == MT_PHASE_OPTIMIZER || kind == MT_PHASE_ZERO_GRAD)
        turn->update |= turn->backward || !has_backward;
}

/* Whether updates of parameters also show in the later half of the turns. A fused optimizer
 * allocates only in the first turn. */
static bool updates_show(const struct mt_step_groups *groups)
{
    const struct mt_work_intervals *intervals = groups->intervals;
    bool has_backward = groups->has_backward;
    struct turn turn = {false, false};
    uint32_t turns = 0, last = 0;
    bool any = false;

    for (size_t i = 0; i < intervals->count; i++) {
        const struct mt_work_interval *interval = &intervals->list[i];

        if (interval->turns && (turn.backward || !has_backward)) {
            turns++;
            if (turn.update || groups->clears[i]) {
                last = turns;
                any = true;
            }
            turn = (struct turn){false, false};
        }
        follow(&turn, interval->kind, has_backward);
    }
    return any && last * 2 >= turns;
}

/* Pairs of lines, and loops that are compared: if there are more, they are of one loop. */
#define MAX_COMPARED 64

static bool has_turn_around(const struct mt_work_intervals *intervals, uint32_t from, uint32_t to)
{
    struct mt_map seen = {0};
    bool found = false;

    for (size_t i = 0; i < intervals->count && !found; i++) {
        const struct mt_turn *turn = &intervals->list[i].turn;
        uint64_t key = (uint64_t)turn->at << 32 | turn->from;

        if (!intervals->list[i].turns || turn->at == MT_NO_ID ||
            mt_map_get(&seen, key) != MT_MAP_NONE)
            continue;
        mt_map_put(&seen, key, 1);
        found = mt_line_is_in_loop(&intervals->places, from, turn->at, turn->from) &&
                mt_line_is_in_loop(&intervals->places, to, turn->at, turn->from);
    }
    mt_map_release(&seen);
    return found;
}

/* Whether a loop turns around both lines. */
static bool is_enclosed(struct mt_step_groups *groups, uint32_t from, uint32_t to)
{
    uint64_t key = (uint64_t)from << 32 | to;
    uint32_t enclosed = mt_map_get(&groups->enclosed, key);

    if (enclosed == MT_MAP_NONE) {
        enclosed =
            groups->enclosed.count >= MAX_COMPARED || has_turn_around(groups->intervals, from, to);
        mt_map_put(&groups->enclosed, key, enclosed);
    }
    return enclosed;
}

/* Whether each of two lines of one function, or of its callees, is in a loop, and none has both. */
static bool are_of_two_loops(struct mt_step_groups *groups, uint32_t first, uint32_t second)
{
    struct mt_line_parting parting;

    return mt_line_move_between(&groups->intervals->places, first, second, &parting) ==
               MT_LINE_ON &&
           !is_enclosed(groups, first, second) && is_enclosed(groups, first, first) &&
           is_enclosed(groups, second, second);
}

/* A function that does a whole step is called at two lines: by two loops, or twice in one. Only in
 * the first case does a turn begin. */
static void find_calls_again(struct mt_step_groups *groups, struct mt_work_intervals *intervals)
{
    for (size_t i = 0; i < intervals->count; i++) {
        struct mt_work_interval *interval = &intervals->list[i];

        interval->again =
            interval->again && !is_enclosed(groups, interval->parting.from, interval->parting.to);
    }
    for (size_t i = 0; i < intervals->count; i++) {
        struct mt_work_interval *interval = &intervals->list[i];

        if (interval->again && interval->place != MT_NO_ID) {
            interval->turns = true;
            interval->turn = mt_loop_places_at(&intervals->places, interval->place);
        }
    }
    mt_map_release(&groups->enclosed); /* there are more turns now */
}

static void start_training(struct mt_step_groups *groups)
{
    const struct mt_work_intervals *intervals = groups->intervals;
    bool show = updates_show(groups);
    struct turn turn = {false, false};

    for (size_t i = 0; i < intervals->count; i++) {
        const struct mt_work_interval *interval = &intervals->list[i];

        if (interval->turns && (turn.backward || !groups->has_backward) &&
            (!show || turn.update || groups->clears[i])) {
            groups->starts[i] = true;
            turn = (struct turn){false, false};
        }
        follow(&turn, interval->kind, groups->has_backward);
    }
}

/* Control enters a second loop of training at a later line, so nothing turns there. */
static void start_other_loops(struct mt_step_groups *groups)
{
    const struct mt_work_intervals *intervals = groups->intervals;
    uint32_t trained = MT_NO_ID;
    size_t end = 0; /* of the training so far in this turn */

    for (size_t i = 0; i < intervals->count; i++) {
        const struct mt_work_interval *interval = &intervals->list[i];
        bool is_backward = interval->kind == MT_PHASE_BACKWARD;

        if (groups->starts[i])
            trained = MT_NO_ID;
        if (is_backward && interval->place != MT_NO_ID) {
            if (trained != MT_NO_ID && are_of_two_loops(groups, trained, interval->place))
                groups->starts[end] = true;
            trained = interval->place;
        }
        if (is_backward || interval->kind == MT_PHASE_OPTIMIZER ||
            interval->kind == MT_PHASE_ZERO_GRAD)
            end = i + 1;
    }
}

/* Turns of a loop within a forward are no turns of the program. */
static void find_passes(struct mt_work_intervals *intervals)
{
    for (size_t i = 0; i < intervals->count; i++)
        if (intervals->list[i].passes)
            mt_model_passes_learn(&intervals->passes, &intervals->list[i].pass);
    for (size_t i = 0; i < intervals->count; i++) {
        struct mt_work_interval *interval = &intervals->list[i];

        if (!interval->passes || mt_model_passes_counts(&intervals->passes, &interval->pass))
            continue;
        interval->passes = false;
        if (!intervals->is_training)
            interval->turns = false;
    }
}

/* A step begins with each turn of a loop, and where control enters it. */
static void start_calls(struct mt_step_groups *groups)
{
    const struct mt_work_intervals *intervals = groups->intervals;
    uint32_t last = 0;

    mt_step_loops_find(&groups->loops, intervals, NULL);
    for (size_t i = 0; i < intervals->count; i++) {
        uint32_t loop = groups->loops.of[i];

        groups->starts[i] =
            loop && (loop != last || mt_step_loops_turns(&groups->loops, intervals, i));
        groups->leaves[i] = !loop && last;
        last = loop;
    }
    groups->follows_loops = groups->loops.count > 0;
    xla_steps_merge(intervals, groups->starts);
}

/* Counts the turns that contain each place, and finds the places that fetch a batch: the first of a
 * turn, if it only calls a function that allocates. */
static void count_places(struct mt_step_groups *groups, struct mt_work_intervals *intervals)
{
    uint32_t strings = intervals->symbols->strings.count;
    uint32_t *last, turn = 1;
    bool *fetches;

    groups->place_count = intervals->named_turns ? strings : intervals->symbols->stack_count;
    groups->seen = mt_memory_zeroed((size_t)groups->place_count + 1, sizeof *groups->seen);
    last = mt_memory_zeroed((size_t)groups->place_count + 1, sizeof *last);
    fetches = mt_memory_zeroed((size_t)groups->place_count + 1, sizeof *fetches);
    for (size_t i = 0; i < intervals->count; i++) {
        struct mt_work_interval *interval = &intervals->list[i];

        turn += groups->starts[i];
        if (interval->place >= groups->place_count)
            continue;
        if (last[interval->place] != turn)
            groups->seen[interval->place]++;
        last[interval->place] = turn;
        fetches[interval->place] |= groups->starts[i] && interval->kind == MT_PHASE_UNKNOWN &&
                                    interval->allocates && interval->callees && !interval->covered;
    }
    for (size_t i = 0; i < intervals->count; i++) {
        struct mt_work_interval *interval = &intervals->list[i];

        if (interval->kind == MT_PHASE_UNKNOWN && interval->place < groups->place_count &&
            fetches[interval->place] && interval->callees)
            interval->kind = MT_PHASE_DATA;
    }
    free(fetches);
    free(last);
    groups->turn_count = turn;
}

static bool is_edge(const struct mt_work_interval *interval)
{
    return !interval->covered &&
           (interval->kind == MT_PHASE_SETUP || interval->kind == MT_PHASE_DATA);
}

/* At the edge of a step: a place that is not in every turn is not part of it. */
static bool is_beside(const struct mt_step_groups *groups, const struct mt_group *group, bool leads)
{
    const struct mt_work_interval *interval =
        &groups->intervals->list[leads ? group->first : group->end - 1];
    uint32_t turns = group->loop ? groups->loops.list[group->loop - 1].steps : groups->turn_count;

    if (is_edge(interval))
        return true;
    if (interval->kind == MT_PHASE_SETUP || interval->kind == MT_PHASE_DATA)
        return false;
    if (interval->kind != MT_PHASE_UNKNOWN && !mt_phase_is_forward(interval->kind))
        return false;
    if (interval->place >= groups->place_count)
        return interval->kind == MT_PHASE_UNKNOWN && (leads || groups->intervals->has_stacks);
    bool rare = groups->seen[interval->place] * 2 <= turns;
    return groups->turn_count > 1 ? rare : leads && interval->kind == MT_PHASE_UNKNOWN;
}

/* Whether a range of intervals has what a step needs. */
static bool is_step(const struct mt_step_groups *groups, struct mt_group group, bool has_forward)
{
    const struct mt_work_intervals *intervals = groups->intervals;
    bool needs_part = has_forward || groups->has_backward;

    for (size_t i = group.first; needs_part && i < group.end; i++)
        if (mt_phase_is_forward(intervals->list[i].kind) ||
            intervals->list[i].kind == MT_PHASE_BACKWARD ||
            intervals->list[i].kind == MT_PHASE_OPTIMIZER)
            return true;
    return !needs_part && group.first < group.end;
}

/* Returns the loop with that line, which is added if it is new: the function, from where it was
 * called, and for lines of backward, which of its loops. */
static uint32_t loop_at(struct mt_step_groups *groups, uint32_t place, bool trains)
{
    const struct mt_loop_places *places = &groups->intervals->places;
    uint64_t body = mt_line_body(places, place);
    uint32_t loop = 0;

    for (uint32_t i = 0; i < groups->loops.count && i < MAX_COMPARED && !loop; i++) {
        const struct mt_step_loop *known = &groups->loops.list[i];

        if (mt_line_body(places, known->at) == body &&
            !(trains && known->trains && are_of_two_loops(groups, known->at, place)))
            loop = i + 1;
    }
    if (!loop)
        loop = mt_step_loops_add(&groups->loops, place);
    if (trains && !groups->loops.list[loop - 1].trains)
        groups->loops.list[loop - 1].at = place;
    groups->loops.list[loop - 1].trains |= trains;
    return loop;
}

/* The loop of the first part with a place, backward if there is one. */
static uint32_t loop_of_training(struct mt_step_groups *groups, struct mt_map *known,
                                 struct mt_group group)
{
    const struct mt_work_intervals *intervals = groups->intervals;
    uint32_t place = MT_NO_ID;
    bool trains = false;

    for (size_t i = group.first; i < group.end && !trains; i++) {
        const struct mt_work_interval *interval = &intervals->list[i];
        bool is_backward = interval->kind == MT_PHASE_BACKWARD;

        if (interval->place >= groups->place_count ||
            !(is_backward || (place == MT_NO_ID && mt_phase_is_forward(interval->kind))))
            continue;
        place = interval->place;
        trains = is_backward;
    }
    if (place == MT_NO_ID || intervals->named_turns)
        return 0;
    uint32_t loop = mt_map_get(known, place);
    if (loop == MT_MAP_NONE) {
        loop = loop_at(groups, place, trains);
        mt_map_put(known, place, loop);
    }
    return loop;
}

/* Whole turns. */
static size_t gather_groups(struct mt_step_groups *groups)
{
    const struct mt_work_intervals *intervals = groups->intervals;
    struct mt_map known = {0};
    size_t begin = 0, count = 0;

    for (size_t i = 1; i <= intervals->count; i++) {
        struct mt_group group = {begin, i, 0};
        bool is_turn = !groups->follows_loops || groups->starts[begin];

        if (i < intervals->count && !groups->starts[i] && !groups->leaves[i])
            continue;
        if (groups->follows_loops)
            group.loop = groups->loops.of[begin];
        else if (intervals->is_training)
            group.loop = loop_of_training(groups, &known, group);
        if (is_turn && group.loop)
            groups->loops.list[group.loop - 1].steps++;
        if (is_turn)
            groups->steps[count++] = group;
        begin = i;
    }
    mt_map_release(&known);
    return count;
}

static void make_steps(struct mt_step_groups *groups)
{
    const struct mt_work_intervals *intervals = groups->intervals;
    bool has_forward = false;

    free(groups->steps);
    groups->step_count = 0;
    groups->steps = mt_memory_zeroed((size_t)groups->turn_count + 1, sizeof *groups->steps);
    for (size_t i = 0; i < intervals->count; i++)
        has_forward |= mt_phase_is_forward(intervals->list[i].kind);
    size_t count = gather_groups(groups);
    for (size_t i = 0; i < count; i++) {
        struct mt_group group = groups->steps[i];

        while (group.first < group.end && is_beside(groups, &group, true))
            group.first++;
        while (group.end > group.first && is_beside(groups, &group, false))
            group.end--;
        if (is_step(groups, group, has_forward))
            groups->steps[groups->step_count++] = group;
    }
}

/* Steps of loops that call a model between the steps of training: validation, rollouts. */
static void add_calls(struct mt_step_groups *groups)
{
    const struct mt_work_intervals *intervals = groups->intervals;
    bool *taken = mt_memory_zeroed(intervals->count + 1, sizeof *taken);
    struct mt_group *all;
    struct mt_step_loops loops;
    uint32_t *ids; /* by loop: index + 1 among those of the groups; 0 = not there yet */
    size_t count = 0, step = 0, at = 0;

    for (size_t i = 0; i < groups->step_count; i++)
        memset(&taken[groups->steps[i].first], 1, groups->steps[i].end - groups->steps[i].first);
    mt_step_loops_find(&loops, intervals, taken);
    ids = mt_memory_zeroed(loops.count + 1, sizeof *ids);
    all = mt_memory_zeroed(groups->step_count + intervals->count + 1, sizeof *all);
    while (at < intervals->count) {
        struct mt_group group = {at, at + 1, loops.of[at]};

        if (taken[at]) {
            all[count++] = groups->steps[step];
            at = groups->steps[step++].end;
            continue;
        }
        while (group.end < intervals->count && loops.of[group.end] == group.loop &&
               !taken[group.end] && !mt_step_loops_turns(&loops, intervals, group.end))
            group.end++;
        at = group.end;
        if (!group.loop)
            continue;
        if (!ids[group.loop])
            ids[group.loop] = mt_step_loops_take(&groups->loops, &loops, group.loop);
        group.loop = ids[group.loop];
        while (group.first < group.end && is_edge(&intervals->list[group.first]))
            group.first++;
        while (group.end > group.first && is_edge(&intervals->list[group.end - 1]))
            group.end--;
        if (is_step(groups, group, true))
            all[count++] = group;
    }
    free(groups->steps);
    groups->steps = all;
    groups->step_count = count;
    mt_step_loops_release(&loops);
    free(ids);
    free(taken);
}

static bool ends_search(const struct mt_work_interval *interval)
{
    return interval->kind == MT_PHASE_BACKWARD || interval->kind == MT_PHASE_OPTIMIZER;
}

/* Whether backward follows in the same turn. */
static void find_training(struct mt_step_groups *groups)
{
    const struct mt_work_intervals *intervals = groups->intervals;
    bool ahead = false;

    for (size_t i = intervals->count; i-- > 0;) {
        const struct mt_work_interval *interval = &intervals->list[i];

        if (ends_search(interval))
            ahead = interval->kind == MT_PHASE_BACKWARD;
        groups->trains[i] = ahead;
        if (interval->turns || groups->starts[i])
            ahead = false;
    }
}

/* The trace may end before backward begins: then calls at the place of training calls count as
 * such. */
static void find_cut_training(struct mt_step_groups *groups)
{
    const struct mt_work_intervals *intervals = groups->intervals;
    bool *trained = mt_memory_zeroed((size_t)groups->place_count + 1, sizeof *trained);

    for (size_t i = 0; i < intervals->count; i++)
        if (groups->trains[i] && intervals->list[i].place < groups->place_count)
            trained[intervals->list[i].place] = true;
    for (size_t i = intervals->count; i-- > 0 && !ends_search(&intervals->list[i]);) {
        uint32_t place = intervals->list[i].place;

        groups->trains[i] |= place >= groups->place_count || trained[place];
        if (intervals->list[i].turns || groups->starts[i])
            break;
    }
    free(trained);
}

bool mt_step_groups_validates(const struct mt_step_groups *groups, size_t interval)
{
    return groups->has_backward && mt_phase_is_forward(groups->intervals->list[interval].kind) &&
           !groups->intervals->list[interval].covered && !groups->trains[interval];
}

/* A run that ended in its first turn had a step, if anything in it identifies its activity. */
static bool died_in_first(const struct mt_step_groups *groups)
{
    const struct mt_work_intervals *intervals = groups->intervals;
    bool has_part = false;

    for (size_t i = 0; i < intervals->count; i++)
        has_part |= mt_phase_is_forward(intervals->list[i].kind) ||
                    intervals->list[i].kind == MT_PHASE_BACKWARD ||
                    intervals->list[i].kind == MT_PHASE_OPTIMIZER;
    return intervals->died && has_part && !intervals->user_steps;
}

/* A trace may have only one step. It ended if the model was called, and backward and then the
 * optimizer followed. If backward repeats, there are several steps whose turns do not show. */
static bool ended_in_first(const struct mt_step_groups *groups)
{
    const struct mt_work_intervals *intervals = groups->intervals;
    bool called = false, trained = false, ended = false;

    for (size_t i = 0; i < intervals->count && !intervals->user_steps; i++) {
        const struct mt_work_interval *interval = &intervals->list[i];

        called |= mt_phase_is_forward(interval->kind);
        if (ended && interval->kind == MT_PHASE_BACKWARD)
            return false;
        trained |= called && interval->kind == MT_PHASE_BACKWARD;
        ended |= trained && interval->kind == MT_PHASE_OPTIMIZER;
    }
    return ended;
}

/* Whether the steps have at least a quarter of the events of models, backward and optimizers. A
 * loop beside the program's work (it prepares the inputs of one call) is not the loop of its
 * steps. */
static bool are_most_of_work(const struct mt_step_groups *groups)
{
    const struct mt_work_intervals *intervals = groups->intervals;
    uint64_t work = 0, covered = 0;
    size_t step = 0;

    for (size_t i = 0; i < intervals->count; i++) {
        const struct mt_work_interval *interval = &intervals->list[i];
        uint64_t events = interval->end_seq - interval->begin_seq + 1;

        while (step < groups->step_count && groups->steps[step].end <= i)
            step++;
        if (interval->kind <= MT_PHASE_DATA)
            continue;
        work += events;
        covered += step < groups->step_count && i >= groups->steps[step].first ? events : 0;
    }
    return covered >= work / 4;
}

/* One turn: the whole run. */
static void forget_turns(struct mt_step_groups *groups)
{
    size_t count = groups->intervals->count;

    memset(groups->starts, 0, count * sizeof *groups->starts);
    memset(groups->leaves, 0, count * sizeof *groups->leaves);
    memset(groups->loops.of, 0, groups->loops.of ? count * sizeof *groups->loops.of : 0);
    groups->loops.count = 0;
    groups->follows_loops = false;
    groups->step_count = 0;
    groups->turn_count = 1;
}

void mt_step_groups_make(struct mt_step_groups *groups, struct mt_work_intervals *intervals)
{
    memset(groups, 0, sizeof *groups);
    groups->intervals = intervals;
    if (!intervals->has_stacks && intervals->is_training)
        split_by_level(intervals);
    for (size_t i = 0; i < intervals->count; i++)
        groups->has_backward |= intervals->list[i].kind == MT_PHASE_BACKWARD;
    groups->starts = mt_memory_zeroed(intervals->count + 1, sizeof *groups->starts);
    groups->leaves = mt_memory_zeroed(intervals->count + 1, sizeof *groups->leaves);
    groups->trains = mt_memory_zeroed(intervals->count + 1, sizeof *groups->trains);
    groups->clears = mt_memory_zeroed(intervals->count + 1, sizeof *groups->clears);
    find_clearing(groups);
    find_passes(intervals);
    for (size_t i = 0; intervals->named_turns && i < intervals->count; i++)
        groups->starts[i] = intervals->list[i].turns;
    if (!intervals->named_turns && !intervals->user_steps) {
        if (intervals->is_training) {
            find_calls_again(groups, intervals);
            start_training(groups);
            start_other_loops(groups);
        } else {
            start_calls(groups);
        }
    }
    count_places(groups, intervals);
    if (groups->turn_count > 1)
        make_steps(groups);
    if (groups->step_count && intervals->is_training && !intervals->named_turns)
        add_calls(groups);
    if (groups->turn_count > 1 && !are_most_of_work(groups))
        forget_turns(groups);
    if (groups->turn_count == 1 && (died_in_first(groups) || ended_in_first(groups)))
        make_steps(groups);
    find_training(groups);
    find_cut_training(groups);
}

void mt_step_groups_release(struct mt_step_groups *groups)
{
    free(groups->starts);
    free(groups->leaves);
    free(groups->trains);
    free(groups->clears);
    free(groups->seen);
    free(groups->steps);
    mt_map_release(&groups->enclosed);
    mt_step_loops_release(&groups->loops);
    memset(groups, 0, sizeof *groups);
}

/* Phases that the program did not name, and the period of its allocations. */
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "buf.h"
#include "event.h"
#include "frame_judge.h"
#include "grow.h"
#include "inferred_phases.h"
#include "map.h"
#include "process_memory.h"
#include "source.h"
#include "status.h"
#include "step_groups.h"

/* The period of a sequence of requests, for programs without other evidence: no names, no stacks,
 * no threads. Requests repeat if almost all are equal, in size, stream and stack, to those one
 * period later. A turn begins at the position with the lowest allocation over all turns.
 *
 * A token that is unique within a turn repeats after exactly one period, so distances to the next
 * equal token reveal it; a few candidates are then compared in full. The first third is excluded
 * because set-up and the first turns differ. */

/* Later requests are ignored. */
#define PERIOD_MAX (1u << 20)

struct request {
    uint64_t seq, t_ns;
    uint64_t level_bytes; /* requested bytes alive before it */
    uint32_t token;       /* equal for equal requests */
};

/* Zeroed memory is ready. */
struct period {
    struct request *requests;
    size_t count, capacity;
    uint64_t level_bytes, last_seq, last_t_ns;

    /* result: turns begin with requests first, first + length, ...; number of whole turns */
    size_t length, first, turns;
};

#define MAX_CANDIDATES 16
#define MIN_REQUESTS   24
#define MIN_TURNS      3
/* Share of the requests that must equal those one period later. */
#define EQUAL_PERCENT 95

/* Pass every event to it, then call period_find. */
static void period_add(struct period *period, const struct mt_event *event)
{
    struct request *request;

    if (event->flags & MT_EVENT_INITIAL)
        return;
    period->last_seq = event->seq;
    period->last_t_ns = event->t_ns;
    if (event->kind == MT_EVENT_FREE_REQUESTED)
        period->level_bytes -= event->size_bytes;
    if (event->kind != MT_EVENT_ALLOC)
        return;
    if (period->count < PERIOD_MAX) {
        mt_grow_to(&period->requests, &period->capacity, period->count + 1, sizeof *request);
        request = &period->requests[period->count++];
        *request = (struct request){
            .seq = event->seq, .t_ns = event->t_ns, .level_bytes = period->level_bytes};
        request->token =
            (uint32_t)mt_hash_u64(mt_hash_u64(event->size_bytes) ^ (uint64_t)event->stack << 16 ^
                                  event->stream << 8 ^ event->device);
    }
    period->level_bytes += event->size_bytes;
}

/* Counts how often a token repeats after each distance. */
static void count_distances(const struct period *period, uint32_t *distances, size_t longest)
{
    struct mt_map last = {0};

    for (size_t i = 0; i < period->count; i++) {
        uint32_t before = mt_map_get(&last, period->requests[i].token);

        if (before != MT_MAP_NONE && i - before <= longest)
            distances[i - before]++;
        mt_map_put(&last, period->requests[i].token, (uint32_t)i);
    }
    mt_map_release(&last);
}

/* Whether almost all of the requests [begin, end) equal those one length later. */
static bool repeats(const struct period *period, size_t begin, size_t end, size_t length)
{
    size_t equal = 0;

    for (size_t i = begin; i < end; i++)
        equal += period->requests[i].token == period->requests[i + length].token;
    return end > begin && equal * 100 >= (end - begin) * EQUAL_PERCENT;
}

static size_t most_frequent(const uint32_t *distances, size_t longest)
{
    size_t best = 0;

    for (size_t i = 1; i <= longest; i++)
        if (distances[i] > (best ? distances[best] : 0))
            best = i;
    return best;
}

/* The shortest length that repeats. A length of one or two is not a turn. */
static size_t find_length(const struct period *period, uint32_t *distances, size_t longest)
{
    size_t found = 0, from = period->count / 3;

    for (int i = 0; i < MAX_CANDIDATES; i++) {
        size_t length = most_frequent(distances, longest);

        if (!length || distances[length] < MIN_TURNS - 1)
            break;
        distances[length] = 0;
        if (length > 2 && (!found || length < found) &&
            repeats(period, from, period->count - length, length))
            found = length;
    }
    return found;
}

/* The first request after a third of the sequence at whose position in the turn the lowest
 * allocation is. */
static size_t lowest_begin(const struct period *period, double *levels)
{
    size_t from = period->count / 3, best = 0;

    for (size_t i = from; i + period->length <= period->count; i++)
        levels[(i - from) % period->length] += (double)period->requests[i].level_bytes;
    /* positions at the end of the range have at most one turn less */
    for (size_t i = 0; i < period->length; i++) {
        size_t times = (period->count - period->length - from - i) / period->length + 1;

        levels[i] /= (double)times;
        if (levels[i] < levels[best])
            best = i;
    }
    return from + best;
}

static void find_turns(struct period *period, size_t begin)
{
    size_t length = period->length, last = begin;

    while (begin >= length && repeats(period, begin - length, begin, length))
        begin -= length;
    while (last + length <= period->count &&
           (last == begin || repeats(period, last - length, last, length)))
        last += length;
    period->first = begin;
    period->turns = (last - begin) / length;
}

/* turns = 0: there is no period. O(requests). */
static void period_find(struct period *period)
{
    size_t longest = period->count * 2 / 3 / MIN_TURNS;
    uint32_t *distances = mt_memory_zeroed(longest + 1, sizeof *distances);
    double *levels = NULL;

    period->turns = 0;
    count_distances(period, distances, longest);
    if (period->count >= MIN_REQUESTS)
        period->length = find_length(period, distances, longest);
    if (period->length) {
        levels = mt_memory_zeroed(period->length, sizeof *levels);
        find_turns(period, lowest_begin(period, levels));
    }
    if (period->turns < MIN_TURNS)
        period->turns = 0;
    free(levels);
    free(distances);
}

/* Request with which turn i begins; for `turns` itself: the one after the last turn, or the number
 * of requests. */
static size_t period_begin(const struct period *period, size_t turn)
{
    return period->first + turn * period->length;
}

static void period_release(struct period *period)
{
    free(period->requests);
    memset(period, 0, sizeof *period);
}

static enum mt_status read_all(struct mt_source *source, struct mt_work_intervals *intervals,
                               void (*take)(struct mt_work_intervals *, const struct mt_event *),
                               bool until_complete, struct mt_error *error)
{
    struct mt_event_batch batch;
    enum mt_status status;

    while ((status = mt_source_next(source, &batch, error)) == MT_OK) {
        for (size_t i = 0; i < batch.count; i++)
            take(intervals, &batch.events[i]);
        if (until_complete && mt_work_intervals_complete(intervals))
            break;
    }
    if (status != MT_OK && status != MT_END)
        return status;
    return mt_source_rewind(source, error);
}

#define MAX_LOOPS 256 /* with names */

struct layer {
    struct mt_source *source;
    const struct mt_work_intervals *intervals;
    const struct mt_step_groups *groups;
    uint16_t thread;      /* the thread of all inserted ranges, so that they nest */
    uint32_t *loop_names; /* symbol ids by loop; NULL if there is one */
    uint32_t loop;        /* symbol id + 1 for the next range; 0 = none */
};

/* The first thread that is not autograd's. */
static uint16_t main_thread(const struct mt_work_intervals *intervals)
{
    for (size_t i = 0; i < intervals->count; i++) {
        uint16_t thread = intervals->list[i].thread;

        if (thread >= intervals->thread_count || !intervals->threads[thread].is_engine)
            return thread;
    }
    return 0;
}

static enum mt_status add(struct layer *layer, uint8_t kind, const char *name,
                          const struct mt_work_interval *interval)
{
    bool is_push = kind == MT_EVENT_PHASE_PUSH;
    struct mt_event event = {.stack = MT_NO_ID, .kind = kind, .thread = layer->thread};

    event.seq = is_push ? interval->begin_seq : interval->end_seq;
    event.t_ns = is_push ? interval->begin_t_ns : interval->end_t_ns;
    event.aux_bytes = is_push ? interval->source : 0;
    event.size_bytes = is_push ? layer->loop : 0;
    if (mt_symbols_string(&layer->source->symbols, name, strlen(name), &event.name))
        mt_memory_end();
    return mt_overlay_add(&layer->source->overlay,
                          is_push ? interval->begin_seq : interval->end_seq + 1, &event);
}

/* The common name of the part; NULL: none. */
static const char *part_name(const struct layer *layer, size_t i)
{
    static const char *const names[] = {
        [MT_PHASE_DATA] = "data",           [MT_PHASE_FORWARD] = "forward",
        [MT_PHASE_LOSS] = "loss",           [MT_PHASE_BACKWARD] = "backward",
        [MT_PHASE_ZERO_GRAD] = "zero_grad", [MT_PHASE_OPTIMIZER] = "optimizer"};
    const struct mt_work_interval *interval = &layer->intervals->list[i];

    if (interval->covered)
        return NULL;
    if (mt_step_groups_validates(layer->groups, i))
        return "validation";
    return interval->kind <= MT_PHASE_OPTIMIZER ? names[interval->kind] : NULL;
}

/* End of the adjacent intervals from `i` that are one part: those of its name, and within
 * validation those between two of its calls. */
static size_t end_of_part(const struct layer *layer, size_t i, size_t end)
{
    const char *name = part_name(layer, i);
    size_t last = i + 1;
    bool calls = !layer->intervals->is_training; /* each is a part of its own */

    for (size_t at = i + 1; at < end; at++) {
        const char *other = part_name(layer, at);

        if (layer->groups->starts[at] || (calls && layer->intervals->list[at].turns))
            break;
        if (other && name && !strcmp(other, name))
            last = at + 1;
        else if (layer->intervals->list[at].kind != MT_PHASE_UNKNOWN ||
                 !mt_step_groups_validates(layer->groups, i))
            break;
    }
    return last;
}

static enum mt_status lay_parts(struct layer *layer, size_t begin, size_t end)
{
    enum mt_status status = MT_OK;

    for (size_t i = begin; i < end && !status;) {
        const char *name = part_name(layer, i);
        size_t next = name ? end_of_part(layer, i, end) : i + 1;

        if (name)
            status = add(layer, MT_EVENT_PHASE_PUSH, name, &layer->intervals->list[i]);
        if (name && !status)
            status = add(layer, MT_EVENT_PHASE_POP, name, &layer->intervals->list[next - 1]);
        i = next;
    }
    return status;
}

/* If a run ended in its first turn, it is unknown whether it would have gone backward. */
static const char *name_of_steps(const struct layer *layer)
{
    const struct mt_work_intervals *intervals = layer->intervals;

    if (intervals->is_training || intervals->named_turns || layer->groups->turn_count == 1)
        return "step";
    return intervals->kinds_told & 1u << MT_PHASE_FORWARD ? "request" : "iteration";
}

/* A step inherits the confidence of the evidence for its iterations. */
static uint8_t source_of_steps(const struct mt_work_intervals *intervals)
{
    if (intervals->named_turns)
        return MT_PHASE_PERIOD;
    if (intervals->has_stacks)
        return MT_PHASE_STACKS;
    return intervals->has_engine ? MT_PHASE_THREADS : MT_PHASE_SCOPES;
}

/* Whether steps belong to several loops. If nearly each step has a loop of its own, the lines are
 * not those of loops. */
static bool has_loops(const struct mt_step_groups *groups)
{
    bool *seen = mt_memory_zeroed(groups->loops.count + 1, sizeof *seen);
    size_t count = 0;

    for (size_t i = 0; i < groups->step_count; i++) {
        count += !seen[groups->steps[i].loop];
        seen[groups->steps[i].loop] = true;
    }
    free(seen);
    return count >= 2 && count <= groups->step_count / 2 && groups->loops.count <= MAX_LOOPS;
}

/* "train.py:41" for each loop, if there are several. */
static void name_loops(struct layer *layer)
{
    const struct mt_symbols *symbols = &layer->source->symbols;
    const struct mt_step_groups *groups = layer->groups;

    if (!has_loops(groups))
        return;
    uint32_t *lines = mt_step_loops_lines(&groups->loops, &layer->intervals->places);
    layer->loop_names = lines;
    for (size_t i = 0; i < groups->loops.count; i++) {
        const struct mt_frame *frame = &symbols->frames[symbols->stacks[lines[i]].frame];
        struct mt_buf name = {0};

        mt_buf_printf(&name, "%s:%u", mt_code_base_name(mt_symbols_text(symbols, frame->file)),
                      frame->line);
        if (!name.data ||
            mt_symbols_string(&layer->source->symbols, name.data, name.length, &lines[i]))
            mt_memory_end();
        mt_buf_release(&name);
    }
}

static enum mt_status lay_step(struct layer *layer, size_t number)
{
    const struct mt_group *group = &layer->groups->steps[number];
    struct mt_work_interval first = layer->intervals->list[group->first];
    const struct mt_work_interval *last = &layer->intervals->list[group->end - 1];
    char name[48];

    snprintf(name, sizeof name, "%s#%zu", name_of_steps(layer), number);
    first.source = source_of_steps(layer->intervals);
    layer->loop = group->loop && layer->loop_names ? layer->loop_names[group->loop - 1] + 1 : 0;
    enum mt_status status = add(layer, MT_EVENT_PHASE_PUSH, name, &first);
    layer->loop = 0;
    if (!status)
        status = lay_parts(layer, group->first, group->end);
    if (!status)
        status = add(layer, MT_EVENT_PHASE_POP, name, last);
    return status;
}

static enum mt_status lay(struct layer *layer)
{
    enum mt_status status = MT_OK;
    size_t at = 0;

    for (size_t i = 0; i < layer->groups->step_count && !status; i++) {
        status = lay_parts(layer, at, layer->groups->steps[i].first);
        if (!status)
            status = lay_step(layer, i);
        at = layer->groups->steps[i].end;
    }
    return status ? status : lay_parts(layer, at, layer->intervals->count);
}

/* The last event before turn `turn` begins. */
static void end_before(const struct period *period, size_t turn, struct mt_work_interval *interval)
{
    size_t next = period_begin(period, turn);

    interval->end_seq = next < period->count ? period->requests[next].seq - 1 : period->last_seq;
    interval->end_t_ns = next < period->count ? period->requests[next].t_ns : period->last_t_ns;
}

static enum mt_status lay_turns(struct layer *layer, const struct period *period)
{
    enum mt_status status = MT_OK;

    for (size_t i = 0; i < period->turns && !status; i++) {
        const struct request *first = &period->requests[period_begin(period, i)];
        struct mt_work_interval turn = {
            .begin_seq = first->seq, .begin_t_ns = first->t_ns, .source = MT_PHASE_PERIOD};
        char name[48];

        end_before(period, i + 1, &turn);
        snprintf(name, sizeof name, "iteration#%zu", i);
        status = add(layer, MT_EVENT_PHASE_PUSH, name, &turn);
        if (!status)
            status = add(layer, MT_EVENT_PHASE_POP, name, &turn);
    }
    return status;
}

static enum mt_status add_to_period(void *period, struct mt_event *event)
{
    period_add(period, event);
    return MT_OK;
}

/* One more pass, if there is no other evidence. */
static enum mt_status find_period(struct layer *layer, struct mt_error *error)
{
    struct period period = {0};
    enum mt_status status = mt_source_each(layer->source, add_to_period, &period, error);

    if (!status)
        status = mt_source_rewind(layer->source, error);
    if (!status)
        period_find(&period);
    if (!status)
        status = lay_turns(layer, &period);
    period_release(&period);
    return status;
}

static enum mt_status find(struct mt_source *source, struct mt_work_intervals *intervals,
                           struct mt_error *error)
{
    struct mt_step_groups groups = {0};
    struct layer layer = {.source = source, .intervals = intervals, .groups = &groups};
    enum mt_status status = MT_OK;

    mt_work_intervals_prepare(intervals);
    if (intervals->user_steps && intervals->user_turns)
        return MT_OK;
    status = read_all(source, intervals, mt_work_intervals_cut, false, error);
    if (!status)
        mt_work_intervals_finish(intervals);
    if (!status)
        mt_step_groups_make(&groups, intervals);
    layer.thread = main_thread(intervals);
    if (!status) {
        name_loops(&layer);
        status = lay(&layer);
    }
    if (!status && !source->overlay.count && !intervals->user_named)
        status = find_period(&layer, error);
    mt_step_groups_release(&groups);
    free(layer.loop_names);
    return status;
}

/* In a program without a framework and without Python, only its own names count: its repetitions
 * need not be training steps. Known after one complete pass. */
static bool may_have_steps(const struct mt_source *source)
{
    return source->view.level != MT_VIEW_DRIVER || source->overlay.hides_ranges ||
           mt_symbols_have_python(&source->symbols);
}

enum mt_status mt_inferred_phases_insert(struct mt_source *source, struct mt_error *error)
{
    struct mt_work_intervals intervals;
    enum mt_status status = MT_OK;

    if (source->overlay.chosen)
        return MT_OK;
    mt_work_intervals_init(&intervals, &source->symbols, source->view.level != MT_VIEW_DRIVER);
    if (source->stack_uses && source->view.level == MT_VIEW_FRAMEWORK)
        mt_work_intervals_learn_stacks(&intervals, source->stack_uses);
    else
        status = read_all(source, &intervals, mt_work_intervals_learn, true, error);
    if (!status && !mt_work_intervals_complete(&intervals) && may_have_steps(source))
        status = find(source, &intervals, error);
    mt_work_intervals_release(&intervals);
    source->overlay.chosen = status == MT_OK;
    return status;
}

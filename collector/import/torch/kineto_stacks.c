/* Ranges of a thread are nested, so those that enclose an instant are a stack. The stacks of open
 * ranges are made when an instant first needs them, and kept until a range below them ends. */
#include <stdlib.h>

#include "kineto_read.h"
#include "sorted.h"
#include "torch_names.h"

/* Ranges deeper than this are left out, so that no file makes a walk arbitrarily long. */
enum { MAX_OPEN = MT_MAX_STACK_DEPTH };

struct open_range {
    uint64_t end_ns;
    uint32_t name, kind;
    uint32_t stack; /* MT_NO_ID = not made yet */
};

struct walk {
    const struct mt_kineto *profile;
    struct mt_symbols *symbols;
    struct open_range open[MAX_OPEN];
    size_t depth;
    bool overlaps;           /* a range ends after the one below it */
    struct mt_map frames[2]; /* by name: of operations, of Python */
};

MT_DEFINE_ORDER(by_thread_and_start, struct mt_kineto_range,
                MT_ASCENDING(thread) || MT_ASCENDING(start_ns) || MT_DESCENDING(end_ns) ||
                    MT_ASCENDING(order))
MT_DEFINE_ORDER(by_thread_and_time, struct mt_kineto_instant,
                MT_ASCENDING(thread) || MT_ASCENDING(t_ns) || MT_ASCENDING(order))

/* Makes the frame of a range. Names of Python's functions have a file and a line. */
static enum mt_status frame_of(struct walk *walk, const struct open_range *range, uint32_t *frame)
{
    const struct mt_strings *names = &walk->profile->names;
    struct mt_map *frames = &walk->frames[range->kind == MT_KINETO_PYTHON];
    uint32_t function, file = 0, line = 0;

    *frame = mt_map_get(frames, range->name);
    if (*frame != MT_MAP_NONE)
        return MT_OK;
    enum mt_status status = mt_symbols_string(walk->symbols, names->texts[range->name],
                                              names->lengths[range->name], &function);
    if (status == MT_OK && range->kind == MT_KINETO_PYTHON)
        status = mt_torch_split_frame(walk->symbols, &function, &file, &line);
    if (status == MT_OK)
        status = mt_symbols_frame(walk->symbols, function, file, line, frame);
    return status == MT_OK ? mt_map_set(frames, range->name, *frame) : status;
}

/* Makes the stack of the open ranges; MT_NO_ID if there are none. */
static enum mt_status make_stack(struct walk *walk, uint32_t *stack)
{
    size_t made = walk->depth;
    enum mt_status status = MT_OK;

    while (made && walk->open[made - 1].stack == MT_NO_ID)
        made--;
    *stack = made ? walk->open[made - 1].stack : MT_NO_ID;
    for (; made < walk->depth && status == MT_OK; made++) {
        uint32_t frame;

        status = frame_of(walk, &walk->open[made], &frame);
        if (status == MT_OK)
            status = mt_symbols_stack(walk->symbols, *stack, frame, stack);
        walk->open[made].stack = *stack;
    }
    return status;
}

/* Removes ended ranges from below others. */
static void remove_overlaps(struct walk *walk, uint64_t t_ns)
{
    size_t kept = 0;

    for (size_t i = 0; i < walk->depth; i++) {
        if (walk->open[i].end_ns < t_ns)
            continue;
        walk->open[kept] = walk->open[i];
        if (kept != i)
            walk->open[kept].stack = MT_NO_ID;
        kept++;
    }
    walk->depth = kept;
}

/* Ends the ranges that ended before `t_ns`. */
static void close_ranges(struct walk *walk, uint64_t t_ns)
{
    while (walk->depth && walk->open[walk->depth - 1].end_ns < t_ns)
        walk->depth--;
    if (walk->overlaps)
        remove_overlaps(walk, t_ns);
    walk->overlaps = walk->overlaps && walk->depth;
}

/* A range that begins where another one ends is not within that one. */
static void open_range(struct walk *walk, const struct mt_kineto_range *range)
{
    close_ranges(walk, range->start_ns);
    while (walk->depth && walk->open[walk->depth - 1].end_ns == range->start_ns &&
           range->end_ns > range->start_ns)
        walk->depth--;
    if (walk->depth == MAX_OPEN) {
        walk->symbols->frames_cut++;
        return;
    }
    walk->overlaps |= walk->depth && walk->open[walk->depth - 1].end_ns < range->end_ns;
    walk->open[walk->depth++] =
        (struct open_range){range->end_ns, range->name, range->kind, MT_NO_ID};
}

static enum mt_status set_stacks(struct walk *walk)
{
    const struct mt_kineto *profile = walk->profile;
    enum mt_status status = MT_OK;
    uint32_t thread = MT_NO_ID;
    size_t at = 0;

    for (size_t i = 0; i < profile->instant_count && status == MT_OK; i++) {
        struct mt_kineto_instant *instant = &profile->instants[i];

        if (instant->thread != thread) {
            walk->depth = 0;
            walk->overlaps = false;
        }
        thread = instant->thread;
        for (; at < profile->range_count; at++) {
            const struct mt_kineto_range *range = &profile->ranges[at];

            if (range->thread > thread ||
                (range->thread == thread && range->start_ns > instant->t_ns))
                break;
            if (range->thread == thread && range->kind != MT_KINETO_ANNOTATION)
                open_range(walk, range);
        }
        close_ranges(walk, instant->t_ns);
        status = make_stack(walk, &instant->stack);
    }
    return status;
}

enum mt_status mt_kineto_set_stacks(struct mt_kineto *profile, struct mt_symbols *symbols)
{
    struct walk *walk = calloc(1, sizeof *walk);

    if (!walk)
        return MT_ERR_MEMORY;
    walk->profile = profile;
    walk->symbols = symbols;
    if (profile->range_count)
        qsort(profile->ranges, profile->range_count, sizeof *profile->ranges, by_thread_and_start);
    mt_kineto_sort(profile, by_thread_and_time);
    enum mt_status status = set_stacks(walk);
    mt_map_release(&walk->frames[0]);
    mt_map_release(&walk->frames[1]);
    free(walk);
    return status;
}

/* Blocks selected over time: all allocations of a run, growth from step to step, blocks kept by a
 * step. Streamed; grouped like a snapshot, except that phases of one name count as one, so it is
 * bounded by distinct stacks and sizes. A block is judged when it ends, because then it is known
 * whether it lived long enough. */
#include "model_feed.h"
#include "timeline_model.h"

#include <stdlib.h>
#include <string.h>

#include "analysis.h"
#include "grow.h"
#include "icicle.h"
#include "process_memory.h"
#include "trend.h"

/* Beyond this, new sizes of a stack are not distinguished. */
#define MANY_GROUPS 100000u

struct population_builder {
    const struct mt_report *report;
    struct mt_population *population;
    struct mt_map groups; /* hash -> row */
    struct mt_holding *rows;
    uint32_t count;
    size_t capacity;
    struct mt_strings names; /* of phases */
    int32_t *same_name;      /* phase -> the first one with its name; UNKNOWN: not looked up */
    int32_t *first_of_name;  /* by id of `names` */
};

enum { UNKNOWN = -2 };

/* Phases with the same name in pictures are one. */
static void same_name(struct population_builder *builder, int32_t *phase)
{
    const struct mt_report *report = builder->report;
    int32_t shown = mt_shown_phase(report->phases, report->phase_count, *phase);
    char backward = mt_phase_is_backward(report->phases, report->phase_count, *phase) ? 'b' : ' ';
    struct mt_buf name = {0};
    uint32_t before = builder->names.count, id;

    if (*phase < 0 || (uint32_t)*phase >= report->phase_count)
        return;
    if (builder->same_name[*phase] == UNKNOWN) {
        mt_buf_add_char(&name, backward);
        mt_buf_add_text(&name, shown == MT_NO_PHASE ? "" : report->phases[shown].name);
        mt_strings_put(&builder->names, name.data, name.length, &id);
        mt_buf_release(&name);
        if (id == before)
            builder->first_of_name[id] = *phase;
        builder->same_name[*phase] = builder->first_of_name[id];
    }
    *phase = builder->same_name[*phase];
}

static bool is_same(const struct mt_holding *a, const struct mt_holding *b)
{
    return a->stack == b->stack && a->tied == b->tied && a->tie == b->tie && a->phase == b->phase &&
           a->role == b->role && a->block_bytes == b->block_bytes;
}

static uint64_t hash_of(const struct mt_holding *row)
{
    uint64_t hash = mt_hash_u64((uint64_t)row->stack << 32 | row->tied);

    hash = mt_hash_u64(hash ^ (uint64_t)(uint32_t)row->phase << 16 ^ (uint64_t)row->tie << 8 ^
                       (uint64_t)row->role);
    return mt_hash_u64(hash ^ row->block_bytes);
}

static void add_row(struct population_builder *builder, const struct mt_holding *row)
{
    mt_grow_to(&builder->rows, &builder->capacity, builder->count + (size_t)1,
               sizeof *builder->rows);
    builder->rows[builder->count++] = *row;
}

static void count_in(struct population_builder *builder, const struct mt_holding *row)
{
    uint64_t key = hash_of(row);

    for (;; key++) {
        uint32_t found = mt_map_get(&builder->groups, key);
        if (found == MT_MAP_NONE)
            break;
        if (is_same(&builder->rows[found], row)) {
            builder->rows[found].blocks++;
            builder->rows[found].bytes += row->bytes;
            builder->rows[found].requested_bytes += row->requested_bytes;
            return;
        }
    }
    add_row(builder, row);
    mt_map_put(&builder->groups, key, builder->count - 1);
}

static void take(void *context, const struct mt_block_life *life, struct mt_block_end end)
{
    struct population_builder *builder = context;
    struct mt_population *population = builder->population;
    struct mt_holding row = mt_holding_of(life);

    if (life->initial || life->birth_event < population->from_event ||
        life->birth_event >= population->until_event || end.event <= population->alive_event)
        return;
    population->bytes += row.bytes;
    population->requested_bytes += row.requested_bytes;
    population->blocks++;
    same_name(builder, &row.phase);
    if (builder->count >= MANY_GROUPS)
        row.block_bytes = 0;
    count_in(builder, &row);
}

/* The steps that the device's history covers, in order. */
struct steps {
    const struct mt_phase **list;
    uint32_t count;
};

static void find_steps(const struct mt_analysis *analysis, uint32_t slot, struct steps *steps)
{
    const struct mt_report *report = analysis->report;
    bool middle = analysis->source->header.starts_in_middle;
    uint64_t first = middle ? analysis->survey.devices[slot].first_event : 0;

    steps->list = mt_memory_zeroed((size_t)report->phase_count + 1, sizeof *steps->list);
    for (uint32_t i = 0; i < report->phase_count; i++)
        if (report->phases[i].is_step &&
            mt_phase_last_event_before(&report->phases[i]) + 1 >= first)
            steps->list[steps->count++] = &report->phases[i];
}

static void born_in(struct mt_population *population, const struct mt_phase *first,
                    const struct mt_phase *behind)
{
    population->from_event = mt_phase_last_event_before(first) + 1;
    population->until_event = mt_phase_last_event_before(behind) + 1;
}

/* It is still unknown what the last two steps leave behind. */
static void look_for_growth(struct mt_population *population, const struct steps *steps)
{
    uint32_t first = mt_warm_up_steps(steps->count);

    population->missing = steps->count < first + 3;
    if (population->missing)
        return;
    born_in(population, steps->list[first], steps->list[steps->count - 2]);
    population->alive_event = mt_phase_last_event_before(steps->list[steps->count - 1]);
    population->first_step = steps->list[first]->step;
    population->last_step = steps->list[steps->count - 3]->step;
}

/* For the requested step, otherwise for the last step that another one follows. */
static void look_for_kept(struct mt_population *population, const struct steps *steps,
                          const struct mt_window_request *request)
{
    population->missing = true;
    for (uint32_t i = 0; i + 1 < steps->count; i++) {
        if (request->has_step && steps->list[i]->step != request->step)
            continue;
        population->missing = false;
        born_in(population, steps->list[i], steps->list[i + 1]);
        population->alive_event = mt_phase_last_event_before(steps->list[i + 1]);
        population->first_step = population->last_step = steps->list[i]->step;
    }
}

static void look_for_allocated(struct mt_population *population, const struct mt_analysis *analysis,
                               uint32_t slot)
{
    const struct mt_window_request *request = &analysis->options->window;

    population->until_event = UINT64_MAX;
    if (!request->has_step && !request->phase)
        return;
    struct mt_model_window window = mt_model_window(analysis, slot);
    population->missing = window.missing;
    population->from_event = window.begin_event;
    population->until_event = window.missing ? 0 : window.end_event + 1;
    population->first_step = population->last_step = window.step;
    population->phase = window.phase;
}

static void choose_blocks(struct mt_population *population, const struct mt_analysis *analysis,
                          uint32_t slot)
{
    struct steps steps = {0};

    find_steps(analysis, slot, &steps);
    population->of = analysis->options->population;
    population->first_step = population->last_step = MT_NO_STEP;
    population->phase = MT_NO_PHASE;
    if (population->of == MT_POPULATION_GREW)
        look_for_growth(population, &steps);
    else if (population->of == MT_POPULATION_KEPT)
        look_for_kept(population, &steps, &analysis->options->window);
    else
        look_for_allocated(population, analysis, slot);
    free(steps.list);
}

static void release(void *context)
{
    struct population_builder *builder = context;

    if (!builder)
        return;
    mt_map_release(&builder->groups);
    mt_strings_release(&builder->names);
    free(builder->rows);
    free(builder->same_name);
    free(builder->first_of_name);
    free(builder);
}

static enum mt_status begin(struct mt_analysis *analysis, uint32_t slot, struct mt_model_feed *feed)
{
    const struct mt_report *report = analysis->report;
    struct population_builder *builder = mt_memory_zeroed(1, sizeof *builder);
    size_t phases = (size_t)report->phase_count + 1;

    *feed = (struct mt_model_feed){.builder = builder, .on_end = take, .release = release};
    builder->report = report;
    builder->population = mt_arena_alloc(&analysis->report->arena, sizeof *builder->population);
    builder->same_name = mt_memory_new(phases * sizeof *builder->same_name);
    builder->first_of_name = mt_memory_new(phases * sizeof *builder->first_of_name);
    for (size_t i = 0; i < phases; i++)
        builder->same_name[i] = UNKNOWN;
    choose_blocks(builder->population, analysis, slot);
    return MT_OK;
}

static enum mt_status finish(struct mt_analysis *analysis, void *context,
                             struct mt_device_report *out)
{
    struct population_builder *builder = context;
    struct mt_population *population = builder->population;

    population->holdings = mt_arena_array(&analysis->report->arena, (size_t)builder->count + 1,
                                          sizeof *population->holdings);
    if (builder->count)
        memcpy(population->holdings, builder->rows, builder->count * sizeof *builder->rows);
    population->holding_count = builder->count;
    out->population = population;
    return MT_OK;
}

const struct mt_model_ops mt_model_population = {.begin = begin, .finish = finish};

/* A question about one instant: the answer from both passes, and the live blocks in the requested
 * groups. */
#include <stdlib.h>
#include <string.h>

#include "analysis.h"
#include "attributed.h"
#include "heaps.h"
#include "process_memory.h"
#include "pytorch_config.h"
#include "question.h"
#include "report.h"
#include "sorted.h"
#include "survey.h"
#include "tag_members.h"
#include "units.h"

/* The rows of an answer: a whole snapshot, grouped.
 *
 * Live blocks of an instant in the requested groups. */

enum { MAX_STACK_TEXT = 400 };

/* Blocks without a stack are distinguished like sites. */
static int by_stack(const void *a, const void *b)
{
    const struct mt_attributed *x = a, *y = b;

    if (x->stack != y->stack)
        return x->stack < y->stack ? -1 : 1;
    return x->stack == MT_NO_ID ? mt_attributed_by_source(a, b) : 0;
}

MT_DEFINE_ORDER(by_role, struct mt_attributed, MT_ASCENDING(role))
MT_DEFINE_ORDER(by_birth, struct mt_attributed, MT_ASCENDING(birth))
MT_DEFINE_ORDER(by_block_size, struct mt_attributed, MT_ASCENDING(block_bytes))
MT_DEFINE_ORDER(by_tag, struct mt_attributed, MT_ASCENDING(tag_id))

/* Each group takes its words from its largest holding. */
static size_t merge_live(struct mt_attributed *rows, size_t count,
                         int (*order)(const void *, const void *))
{
    size_t kept = 0;

    qsort(rows, count, sizeof *rows, order);
    for (size_t i = 0; i < count; i++) {
        struct mt_attributed *group = kept ? &rows[kept - 1] : NULL, row = rows[i];

        if (!group || order(group, &row) != 0) {
            rows[kept++] = row;
            continue;
        }
        if (row.largest > group->largest) {
            row = *group;
            *group = rows[i];
        }
        mt_attributed_absorb(group, &row);
    }
    return kept;
}

MT_DEFINE_ORDER(by_live_size, struct mt_attributed,
                MT_THEN(mt_attributed_by_size) || MT_THEN(by_birth) || MT_THEN(by_block_size) ||
                    MT_THEN(by_tag))

static int (*const orders[MT_GROUP_BY_COUNT])(const void *, const void *) = {
    [MT_BY_SITE] = mt_attributed_by_source,
    [MT_BY_STACK] = by_stack,
    [MT_BY_ROLE] = by_role,
    [MT_BY_PHASE] = by_birth,
    [MT_BY_SIZE] = by_block_size,
    [MT_BY_MODULE] = mt_attributed_by_source,
    [MT_BY_TAG] = by_tag};

/* "cross_entropy functional.py:3504 < train train.py:77 < main train.py:120"; the inner part of
 * very deep ones. */
static const char *stack_label(const struct mt_attribution *attribution,
                               const struct mt_attributed *row)
{
    const struct mt_symbols *symbols = attribution->symbols;
    uint32_t stack = row->stack;
    const char *label = NULL;

    for (; stack < symbols->stack_count; stack = symbols->stacks[stack].parent) {
        uint32_t frame = symbols->stacks[stack].frame;

        if (mt_site_table_is_plumbing(&attribution->sites, frame))
            continue;
        if (label && strlen(label) > MAX_STACK_TEXT)
            return mt_arena_printf(attribution->arena, "%s < …", label);
        const char *name = mt_frame_label(attribution->arena, symbols, frame);
        if (label)
            name = mt_arena_printf(attribution->arena, "%s < %s", label, name);
        label = name;
    }
    return label ? label : mt_attributed_site(attribution, row);
}

static const char *live_label(const struct mt_attribution *attribution,
                              const struct mt_attributed *row, enum mt_group_by by)
{
    char text[MT_UNITS_TEXT];

    switch (by) {
    case MT_BY_SITE: return mt_attributed_site(attribution, row);
    case MT_BY_STACK: return stack_label(attribution, row);
    case MT_BY_ROLE: return mt_role_name(row->role);
    case MT_BY_TAG: return row->tag;
    case MT_BY_MODULE:
    case MT_BY_PHASE: break;
    case MT_BY_SIZE:
        return mt_arena_printf(attribution->arena, "%s B", mt_format_count(text, row->block_bytes));
    }
    if (row->birth != MT_NO_PHASE)
        return attribution->phases->phases[row->birth].path;
    return row->initial ? "before the trace starts" : "no phase";
}

static void fill_live(const struct mt_attribution *attribution, const struct mt_attributed *row,
                      enum mt_group_by by, struct mt_live_row *out)
{
    *out = (struct mt_live_row){.label = live_label(attribution, row, by),
                                .site = mt_attributed_site(attribution, row),
                                .operation = mt_attributed_operation(attribution, row),
                                .stack = row->stack,
                                .tied = row->tied,
                                .tie = row->tie,
                                .phase = row->several_phases ? NULL : row->phase,
                                .step = row->several_phases ? MT_NO_STEP : row->step,
                                .role = row->role,
                                .several_roles = row->several_roles,
                                .block_bytes = row->block_bytes,
                                .bytes = (uint64_t)row->bytes,
                                .requested_bytes = row->requested_bytes,
                                .blocks = (uint64_t)row->blocks};
}

/* Each tag is read once. Comparisons of ids do not depend on the length of tags. */
static void add_tags(const struct mt_attribution *attribution, const struct mt_snapshot *snapshot,
                     const char *member, struct mt_attributed *rows)
{
    struct mt_map first = {0}; /* tag -> row that has it */
    struct mt_strings groups = {0};

    for (uint32_t i = 0; i < snapshot->holding_count; i++) {
        uint32_t tag = snapshot->holdings[i].tag, like = mt_map_get(&first, tag);

        if (like == MT_MAP_NONE) {
            rows[i].tag = mt_tag_group(attribution->arena, attribution->symbols, tag, member);
            mt_strings_put(&groups, rows[i].tag, strlen(rows[i].tag), &rows[i].tag_id);
            mt_map_put(&first, tag, i);
        } else {
            rows[i].tag = rows[like].tag;
            rows[i].tag_id = rows[like].tag_id;
        }
    }
    mt_strings_release(&groups);
    mt_map_release(&first);
}

/* Groups a whole snapshot into the answer's rows, which sum to it. Sites are as fine as in
 * mt_attribute_change. `most`: limit of told_count, 0 = all. */
static void attribute_live(struct mt_attribution *attribution, const struct mt_snapshot *snapshot,
                           const struct mt_question *question, uint32_t most,
                           struct mt_answer *answer)
{
    size_t count = snapshot->holding_count;
    struct mt_attributed *rows = mt_memory_zeroed(count + 1, sizeof *rows);

    for (size_t i = 0; i < count; i++)
        rows[i] = mt_attributed_of(attribution, &snapshot->holdings[i]);
    if (question->by == MT_BY_TAG)
        add_tags(attribution, snapshot, question->member, rows);
    count = merge_live(rows, count, orders[question->by]);
    qsort(rows, count, sizeof *rows, by_live_size);
    answer->told_count = (uint32_t)(most ? mt_attributed_worth(rows, count, most) : count);
    answer->row_count = (uint32_t)count;
    answer->rows = mt_arena_array(attribution->arena, count + 1, sizeof *answer->rows);
    for (size_t i = 0; i < count; i++)
        fill_live(attribution, &rows[i], question->by, &answer->rows[i]);
    free(rows);
}

#define MAX_TOLD 12 /* like the tables of the whole report */

static bool is_watched(const struct mt_watch *watch)
{
    return watch->question &&
           (watch->question->at == MT_AT_TIME || watch->question->at == MT_AT_EVENT);
}

static uint64_t time_of(const struct mt_survey *survey, uint64_t t_ns)
{
    return t_ns > survey->first_t_ns ? t_ns - survey->first_t_ns : 0;
}

/* A time is from value - half_ns until value + half_ns, without the end. */
static bool is_before(const struct mt_question *question, const struct mt_survey *survey,
                      uint64_t t_ns)
{
    return question->at == MT_AT_TIME &&
           mt_add_most_u64(time_of(survey, t_ns), question->half_ns) < question->value;
}

/* Whether the state after the last event lasts for a part of that time, until this event. */
static bool is_within(const struct mt_watch *watch, const struct mt_survey *survey, uint64_t t_ns)
{
    const uint64_t half_ns = watch->question->half_ns;

    return half_ns && (!is_before(watch->question, survey, watch->t_ns) ||
                       mt_add_most_u64(time_of(survey, t_ns), half_ns) > watch->question->value);
}

static bool is_beyond(const struct mt_question *question, const struct mt_survey *survey,
                      uint64_t t_ns, uint64_t event)
{
    if (question->at == MT_AT_EVENT)
        return event > question->value;
    t_ns = time_of(survey, t_ns);
    return t_ns > question->value && t_ns - question->value >= mt_max_u64(question->half_ns, 1);
}

/* Takes the state after the last event on devices where it is higher than what was taken. */
static void take(struct mt_watch *watch, const struct mt_survey *survey)
{
    const uint32_t known = watch->device_count, count = survey->device_count;
    struct mt_instant now = {.t_ns = watch->t_ns, .event = watch->event};

    watch->phase = now.phase = mt_phases_current(&survey->phases, watch->last_thread);
    if (!watch->chosen || count > known)
        watch->chosen = mt_memory_resize(watch->chosen, (count + 1) * sizeof *watch->chosen);
    for (uint32_t i = 0; i < count; i++) {
        now.bytes = survey->devices[i].now;
        if (i >= known || now.bytes.allocated > watch->chosen[i].bytes.allocated)
            watch->chosen[i] = now;
    }
    watch->device_count = count;
}

void mt_watch_event(struct mt_watch *watch, const struct mt_survey *survey,
                    const struct mt_event *event)
{
    bool initial = event->flags & MT_EVENT_INITIAL;

    if (!is_watched(watch) || watch->passed)
        return;
    if (!initial && survey->events && event->seq != watch->event) { /* not within one event */
        watch->passed = is_beyond(watch->question, survey, event->t_ns, event->seq);
        if (watch->passed || is_within(watch, survey, event->t_ns))
            take(watch, survey);
        if (watch->passed)
            return;
    }
    watch->event = event->seq;
    watch->t_ns = event->t_ns;
    watch->last_thread = event->thread;
}

static void at_end(const struct mt_survey *survey, const struct mt_survey_device *device,
                   struct mt_answer *answer)
{
    answer->instant = (struct mt_instant){.t_ns = survey->last_t_ns,
                                          .event = survey->last_event,
                                          .phase = MT_NO_PHASE,
                                          .bytes = device->now};
}

void mt_watch_finish(struct mt_watch *watch, const struct mt_survey *survey)
{
    const struct mt_question *question = watch->question;
    bool at_end = is_watched(watch) && !watch->passed &&
                  (question->at == MT_AT_TIME || question->value == survey->last_event) &&
                  !is_before(question, survey, survey->last_t_ns);

    if (at_end)
        take(watch, survey);
    watch->passed |= at_end;
}

void mt_watch_release(struct mt_watch *watch)
{
    free(watch->chosen);
    memset(watch, 0, sizeof *watch);
}

static struct mt_instant at_high(const struct mt_high *high)
{
    return (struct mt_instant){
        .t_ns = high->t_ns, .event = high->event, .phase = high->phase, .bytes = high->then};
}

static void at_oom(const struct mt_survey_device *device, struct mt_answer *answer)
{
    const struct mt_oom *oom = NULL;

    for (uint32_t i = 0; i < device->oom_count && !(oom && oom->fatal); i++)
        oom = &device->oom_list[i];
    if (!oom)
        answer->missing = MT_NO_OOM;
    else
        answer->instant = (struct mt_instant){
            .t_ns = oom->t_ns, .event = oom->event, .phase = oom->phase, .bytes = oom->then};
}

static void at_watched(const struct mt_watch *watch, uint32_t slot, struct mt_answer *answer)
{
    if (!watch->passed) {
        answer->missing = MT_BEYOND_END;
        return;
    }
    if (slot < watch->device_count)
        answer->instant = watch->chosen[slot];
    else /* the device had no event yet */
        answer->instant =
            (struct mt_instant){.t_ns = watch->t_ns, .event = watch->event, .phase = watch->phase};
}

static struct mt_instant in_phase(const struct mt_phases *phases,
                                  const struct mt_survey_device *device, int32_t index)
{
    const struct mt_phase *phase = &phases->phases[index];

    if (phase->end_event < device->first_event) /* the device was not used yet */
        return (struct mt_instant){
            .t_ns = phase->begin_t_ns, .event = mt_phase_last_event_before(phase), .phase = index};
    return (struct mt_instant){.t_ns = device->uses[index].peak_allocated_t_ns,
                               .event = device->uses[index].peak_allocated_event,
                               .phase = device->befores[index].then_phase,
                               .bytes = device->befores[index].then};
}

/* Among several instances, the one with the largest peak, and the first among equal peaks. */
static void at_phase(const struct mt_watch *watch, const struct mt_survey *survey,
                     const struct mt_survey_device *device, struct mt_answer *answer)
{
    const struct mt_phases *phases = &survey->phases;
    uint64_t most = 0;
    int32_t chosen = MT_NO_PHASE;

    answer->missing = MT_NO_SUCH_PHASE;
    for (uint32_t i = 0; i < phases->count; i++) {
        const struct mt_phase *phase = &phases->phases[i];

        if (!mt_phase_path_matches(phase->path, watch->question->phase))
            continue;
        if (answer->missing == MT_NO_SUCH_PHASE)
            answer->missing = MT_NOT_IN_HISTORY;
        answer->selected_count++;
        if (survey->source->header.starts_in_middle && phase->end_event < device->first_event)
            continue;
        if (chosen == MT_NO_PHASE || device->uses[i].peak.allocated > most) {
            chosen = (int32_t)i;
            most = device->uses[i].peak.allocated;
            answer->selected_number = answer->selected_count - 1;
        }
    }
    if (chosen == MT_NO_PHASE)
        return;
    answer->missing = MT_ANSWERED;
    answer->selected_phase = chosen;
    answer->instant = in_phase(phases, device, chosen);
}

void mt_question_resolve(const struct mt_watch *watch, struct mt_survey *survey, uint32_t slot,
                         struct mt_answer *answer)
{
    struct mt_survey_device *device = &survey->devices[slot];

    *answer = (struct mt_answer){.question = watch->question, .selected_phase = MT_NO_PHASE};
    answer->instant.phase = MT_NO_PHASE;
    switch (watch->question->at) {
    case MT_AT_PEAK:
        answer->instant = at_high(mt_peak_windows_since(&device->high[MT_HIGH_ALLOCATED], 0));
        break;
    case MT_AT_RESERVED_PEAK:
        answer->instant = at_high(mt_peak_windows_since(&device->high[MT_HIGH_RESERVED], 0));
        break;
    case MT_AT_OOM: at_oom(device, answer); break;
    case MT_AT_END: at_end(survey, device, answer); break;
    case MT_AT_TIME:
    case MT_AT_EVENT: at_watched(watch, slot, answer); break;
    case MT_AT_PHASE: at_phase(watch, survey, device, answer); break;
    }
    answer->instant.kind = MT_INSTANT_ASKED;
    answer->instant.step = MT_NO_STEP;
    if (answer->instant.phase != MT_NO_PHASE)
        answer->instant.step = survey->phases.phases[answer->instant.phase].step;
}

void mt_question_answer(const struct mt_question *question, struct mt_attribution *attribution,
                        const struct mt_snapshot *snapshot, struct mt_answer *answer)
{
    answer->instant.holdings = snapshot->holdings;
    answer->instant.holding_count = snapshot->holding_count;
    answer->waiting_blocks = snapshot->waiting_blocks;
    answer->waiting_bytes = snapshot->waiting_bytes;
    answer->waiting_requested_bytes = snapshot->waiting_requested_bytes;
    if (question->by == MT_BY_MODULE)
        return;
    attribute_live(attribution, snapshot, question,
                   question->all || question->by == MT_BY_ROLE ? 0 : MAX_TOLD, answer);
}

/* Which row a segment belongs to. */
struct free_key {
    uint32_t stream;
    uint16_t pool;
    bool is_small, is_empty;
};

/* PyTorch takes segments of 2 MiB for blocks up to 1 MiB, and larger ones for all others. */
static struct free_key free_key_of(const struct mt_pin_segment *segment)
{
    bool is_small = segment->served_bytes ? segment->served_bytes <= MT_PYTORCH_SMALL_LIMIT
                                          : segment->bytes <= MT_PYTORCH_SMALL_SEGMENT;

    return (struct free_key){segment->stream, segment->pool, is_small,
                             segment->free_bytes == segment->bytes};
}

static int by_free_key(const void *a, const void *b)
{
    const struct free_key x = free_key_of(a), y = free_key_of(b);

    if (x.pool != y.pool)
        return x.pool < y.pool ? -1 : 1;
    if (x.stream != y.stream)
        return x.stream < y.stream ? -1 : 1;
    if (x.is_small != y.is_small)
        return x.is_small ? 1 : -1;
    return (int)x.is_empty - (int)y.is_empty;
}

/* Numbers of streams and pools, not addresses: rows of two runs match by their labels. */
static const char *free_label(struct mt_arena *arena, const struct mt_source *source,
                              struct free_key key)
{
    const struct mt_symbols *symbols = &source->symbols;
    const uint64_t *id = key.pool < symbols->pool_count ? symbols->pools[key.pool].id : NULL;
    const char *heap = mt_heap_name(symbols, source->view.heap);
    struct mt_buf text = {0};

    mt_buf_printf(&text, "%s %ssegments", key.is_empty ? "empty" : "free in",
                  strcmp(heap, "pytorch") != 0 ? ""
                  : key.is_small               ? "small "
                                               : "large ");
    if (key.stream < symbols->stream_count && symbols->streams[key.stream].handle)
        mt_buf_printf(&text, ", stream %u", (unsigned)key.stream);
    if (key.pool)
        mt_buf_printf(&text, ", private pool (%llu, %llu)", (unsigned long long)(id ? id[0] : 0),
                      (unsigned long long)(id ? id[1] : 0));
    const char *label = mt_arena_printf(arena, "%s", text.data);
    mt_buf_release(&text);
    return label;
}

void mt_question_free_uses(struct mt_arena *arena, const struct mt_source *source,
                           const struct mt_pins *pins, struct mt_answer *answer)
{
    const struct mt_bytes *bytes = &answer->instant.bytes;
    uint64_t reserved = 0, unused = 0;

    answer->free_uses =
        mt_arena_array(arena, (size_t)pins->segment_count + 1, sizeof *answer->free_uses);
    if (pins->segment_count)
        qsort(pins->segments, pins->segment_count, sizeof *pins->segments, by_free_key);
    for (uint32_t i = 0; i < pins->segment_count; i++) {
        const struct mt_pin_segment *segment = &pins->segments[i];

        if (!i || by_free_key(&segment[-1], segment))
            answer->free_uses[answer->free_use_count++] =
                (struct mt_free_use){.label = free_label(arena, source, free_key_of(segment))};
        answer->free_uses[answer->free_use_count - 1].segments++;
        answer->free_uses[answer->free_use_count - 1].bytes += segment->free_bytes;
        reserved += segment->bytes;
        unused += segment->free_bytes;
    }
    if (reserved == bytes->reserved && unused == bytes->reserved - bytes->active)
        return;
    answer->free_uses[0] =
        (struct mt_free_use){"free in segments", 0, bytes->reserved - bytes->active};
    answer->free_use_count = bytes->reserved > bytes->active;
}

/* Steps of a record: those that the recording covers, by number. A program may count from 0 in each
 * epoch; then they are numbered here from 0 to the last, so that each number is unique. */
#include "report_query.h"
#include "summarize_parts.h"
#include "util.h"

struct step_numbers {
    const struct mt_step_use *steps;
    uint32_t count;
    bool is_counted; /* the program's numbers do not ascend */
};

static struct step_numbers numbers_of(const struct mt_summarizing *work)
{
    uint32_t first = mt_first_step(work->report, work->device);
    struct step_numbers numbers = {.steps = work->device->steps + first,
                                   .count = work->device->step_count - first};

    for (uint32_t i = 1; i < numbers.count; i++)
        numbers.is_counted |= numbers.steps[i].step <= numbers.steps[i - 1].step;
    return numbers;
}

static int64_t number_at(const struct step_numbers *numbers, uint32_t i)
{
    return numbers->is_counted ? (int64_t)i : numbers->steps[i].step;
}

/* For an instant in the step with the program's number `step`. */
static int64_t number_of(const struct mt_report *report, const struct step_numbers *numbers,
                         int64_t step, uint64_t event)
{
    if (!numbers->is_counted || step == MT_NO_STEP)
        return step;
    for (uint32_t i = numbers->count; i-- > 0;)
        if (mt_step_begin(report, &numbers->steps[i]) <= event &&
            event <= numbers->steps[i].end_event)
            return (int64_t)i;
    return MT_NO_STEP;
}

static void absorb(struct mt_record_step *into, const struct mt_step_use *step, int64_t number)
{
    into->last = number;
    into->end_t_ns = step->end_t_ns;
    into->allocated_peak_bytes = mt_max_u64(into->allocated_peak_bytes, step->peak.allocated);
    into->reserved_peak_bytes = mt_max_u64(into->reserved_peak_bytes, step->peak.reserved);
    into->end_allocated_bytes = step->exit.allocated;
}

static void fill_steps(struct mt_rank_record *record, const struct step_numbers *numbers)
{
    uint32_t share = numbers->count / MT_RECORD_STEPS + (numbers->count % MT_RECORD_STEPS != 0);

    for (uint32_t i = 0; i < numbers->count; i++) {
        struct mt_record_step *out = &record->steps[i / share];
        int64_t number = number_at(numbers, i);

        if (i % share == 0) {
            out->first = number;
            out->begin_t_ns = numbers->steps[i].begin_t_ns;
            record->step_count++;
        }
        absorb(out, &numbers->steps[i], number);
    }
}

static void fill_peak(const struct mt_summarizing *work, const struct step_numbers *numbers,
                      const struct mt_peak *peak, struct mt_record_peak *out)
{
    *out = (struct mt_record_peak){peak->bytes, peak->t_ns, peak->event,
                                   number_of(work->report, numbers, peak->step, peak->event)};
}

enum mt_status mt_summarize_steps(const struct mt_summarizing *work)
{
    const struct mt_device_report *device = work->device;
    struct mt_rank_record *record = work->record;
    struct step_numbers numbers = numbers_of(work);

    record->steps = mt_arena_array(work->arena, MT_RECORD_STEPS, sizeof *record->steps);
    fill_steps(record, &numbers);
    record->last_step = numbers.count ? number_at(&numbers, numbers.count - 1) : MT_NO_STEP;
    fill_peak(work, &numbers, &device->requested_peak, &record->requested_peak);
    fill_peak(work, &numbers, &device->allocated_peak, &record->allocated_peak);
    fill_peak(work, &numbers, &device->active_peak, &record->active_peak);
    fill_peak(work, &numbers, &device->reserved_peak, &record->reserved_peak);
    return MT_OK;
}

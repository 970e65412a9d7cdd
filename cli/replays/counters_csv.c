/* A failed write ends the replay. mt_counters_csv_close reports it, because the replay knows only
 * the name of the trace. */
#include "counters_csv.h"

static void add_header(struct mt_counters_csv *csv)
{
    static const char header[] =
        "event,t_ns,device,requested,allocated,active,reserved,inactive_split\n";

    (void)mt_output_add(&csv->output, header, sizeof header - 1);
}

int mt_counters_csv_open(struct mt_counters_csv *csv, const char *path,
                         const struct mt_outputs *outputs)
{
    struct mt_error error = {.offset = MT_NO_OFFSET};

    *csv = (struct mt_counters_csv){.path = path,
                                    .rules = mt_output_rules_of(outputs, &mt_file_counters)};
    if (mt_output_open(&csv->output, path, &csv->rules, &error) != MT_OK)
        return mt_report_output_error(path, &error);
    add_header(csv);
    return MT_EXIT_OK;
}

static enum mt_status restart(void *context)
{
    struct mt_counters_csv *csv = context;

    (void)mt_output_restart(&csv->output);
    add_header(csv);
    return MT_OK;
}

static enum mt_status add_row(void *context, const struct mt_event *event,
                              const struct mt_replay_view *view)
{
    struct mt_counters_csv *csv = context;
    const struct mt_counters *counters = view->counters;
    const uint64_t cells[] = {event->seq,
                              event->t_ns,
                              event->device,
                              counters->requested.now,
                              counters->allocated.now,
                              counters->active.now,
                              counters->reserved.now,
                              counters->inactive_split.now};
    size_t i;

    if (!mt_event_is_memory(event) || (event->flags & MT_EVENT_INITIAL))
        return MT_OK;
    mt_buf_reset(&csv->row);
    for (i = 0; i < sizeof cells / sizeof cells[0]; i++) {
        if (i)
            mt_buf_add_char(&csv->row, ',');
        mt_buf_add_u64(&csv->row, cells[i]);
    }
    mt_buf_add_char(&csv->row, '\n');
    return mt_output_add(&csv->output, csv->row.data, csv->row.length) ? MT_OK : MT_END;
}

struct mt_replay_observer mt_counters_csv_observer(struct mt_counters_csv *csv)
{
    /* Output to a pipe cannot be taken back. */
    struct mt_replay_observer observer = {csv, add_row,
                                          csv->output.temporary.path ? restart : NULL};

    return observer;
}

int mt_counters_csv_close(struct mt_counters_csv *csv, int code)
{
    struct mt_error error = {.offset = MT_NO_OFFSET};

    mt_buf_release(&csv->row);
    if (code != MT_EXIT_OK && csv->output.failure.status == MT_OK)
        mt_output_abandon(&csv->output);
    else if (mt_output_finish(&csv->output, &error) != MT_OK)
        code = mt_report_output_error(csv->path, &error);
    return code;
}

#include "counters_csv.h"

#include <errno.h>
#include <unistd.h>

enum { FLUSH_BYTES = 256 * 1024 };

static void flush(struct mt_counters_csv *csv)
{
    if (csv->buffer.failed) {
        csv->failed = true;
        csv->error_number = ENOMEM;
    } else if (!csv->failed && csv->buffer.length &&
               fwrite(csv->buffer.data, 1, csv->buffer.length, csv->file) != csv->buffer.length) {
        csv->failed = true;
        csv->error_number = errno;
    }
    mt_buf_reset(&csv->buffer);
}

static void add_header(struct mt_counters_csv *csv)
{
    mt_buf_add_text(&csv->buffer,
                    "event,t_ns,device,requested,allocated,active,reserved,inactive_split\n");
}

bool mt_counters_csv_open(struct mt_counters_csv *csv, const char *path)
{
    *csv = (struct mt_counters_csv){.file = fopen(path, "w")};
    if (!csv->file)
        return false;
    csv->can_restart = fseek(csv->file, 0, SEEK_SET) == 0; /* not into a pipe */
    add_header(csv);
    return true;
}

static enum mt_status restart(void *context)
{
    struct mt_counters_csv *csv = context;

    flush(csv);
    rewind(csv->file);
    if (!csv->failed && (fflush(csv->file) != 0 || ftruncate(fileno(csv->file), 0) != 0)) {
        csv->failed = true;
        csv->error_number = errno;
    }
    add_header(csv);
    return csv->failed ? MT_ERR_OUTPUT : MT_OK;
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
    for (i = 0; i < sizeof cells / sizeof cells[0]; i++) {
        if (i)
            mt_buf_add_char(&csv->buffer, ',');
        mt_buf_add_u64(&csv->buffer, cells[i]);
    }
    mt_buf_add_char(&csv->buffer, '\n');
    if (csv->buffer.length >= FLUSH_BYTES || csv->buffer.failed)
        flush(csv);
    return csv->failed ? MT_ERR_OUTPUT : MT_OK;
}

struct mt_replay_observer mt_counters_csv_observer(struct mt_counters_csv *csv)
{
    struct mt_replay_observer observer = {csv, add_row, csv->can_restart ? restart : NULL};

    return observer;
}

bool mt_counters_csv_close(struct mt_counters_csv *csv)
{
    bool failed;

    if (!csv->file)
        return true;
    flush(csv);
    failed = csv->failed;
    if (fclose(csv->file) != 0 && !failed) {
        failed = true;
        csv->error_number = errno;
    }
    mt_buf_release(&csv->buffer);
    csv->file = NULL;
    errno = csv->error_number;
    return !failed;
}

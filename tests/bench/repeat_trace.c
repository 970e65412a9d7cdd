/* repeat_trace ONCE TWICE REPEATS OUT: a long trace from two short ones.
 *
 * TWICE is the trace of make_large.py with two repeats, ONCE that with one. The first repeat of
 * TWICE frees everything at its end, so these events can follow each other any number of times.
 * Steps are numbered on. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "trace.h"

struct period {
    struct mt_event *events;
    size_t count;
    uint64_t span_ns;
    unsigned steps;
};

static void check(enum mt_status status, const struct mt_error *error)
{
    if (status == MT_OK)
        return;
    fprintf(stderr, "repeat_trace: %s: %s\n", mt_status_text(status), error->text);
    exit(1);
}

/* Returns all events of a trace, without its end. */
static struct period load(struct mt_source *source)
{
    struct period all = {0};
    struct mt_event_batch batch;
    struct mt_error error = {0};
    enum mt_status status;

    while ((status = mt_source_next(source, &batch, &error)) == MT_OK) {
        all.events = realloc(all.events, (all.count + batch.count) * sizeof *all.events);
        if (!all.events)
            exit(1);
        for (size_t i = 0; i < batch.count; i++)
            if (batch.events[i].kind != MT_EVENT_END)
                all.events[all.count++] = batch.events[i];
    }
    check(status == MT_END ? MT_OK : status, &error);
    return all;
}

/* Returns whether an event names a step, and the step's number. */
static bool names_step(const struct mt_symbols *symbols, const struct mt_event *event,
                       unsigned *number)
{
    if ((event->kind != MT_EVENT_PHASE_PUSH && event->kind != MT_EVENT_PHASE_POP) ||
        event->name == MT_NO_ID)
        return false;
    return sscanf(mt_symbols_text(symbols, event->name), "step#%u", number) == 1;
}

static struct period first_repeat(struct mt_source *source, size_t last_count)
{
    struct period period = load(source);
    unsigned number;

    if (period.count <= last_count)
        exit(2);
    period.count -= last_count;
    period.span_ns = period.events[period.count].t_ns - period.events[0].t_ns;
    for (size_t i = 0; i < period.count; i++)
        if (names_step(&source->symbols, &period.events[i], &number) && number >= period.steps)
            period.steps = number + 1;
    return period;
}

static void write_repeat(struct mt_writer *writer, struct mt_symbols *symbols,
                         const struct period *period, uint64_t repeat)
{
    struct mt_error error = {0};
    char name[32];
    unsigned number;

    for (size_t i = 0; i < period->count; i++) {
        struct mt_event event = period->events[i];
        event.seq = repeat * period->count + i;
        event.t_ns += repeat * period->span_ns;
        if (repeat && names_step(symbols, &event, &number)) {
            int length = snprintf(name, sizeof name, "step#%llu",
                                  (unsigned long long)(number + repeat * period->steps));
            check(mt_symbols_string(symbols, name, (size_t)length, &event.name), &error);
        }
        check(mt_writer_add(writer, &event, &error), &error);
    }
}

int main(int argc, char **argv)
{
    struct mt_source *once = NULL, *twice = NULL;
    struct mt_writer *writer = NULL;
    struct mt_error error = {0};

    if (argc != 5)
        return 2;
    check(mt_trace_open(argv[1], &once, &error), &error);
    check(mt_trace_open(argv[2], &twice, &error), &error);
    struct period last = load(once);
    struct period period = first_repeat(twice, last.count);
    int fd = open(argv[4], O_CREAT | O_TRUNC | O_RDWR | O_CLOEXEC, 0600);
    if (fd < 0)
        return 1;
    check(mt_writer_new(fd, &twice->header, &twice->symbols, NULL, &writer, &error), &error);
    for (uint64_t repeat = 0; repeat < strtoull(argv[3], NULL, 10); repeat++)
        write_repeat(writer, &twice->symbols, &period, repeat);
    check(mt_writer_finish(writer, &error), &error);
    printf("%llu\n", strtoull(argv[3], NULL, 10) * (unsigned long long)period.count);
    mt_writer_free(writer);
    free(last.events);
    free(period.events);
    mt_source_close(once);
    mt_source_close(twice);
    return close(fd) ? 1 : 0;
}

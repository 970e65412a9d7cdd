/* bench_trace TRACE [EVENTS]: how fast the trace format is written and read.
 *
 * Repeats the events of TRACE in time until there are EVENTS of them (10
 * million), writes them to a file without a name, reads that file to the end;
 * the best of three rounds, in processor time of the one thread there is. The file
 * stays in the page cache. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "trace.h"

struct capture {
    struct mt_event *events;
    size_t count;
};

static double now_s(void)
{
    struct timespec now;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static void check(enum mt_status status, const struct mt_error *error)
{
    if (status == MT_OK)
        return;
    fprintf(stderr, "bench_trace: %s: %s\n", mt_status_text(status), error->text);
    exit(1);
}

static struct capture load(struct mt_source *source)
{
    struct capture capture = {NULL, 0};
    struct mt_event_batch batch;
    struct mt_error error = {0};

    while (mt_source_next(source, &batch, &error) == MT_OK) {
        capture.events =
            realloc(capture.events, (capture.count + batch.count) * sizeof *capture.events);
        for (size_t i = 0; i < batch.count; i++)
            if (batch.events[i].kind != MT_EVENT_END)
                capture.events[capture.count++] = batch.events[i];
    }
    return capture;
}

/* The capture again and again, each time a little later. */
static void write_repeated(struct mt_writer *writer, const struct capture *capture, uint64_t events)
{
    uint64_t span = capture->events[capture->count - 1].t_ns - capture->events[0].t_ns + 1000000;
    struct mt_error error = {0};

    for (uint64_t seq = 0; seq < events; seq++) {
        struct mt_event event = capture->events[seq % capture->count];
        event.seq = seq;
        event.t_ns += seq / capture->count * span;
        check(mt_writer_add(writer, &event, &error), &error);
    }
    check(mt_writer_finish(writer, &error), &error);
}

static double time_writing(int fd, const struct mt_source *like, const struct capture *capture,
                           uint64_t events)
{
    struct mt_writer *writer = NULL;
    struct mt_error error = {0};

    if (lseek(fd, 0, SEEK_SET) < 0 || ftruncate(fd, 0) < 0)
        exit(1);
    double begin = now_s();
    check(mt_writer_new(fd, &like->header, &like->symbols, NULL, &writer, &error), &error);
    write_repeated(writer, capture, events);
    mt_writer_free(writer);
    return now_s() - begin;
}

static double time_reading(int fd, uint64_t events)
{
    char path[32];
    struct mt_source *source = NULL;
    struct mt_event_batch batch;
    struct mt_error error = {0};
    uint64_t count = 0;
    double begin = now_s();

    snprintf(path, sizeof path, "/dev/fd/%d", fd);
    check(mt_trace_open(path, &source, &error), &error);
    while (mt_source_next(source, &batch, &error) == MT_OK)
        count += batch.count;
    if (count != events + 1 || source->integrity.frames_damaged)
        exit(1);
    mt_source_close(source);
    return now_s() - begin;
}

int main(int argc, char **argv)
{
    uint64_t events = argc > 2 ? strtoull(argv[2], NULL, 10) : 10000000;
    FILE *file = tmpfile();
    struct mt_source *source = NULL;
    struct mt_error error = {0};
    double write_s = 1e9, read_s = 1e9;

    if (argc < 2 || !file)
        return 2;
    check(mt_trace_open(argv[1], &source, &error), &error);
    struct capture capture = load(source);
    if (!capture.count || !events)
        return 2;
    for (int round = 0; round < 3; round++) {
        double seconds = time_writing(fileno(file), source, &capture, events);
        write_s = seconds < write_s ? seconds : write_s;
        seconds = time_reading(fileno(file), events);
        read_s = seconds < read_s ? seconds : read_s;
    }
    printf("%llu events, %.2f bytes an event; write %.1f ns an event, read %.1f million events/s\n",
           (unsigned long long)events, (double)lseek(fileno(file), 0, SEEK_END) / (double)events,
           write_s * 1e9 / (double)events, (double)events / read_s / 1e6);
    free(capture.events);
    mt_source_close(source);
    fclose(file);
    return 0;
}

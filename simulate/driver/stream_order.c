#define _GNU_SOURCE
#include "stream_order.h"

#include <dlfcn.h>
#include <stddef.h>
#include <string.h>

#include "note_file.h"
#include "pending_collectives.h"

enum {
    QUEUED_LAUNCHES = 1024, /* by CUDA, for each stream; the next launch waits */
    LAUNCHES_BETWEEN_CLOCKS = QUEUED_LAUNCHES / SIM_EARLIER_CLOCKS,
    /* If no stream waits for a side stream, only the launches of all streams show that time passes.
     * This number takes longer than any copy. */
    MOST_LAUNCHES = 16384,
    /* After this number of queries without a launch between them, the asker waits in a loop. The
     * allocator queries at each request, and may get thousands of requests before a launch. */
    PATIENCE = 16,
    PATIENCE_OF_ALLOCATOR = 4096
};

static struct sim_clock host;
/* Of streams that were destroyed: what each device still has to do. */
static struct sim_clock ended[SIM_ORDERED_DEVICES];
static uint64_t marks, launches;
static unsigned places;
/* For each place, the last mark when the allocator found an event not complete. */
static uint64_t put_off[SIM_ORDERED_STREAMS];

static struct sim_count blocks = {.subject = "blocks"};
static struct sim_count queries = {.subject = "queries"};
/* A query of the program was answered with "not ready", and nothing was launched since. */
static bool is_program_put_off;

static void join(struct sim_clock *clock, const struct sim_clock *other)
{
    for (unsigned i = 0; i < SIM_ORDERED_STREAMS; i++)
        clock->marks[i] = clock->marks[i] > other->marks[i] ? clock->marks[i] : other->marks[i];
}

/* Puts a mark behind everything that is in the stream, and returns the place of the stream. */
static unsigned mark(struct sim_stream_order *stream)
{
    if (stream->place == 0) {
        places += places < SIM_ORDERED_STREAMS;
        stream->place = places;
    }
    marks++;
    stream->now.marks[stream->place - 1] = marks;
    stream->has_unmarked = false;
    return stream->place - 1;
}

/* A stream without events needs no mark of its own, and none of the few places. */
static void mark_ordered(struct sim_stream_order *stream)
{
    if (stream->place != 0)
        mark(stream);
}

void sim_order_record(struct sim_stream_order *stream, struct sim_event_order *event)
{
    event->is_pending = !sim_releases_early();
    event->is_counted = false;
    event->place = mark(stream);
    event->clock = stream->now;
    event->recorded_at = launches;
    event->queries = 0;
}

static bool is_behind_host(const struct sim_event_order *event)
{
    return host.marks[event->place] >= event->clock.marks[event->place];
}

void sim_order_wait(struct sim_stream_order *stream, const struct sim_event_order *event)
{
    join(&stream->now, &event->clock);
    stream->has_unmarked |= event->is_pending && !is_behind_host(event);
}

void sim_order_launch(struct sim_stream_order *stream)
{
    launches++;
    sim_count_add(&queries, is_program_put_off);
    is_program_put_off = false;
    stream->launches++;
    stream->has_unmarked = true;
    if (stream->launches % LAUNCHES_BETWEEN_CLOCKS == 0) {
        unsigned at = stream->launches / LAUNCHES_BETWEEN_CLOCKS % SIM_EARLIER_CLOCKS;
        mark_ordered(stream);
        join(&host, &stream->earlier[at]); /* QUEUED_LAUNCHES ago */
        stream->earlier[at] = stream->now;
    }
}

void sim_order_finish_stream(struct sim_stream_order *stream)
{
    mark_ordered(stream);
    stream->has_unmarked = false;
    join(&host, &stream->now);
    is_program_put_off = false;
}

void sim_order_end_stream(struct sim_stream_order *stream, int device)
{
    mark_ordered(stream);
    join(&ended[device], &stream->now);
}

void sim_order_finish_ended(int device)
{
    join(&host, &ended[device]);
}

void sim_order_finish_event(struct sim_event_order *event)
{
    join(&host, &event->clock);
    event->is_pending = false;
    is_program_put_off = false;
}

static bool is_certainly_complete(const struct sim_event_order *event)
{
    return is_behind_host(event) || launches - event->recorded_at >= MOST_LAUNCHES;
}

static bool is_in_a_loop(struct sim_event_order *event, enum sim_asker asker)
{
    event->queries = event->queried_at == launches ? event->queries + 1 : 1;
    event->queried_at = launches;
    return event->queries >
           (unsigned)(asker == SIM_ASKER_ALLOCATOR ? PATIENCE_OF_ALLOCATOR : PATIENCE);
}

/* The allocator queries the oldest event of a stream only. If that one is not complete, the blocks
 * of all later ones wait. */
static void count_block(struct sim_event_order *event, bool is_put_off)
{
    if (is_put_off)
        put_off[event->place] = marks;
    if (!event->is_counted && event->clock.marks[event->place] <= put_off[event->place]) {
        sim_count_add(&blocks, 1);
        event->is_counted = true;
    }
}

bool sim_order_is_pending(struct sim_event_order *event, enum sim_asker asker)
{
    if (!event->is_pending)
        return false;
    bool is_complete = is_certainly_complete(event) || is_in_a_loop(event, asker);
    if (asker == SIM_ASKER_ALLOCATOR)
        count_block(event, !is_complete);
    if (is_complete && asker != SIM_ASKER_LIBRARY)
        sim_order_finish_event(event);
    if (is_complete) {
        /* Threads that pin memory query whenever data arrives. The allocator of the device must not
         * depend on that. */
        event->is_pending = false;
        return false;
    }
    is_program_put_off |= asker == SIM_ASKER_PROGRAM;
    return true;
}

bool sim_order_stream_is_pending(struct sim_stream_order *stream, enum sim_asker asker)
{
    struct sim_event_order *event = &stream->last_queried;
    if (stream->has_unmarked)
        mark(stream);
    if (stream->place == 0)
        return false; /* the host has waited for everything in it */
    if (memcmp(&event->clock, &stream->now, sizeof stream->now) != 0) {
        *event = (struct sim_event_order){.is_pending = !sim_releases_early(),
                                          .place = stream->place - 1,
                                          .clock = stream->now,
                                          .recorded_at = launches};
    }
    /* The allocator queries events only. Its library passes on the queries of the program. */
    return sim_order_is_pending(event, asker == SIM_ASKER_ALLOCATOR ? SIM_ASKER_PROGRAM : asker);
}

static enum sim_asker asker_of(const char *path)
{
    const char *name = strrchr(path, '/');
    name = name != NULL ? name + 1 : path;
    return strncmp(name, "libc10_cuda.", strlen("libc10_cuda.")) == 0       ? SIM_ASKER_ALLOCATOR
           : strncmp(name, "libtorch_cuda.", strlen("libtorch_cuda.")) == 0 ? SIM_ASKER_LIBRARY
                                                                            : SIM_ASKER_PROGRAM;
}

enum sim_asker sim_asker_at(const void *code)
{
    static __thread __attribute__((tls_model("initial-exec"))) struct {
        const void *code;
        enum sim_asker asker;
    } last;
    Dl_info library;
    if (last.code != code) {
        last.code = code;
        last.asker = dladdr(code, &library) != 0 && library.dli_fname != NULL
                         ? asker_of(library.dli_fname)
                         : SIM_ASKER_PROGRAM;
    }
    return last.asker;
}

__attribute__((destructor)) static void write_at_end(void)
{
    sim_count_end(&blocks);
    sim_count_end(&queries);
}

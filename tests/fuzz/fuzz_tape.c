/* A hostile tape, recovered: a sound skeleton (a tape that is none is refused at
 * once), with clock points, commits, events and definitions as the input says. The
 * trace that comes of it has to be whole. */
#define _XOPEN_SOURCE 700 /* nftw */
#include <fcntl.h>

#include "recover.h"
#include "scratch_folder.h"
#include "tape_file.h"
#include "trace.h"

enum { SLOTS = 16, USED_SLOTS = 2, LOG_BYTES = 1 << 16, PAGE_BYTES = 4096 };

struct tape_image {
    struct mt_tape head;
    struct mt_slot slots[USED_SLOTS];
    uint8_t log[LOG_BYTES];
};

static void set_clock(struct mt_tape *head, struct fuzz_input *input, unsigned shape)
{
    unsigned wide = shape & 1 ? 8 : 4;

    head->started_unix_ns = fuzz_number(input, wide);
    head->first_point.ticks = fuzz_number(input, wide);
    head->first_point.unix_ns = fuzz_number(input, wide);
    for (int i = 0; i < 2; i++) {
        head->last_points[i].ticks = fuzz_number(input, wide);
        head->last_points[i].unix_ns = fuzz_number(input, wide);
    }
    atomic_store(&head->last_point, (uint32_t)fuzz_number(input, 1));
}

static void set_commits(struct mt_tape *head, struct fuzz_input *input)
{
    for (int i = 0; i < 2; i++) {
        struct mt_tape_commit *commit = &head->commits[i];
        commit->trace_bytes = fuzz_number(input, 2);
        commit->next_raw = fuzz_number(input, 1);
        commit->events_written = fuzz_number(input, 1);
        commit->dropped_written = fuzz_number(input, 2);
        commit->last_t_ns = fuzz_number(input, 8);
        commit->part = fuzz_number(input, 1);
        commit->events_before = fuzz_number(input, 1);
        commit->part_before_events = fuzz_number(input, 1);
        /* has no byte of its own, so the corpus keeps its meaning */
        commit->began_t_ns = commit->events_before % 4 == 1 ? MT_TAPE_IDLE : 0;
    }
    atomic_store(&head->current_commit, (uint32_t)fuzz_number(input, 1));
}

static void add_event(struct tape_image *image, struct fuzz_input *input, uint64_t seq)
{
    unsigned shape = (unsigned)fuzz_number(input, 1);
    struct mt_slot *slot = &image->slots[shape & 1];
    uint32_t count = atomic_load(&slot->committed);
    struct mt_raw_event *event = &slot->events[count % MT_SLOT_EVENTS];

    event->seq = shape & 2 ? fuzz_number(input, 8) : seq;
    event->kind = (uint8_t)fuzz_number(input, 1);
    if (!(shape & 4))
        event->kind %= MT_EVENT_KIND_COUNT;
    event->ticks = fuzz_number(input, shape & 8 ? 8 : 2);
    event->addr = fuzz_number(input, shape & 16 ? 8 : 2);
    event->size_bytes = fuzz_number(input, shape & 32 ? 8 : 2);
    event->aux_bytes = fuzz_number(input, 1);
    event->stream = fuzz_number(input, 1);
    event->python_stack = (uint32_t)fuzz_number(input, 1);
    event->native_stack = (uint32_t)fuzz_number(input, 1);
    event->id = (uint32_t)fuzz_number(input, 1);
    event->heap = (uint8_t)fuzz_number(input, 1);
    event->device = (uint8_t)fuzz_number(input, 1);
    if (!(shape & 64))
        event->heap %= MT_RAW_HEAP_COUNT;
    atomic_store(&slot->committed, count + 1);
}

/* Kind, length, payload; ids count up unless the kind says otherwise. */
static uint64_t add_definition(struct tape_image *image, struct fuzz_input *input, uint64_t at,
                               uint32_t ids[MT_DEFINE_KIND_COUNT])
{
    struct mt_definition definition = {0};
    unsigned shape = (unsigned)fuzz_number(input, 1);
    size_t length = fuzz_number(input, 1), got;
    uint8_t *payload = fuzz_copy(input, length, &got);

    definition.kind = (shape & 15) % MT_DEFINE_KIND_COUNT;
    definition.id = shape & 128 ? shape : ++ids[definition.kind];
    definition.payload_bytes = (uint32_t)got + (shape & 64 ? 1000 : 0);
    memcpy(image->log + at, &definition, sizeof definition);
    memcpy(image->log + at + sizeof definition, payload, got);
    free(payload);
    return at + (sizeof definition + got + 7) / 8 * 8;
}

static void make_tape(struct tape_image *image, struct fuzz_input *input)
{
    uint32_t ids[MT_DEFINE_KIND_COUNT] = {0};
    unsigned shape = (unsigned)fuzz_number(input, 1), events = (unsigned)fuzz_number(input, 1);
    uint64_t at = 0;
    struct mt_tape *head = &image->head;

    head->magic = MT_TAPE_MAGIC;
    head->version = MT_TAPE_VERSION;
    head->slot_count = SLOTS;
    head->slots_offset = PAGE_BYTES;
    head->definitions_offset = PAGE_BYTES + SLOTS * (uint64_t)MT_SLOT_BYTES;
    head->definitions_capacity = LOG_BYTES;
    head->file_bytes = head->definitions_offset + LOG_BYTES;
    head->process_id = 4;
    head->recording_id = 1;
    head->locked = 1;
    set_clock(head, input, shape);
    if (shape & 2)
        set_commits(head, input);
    if (shape & 64)
        head->ring_ns = fuzz_number(input, 8);
    atomic_store(&head->closed, shape >> 2 & 1);
    atomic_store(&head->dropped_events, shape & 8 ? fuzz_number(input, 8) : 0);
    atomic_store(&head->next_seq, shape & 16 ? fuzz_number(input, 8) : events % 64);
    for (unsigned i = 0; i < USED_SLOTS; i++) {
        atomic_store(&image->slots[i].state, MT_SLOT_OPEN);
        image->slots[i].thread = (uint32_t)fuzz_number(input, 1);
    }
    for (unsigned i = 0; i < events % 64 && input->left; i++)
        add_event(image, input, i);
    if (shape & 32) /* more than there are */
        atomic_store(&image->slots[0].committed, (uint32_t)fuzz_number(input, 4));
    while (input->left && at < LOG_BYTES - 1024)
        at = add_definition(image, input, at, ids);
    atomic_store(&head->definitions_bytes, at);
}

static void write_at(int fd, const void *bytes, size_t length, uint64_t offset)
{
    FUZZ_CHECK(pwrite(fd, bytes, length, (off_t)offset) == (ssize_t)length);
}

static void write_tape(const char *path, const struct tape_image *image)
{
    int fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    uint64_t used = atomic_load(&image->head.definitions_bytes);

    FUZZ_CHECK(fd >= 0 && ftruncate(fd, (off_t)image->head.file_bytes) == 0);
    write_at(fd, &image->head, sizeof image->head, 0);
    write_at(fd, image->slots, sizeof image->slots, PAGE_BYTES);
    write_at(fd, image->log, used, image->head.definitions_offset);
    close(fd);
}

/* Every event of the new trace can be read, and it was closed in order. */
static void check_trace(const char *path, const struct mt_recovery *recovery)
{
    struct mt_event_batch batch;
    struct mt_source *source = NULL;
    struct mt_error error;
    uint64_t events = 0;

    FUZZ_CHECK(mt_trace_open(path, &source, &error) == MT_OK);
    while (mt_source_next(source, &batch, &error) == MT_OK)
        events += batch.count;
    FUZZ_CHECK(source->integrity.frames_damaged == 0 && source->integrity.closed);
    FUZZ_CHECK(events >= recovery->events_recovered);
    mt_source_close(source);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fuzz_input input = {data, size};
    struct tape_image *image = calloc(1, sizeof *image);
    char path[96], tape[128];
    struct mt_recovery recovery;
    struct mt_error error = {0};

    FUZZ_CHECK(image);
    snprintf(path, sizeof path, "%s/x.trace", scratch_folder());
    snprintf(tape, sizeof tape, "%s%s", path, MT_TAPE_SUFFIX);
    make_tape(image, &input);
    bool whole = atomic_load(&image->head.closed);
    write_tape(tape, image);
    if (mt_recover(path, NULL, &recovery, &error) != MT_OK)
        FUZZ_CHECK(error.text[0]);
    else if (!whole)
        check_trace(path, &recovery);
    (void)unlink(path);
    (void)unlink(tape);
    free(image);
    return 0;
}

/* make_bomb KIND N FILE: a well-formed trace that is made to cost its reader as much as possible.
 * N is the number of the things that the kind has many of. Without arguments: the kinds. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "trace.h"
#include "util.h"

#define BASE_ADDR  UINT64_C(0x100000000)
#define MAX_PHASES ((1u << 17) - 1) /* with 16 devices, all that an analysis follows */

struct bomb {
    struct mt_symbols symbols;
    struct mt_writer *writer;
    struct mt_error error;
    uint64_t next_seq, t_ns;
    uint32_t stack, heap; /* of the event before */
    uint64_t n;
};

static void must(struct bomb *bomb, enum mt_status status)
{
    if (status == MT_OK)
        return;
    fprintf(stderr, "make_bomb: %s\n",
            bomb->error.text[0] ? bomb->error.text : mt_status_text(status));
    exit(1);
}

static uint32_t text_id(struct bomb *bomb, const char *prefix, uint64_t number)
{
    char text[64];
    int length = snprintf(text, sizeof text, "%s%llx", prefix, (unsigned long long)number);
    uint32_t id;

    must(bomb, mt_symbols_string(&bomb->symbols, text, (size_t)length, &id));
    return id;
}

static uint32_t frame_id(struct bomb *bomb, uint32_t function, uint32_t file, uint32_t line)
{
    uint32_t id;

    must(bomb, mt_symbols_frame(&bomb->symbols, function, file, line, &id));
    return id;
}

static uint32_t stack_id(struct bomb *bomb, uint32_t parent, uint32_t frame)
{
    uint32_t id;

    must(bomb, mt_symbols_stack(&bomb->symbols, parent, frame, &id));
    return id;
}

static uint16_t heap_id(struct bomb *bomb, uint32_t name)
{
    uint32_t id;

    must(bomb, mt_symbols_heap(&bomb->symbols, name, &id));
    return (uint16_t)id;
}

static void add(struct bomb *bomb, struct mt_event event)
{
    event.seq = bomb->next_seq++;
    event.t_ns = bomb->t_ns += 1000;
    must(bomb, mt_writer_add(bomb->writer, &event, &bomb->error));
}

static struct mt_event event_of(enum mt_event_kind kind)
{
    return (struct mt_event){.kind = (uint8_t)kind, .stack = MT_NO_ID, .name = MT_NO_ID};
}

/* A live block of its own for each i. */
static struct mt_event block(uint64_t i)
{
    struct mt_event event = event_of(MT_EVENT_ALLOC);

    event.addr = BASE_ADDR + i * 512;
    event.size_bytes = 512;
    return event;
}

static void free_block(struct bomb *bomb, struct mt_event event)
{
    event.kind = MT_EVENT_FREE_REQUESTED;
    add(bomb, event);
    event.kind = MT_EVENT_FREE_COMPLETED;
    add(bomb, event);
}

static void push(struct bomb *bomb, uint32_t name)
{
    struct mt_event event = event_of(MT_EVENT_PHASE_PUSH);

    event.name = name;
    add(bomb, event);
}

static void pop(struct bomb *bomb, uint32_t name)
{
    struct mt_event event = event_of(MT_EVENT_PHASE_POP);

    event.name = name;
    add(bomb, event);
}

static void named(struct bomb *bomb, enum mt_event_kind kind, uint32_t name)
{
    struct mt_event event = event_of(kind);

    event.name = name;
    event.size_bytes = 1 << 20;
    add(bomb, event);
}

static void live_blocks(struct bomb *bomb, uint64_t i)
{
    add(bomb, block(i));
}

static void churn(struct bomb *bomb, uint64_t i)
{
    (void)i;
    add(bomb, block(0));
    free_block(bomb, block(0));
}

/* Values that an unkeyed mixer of this project once put into one slot. */
static void flood(struct bomb *bomb, uint64_t i)
{
    uint64_t inverse = UINT64_C(0x9E3779B97F4A7C15), mixed = (i + 1) << 26, value = mixed;
    struct mt_event event = block(0);

    for (int k = 0; k < 6; k++)
        inverse *= 2 - UINT64_C(0x9E3779B97F4A7C15) * inverse;
    for (int k = 0; k < 3; k++)
        value = mixed ^ (value >> 29);
    value *= inverse;
    event.addr = value ^ (value >> 32);
    add(bomb, event);
}

static void sizes(struct bomb *bomb, uint64_t i)
{
    struct mt_event event = event_of(MT_EVENT_ALLOC);

    event.size_bytes = 512 * (i + 1);
    event.addr = BASE_ADDR + 256 * (i + 1) * i;
    add(bomb, event);
}

/* Every other block is freed, then none of the holes is large enough for the next. */
static void holes(struct bomb *bomb, uint64_t i)
{
    struct mt_event event = block(i % (bomb->n / 2 + 1));

    if (i < bomb->n / 2) {
        add(bomb, event);
    } else if (i % 2) {
        free_block(bomb, event);
    } else {
        event.addr = BASE_ADDR * 2 + i * 1024;
        event.size_bytes = 1024;
        add(bomb, event);
    }
}

/* One frame deeper for each block. */
static void deepen(struct bomb *bomb, uint64_t i, uint32_t name)
{
    struct mt_event event = block(i);

    bomb->stack = stack_id(bomb, i ? bomb->stack : MT_NO_ID, frame_id(bomb, name, name, 1));
    event.stack = bomb->stack;
    add(bomb, event);
}

static void deep(struct bomb *bomb, uint64_t i)
{
    deepen(bomb, i, text_id(bomb, "f", i));
}

static void deep_one(struct bomb *bomb, uint64_t i)
{
    deepen(bomb, i, text_id(bomb, "f", 0));
}

/* As deep as stacks may be, then one leaf a block: each stack is its own, and deep. */
static void deep_leaves(struct bomb *bomb, uint64_t i)
{
    uint32_t name = text_id(bomb, "f", 0);
    struct mt_event event = block(i);

    for (uint32_t k = 1; !i && k < MT_MAX_STACK_DEPTH; k++)
        bomb->stack = stack_id(bomb, k > 1 ? bomb->stack : MT_NO_ID, frame_id(bomb, name, name, 1));
    event.stack = stack_id(bomb, bomb->stack, frame_id(bomb, name, name, (uint32_t)i + 2));
    add(bomb, event);
}

static void sites(struct bomb *bomb, uint64_t i)
{
    struct mt_event event = block(i);

    event.stack = stack_id(bomb, MT_NO_ID,
                           frame_id(bomb, text_id(bomb, "f", i), text_id(bomb, "a.py", i), 1));
    add(bomb, event);
}

static void lines(struct bomb *bomb, uint64_t i)
{
    struct mt_event event = block(i);
    uint32_t file = text_id(bomb, "a.py", 0);

    event.stack = stack_id(bomb, MT_NO_ID, frame_id(bomb, file, file, (uint32_t)i + 1));
    add(bomb, event);
}

static void names_long(struct bomb *bomb, uint64_t i)
{
    static char text[60000];
    struct mt_event event = block(i);
    uint32_t id;

    memset(text, 'A', sizeof text);
    snprintf(text, 20, "%019llu", (unsigned long long)i);
    text[19] = 'A';
    must(bomb, mt_symbols_string(&bomb->symbols, text, sizeof text, &id));
    event.stack = stack_id(bomb, MT_NO_ID, frame_id(bomb, id, id, 1));
    add(bomb, event);
}

static void phases(struct bomb *bomb, uint64_t i)
{
    uint32_t name = text_id(bomb, "p", i);

    push(bomb, name);
    add(bomb, block(i));
    pop(bomb, name);
}

static void phases_same(struct bomb *bomb, uint64_t i)
{
    uint32_t name = text_id(bomb, "p", 0);

    push(bomb, name);
    add(bomb, block(i));
    pop(bomb, name);
}

static void nested(struct bomb *bomb, uint64_t i)
{
    push(bomb, text_id(bomb, "p", 0));
    add(bomb, block(i));
}

static void nested_names(struct bomb *bomb, uint64_t i)
{
    push(bomb, text_id(bomb, "p", i));
    add(bomb, block(i));
}

/* Ends of ranges that never began, below one that is open. */
static void ends(struct bomb *bomb, uint64_t i)
{
    if (i % 2)
        push(bomb, text_id(bomb, "p", i));
    else
        pop(bomb, text_id(bomb, "q", 0));
    add(bomb, block(i));
}

static uint32_t step_id(struct bomb *bomb, uint64_t i)
{
    char text[40];
    int length = snprintf(text, sizeof text, "step#%llu", (unsigned long long)i);
    uint32_t name;

    must(bomb, mt_symbols_string(&bomb->symbols, text, (size_t)length, &name));
    return name;
}

static void steps(struct bomb *bomb, uint64_t i)
{
    uint32_t name = step_id(bomb, i);

    push(bomb, name);
    add(bomb, block(0));
    free_block(bomb, block(0));
    pop(bomb, name);
}

/* A step keeps one block more than the one before. */
static void steps_leak(struct bomb *bomb, uint64_t i)
{
    uint32_t name = step_id(bomb, i);

    push(bomb, name);
    add(bomb, block(i));
    pop(bomb, name);
}

static void streams(struct bomb *bomb, uint64_t i)
{
    struct mt_event event = block(i);

    must(bomb, mt_symbols_stream(&bomb->symbols, i + 77, &event.stream));
    add(bomb, event);
}

static void devices(struct bomb *bomb, uint64_t i)
{
    struct mt_event event = block(i);

    event.device = (uint16_t)(i % 1024);
    must(bomb, mt_symbols_device(&bomb->symbols, event.device, MT_NO_ID, UINT64_C(1) << 40));
    add(bomb, event);
}

/* MAX_PHASES phases, then one block for each device. */
static void crowded(struct bomb *bomb, uint64_t i)
{
    uint32_t name = text_id(bomb, "p", 0);

    for (uint32_t k = 0; !i && k < MAX_PHASES; k++) {
        push(bomb, name);
        pop(bomb, name);
    }
    devices(bomb, i);
}

static void pools(struct bomb *bomb, uint64_t i)
{
    struct mt_event event = block(i);
    uint32_t id;

    must(bomb, mt_symbols_pool(&bomb->symbols, i % 8000 + 1, 0, &id));
    event.pool = (uint16_t)id;
    add(bomb, event);
}

static void heaps(struct bomb *bomb, uint64_t i)
{
    struct mt_event event = block(i);

    event.heap = heap_id(bomb, text_id(bomb, "h", i % 8000));
    add(bomb, event);
}

static void threads(struct bomb *bomb, uint64_t i)
{
    struct mt_event event = event_of(MT_EVENT_PHASE_PUSH), inside = block(i);
    uint32_t id = (uint32_t)(i % 60000) + 1;

    if (i < 60000)
        must(bomb, mt_symbols_thread(&bomb->symbols, MT_NO_ID, i + 1, &id));
    event.name = text_id(bomb, "p", 0);
    event.thread = inside.thread = (uint16_t)id;
    add(bomb, event);
    add(bomb, inside);
}

/* One heap of a framework, a segment for each block. */
static void segments(struct bomb *bomb, uint64_t i)
{
    struct mt_event event = event_of(MT_EVENT_SEGMENT_ALLOC);

    event.heap = heap_id(bomb, text_id(bomb, "pytorch", 0));
    event.addr = BASE_ADDR + i * 2 * MT_MIB;
    event.size_bytes = 2 * MT_MIB;
    add(bomb, event);
    event.kind = MT_EVENT_ALLOC;
    event.size_bytes = event.aux_bytes = 512;
    add(bomb, event);
}

static void segments_given_back(struct bomb *bomb, uint64_t i)
{
    struct mt_event event = event_of(MT_EVENT_SEGMENT_ALLOC);

    event.heap = heap_id(bomb, text_id(bomb, "pytorch", 0));
    event.addr = BASE_ADDR + (i + 1) / 2 * 2 * MT_MIB;
    event.size_bytes = 2 * MT_MIB;
    event.kind = i % 2 ? MT_EVENT_SEGMENT_FREE : MT_EVENT_SEGMENT_ALLOC;
    add(bomb, event);
}

static void mapped(struct bomb *bomb, uint64_t i)
{
    struct mt_event event = event_of(MT_EVENT_SEGMENT_MAP);

    event.heap = heap_id(bomb, text_id(bomb, "pytorch", 0));
    event.flags = MT_EVENT_EXPANDABLE;
    event.addr = BASE_ADDR + i * 4 * MT_MIB;
    event.size_bytes = 2 * MT_MIB;
    add(bomb, event);
}

static void samples(struct bomb *bomb, uint64_t i)
{
    struct mt_event event = event_of(MT_EVENT_MEMORY_SAMPLE);

    event.size_bytes = i;
    add(bomb, event);
    add(bomb, block(i));
}

static void marks(struct bomb *bomb, uint64_t i)
{
    named(bomb, MT_EVENT_MARK, text_id(bomb, "m", i));
}

static void contexts(struct bomb *bomb, uint64_t i)
{
    named(bomb, MT_EVENT_CONTEXT, text_id(bomb, "c", i));
}

static void reasons(struct bomb *bomb, uint64_t i)
{
    named(bomb, MT_EVENT_DROPPED, text_id(bomb, "why", i));
}

static void ooms(struct bomb *bomb, uint64_t i)
{
    named(bomb, MT_EVENT_OOM, MT_NO_ID);
    add(bomb, block(i));
}

static void failures(struct bomb *bomb, uint64_t i)
{
    named(bomb, MT_EVENT_ALLOC_FAILED, MT_NO_ID);
    add(bomb, block(i));
}

static void flushes(struct bomb *bomb, uint64_t i)
{
    add(bomb, event_of(MT_EVENT_EMPTY_CACHE));
    add(bomb, block(i));
}

static void purposes(struct bomb *bomb, uint64_t i)
{
    struct mt_event event = block(i);

    event.name = text_id(bomb, "for", i);
    add(bomb, event);
}

static const struct {
    const char *name;
    void (*make)(struct bomb *bomb, uint64_t i);
} kinds[] = {
    {"live_blocks", live_blocks},
    {"churn", churn},
    {"flood", flood},
    {"sizes", sizes},
    {"holes", holes},
    {"deep", deep},
    {"deep_one", deep_one},
    {"deep_leaves", deep_leaves},
    {"sites", sites},
    {"lines", lines},
    {"names_long", names_long},
    {"phases", phases},
    {"phases_same", phases_same},
    {"nested", nested},
    {"nested_names", nested_names},
    {"ends", ends},
    {"steps", steps},
    {"steps_leak", steps_leak},
    {"streams", streams},
    {"devices", devices},
    {"crowded", crowded},
    {"pools", pools},
    {"heaps", heaps},
    {"threads", threads},
    {"segments", segments},
    {"mapped", mapped},
    {"segments_given_back", segments_given_back},
    {"samples", samples},
    {"marks", marks},
    {"contexts", contexts},
    {"reasons", reasons},
    {"ooms", ooms},
    {"failures", failures},
    {"flushes", flushes},
    {"purposes", purposes},
};

static void write_bomb(struct bomb *bomb, size_t kind, int fd)
{
    const struct mt_trace_header header = {.rank = -1, .world_size = -1, .has_stacks = true};
    const struct mt_writer_options options = {.compression_level = 19};

    must(bomb, mt_symbols_init(&bomb->symbols));
    must(bomb, mt_symbols_device(&bomb->symbols, 0, MT_NO_ID, UINT64_C(1) << 40));
    must(bomb, mt_writer_new(fd, &header, &bomb->symbols, &options, &bomb->writer, &bomb->error));
    for (uint64_t i = 0; i < bomb->n; i++)
        kinds[kind].make(bomb, i);
    must(bomb, mt_writer_finish(bomb->writer, &bomb->error));
    mt_writer_free(bomb->writer);
    mt_symbols_release(&bomb->symbols);
}

int main(int argc, char **argv)
{
    static struct bomb bomb = {.t_ns = UINT64_C(1700000000000000000)};
    size_t i = 0;

    if (argc != 4) {
        for (; i < MT_ARRAY_LEN(kinds); i++)
            printf("%s\n", kinds[i].name);
        return argc != 1;
    }
    while (i < MT_ARRAY_LEN(kinds) && strcmp(kinds[i].name, argv[1]) != 0)
        i++;
    int fd =
        i < MT_ARRAY_LEN(kinds) ? open(argv[3], O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0666) : -1;
    if (fd < 0) {
        fprintf(stderr, "make_bomb: no such kind, or no such file\n");
        return 1;
    }
    bomb.n = strtoull(argv[2], NULL, 10);
    write_bomb(&bomb, i, fd);
    return close(fd) != 0;
}

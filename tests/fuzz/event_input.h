/* A source of events made from the bytes of an input, without a container around
 * them: every input is a trace, so a fuzzer reaches what is behind the reader.
 *
 * The first bytes choose the header and texts. Then each event is one byte for
 * what happens and a few for its values. Addresses are those of a few hundred
 * places, so that frees often meet an allocation. */
#ifndef MT_TESTS_EVENT_INPUT_H
#define MT_TESTS_EVENT_INPUT_H

#include "fuzz.h"
#include "unit/memory_source.h"
#include "util.h"

enum {
    MAX_EVENT_INPUT = 1024,
    EVENT_INPUT_STREAMS = 3,
    EVENT_INPUT_POOLS = 4,
    EVENT_INPUT_NAMES = 8,
    EVENT_INPUT_STACKS = 12
};

struct event_input {
    struct memory_source memory;
    struct mt_event events[MAX_EVENT_INPUT];
    size_t count;
    uint64_t t_ns;
    uint32_t names[EVENT_INPUT_NAMES], stacks[EVENT_INPUT_STACKS];
    uint16_t heap;
};

/* Names that mean something to the analyzer, and names that try to break out of a document. */
static inline void event_input_names(struct event_input *self, struct fuzz_input *input)
{
    static const char *const known[] = {"step#0",
                                        "step#1",
                                        "forward",
                                        "backward",
                                        "",
                                        "optimizer",
                                        "\xE2\x80\xAE]]><script>\x1b[31m",
                                        "a;b,c|`d`\n::e\xff"};
    struct mt_symbols *symbols = &self->memory.source.symbols;

    for (size_t i = 0; i < EVENT_INPUT_NAMES; i++) {
        size_t length = fuzz_number(input, 1) % 16, got;
        uint8_t *own = fuzz_copy(input, length, &got);
        FUZZ_CHECK(mt_symbols_string(symbols, got ? (const char *)own : known[i],
                                     got ? got : strlen(known[i]), &self->names[i]) == MT_OK);
        free(own);
    }
}

/* Some stacks, each below another one or a root. */
static inline void event_input_stacks(struct event_input *self, struct fuzz_input *input)
{
    struct mt_symbols *symbols = &self->memory.source.symbols;

    for (size_t i = 0; i < EVENT_INPUT_STACKS; i++) {
        unsigned shape = (unsigned)fuzz_number(input, 1);
        uint32_t frame, parent = i && shape & 7 ? self->stacks[(shape & 7) % i] : MT_NO_ID;
        uint32_t function = self->names[shape >> 3 & 7], file = self->names[shape >> 5];
        FUZZ_CHECK(mt_symbols_frame(symbols, function, file, shape, &frame) == MT_OK);
        FUZZ_CHECK(mt_symbols_stack(symbols, parent, frame, &self->stacks[i]) == MT_OK);
    }
}

static inline void event_input_symbols(struct event_input *self, struct fuzz_input *input,
                                       unsigned devices)
{
    struct mt_symbols *symbols = &self->memory.source.symbols;
    uint32_t id;

    event_input_names(self, input);
    event_input_stacks(self, input);
    for (uint64_t i = 1; i < EVENT_INPUT_STREAMS; i++)
        FUZZ_CHECK(mt_symbols_stream(symbols, i << 20, &id) == MT_OK);
    for (uint64_t i = 1; i < EVENT_INPUT_POOLS; i++)
        FUZZ_CHECK(mt_symbols_pool(symbols, i & 1, i / 2, &id) == MT_OK);
    for (uint32_t i = 0; i < devices; i++)
        FUZZ_CHECK(mt_symbols_device(symbols, i, MT_NO_ID, (uint64_t)1 << 36) == MT_OK);
    self->heap = memory_source_heap(&self->memory, "pytorch");
}

/* 1 byte: a power of two, its neighbors, and small and odd sizes. */
static inline uint64_t event_input_size(struct fuzz_input *input)
{
    unsigned code = (unsigned)fuzz_number(input, 1);
    uint64_t power = (uint64_t)1 << (code & 31);

    switch (code >> 5) {
    case 0: return power;
    case 1: return power - 1;
    case 2: return power + 1;
    case 3: return fuzz_number(input, 2);
    case 4: return fuzz_number(input, 3) * 512;
    case 5: return fuzz_number(input, 8);
    case 6: return power * 3;
    default: return (code & 31) * MT_MIB;
    }
}

/* Places of 1 MiB in a few regions; rarely any address. */
static inline uint64_t event_input_address(struct fuzz_input *input)
{
    unsigned code = (unsigned)fuzz_number(input, 1);

    return code == 255 ? fuzz_number(input, 8)
                       : UINT64_C(0x7f0000000000) + (uint64_t)(code >> 4) * 64 * MT_MIB +
                             (uint64_t)(code & 15) * (code & 16 ? 512 : MT_MIB);
}

static inline void event_input_event(struct event_input *self, struct fuzz_input *input)
{
    struct mt_event *event = &self->events[self->count++];
    unsigned what = (unsigned)fuzz_number(input, 1), who = (unsigned)fuzz_number(input, 1);

    memset(event, 0, sizeof *event);
    event->kind = (uint8_t)(what % (MT_EVENT_KIND_COUNT - 2) + 1);
    if (event->kind >= MT_EVENT_END) /* which comes by itself */
        event->kind++;
    event->stack = event->name = MT_NO_ID;
    event->device = who & 1 && self->memory.source.symbols.device_count > 1;
    event->thread = 0;
    event->stream = (who >> 1 & 3) % EVENT_INPUT_STREAMS;
    if (mt_event_kind_has_heap(event->kind)) {
        event->heap = who & 8 ? 0 : self->heap;
        event->pool = (uint16_t)(who >> 4 & 3);
        event->stack =
            who & 64 ? self->stacks[fuzz_number(input, 1) % EVENT_INPUT_STACKS] : MT_NO_ID;
        event->addr = event_input_address(input);
        event->size_bytes = event_input_size(input);
        if (who & 128)
            event->aux_bytes = event_input_size(input);
    } else if (event->kind == MT_EVENT_MEMORY_SAMPLE) {
        event->size_bytes = event_input_size(input);
        event->aux_bytes = event_input_size(input);
    } else {
        event->name = self->names[who >> 4 & 7];
        event->size_bytes = event->kind == MT_EVENT_DROPPED ? who : 0;
        if (event->kind > MT_EVENT_END) { /* communicators: few, so that they meet */
            event->addr = who & 3;
            event->size_bytes = fuzz_number(input, 1);
            event->aux_bytes = fuzz_number(input, 1) & 15;
        }
    }
    if (what >= 0xE0 && mt_event_kind_has_heap(event->kind))
        event->flags = (uint8_t)fuzz_number(input, 1) & 7;
    self->t_ns += (uint64_t)1 << (what >> 4);
    event->t_ns = self->t_ns;
}

/* Release with event_input_release. Large: keep it on the heap. */
static inline void event_input_make(struct event_input *self, struct fuzz_input *input)
{
    unsigned facts = (unsigned)fuzz_number(input, 1), more = (unsigned)fuzz_number(input, 1);
    struct mt_trace_header *header = &self->memory.source.header;

    memset(self, 0, sizeof *self);
    memory_source_init(&self->memory, self->events, 0, 1 + (more & 63));
    event_input_symbols(self, input, 1 + (facts & 1));
    self->t_ns = 1000000;
    while (input->left && self->count < MAX_EVENT_INPUT)
        event_input_event(self, input);
    for (size_t i = 0; i < self->count; i++)
        self->events[i].seq = i;
    self->memory.count = self->count;
    self->memory.source.format = "fuzz";
    header->rank = header->world_size = -1;
    header->has_free_completed = facts & 2;
    header->has_free_requested = facts & 4;
    header->has_segments = facts & 8;
    header->starts_in_middle = facts & 16;
    header->sizes_rounded = facts & 32;
    header->has_stacks = facts & 64;
    header->never_refused = facts & 128;
    header->memory_limit_bytes = more & 64 ? 100 * MT_MIB : 0;
    header->allocator_options = more & 128 ? "expandable_segments:True" : NULL;
}

static inline void event_input_release(struct event_input *self)
{
    memory_source_release(&self->memory);
}

#endif

#include "perfetto_packets.h"

#include <stdlib.h>
#include <string.h>

#include "export_format.h"
#include "protobuf.h"
#include "site.h"

/* Numbers of fields. */
enum {
    TRACE_PACKET = 1,
    PACKET_TIME = 8,
    PACKET_SEQUENCE = 10,
    PACKET_INTERNED = 12,
    PACKET_FLAGS = 13,
    PACKET_DEFAULTS = 59,
    DEFAULTS_CLOCK = 58,
    INTERNED_EVENT_NAME = 2,
    INTERNED_FUNCTION = 5,
    INTERNED_FRAME = 6,
    INTERNED_STACK = 7,
    INTERNED_FILE = 18,
    ENTRY_ID = 1, /* of each of these */
    ENTRY_TEXT = 2,
    FRAME_FUNCTION = 2,
    FRAME_FILE = 5,
    FRAME_LINE = 6,
    STACK_FRAME = 2
};

enum { CLOCK_REALTIME_ID = 1, STATE_CLEARED = 1, STATE_NEEDED = 2 };

void mt_packets_add(struct mt_packets *packets, unsigned kind, const struct mt_buf *message,
                    uint64_t t_ns)
{
    struct mt_buf *packet = &packets->packet;

    mt_buf_reset(packet);
    mt_protobuf_add_message(packet, kind, message);
    mt_protobuf_add_number(packet, PACKET_SEQUENCE, packets->id);
    if (t_ns != MT_PACKET_NO_TIME)
        mt_protobuf_add_number(packet, PACKET_TIME, t_ns);
    if (packets->interned.length)
        mt_protobuf_add_message(packet, PACKET_INTERNED, &packets->interned);
    mt_buf_reset(&packets->interned);
    if (packets->has_begun) {
        mt_protobuf_add_number(packet, PACKET_FLAGS, STATE_NEEDED);
    } else {
        struct mt_buf defaults = {0};

        mt_protobuf_add_number(packet, PACKET_FLAGS, STATE_CLEARED | STATE_NEEDED);
        mt_protobuf_add_number(&defaults, DEFAULTS_CLOCK, CLOCK_REALTIME_ID);
        mt_protobuf_add_message(packet, PACKET_DEFAULTS, &defaults);
        mt_buf_release(&defaults);
    }
    packets->has_begun = true;
    mt_protobuf_add_message(packets->out, TRACE_PACKET, packet);
}

/* Adds an entry, and empties it. */
static void add_entry(struct mt_packets *packets, unsigned field, struct mt_buf *entry)
{
    mt_protobuf_add_message(&packets->interned, field, entry);
    mt_buf_release(entry);
}

/* The number of a text in one of the tables. 0 means none, so numbers begin with 1. */
static uint32_t text_of(struct mt_packets *packets, struct mt_strings *table, unsigned field,
                        const char *text)
{
    struct mt_buf entry = {0};
    uint32_t before = table->count, id;

    mt_strings_put(table, text, strlen(text), &id);
    if (id == before) {
        mt_protobuf_add_number(&entry, ENTRY_ID, id + 1);
        mt_protobuf_add_text(&entry, ENTRY_TEXT, text);
        add_entry(packets, field, &entry);
    }
    return id + 1;
}

uint32_t mt_packets_name(struct mt_packets *packets, const char *name)
{
    return text_of(packets, &packets->names, INTERNED_EVENT_NAME, name);
}

/* A frame with that key, which is added if it is missing. */
static uint32_t frame_of(struct mt_packets *packets, uint64_t key, const char *function,
                         const struct mt_frame *frame)
{
    uint32_t id = mt_map_get(&packets->frames, key);
    struct mt_buf entry = {0};

    if (id != MT_MAP_NONE)
        return id;
    id = ++packets->frame_count;
    mt_map_put(&packets->frames, key, id);
    mt_protobuf_add_number(&entry, ENTRY_ID, id);
    mt_protobuf_add_number(&entry, FRAME_FUNCTION,
                           text_of(packets, &packets->functions, INTERNED_FUNCTION, function));
    if (frame) {
        const char *file = mt_symbols_text(packets->report->symbols, frame->file);

        mt_protobuf_add_number(&entry, FRAME_FILE,
                               text_of(packets, &packets->files, INTERNED_FILE, file));
        if (frame->line)
            mt_protobuf_add_number(&entry, FRAME_LINE, frame->line);
    }
    add_entry(packets, INTERNED_FRAME, &entry);
    return id;
}

static uint32_t symbol_frame(struct mt_packets *packets, uint32_t frame)
{
    const char *function = mt_frame_function(&packets->scratch, packets->report->symbols, frame);

    return frame_of(packets, frame, function, &packets->report->symbols->frames[frame]);
}

static uint32_t word_frame(struct mt_packets *packets, uint32_t word)
{
    return frame_of(packets, UINT64_C(1) << 32 | word, packets->words.texts[word], NULL);
}

/* Outermost first. The stack may be MT_NO_ID if there is a word. */
static void add_frames(struct mt_packets *packets, struct mt_buf *entry, uint32_t stack,
                       uint32_t word)
{
    const struct mt_stack *stacks = packets->report->symbols->stacks;
    uint32_t depth = stack == MT_NO_ID ? 0 : stacks[stack].depth, *frames;

    frames = mt_memory_new(((size_t)depth + 1) * sizeof *frames);
    for (uint32_t i = depth; i > 0 && stack != MT_NO_ID; stack = stacks[stack].parent)
        frames[--i] = symbol_frame(packets, stacks[stack].frame);
    for (uint32_t i = 0; i < depth; i++)
        mt_protobuf_add_number(entry, STACK_FRAME, frames[i]);
    if (word != MT_NO_ID)
        mt_protobuf_add_number(entry, STACK_FRAME, word_frame(packets, word));
    free(frames);
}

static uint32_t stack_of(struct mt_packets *packets, uint32_t stack, uint32_t word)
{
    uint64_t key = (uint64_t)(word + 1) << 32 | stack; /* MT_NO_ID + 1 is 0 */
    uint32_t id = mt_map_get(&packets->stacks, key);
    struct mt_buf entry = {0};

    if (id != MT_MAP_NONE)
        return id;
    id = ++packets->stack_count;
    mt_map_put(&packets->stacks, key, id);
    mt_protobuf_add_number(&entry, ENTRY_ID, id);
    add_frames(packets, &entry, stack, word);
    add_entry(packets, INTERNED_STACK, &entry);
    mt_arena_release(&packets->scratch);
    return id;
}

uint32_t mt_packets_stack(struct mt_packets *packets, uint32_t stack)
{
    return stack_of(packets, stack, MT_NO_ID);
}

uint32_t mt_packets_block_stack(struct mt_packets *packets, const struct mt_holding *block)
{
    const char *words =
        mt_export_words(&packets->scratch, packets->report, packets->first_event, block);
    uint32_t stack = mt_stack_of_site(block->tie, block->tied, block->stack), word = MT_NO_ID;

    if (words)
        mt_strings_put(&packets->words, words, strlen(words), &word);
    return stack_of(packets, stack, word);
}

void mt_packets_release(struct mt_packets *packets)
{
    mt_buf_release(&packets->interned);
    mt_buf_release(&packets->packet);
    mt_strings_release(&packets->names);
    mt_strings_release(&packets->functions);
    mt_strings_release(&packets->files);
    mt_strings_release(&packets->words);
    mt_map_release(&packets->frames);
    mt_map_release(&packets->stacks);
    mt_arena_release(&packets->scratch);
}

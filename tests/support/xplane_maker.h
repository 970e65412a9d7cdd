/* Makes profiles of XLA's profiler (collector/import/importers.h), byte by byte. */
#ifndef MT_TESTS_XPLANE_MAKER_H
#define MT_TESTS_XPLANE_MAKER_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "buf.h"
#include "util.h"

/* A memory event of the arena `allocator`. */
struct made_event {
    const char *allocator;
    bool is_free;
    uint64_t addr, requested, chunk, in_use, limit, offset_ps;
    const char *operation; /* NULL = none */
};

enum { MADE_ALLOCATION = 1, MADE_DEALLOCATION, MADE_OTHER };

static inline void pb_varint(struct mt_buf *out, uint64_t value)
{
    for (; value >= 0x80; value >>= 7)
        mt_buf_add_char(out, (char)(0x80 | (value & 0x7f)));
    mt_buf_add_char(out, (char)value);
}

static inline void pb_number(struct mt_buf *out, uint32_t field, uint64_t value)
{
    pb_varint(out, (uint64_t)field << 3);
    pb_varint(out, value);
}

static inline void pb_bytes(struct mt_buf *out, uint32_t field, const char *bytes, size_t length)
{
    pb_varint(out, (uint64_t)field << 3 | 2);
    pb_varint(out, length);
    mt_buf_add(out, bytes, length);
}

static inline void pb_text(struct mt_buf *out, uint32_t field, const char *text)
{
    pb_bytes(out, field, text, strlen(text));
}

/* Appends `inner` as a message, and clears it. */
static inline void pb_message(struct mt_buf *out, uint32_t field, struct mt_buf *inner)
{
    pb_bytes(out, field, inner->data ? inner->data : "", inner->length);
    mt_buf_release(inner);
}

/* Metadata of a plane: field 4 of events, 5 of stats. */
static inline void pb_name(struct mt_buf *plane, uint32_t field, uint64_t id, const char *name)
{
    struct mt_buf value = {0}, entry = {0};

    pb_number(&value, 1, id);
    pb_text(&value, 2, name);
    pb_number(&entry, 1, id);
    pb_message(&entry, 2, &value);
    pb_message(plane, field, &entry);
}

static const char *const made_stats[] = {
    "",         "allocator_name",  "requested_bytes", "allocation_bytes",
    "addr",     "bytes_allocated", "bytes_available", "tf_op",
    "GPU_0_bfc"};

static inline void pb_stat(struct mt_buf *event, uint64_t id, uint64_t number)
{
    struct mt_buf stat = {0};

    pb_number(&stat, 1, id);
    pb_number(&stat, 4, number);
    pb_message(event, 4, &stat);
}

static inline void pb_text_stat(struct mt_buf *event, uint64_t id, const char *text)
{
    struct mt_buf stat = {0};

    pb_number(&stat, 1, id);
    if (strcmp(text, made_stats[8]) == 0)
        pb_number(&stat, 7, 8); /* a reference to a name */
    else
        pb_text(&stat, 5, text);
    pb_message(event, 4, &stat);
}

static inline void pb_event(struct mt_buf *line, const struct made_event *made)
{
    struct mt_buf event = {0};

    pb_number(&event, 1, made->is_free ? MADE_DEALLOCATION : MADE_ALLOCATION);
    pb_number(&event, 2, made->offset_ps);
    pb_text_stat(&event, 1, made->allocator);
    pb_stat(&event, 2, made->requested);
    pb_stat(&event, 3, made->chunk);
    pb_stat(&event, 4, made->addr);
    pb_stat(&event, 5, made->in_use);
    pb_stat(&event, 6, made->limit - mt_min_u64(made->in_use, made->limit));
    if (made->operation)
        pb_text_stat(&event, 7, made->operation);
    pb_message(line, 4, &event);
}

static inline void pb_line(struct mt_buf *plane, const char *name, uint64_t timestamp_ns,
                           const struct made_event *events, size_t count)
{
    struct mt_buf line = {0};

    pb_text(&line, 2, name);
    pb_number(&line, 3, timestamp_ns);
    for (size_t i = 0; i < count; i++)
        pb_event(&line, &events[i]);
    pb_message(plane, 3, &line);
}

/* Begins the plane of the host: names of events and stats. */
static inline void pb_host_plane(struct mt_buf *plane)
{
    pb_number(plane, 1, 1);
    pb_text(plane, 2, "/host:CPU");
    pb_name(plane, 4, MADE_ALLOCATION, "MemoryAllocation");
    pb_name(plane, 4, MADE_DEALLOCATION, "MemoryDeallocation");
    pb_name(plane, 4, MADE_OTHER, "XlaModule");
    for (uint64_t i = 1; i < MT_ARRAY_LEN(made_stats); i++)
        pb_name(plane, 5, i, made_stats[i]);
}

#endif

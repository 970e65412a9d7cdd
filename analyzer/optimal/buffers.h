/* Buffers: the input of an offline plan. */
#ifndef MT_ANALYZER_BUFFERS_H
#define MT_ANALYZER_BUFFERS_H

#include "source.h"

/* Alive in [begin, end) of a logical time; neither empty nor of 0 bytes. */
struct mt_buffer {
    uint64_t begin, end, bytes;
};

/* Zeroed memory is empty. The sum of all bytes is below 2^62. */
struct mt_buffers {
    struct mt_buffer *items;
    size_t count, capacity;
    uint64_t total_bytes;
};

/* Ignores a buffer with no lifetime or no bytes. */
enum mt_status mt_buffers_add(struct mt_buffers *buffers, const struct mt_buffer *buffer,
                              struct mt_error *error) MT_MUST_USE;
void mt_buffers_release(struct mt_buffers *buffers);

/* MiniMalloc's files: a line of column names, among them lower, upper (or start, end) and size, in
 * any order; then one buffer per line. Returns whether the file begins like this. */
bool mt_buffers_csv_probe(const char *text, size_t length);
enum mt_status mt_buffers_from_csv(const char *text, size_t length, struct mt_buffers *buffers,
                                   struct mt_error *error) MT_MUST_USE;

/* The allocations of a trace, those of device d in devices[d] (0..63; others are an error). Time is
 * the number of the event. Sizes are requested bytes, rounded up to 512; a buffer ends when the
 * allocator may reuse it, or at the end of the trace. Reads the source to its end. */
#define MT_BUFFERS_DEVICES 64
enum mt_status mt_buffers_from_source(struct mt_source *source,
                                      struct mt_buffers devices[MT_BUFFERS_DEVICES],
                                      struct mt_error *error) MT_MUST_USE;

/* Sorts `count` numbers of entries by a key of each entry, ascending; equal keys keep their order.
 * Takes 4 bytes for each number. */
struct mt_keys {
    const uint64_t *first; /* in entry 0 */
    size_t entry_bytes;
};
void mt_numbers_sort(struct mt_keys keys, uint32_t *numbers, size_t count);

/* The numbers of all buffers, by begin and by end. The caller frees both. */
void mt_buffers_in_time(const struct mt_buffers *buffers, uint32_t **by_begin, uint32_t **by_end);

/* Dynamic storage allocation: buffers with lifetimes, each of which needs its own range of
 * addresses. An instance reduces time to the sections that matter: instants at which the set of
 * live buffers is maximal (right before the first free after an allocation). Two buffers are alive
 * at the same time exactly if they share a section. */

struct mt_item {
    uint64_t bytes;
    uint64_t duration;    /* in the time of the buffers */
    uint32_t first, last; /* sections [first, last) */
    uint32_t origin;      /* number of the buffer */
};

struct mt_instance {
    struct mt_item *items;
    uint64_t *load; /* live bytes in each section */
    uint32_t count, section_count;
    uint64_t bound; /* largest load: no plan is lower */
};

/* Item i is buffer i; at most UINT32_MAX / 4 of them. O(n log n). */
void mt_instance_build(const struct mt_buffers *buffers, struct mt_instance *instance);

/* A part of time that no buffer connects with the rest. */
struct mt_part {
    uint32_t first_item, first_section;
};

/* Sorts the items by part, in order of time, and makes their sections those of their part: then
 * only the parts are instances. *parts is an array of *count parts and the end of the last one. */
void mt_instance_split(struct mt_instance *whole, struct mt_part **parts, uint32_t *count);

/* The part as an instance, which borrows the memory of `whole`. */
struct mt_instance mt_instance_part(const struct mt_instance *whole, const struct mt_part *part);
void mt_instance_release(struct mt_instance *instance);

#endif

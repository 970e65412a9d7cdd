/* The objects that events refer to by id: strings, frames, stacks, streams, threads, heaps, pools,
 * devices; and what the allocator counted at the end. Ids are dense and assigned in order of first
 * appearance. Tables only grow, so ids and string pointers stay valid until mt_symbols_release. */
#ifndef MT_TRACE_SYMBOLS_H
#define MT_TRACE_SYMBOLS_H

#include "event.h"
#include "map.h"
#include "redaction.h"
#include "status.h"

/* One line of code in one function. */
struct mt_frame {
    uint32_t function; /* string id */
    uint32_t file;     /* string id */
    uint32_t line;     /* 0 = unknown */
};

/* Maximum depth of a stack. Readers cut deeper stacks, so that no file can make a walk over a stack
 * arbitrarily long. The recorder keeps 512 frames of Python and 512 native ones. PyTorch keeps all,
 * and Python stops at 1,000 calls unless a program raises the limit. */
#define MT_MAX_STACK_DEPTH 4096

/* Node of the tree of stacks; a stack is the path from a root to a node. The
 * node holds its innermost frame. parent < own id, or MT_NO_ID at a root. */
struct mt_stack {
    uint32_t parent;
    uint32_t frame;
    uint32_t depth; /* 1 at a root, at most MT_MAX_STACK_DEPTH */
};

struct mt_stream_info {
    uint64_t handle; /* raw stream pointer or number; sorts like the driver's */
};

struct mt_pool_info {
    uint64_t id[2]; /* PyTorch's (a, b): (0,0) default, (k,0) graph, (0,k) user */
};

struct mt_device_info {
    uint32_t name;               /* string id, MT_NO_ID = not recorded */
    uint64_t total_memory_bytes; /* 0 = not recorded */
};

/* heap 0 is always the driver; an allocator above it names itself. */
struct mt_heap_info {
    uint32_t name; /* string id: "driver", "pytorch", ... */
};

struct mt_thread_info {
    uint32_t name;  /* string id or MT_NO_ID */
    uint64_t os_id; /* 0 = not recorded */
};

/* What the allocator itself counted in one segment at the end of the history. No event refers to
 * it. */
struct mt_segment_end {
    uint64_t addr, size_bytes;
    uint64_t allocated_bytes, active_bytes, requested_bytes; /* MT_NOT_COUNTED = not recorded */
    uint16_t device, heap;
};
#define MT_NOT_COUNTED UINT64_MAX

/* Zeroed memory is an empty table; mt_symbols_init adds the fixed ids (string
 * 0 = "", stream 0 = handle 0, pool 0 = (0,0), heap 0 = "driver", thread 0). */
struct mt_symbols {
    struct mt_strings strings;
    struct mt_frame *frames;
    struct mt_stack *stacks;
    struct mt_stream_info *streams;
    struct mt_pool_info *pools;
    struct mt_device_info *devices;
    struct mt_heap_info *heaps;
    struct mt_thread_info *threads;
    struct mt_segment_end *ends; /* in the order of the file */
    uint32_t frame_count, stack_count, stream_count, pool_count;
    uint32_t device_count, heap_count, thread_count, end_count;
    uint64_t frames_cut; /* removed from stacks deeper than MT_MAX_STACK_DEPTH */
    /* PRIVATE: capacities and lookup tables */
    size_t capacity[8];
    struct mt_map frame_ids, stack_ids, stream_ids;
};

enum mt_status mt_symbols_init(struct mt_symbols *symbols) MT_MUST_USE;
void mt_symbols_release(struct mt_symbols *symbols);

/* These return the id of an equal entry, added if it is missing. Amortized O(1) unless noted. They
 * fail with MT_ERR_MEMORY, or with MT_ERR_UNSUPPORTED if a table of pools, heaps or threads has
 * 65,535 entries. */
enum mt_status mt_symbols_string(struct mt_symbols *symbols, const char *text, size_t length,
                                 uint32_t *id) MT_MUST_USE;
enum mt_status mt_symbols_frame(struct mt_symbols *symbols, uint32_t function, uint32_t file,
                                uint32_t line, uint32_t *id) MT_MUST_USE;

/* If the parent has the maximum depth, counts the frame in frames_cut and sets *id to the
 * parent. */
enum mt_status mt_symbols_stack(struct mt_symbols *symbols, uint32_t parent, uint32_t frame,
                                uint32_t *id) MT_MUST_USE;
enum mt_status mt_symbols_stream(struct mt_symbols *symbols, uint64_t handle,
                                 uint32_t *id) MT_MUST_USE;
enum mt_status mt_symbols_pool(struct mt_symbols *symbols, uint64_t a, uint64_t b,
                               uint32_t *id) MT_MUST_USE; /* linear in the number of pools */
enum mt_status mt_symbols_heap(struct mt_symbols *symbols, uint32_t name,
                               uint32_t *id) MT_MUST_USE; /* linear in the number of heaps */
enum mt_status mt_symbols_thread(struct mt_symbols *symbols, uint32_t name, uint64_t os_id,
                                 uint32_t *id) MT_MUST_USE; /* always a new id */
enum mt_status mt_symbols_end(struct mt_symbols *symbols, const struct mt_segment_end *end,
                              uint32_t *id) MT_MUST_USE; /* always a new id */

/* Ensures that devices 0..index exist (index < 1024) and describes one. */
enum mt_status mt_symbols_device(struct mt_symbols *symbols, uint32_t index, uint32_t name,
                                 uint64_t total_memory_bytes) MT_MUST_USE;

/* Checks that every entry is found under its own id and refers to existing entries, and that
 * parents precede their stacks. *why: the violated rule. */
bool mt_symbols_is_sound(const struct mt_symbols *symbols, const char **why);

/* Text of a string id; "?" for an id that is not in the table. */
const char *mt_symbols_text(const struct mt_symbols *symbols, uint32_t string);

/* Copies one symbol table into another. Small tables (threads, devices, heaps, streams, pools,
 * ends) keep their ids; strings, frames and stacks get new ones. */

struct mt_symbols_copy {
    const struct mt_symbols *from;
    struct mt_symbols *to;
    const struct mt_redaction *redaction; /* NULL: texts are unchanged */
};

/* Sets *id to the string's id in the copy, which is added if it is missing. MT_NO_ID and ids that
 * are not in the table become MT_NO_ID. */
enum mt_status mt_symbols_copy_string(const struct mt_symbols_copy *copy, enum mt_text_kind kind,
                                      uint32_t string, uint32_t *id) MT_MUST_USE;

/* Copies what was added to the small tables since the last call, and frames_cut. Descriptions of
 * devices and the name of thread 0 may have changed, so they are copied each time. A heap whose
 * name already exists gets another name. Returns MT_ERR_FORMAT if an id would change. */
enum mt_status mt_symbols_copy_tables(const struct mt_symbols_copy *copy) MT_MUST_USE;

#endif

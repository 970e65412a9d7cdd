/* Parts of the importer of Nsight Systems' exports: the questions to the database, and how their
 * rows become events. */
#ifndef MT_COLLECTOR_NSYS_PARTS_H
#define MT_COLLECTOR_NSYS_PARTS_H

#include "buf.h"
#include "database.h"
#include "made_trace.h"
#include "map.h"

#define MT_NSYS_MEMORY  "CUDA_GPU_MEMORY_USAGE_EVENTS"
#define MT_NSYS_RUNTIME "CUPTI_ACTIVITY_KIND_RUNTIME"

enum { MT_NSYS_SECONDS = 900, MT_NSYS_TEXT_BYTES = 4096 }; /* limits */

/* The first ones are kinds of memory in the order of their numbers (memKind). */
enum mt_nsys_heap {
    MT_NSYS_PAGEABLE,
    MT_NSYS_PINNED,
    MT_NSYS_DEVICE,
    MT_NSYS_ARRAY,
    MT_NSYS_MANAGED,
    MT_NSYS_DEVICE_STATIC,
    MT_NSYS_MANAGED_STATIC,
    MT_NSYS_UNKNOWN,
    MT_NSYS_ASYNC,    /* of a pool */
    MT_NSYS_IMPORTED, /* of another process's pool */
    MT_NSYS_HEAPS
};

/* A block that is alive. */
struct mt_nsys_block {
    uint64_t key; /* in the map of blocks that are alive */
    uint64_t addr, size_bytes;
    uint32_t stream, next_free; /* next_free: index + 1, when unused */
    uint16_t heap, device, pool;
};

struct mt_nsys;
typedef enum mt_status (*mt_nsys_row)(struct mt_nsys *nsys, const struct mt_value *row);

struct mt_nsys {
    const char *path;
    const struct mt_database_library *library;
    uint64_t until_ns;         /* of the monotonic clock: reading ends with an error then */
    struct mt_strings columns; /* "TABLE.column" of the tables that the file has */
    bool has_process;          /* events name their process */
    int64_t process;           /* globalPid of the process that is read */
    uint64_t begin_t_ns;       /* Unix time of time 0, 0 = unknown */
    struct mt_made_trace made;

    struct mt_map kinds;           /* memKind -> enum mt_nsys_heap */
    struct mt_map operations;      /* memoryOperationType -> 0 allocation, 1 free */
    int64_t allocation;            /* memoryOperationType of allocations */
    struct mt_strings strings;     /* of StringIds, up to MT_NSYS_TEXT_BYTES of each */
    struct mt_map string_ids;      /* StringIds.id -> strings */
    struct mt_map stacks;          /* callchainId -> stack */
    struct mt_map call_threads;    /* correlationId -> thread */
    struct mt_map call_stacks;     /* correlationId -> stack */
    struct mt_map threads;         /* globalTid -> thread */
    struct mt_map pools;           /* address -> pool */
    struct mt_map domains;         /* domainId of NVTX -> string */
    struct mt_map null_streams;    /* the default streams of contexts -> 1 */
    uint32_t heaps[MT_NSYS_HEAPS]; /* number in the trace + 1 */

    struct mt_map alive; /* kind and address -> index of blocks; first reading: addresses seen */
    struct mt_nsys_block *blocks;
    size_t block_count, block_capacity;
    uint32_t free_block; /* index + 1 */
    /* The blocks that were alive before the first event come first among `blocks`. */
    size_t initial_count;
    bool is_first_reading; /* looks only for these */
    bool has_begun;        /* their events were added */
    bool has_more_pools;   /* than a trace is given */

    uint64_t allocations, frees_lost, frees_unknown, sizes_differ, kinds_unknown, refused;
    uint64_t most_pool_bytes; /* localMemoryPoolSize */

    /* PRIVATE: the question that is being answered */
    mt_nsys_row on_row;
    enum mt_status status;
    struct mt_error *error;
    struct mt_buf text;
    /* PRIVATE: the call chain that is being read */
    int64_t chain;
    uint32_t stack;
    /* Lines of the header */
    struct mt_buf not_used, not_recorded;
    uint64_t processes, processes_left_out;
};

/* Reads a database that was checked. */
enum mt_status mt_nsys_read(const char *path, const struct mt_database_library *library,
                            struct mt_source **source, struct mt_error *error) MT_MUST_USE;

/* Asks one question. The texts of a row live until on_row returns. */
enum mt_status mt_nsys_ask(struct mt_nsys *nsys, const struct mt_buf *sql, mt_nsys_row on_row,
                           struct mt_error *error) MT_MUST_USE;

/* Returns whether the file has this column: "StringIds.value". */
bool mt_nsys_has(const struct mt_nsys *nsys, const char *column);

/* Adds ", ALIAS.column", or ", NULL" if the table lacks it. */
void mt_nsys_add_column(struct mt_buf *sql, const struct mt_nsys *nsys, const char *alias,
                        const char *column);

/* Adds a condition for a globalPid or globalTid: it belongs to the process that is read. */
void mt_nsys_add_process(struct mt_buf *sql, const struct mt_nsys *nsys, const char *column);

/* Returns an integer, or `otherwise` if the value is another one. */
int64_t mt_nsys_integer(const struct mt_value *value, int64_t otherwise);

/* Returns an expression: the text of a range `n`, or its number in StringIds. */
const char *mt_nsys_range_text(const struct mt_nsys *nsys);

/* Sets *id to a text of a row, which may be a number in StringIds, or MT_NO_ID if it has none. */
enum mt_status mt_nsys_text(struct mt_nsys *nsys, const struct mt_value *value,
                            uint32_t *id) MT_MUST_USE;

/* Sets *id to nsys->text. */
enum mt_status mt_nsys_add_text(struct mt_nsys *nsys, uint32_t *id) MT_MUST_USE;

/* Reads the threads and stacks of the calls that made events of memory. */
enum mt_status mt_nsys_read_calls(struct mt_nsys *nsys, struct mt_error *error) MT_MUST_USE;

/* Reads all events of the process into nsys->made, when all the rest was read. */
enum mt_status mt_nsys_read_events(struct mt_nsys *nsys, struct mt_error *error) MT_MUST_USE;

#endif

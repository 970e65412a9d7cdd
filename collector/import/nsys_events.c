/* Two readings of the events of memory. The first finds frees without an allocation: their blocks
 * were alive when the recording began. The second has the ranges of NVTX in between. SQLite sorts
 * both by time. */
#include <stdlib.h>
#include <string.h>

#include "grow.h"
#include "nsys_parts.h"
#include "util.h"

/* Columns of a row. `order` and `more` decide the order of rows with one time and class. */
enum {
    T,
    CLASS,
    ORDER,
    MORE,
    THREAD,
    TEXT,
    ADDRESS, /* of a range: its domain */
    BYTES,
    KIND,
    OPERATION,
    DEVICE,
    STREAM,
    CALL, /* its number */
    POOL,
    POOL_BYTES,
    IMPORTED
};

/* Rows with one time are in this order. A range without length ends after its events. */
enum { RANGE_END, RANGE_BEGIN, MARK, REFUSED, MEMORY, LATE_END };

enum { ALLOCATION, FREE };
enum { NVTX_MARK = 34, NVTX_PUSH_POP = 59, NVTX_START_END = 60, OUT_OF_MEMORY = 2 };

static const int64_t MAX_BYTES = (int64_t)1 << 60;
static const int64_t MAX_TIME_NS = (int64_t)1 << 61;
enum { MAX_DEVICE = 1023, MAX_POOLS = 4096 };

static const char *const heap_names[MT_NSYS_HEAPS] = {
    "driver:pageable", "driver:host",    "driver",         "driver:array", "driver:managed",
    "driver:static",   "driver:managed", "driver:unknown", "driver:async", "driver:imported"};

static enum mt_status heap_of(struct mt_nsys *nsys, enum mt_nsys_heap heap, uint16_t *number)
{
    struct mt_symbols *symbols = &nsys->made.symbols;
    uint32_t name, id = nsys->heaps[heap];
    enum mt_status status = MT_OK;

    if (!id) {
        status = mt_symbols_string(symbols, heap_names[heap], strlen(heap_names[heap]), &name);
        if (!status)
            status = mt_symbols_heap(symbols, name, &id);
        nsys->heaps[heap] = ++id;
    }
    *number = (uint16_t)(id - 1);
    return status;
}

static enum mt_status pool_of(struct mt_nsys *nsys, uint64_t addr, uint16_t *number)
{
    uint32_t id = mt_map_get(&nsys->pools, addr);
    enum mt_status status = MT_OK;

    *number = 0;
    nsys->has_more_pools |= id == MT_MAP_NONE && nsys->pools.count == MAX_POOLS;
    if (id == MT_MAP_NONE && nsys->pools.count < MAX_POOLS) {
        status = mt_symbols_pool(&nsys->made.symbols, addr, 0, &id);
        if (!status)
            status = mt_map_set(&nsys->pools, addr, id);
    }
    if (!status && id != MT_MAP_NONE)
        *number = (uint16_t)id;
    return status;
}

static enum mt_status thread_of(struct mt_nsys *nsys, const struct mt_value *tid, uint16_t *number)
{
    enum mt_status status = MT_OK;

    *number = 0;
    if (tid->kind != MT_VALUE_INTEGER)
        return MT_OK;
    uint32_t id = mt_map_get(&nsys->threads, (uint64_t)tid->integer);
    if (id == MT_MAP_NONE) {
        status = mt_symbols_thread(&nsys->made.symbols, MT_NO_ID, (uint64_t)tid->integer & 0xffffff,
                                   &id);
        if (status == MT_ERR_UNSUPPORTED)
            return mt_fail(nsys->error, status, MT_NO_OFFSET, "more than 65,534 threads");
        if (!status)
            status = mt_map_set(&nsys->threads, (uint64_t)tid->integer, id);
    }
    if (!status)
        *number = (uint16_t)id;
    return status;
}

static enum mt_status stream_of(struct mt_nsys *nsys, const struct mt_value *stream, uint32_t *id)
{
    *id = 0;
    if (stream->kind != MT_VALUE_INTEGER || !stream->integer ||
        mt_map_get(&nsys->null_streams, (uint64_t)stream->integer) != MT_MAP_NONE)
        return MT_OK;
    return mt_symbols_stream(&nsys->made.symbols, (uint64_t)stream->integer, id);
}

/* enum mt_nsys_heap, without pools. */
static uint32_t kind_of(const struct mt_nsys *nsys, const struct mt_value *row)
{
    if (row[KIND].kind != MT_VALUE_INTEGER || mt_nsys_integer(&row[IMPORTED], 0))
        return MT_NSYS_DEVICE;
    uint32_t kind = mt_map_get(&nsys->kinds, (uint64_t)row[KIND].integer);
    return kind == MT_MAP_NONE              ? MT_NSYS_UNKNOWN
           : kind == MT_NSYS_MANAGED_STATIC ? MT_NSYS_MANAGED
                                            : kind;
}

static enum mt_nsys_heap heap_kind_of(const struct mt_nsys *nsys, const struct mt_value *row)
{
    uint32_t kind = kind_of(nsys, row);

    if (mt_nsys_integer(&row[IMPORTED], 0))
        return MT_NSYS_IMPORTED;
    return kind == MT_NSYS_DEVICE && mt_nsys_integer(&row[POOL], 0) ? MT_NSYS_ASYNC : kind;
}

/* Kinds of memory may have addresses of their own: that of an array is a handle. A free may name no
 * pool. */
static uint64_t key_of(const struct mt_nsys *nsys, const struct mt_value *row)
{
    return (uint64_t)row[ADDRESS].integer ^ mt_mix_u64(kind_of(nsys, row));
}

static enum mt_status fill_block(struct mt_nsys *nsys, const struct mt_value *row,
                                 struct mt_nsys_block *block)
{
    enum mt_nsys_heap heap = heap_kind_of(nsys, row);
    int64_t device = mt_nsys_integer(&row[DEVICE], 0), pool = mt_nsys_integer(&row[POOL], 0);

    *block = (struct mt_nsys_block){.key = key_of(nsys, row),
                                    .addr = (uint64_t)row[ADDRESS].integer,
                                    .size_bytes = (uint64_t)row[BYTES].integer,
                                    .device = (uint16_t)device};
    enum mt_status status = heap_of(nsys, heap, &block->heap);
    if (!status)
        status = stream_of(nsys, &row[STREAM], &block->stream);
    if (heap == MT_NSYS_IMPORTED)
        pool = row[IMPORTED].integer;
    if (!status && (heap == MT_NSYS_ASYNC || heap == MT_NSYS_IMPORTED))
        status = pool_of(nsys, (uint64_t)pool, &block->pool);
    if (!status && block->device >= nsys->made.symbols.device_count)
        status = mt_symbols_device(&nsys->made.symbols, block->device, MT_NO_ID, 0);
    return status;
}

/* Sets *index to an unused entry of the blocks. */
static enum mt_status new_block(struct mt_nsys *nsys, uint32_t *index)
{
    *index = nsys->free_block - 1;
    if (nsys->free_block) {
        nsys->free_block = nsys->blocks[*index].next_free;
        return MT_OK;
    }
    if (nsys->block_count >= UINT32_MAX - 1 ||
        mt_grow(&nsys->blocks, &nsys->block_capacity, nsys->block_count + 1, sizeof *nsys->blocks))
        return MT_ERR_MEMORY;
    *index = (uint32_t)nsys->block_count++;
    return MT_OK;
}

static enum mt_status add_event(struct mt_nsys *nsys, struct mt_event *event)
{
    return mt_made_trace_add(&nsys->made, event, nsys->error);
}

static struct mt_event event_of(const struct mt_nsys_block *block, uint8_t kind, uint64_t t_ns)
{
    return (struct mt_event){.kind = kind,
                             .t_ns = t_ns,
                             .addr = block->addr,
                             .size_bytes = block->size_bytes,
                             .stream = block->stream,
                             .heap = block->heap,
                             .device = block->device,
                             .pool = block->pool,
                             .stack = MT_NO_ID,
                             .name = MT_NO_ID};
}

static enum mt_status add_free(struct mt_nsys *nsys, uint32_t index, struct mt_event *event)
{
    nsys->blocks[index].next_free = nsys->free_block;
    nsys->free_block = index + 1;
    return add_event(nsys, event);
}

/* The driver cannot give out the address of a block that is alive, so its free is missing. */
static enum mt_status end_lost(struct mt_nsys *nsys, uint64_t key, uint64_t t_ns)
{
    uint32_t index = mt_map_take(&nsys->alive, key);

    if (index == MT_MAP_NONE)
        return MT_OK;
    nsys->frees_lost++;
    struct mt_event event = event_of(&nsys->blocks[index], MT_EVENT_FREE_REQUESTED, t_ns);
    return add_free(nsys, index, &event);
}

/* Returns what a map has for the call that made an event, or MT_MAP_NONE. */
static uint32_t of_call(const struct mt_map *map, const struct mt_value *row)
{
    return row[CALL].kind == MT_VALUE_INTEGER ? mt_map_get(map, (uint64_t)row[CALL].integer)
                                              : MT_MAP_NONE;
}

static uint16_t thread_of_call(const struct mt_nsys *nsys, const struct mt_value *row)
{
    uint32_t thread = of_call(&nsys->call_threads, row);

    return (uint16_t)(thread == MT_MAP_NONE ? 0 : thread);
}

static enum mt_status take_allocation(struct mt_nsys *nsys, const struct mt_value *row,
                                      uint64_t t_ns)
{
    uint64_t key = key_of(nsys, row);
    uint32_t index;
    enum mt_status status = end_lost(nsys, key, t_ns);

    if (!status)
        status = new_block(nsys, &index);
    if (!status)
        status = fill_block(nsys, row, &nsys->blocks[index]);
    if (status)
        return status;
    struct mt_event event = event_of(&nsys->blocks[index], MT_EVENT_ALLOC, t_ns);
    event.stack = of_call(&nsys->call_stacks, row); /* MT_MAP_NONE is MT_NO_ID */
    event.thread = thread_of_call(nsys, row);
    nsys->allocations++;
    nsys->kinds_unknown += kind_of(nsys, row) == MT_NSYS_UNKNOWN;
    nsys->made.header.has_stacks |= event.stack != MT_NO_ID;
    status = mt_map_set(&nsys->alive, key, index);
    if (!status)
        status = mt_nsys_text(nsys, &row[TEXT], &event.name);
    return status ? status : add_event(nsys, &event);
}

static enum mt_status take_free(struct mt_nsys *nsys, const struct mt_value *row, uint64_t t_ns)
{
    uint32_t index = mt_map_take(&nsys->alive, key_of(nsys, row));
    enum mt_status status = MT_OK;

    if (index == MT_MAP_NONE) {
        nsys->frees_unknown++;
        return MT_OK;
    }
    struct mt_event event = event_of(&nsys->blocks[index], MT_EVENT_FREE_REQUESTED, t_ns);
    nsys->sizes_differ += row[BYTES].integer && (uint64_t)row[BYTES].integer != event.size_bytes;
    event.thread = thread_of_call(nsys, row);
    if (row[STREAM].kind == MT_VALUE_INTEGER)
        status = stream_of(nsys, &row[STREAM], &event.stream);
    return status ? status : add_free(nsys, index, &event);
}

/* First reading. An address is remembered after its free, because a second free of it does not mean
 * that its block was alive at the start. */
static enum mt_status look_for_initial(struct mt_nsys *nsys, const struct mt_value *row,
                                       bool is_free)
{
    uint64_t key = key_of(nsys, row);
    uint32_t index, seen = mt_map_get(&nsys->alive, key);
    enum mt_status status = MT_OK;

    if (is_free && seen == MT_MAP_NONE && row[BYTES].integer) {
        status = new_block(nsys, &index);
        if (!status)
            status = fill_block(nsys, row, &nsys->blocks[index]);
        nsys->initial_count += !status;
    }
    return status ? status : mt_map_set(&nsys->alive, key, 1);
}

/* Returns why a row of the table of memory cannot be used; NULL: it can. */
static const char *fault_of(const struct mt_value *row, uint32_t operation)
{
    int64_t bytes = mt_nsys_integer(&row[BYTES], -1), device = mt_nsys_integer(&row[DEVICE], 0);

    if (operation > FREE)
        return "an event of memory is neither an allocation nor a free";
    if (!mt_nsys_integer(&row[ADDRESS], 0))
        return "an event of memory has no address";
    if (bytes < 0 || bytes > MAX_BYTES || (operation == ALLOCATION && !bytes))
        return "an event of memory has an impossible size";
    return device < 0 || device > MAX_DEVICE ? "an event of memory has an impossible device" : NULL;
}

static enum mt_status take_memory(struct mt_nsys *nsys, const struct mt_value *row, uint64_t t_ns)
{
    uint32_t operation =
        mt_map_get(&nsys->operations, (uint64_t)mt_nsys_integer(&row[OPERATION], -1));
    const char *fault = fault_of(row, operation);

    if (nsys->is_first_reading)
        return fault ? MT_OK : look_for_initial(nsys, row, operation == FREE);
    if (fault) {
        mt_made_trace_skip(&nsys->made, MT_NO_OFFSET, fault);
        return MT_OK;
    }
    if (mt_nsys_integer(&row[POOL], 0))
        nsys->most_pool_bytes = mt_max_u64(
            nsys->most_pool_bytes, (uint64_t)mt_nsys_integer(&row[POOL_BYTES], 0) & INT64_MAX);
    return operation == FREE ? take_free(nsys, row, t_ns) : take_allocation(nsys, row, t_ns);
}

/* "DOMAIN: NAME", as the recorder names ranges. */
static enum mt_status name_of(struct mt_nsys *nsys, const struct mt_value *row, uint32_t *name)
{
    const struct mt_symbols *symbols = &nsys->made.symbols;
    uint32_t domain = mt_map_get(&nsys->domains, (uint64_t)mt_nsys_integer(&row[ADDRESS], 0));
    bool is_refused = row[CLASS].integer == REFUSED;
    enum mt_status status = mt_nsys_text(nsys, &row[TEXT], name);

    if (status || (domain == MT_MAP_NONE && !is_refused))
        return status;
    mt_buf_reset(&nsys->text);
    if (domain != MT_MAP_NONE)
        mt_buf_printf(&nsys->text, "%s: ", mt_symbols_text(symbols, domain));
    if (*name != MT_NO_ID)
        mt_buf_add_text(&nsys->text, mt_symbols_text(symbols, *name));
    else if (is_refused)
        mt_buf_add_text(&nsys->text, "a call");
    if (is_refused)
        mt_buf_add_text(&nsys->text, " was refused: out of memory");
    return mt_nsys_add_text(nsys, name);
}

static enum mt_status take_range(struct mt_nsys *nsys, const struct mt_value *row, uint64_t t_ns)
{
    int64_t class = row[CLASS].integer;
    struct mt_event event = {.kind = class == RANGE_BEGIN                ? MT_EVENT_PHASE_PUSH
                                     : class == MARK || class == REFUSED ? MT_EVENT_MARK
                                                                         : MT_EVENT_PHASE_POP,
                             .t_ns = t_ns,
                             .stack = MT_NO_ID};
    enum mt_status status = name_of(nsys, row, &event.name);

    nsys->refused += class == REFUSED;
    if (event.name == MT_NO_ID)
        event.name = 0;
    if (!status)
        status = thread_of(nsys, &row[THREAD], &event.thread);
    return status ? status : add_event(nsys, &event);
}

/* Blocks of the first reading, at the time of the first event. */
static enum mt_status begin(struct mt_nsys *nsys, uint64_t t_ns)
{
    enum mt_status status = MT_OK;

    nsys->has_begun = true;
    for (size_t i = 0; i < nsys->initial_count && !status; i++) {
        struct mt_event event = event_of(&nsys->blocks[i], MT_EVENT_ALLOC, t_ns);

        event.flags = MT_EVENT_INITIAL;
        status = add_event(nsys, &event);
    }
    return status;
}

static enum mt_status take_row(struct mt_nsys *nsys, const struct mt_value *row)
{
    int64_t t = mt_nsys_integer(&row[T], INT64_MIN);
    bool is_memory = row[CLASS].integer == MEMORY;
    enum mt_status status = MT_OK;

    if (t > MAX_TIME_NS || t < -(int64_t)nsys->begin_t_ns) {
        if (!nsys->is_first_reading)
            mt_made_trace_skip(&nsys->made, MT_NO_OFFSET, "an event has an impossible time");
        return MT_OK;
    }
    t += (int64_t)nsys->begin_t_ns;
    if (!nsys->is_first_reading && !nsys->has_begun)
        status = begin(nsys, (uint64_t)t);
    if (status)
        return status;
    return is_memory ? take_memory(nsys, row, (uint64_t)t) : take_range(nsys, row, (uint64_t)t);
}

/* ---- the questions */

static bool has_calls(const struct mt_nsys *nsys)
{
    return mt_nsys_has(nsys, MT_NSYS_MEMORY ".correlationId") &&
           mt_nsys_has(nsys, MT_NSYS_RUNTIME ".correlationId") &&
           mt_nsys_has(nsys, MT_NSYS_RUNTIME ".globalTid");
}

/* Without joins: statistics in the file could make one of them quadratic. */
static void add_memory(struct mt_buf *sql, const struct mt_nsys *nsys)
{
    mt_buf_printf(sql, "SELECT e.start, %d, e.rowid, 0, NULL", MEMORY);
    mt_nsys_add_column(sql, nsys, "e", MT_NSYS_MEMORY ".name");
    mt_buf_add_text(sql, ", e.address, e.bytes");
    mt_nsys_add_column(sql, nsys, "e", MT_NSYS_MEMORY ".memKind");
    mt_buf_add_text(sql, ", e.memoryOperationType");
    mt_nsys_add_column(sql, nsys, "e", MT_NSYS_MEMORY ".deviceId");
    mt_nsys_add_column(sql, nsys, "e", MT_NSYS_MEMORY ".streamId");
    mt_nsys_add_column(sql, nsys, "e", MT_NSYS_MEMORY ".correlationId");
    mt_nsys_add_column(sql, nsys, "e", MT_NSYS_MEMORY ".localMemoryPoolAddress");
    mt_nsys_add_column(sql, nsys, "e", MT_NSYS_MEMORY ".localMemoryPoolSize");
    mt_nsys_add_column(sql, nsys, "e", MT_NSYS_MEMORY ".importedMemoryPoolAddress");
    mt_buf_add_text(sql, " FROM " MT_NSYS_MEMORY " e WHERE ");
    if (nsys->has_process)
        mt_buf_printf(sql, "typeof(e.globalPid) = 'integer' AND e.globalPid = %lld",
                      (long long)nsys->process);
    else
        mt_buf_add_text(sql, "1");
}

/* One end of the ranges, or the marks. */
static void add_ranges(struct mt_buf *sql, const struct mt_nsys *nsys, int class)
{
    if (class == RANGE_END)
        mt_buf_printf(sql,
                      " UNION ALL SELECT n.\"end\", CASE WHEN n.\"end\" = n.start THEN %d ELSE %d "
                      "END, -n.start, -n.rowid, ",
                      LATE_END, RANGE_END);
    else
        mt_buf_printf(
            sql, " UNION ALL SELECT n.start, %d, coalesce(-n.\"end\", -1 << 62), n.rowid, ", class);
    mt_buf_add_text(sql, "n.globalTid, ");
    mt_buf_add_text(sql, mt_nsys_range_text(nsys));
    mt_nsys_add_column(sql, nsys, "n", "NVTX_EVENTS.domainId");
    mt_buf_add_text(sql, ", 0, NULL, 0, 0, NULL, NULL, NULL, NULL, NULL FROM NVTX_EVENTS n");
    if (class == MARK)
        mt_buf_printf(sql, " WHERE n.eventType = %d AND ", NVTX_MARK);
    else
        mt_buf_printf(sql, " WHERE n.eventType IN (%d, %d) AND ", NVTX_PUSH_POP, NVTX_START_END);
    if (class == RANGE_END)
        mt_buf_add_text(sql, "n.\"end\" IS NOT NULL AND ");
    mt_nsys_add_process(sql, nsys, "n.globalTid");
}

/* Calls that the driver refused for lack of memory. */
static void add_refused(struct mt_buf *sql, const struct mt_nsys *nsys)
{
    mt_buf_printf(sql,
                  " UNION ALL SELECT r.\"end\", %d, r.rowid, 0, r.globalTid, r.nameId, NULL, 0, "
                  "NULL, 0, 0, NULL, NULL, NULL, NULL, NULL FROM " MT_NSYS_RUNTIME
                  " r WHERE r.returnValue = %d AND ",
                  REFUSED, OUT_OF_MEMORY);
    mt_nsys_add_process(sql, nsys, "r.globalTid");
}

static bool has_ranges(const struct mt_nsys *nsys)
{
    return mt_nsys_has(nsys, "NVTX_EVENTS.start") && mt_nsys_has(nsys, "NVTX_EVENTS.end") &&
           mt_nsys_has(nsys, "NVTX_EVENTS.text") && mt_nsys_has(nsys, "NVTX_EVENTS.eventType") &&
           mt_nsys_has(nsys, "NVTX_EVENTS.globalTid");
}

static bool has_refused(const struct mt_nsys *nsys)
{
    return mt_nsys_has(nsys, MT_NSYS_RUNTIME ".returnValue") &&
           mt_nsys_has(nsys, MT_NSYS_RUNTIME ".nameId") &&
           mt_nsys_has(nsys, MT_NSYS_RUNTIME ".end") &&
           mt_nsys_has(nsys, MT_NSYS_RUNTIME ".globalTid");
}

static enum mt_status read(struct mt_nsys *nsys, bool is_first, struct mt_error *error)
{
    struct mt_buf sql = {0};

    nsys->is_first_reading = is_first;
    add_memory(&sql, nsys);
    if (!is_first && has_ranges(nsys)) {
        add_ranges(&sql, nsys, RANGE_BEGIN);
        add_ranges(&sql, nsys, RANGE_END);
        add_ranges(&sql, nsys, MARK);
    }
    if (!is_first && has_refused(nsys))
        add_refused(&sql, nsys);
    mt_buf_add_text(&sql, " ORDER BY 1, 2, 3, 4");
    enum mt_status status = mt_nsys_ask(nsys, &sql, take_row, error);
    mt_buf_release(&sql);
    return status;
}

/* The blocks that the first reading found are alive when the second one begins. */
static enum mt_status keep_initial(struct mt_nsys *nsys)
{
    enum mt_status status = MT_OK;

    mt_map_release(&nsys->alive);
    for (size_t i = 0; i < nsys->initial_count && !status; i++)
        status = mt_map_set(&nsys->alive, nsys->blocks[i].key, (uint32_t)i);
    return status;
}

enum mt_status mt_nsys_read_events(struct mt_nsys *nsys, struct mt_error *error)
{
    enum mt_status status = read(nsys, true, error);

    if (!status && keep_initial(nsys))
        return mt_fail_memory(error);
    return status ? status : read(nsys, false, error);
}

static enum mt_status take_frame(struct mt_nsys *nsys, const struct mt_value *row)
{
    struct mt_symbols *symbols = &nsys->made.symbols;
    int64_t chain = mt_nsys_integer(&row[0], 0);
    uint32_t function, file, frame;

    if (chain != nsys->chain)
        nsys->stack = MT_NO_ID;
    nsys->chain = chain;
    enum mt_status status = mt_nsys_text(nsys, &row[1], &function);
    if (!status)
        status = mt_nsys_text(nsys, &row[2], &file);
    if (!status)
        status = mt_symbols_frame(symbols, function == MT_NO_ID ? 0 : function,
                                  file == MT_NO_ID ? 0 : file, 0, &frame);
    if (!status)
        status = mt_symbols_stack(symbols, nsys->stack, frame, &nsys->stack);
    return status ? status : mt_map_set(&nsys->stacks, (uint64_t)chain, nsys->stack);
}

/* Adds a condition: the call made an event of memory. CUPTI numbers the calls of a process. */
static void add_is_wanted(struct mt_buf *sql, const struct mt_nsys *nsys)
{
    mt_nsys_add_process(sql, nsys, "r.globalTid");
    mt_buf_add_text(sql, " AND r.correlationId IN (SELECT correlationId FROM " MT_NSYS_MEMORY ")");
}

static bool has_chains(const struct mt_nsys *nsys)
{
    return mt_nsys_has(nsys, MT_NSYS_RUNTIME ".callchainId") &&
           mt_nsys_has(nsys, "CUDA_CALLCHAINS.stackDepth") &&
           mt_nsys_has(nsys, "CUDA_CALLCHAINS.symbol");
}

/* Depth 0 is the innermost frame. */
static enum mt_status read_chains(struct mt_nsys *nsys, struct mt_error *error)
{
    struct mt_buf sql = {0};

    mt_buf_add_text(&sql, "SELECT c.id, c.symbol");
    mt_nsys_add_column(&sql, nsys, "c", "CUDA_CALLCHAINS.module");
    mt_buf_add_text(
        &sql, " FROM CUDA_CALLCHAINS c WHERE c.id IN (SELECT r.callchainId FROM " MT_NSYS_RUNTIME
              " r WHERE ");
    add_is_wanted(&sql, nsys);
    mt_buf_add_text(&sql, ") ORDER BY c.id, c.stackDepth DESC");
    enum mt_status status = mt_nsys_ask(nsys, &sql, take_frame, error);
    mt_buf_release(&sql);
    return status;
}

static enum mt_status take_call(struct mt_nsys *nsys, const struct mt_value *row)
{
    uint64_t number = (uint64_t)mt_nsys_integer(&row[0], 0);
    uint32_t stack = mt_map_get(&nsys->stacks, (uint64_t)mt_nsys_integer(&row[2], 0));
    uint16_t thread;
    enum mt_status status = MT_OK;

    if (row[0].kind != MT_VALUE_INTEGER)
        return MT_OK;
    status = thread_of(nsys, &row[1], &thread);
    if (!status)
        status = mt_map_set(&nsys->call_threads, number, thread);
    return status || stack == MT_MAP_NONE ? status : mt_map_set(&nsys->call_stacks, number, stack);
}

/* A call may have several rows: that with the last call chain counts. */
enum mt_status mt_nsys_read_calls(struct mt_nsys *nsys, struct mt_error *error)
{
    struct mt_buf sql = {0};
    enum mt_status status = MT_OK;

    if (!has_calls(nsys))
        return MT_OK;
    if (has_chains(nsys))
        status = read_chains(nsys, error);
    if (status)
        return status;
    mt_buf_add_text(&sql, "SELECT r.correlationId, r.globalTid");
    mt_nsys_add_column(&sql, nsys, "r", MT_NSYS_RUNTIME ".callchainId");
    mt_buf_add_text(&sql, " FROM " MT_NSYS_RUNTIME " r WHERE ");
    add_is_wanted(&sql, nsys);
    mt_buf_add_text(&sql, " ORDER BY 3");
    status = mt_nsys_ask(nsys, &sql, take_call, error);
    mt_buf_release(&sql);
    return status;
}

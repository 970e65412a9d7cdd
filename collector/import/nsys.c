/* What the file is, the process that is read, and its facts; then the events (nsys_events.c). */
#include <stdlib.h>
#include <string.h>

#include "database_file.h"
#include "importers.h"
#include "monotonic_clock.h"
#include "nsys_parts.h"
#include "units.h"
#include "util.h"

enum { MAX_PROCESSES = 8, MAX_NAME_BYTES = 200, MAX_PCI_BYTES = 32 };

static const int64_t MAX_EPOCH_NS = (int64_t)1 << 61;

static const char kind_prefix[] = "CUDA_MEMOPR_MEMORY_KIND_";
static const char *const kind_names[MT_NSYS_ASYNC] = {"PAGEABLE",       "PINNED",  "DEVICE",
                                                      "ARRAY",          "MANAGED", "DEVICE_STATIC",
                                                      "MANAGED_STATIC", "UNKNOWN"};

bool mt_nsys_probe(const void *bytes, size_t length)
{
    static const char magic[] = "SQLite format 3";

    return length >= sizeof magic && memcmp(bytes, magic, sizeof magic) == 0;
}

static enum mt_status check_file(const char *path, struct mt_error *error)
{
    if (!path)
        return mt_fail(error, MT_ERR_UNSUPPORTED, MT_NO_OFFSET,
                       "a database is read from a file that is not compressed: write it to one");
    struct mt_database_file file = mt_database_file_of(path);
    if (!file.is_sqlite)
        return mt_fail(error, MT_ERR_FORMAT, 0, "the database is cut within its header");
    if (file.is_own)
        return mt_fail(error, MT_ERR_UNSUPPORTED, MT_NO_OFFSET,
                       "a database of memtrace export sqlite: use memtrace sql, or give the "
                       "recording that it was made of");
    if (file.bytes < file.all_bytes)
        return mt_fail(error, MT_ERR_FORMAT, file.bytes,
                       "the database is cut: it has %llu of %llu bytes",
                       (unsigned long long)file.bytes, (unsigned long long)file.all_bytes);
    if (file.is_being_changed)
        return mt_fail(error, MT_ERR_UNSUPPORTED, MT_NO_OFFSET,
                       "a change of the database by another program is not complete: open and "
                       "close it with sqlite3 first");
    return MT_OK;
}

static enum mt_status ask(struct mt_nsys *nsys, const char *text, mt_nsys_row on_row,
                          struct mt_error *error)
{
    struct mt_buf sql = {0};

    mt_buf_add_text(&sql, text);
    enum mt_status status = mt_nsys_ask(nsys, &sql, on_row, error);
    mt_buf_release(&sql);
    return status;
}

static enum mt_status take_column(struct mt_nsys *nsys, const struct mt_value *row)
{
    uint32_t id;

    if (row[0].kind != MT_VALUE_TEXT)
        return MT_OK;
    return mt_strings_intern(&nsys->columns, row[0].text, row[0].length, &id);
}

/* Only ordinary tables: a view has no first page, and neither has a table of an extension. */
static enum mt_status read_schema(struct mt_nsys *nsys, struct mt_error *error)
{
    static const char *const needed[] = {MT_NSYS_MEMORY ".address", MT_NSYS_MEMORY ".bytes",
                                         MT_NSYS_MEMORY ".memoryOperationType"};
    enum mt_status status =
        ask(nsys,
            "SELECT m.name || '.' || p.name FROM sqlite_master m, pragma_table_info(m.name) p "
            "WHERE m.type = 'table' AND m.rootpage > 0 AND m.name IN ('" MT_NSYS_MEMORY
            "', '" MT_NSYS_RUNTIME "', 'CUDA_CALLCHAINS', 'NVTX_EVENTS', 'StringIds', "
            "'ThreadNames', 'ENUM_CUDA_MEM_KIND', "
            "'ENUM_CUDA_DEV_MEM_EVENT_OPER', 'TARGET_INFO_GPU', 'TARGET_INFO_CUDA_DEVICE', "
            "'TARGET_INFO_CUDA_CONTEXT_INFO', 'TARGET_INFO_SESSION_START_TIME')",
            take_column, error);

    if (status)
        return status;
    if (!mt_nsys_has(nsys, MT_NSYS_MEMORY ".start"))
        return mt_fail(error, MT_ERR_UNSUPPORTED, MT_NO_OFFSET,
                       mt_nsys_has(nsys, "StringIds.value")
                           ? "an export of Nsight Systems without events of memory: profile with "
                             "nsys profile --cuda-memory-usage=true"
                           : "a database that has no table " MT_NSYS_MEMORY
                             " of Nsight Systems (nsys export --type sqlite)");
    for (size_t i = 0; i < MT_ARRAY_LEN(needed); i++)
        if (!mt_nsys_has(nsys, needed[i]))
            return mt_fail(error, MT_ERR_UNSUPPORTED, MT_NO_OFFSET, "the database has no column %s",
                           needed[i]);
    nsys->has_process = mt_nsys_has(nsys, MT_NSYS_MEMORY ".globalPid");
    return MT_OK;
}

/* ---- the process */

static unsigned pid_of(int64_t global)
{
    return (unsigned)((uint64_t)global >> 24 & 0xffffff);
}

/* The first row has the most bytes. */
static enum mt_status take_process(struct mt_nsys *nsys, const struct mt_value *row)
{
    char bytes[MT_UNITS_TEXT];
    double total = row[2].kind == MT_VALUE_REAL ? row[2].real : 0;
    int64_t events = mt_nsys_integer(&row[1], 0);

    if (!nsys->processes++) {
        nsys->process = mt_nsys_integer(&row[0], 0);
        nsys->made.header.process_id = pid_of(nsys->process);
        return MT_OK;
    }
    if (++nsys->processes_left_out > MAX_PROCESSES)
        return MT_OK;
    total = total > 0 && total < 1e18 ? total : 0;
    mt_buf_printf(&nsys->not_used,
                  "process %u: %lld event%s of memory, %s allocated in all; the process with the "
                  "most bytes is read\n",
                  pid_of(mt_nsys_integer(&row[0], 0)), (long long)events, events == 1 ? "" : "s",
                  mt_format_bytes(bytes, (uint64_t)total));
    return MT_OK;
}

static enum mt_status choose_process(struct mt_nsys *nsys, struct mt_error *error)
{
    struct mt_buf sql = {0};

    if (!nsys->has_process)
        return MT_OK;
    mt_buf_printf(&sql,
                  "SELECT globalPid, count(*), total(CASE WHEN memoryOperationType = %lld THEN "
                  "bytes END) FROM " MT_NSYS_MEMORY " WHERE typeof(globalPid) = 'integer' GROUP BY "
                  "1 ORDER BY 3 DESC, 1",
                  (long long)nsys->allocation);
    enum mt_status status = mt_nsys_ask(nsys, &sql, take_process, error);
    mt_buf_release(&sql);
    if (!status && nsys->processes_left_out > MAX_PROCESSES)
        mt_buf_printf(&nsys->not_used, "more processes with events of memory: %llu\n",
                      (unsigned long long)(nsys->processes_left_out - MAX_PROCESSES));
    return status;
}

static enum mt_status take_odd(struct mt_nsys *nsys, const struct mt_value *row)
{
    int64_t count = mt_nsys_integer(&row[0], 0);

    if (count > 0) {
        mt_made_trace_skip(&nsys->made, MT_NO_OFFSET, "an event of memory names no process");
        nsys->made.integrity.records_damaged += (uint64_t)count - 1;
    }
    return MT_OK;
}

/* Events of no process, which a damaged file may have. */
static enum mt_status count_odd(struct mt_nsys *nsys, struct mt_error *error)
{
    if (!nsys->has_process)
        return MT_OK;
    return ask(nsys, "SELECT count(*) FROM " MT_NSYS_MEMORY " WHERE typeof(globalPid) <> 'integer'",
               take_odd, error);
}

/* ---- facts */

static enum mt_status take_kind(struct mt_nsys *nsys, const struct mt_value *row)
{
    const size_t prefix = sizeof kind_prefix - 1;

    for (uint32_t i = 0; i < MT_ARRAY_LEN(kind_names); i++)
        if (row[0].kind == MT_VALUE_INTEGER && row[1].kind == MT_VALUE_TEXT &&
            row[1].length == prefix + strlen(kind_names[i]) &&
            !memcmp(row[1].text, kind_prefix, prefix) &&
            !memcmp(row[1].text + prefix, kind_names[i], strlen(kind_names[i])))
            return mt_map_set(&nsys->kinds, (uint64_t)row[0].integer, i);
    return MT_OK;
}

static enum mt_status take_operation(struct mt_nsys *nsys, const struct mt_value *row)
{
    static const char *const names[] = {"CUDA_DEV_MEM_EVENT_OPR_ALLOCATION",
                                        "CUDA_DEV_MEM_EVENT_OPR_DEALLOCATION"};

    for (uint32_t i = 0; i < MT_ARRAY_LEN(names); i++)
        if (row[0].kind == MT_VALUE_INTEGER && row[1].kind == MT_VALUE_TEXT &&
            row[1].length == strlen(names[i]) && !memcmp(row[1].text, names[i], row[1].length)) {
            if (!i)
                nsys->allocation = row[0].integer;
            return mt_map_set(&nsys->operations, (uint64_t)row[0].integer, i);
        }
    return MT_OK;
}

/* The numbers of 2025 if the file does not define them. */
static enum mt_status read_numbers(struct mt_nsys *nsys, struct mt_error *error)
{
    enum mt_status status = MT_OK;

    if (mt_nsys_has(nsys, "ENUM_CUDA_MEM_KIND.name"))
        status = ask(nsys, "SELECT id, name FROM ENUM_CUDA_MEM_KIND", take_kind, error);
    if (!status && mt_nsys_has(nsys, "ENUM_CUDA_DEV_MEM_EVENT_OPER.name"))
        status =
            ask(nsys, "SELECT id, name FROM ENUM_CUDA_DEV_MEM_EVENT_OPER", take_operation, error);
    for (uint32_t i = 0; i < MT_ARRAY_LEN(kind_names) && !status && nsys->kinds.count <= i; i++)
        status = mt_map_set(&nsys->kinds, i, i);
    for (uint32_t i = 0; i < 2 && !status && nsys->operations.count <= i; i++)
        status = mt_map_set(&nsys->operations, i, i);
    return status;
}

static enum mt_status take_string(struct mt_nsys *nsys, const struct mt_value *row)
{
    uint32_t index;

    if (row[0].kind != MT_VALUE_INTEGER || row[1].kind != MT_VALUE_TEXT ||
        mt_map_find(&nsys->string_ids, (uint64_t)row[0].integer) != MT_MAP_NONE)
        return MT_OK;
    enum mt_status status = mt_strings_intern(
        &nsys->strings, row[1].text, mt_min_u64(row[1].length, MT_NSYS_TEXT_BYTES), &index);
    return status ? status : mt_map_set(&nsys->string_ids, (uint64_t)row[0].integer, index);
}

/* The first text of a number counts. */
static enum mt_status read_strings(struct mt_nsys *nsys, struct mt_error *error)
{
    if (!mt_nsys_has(nsys, "StringIds.id") || !mt_nsys_has(nsys, "StringIds.value"))
        return MT_OK;
    return ask(nsys, "SELECT id, value FROM StringIds NOT INDEXED", take_string, error);
}

static enum mt_status take_start(struct mt_nsys *nsys, const struct mt_value *row)
{
    int64_t t_ns = mt_nsys_integer(&row[0], 0);

    nsys->begin_t_ns = t_ns > 0 && t_ns < MAX_EPOCH_NS ? (uint64_t)t_ns : 0;
    return MT_OK;
}

static enum mt_status short_text(struct mt_nsys *nsys, struct mt_value value, size_t most,
                                 uint32_t *id)
{
    value.length = mt_min_u64(value.length, most);
    return mt_nsys_text(nsys, &value, id);
}

/* number, name, memory, UUID, PCI address */
static enum mt_status take_device(struct mt_nsys *nsys, const struct mt_value *row)
{
    struct mt_symbols *symbols = &nsys->made.symbols;
    int64_t number = mt_nsys_integer(&row[0], -1), bytes = mt_nsys_integer(&row[2], 0);
    uint32_t name, id;

    if (number < 0 || number > 1023)
        return MT_OK;
    enum mt_status status = short_text(nsys, row[1], MAX_NAME_BYTES, &name);
    if (!status)
        status = mt_symbols_device(symbols, (uint32_t)number, name,
                                   bytes > 0 && bytes < (int64_t)1 << 60 ? (uint64_t)bytes : 0);
    if (status || number >= MT_IDENTITY_DEVICES)
        return status;
    mt_buf_reset(&nsys->text);
    mt_buf_add_text(&nsys->text, "GPU-");
    if (row[3].kind == MT_VALUE_TEXT && row[3].length == 36) {
        mt_buf_add(&nsys->text, row[3].text, row[3].length);
        status = nsys->text.failed
                     ? MT_ERR_MEMORY
                     : mt_symbols_string(symbols, nsys->text.data, nsys->text.length, &id);
        nsys->made.header.device_uuid[number] = status ? NULL : mt_symbols_text(symbols, id);
    }
    if (!status)
        status = short_text(nsys, row[4], MAX_PCI_BYTES, &id);
    if (!status && id != MT_NO_ID)
        nsys->made.header.device_pci[number] = mt_symbols_text(symbols, id);
    return status;
}

/* A program numbers its devices itself. Without the table of these numbers, a name is certain only
 * if the machine has one GPU. The limits bound the work of the join: no machine has as many. */
static enum mt_status read_devices(struct mt_nsys *nsys, struct mt_error *error)
{
    struct mt_buf sql = {0};
    bool is_mapped = mt_nsys_has(nsys, "TARGET_INFO_CUDA_DEVICE.cudaId") &&
                     mt_nsys_has(nsys, "TARGET_INFO_CUDA_DEVICE.gpuId") &&
                     mt_nsys_has(nsys, "TARGET_INFO_CUDA_DEVICE.pid") && nsys->has_process;

    if (!mt_nsys_has(nsys, "TARGET_INFO_GPU.id") || !mt_nsys_has(nsys, "TARGET_INFO_GPU.name"))
        return MT_OK;
    mt_buf_add_text(&sql, is_mapped ? "SELECT d.cudaId" : "SELECT 0");
    mt_nsys_add_column(&sql, nsys, "g", "TARGET_INFO_GPU.name");
    mt_nsys_add_column(&sql, nsys, "g", "TARGET_INFO_GPU.totalMemory");
    mt_nsys_add_column(&sql, nsys, "g", "TARGET_INFO_GPU.uuid");
    mt_nsys_add_column(&sql, nsys, "g", "TARGET_INFO_GPU.busLocation");
    mt_buf_add_text(&sql, is_mapped ? " FROM (SELECT *, min(rowid) FROM TARGET_INFO_GPU GROUP BY "
                                      "id LIMIT 1024) g"
                                    : " FROM TARGET_INFO_GPU g");
    if (is_mapped)
        mt_buf_printf(&sql,
                      ", (SELECT DISTINCT gpuId, cudaId FROM TARGET_INFO_CUDA_DEVICE WHERE pid = "
                      "%u LIMIT 1024) d WHERE d.gpuId = g.id",
                      pid_of(nsys->process));
    else
        mt_buf_add_text(&sql, " WHERE (SELECT count(*) FROM TARGET_INFO_GPU) = 1");
    enum mt_status status = mt_nsys_ask(nsys, &sql, take_device, error);
    mt_buf_release(&sql);
    return status;
}

static enum mt_status take_thread(struct mt_nsys *nsys, const struct mt_value *row)
{
    uint64_t thread = (uint64_t)mt_nsys_integer(&row[0], 0);
    uint32_t name, id;

    if (mt_map_get(&nsys->threads, thread) != MT_MAP_NONE || nsys->threads.count > UINT16_MAX / 2)
        return MT_OK;
    enum mt_status status = mt_nsys_text(nsys, &row[1], &name);
    if (!status)
        status = mt_symbols_thread(&nsys->made.symbols, name, thread & 0xffffff, &id);
    return status ? status : mt_map_set(&nsys->threads, thread, id);
}

static enum mt_status read_threads(struct mt_nsys *nsys, struct mt_error *error)
{
    struct mt_buf sql = {0};

    if (!mt_nsys_has(nsys, "ThreadNames.nameId") || !mt_nsys_has(nsys, "ThreadNames.globalTid"))
        return MT_OK;
    mt_buf_add_text(&sql, "SELECT t.globalTid, t.nameId FROM ThreadNames t WHERE ");
    mt_nsys_add_process(&sql, nsys, "t.globalTid");
    enum mt_status status = mt_nsys_ask(nsys, &sql, take_thread, error);
    mt_buf_release(&sql);
    return status;
}

static enum mt_status take_domain(struct mt_nsys *nsys, const struct mt_value *row)
{
    uint32_t name;
    enum mt_status status = mt_nsys_text(nsys, &row[1], &name);

    if (status || name == MT_NO_ID || row[0].kind != MT_VALUE_INTEGER || !row[0].integer)
        return status;
    return mt_map_set(&nsys->domains, (uint64_t)row[0].integer, name);
}

static enum mt_status read_domains(struct mt_nsys *nsys, struct mt_error *error)
{
    enum { DOMAIN_CREATED = 75 };
    struct mt_buf sql = {0};

    if (!mt_nsys_has(nsys, "NVTX_EVENTS.domainId") || !mt_nsys_has(nsys, "NVTX_EVENTS.text") ||
        !mt_nsys_has(nsys, "NVTX_EVENTS.eventType") || !mt_nsys_has(nsys, "NVTX_EVENTS.globalTid"))
        return MT_OK;
    mt_buf_printf(&sql, "SELECT n.domainId, %s FROM NVTX_EVENTS n WHERE n.eventType = %d AND ",
                  mt_nsys_range_text(nsys), DOMAIN_CREATED);
    mt_nsys_add_process(&sql, nsys, "n.globalTid");
    enum mt_status status = mt_nsys_ask(nsys, &sql, take_domain, error);
    mt_buf_release(&sql);
    return status;
}

static enum mt_status take_null_stream(struct mt_nsys *nsys, const struct mt_value *row)
{
    return mt_map_set(&nsys->null_streams, (uint64_t)mt_nsys_integer(&row[0], 0), 1);
}

static enum mt_status read_null_streams(struct mt_nsys *nsys, struct mt_error *error)
{
    struct mt_buf sql = {0};

    if (!mt_nsys_has(nsys, "TARGET_INFO_CUDA_CONTEXT_INFO.nullStreamId") ||
        !mt_nsys_has(nsys, "TARGET_INFO_CUDA_CONTEXT_INFO.processId") || !nsys->has_process)
        return MT_OK;
    mt_buf_printf(&sql,
                  "SELECT nullStreamId FROM TARGET_INFO_CUDA_CONTEXT_INFO WHERE processId = %u",
                  pid_of(nsys->process));
    enum mt_status status = mt_nsys_ask(nsys, &sql, take_null_stream, error);
    mt_buf_release(&sql);
    return status;
}

static enum mt_status read_facts(struct mt_nsys *nsys, struct mt_error *error)
{
    enum mt_status status = read_strings(nsys, error);

    if (!status && mt_nsys_has(nsys, "TARGET_INFO_SESSION_START_TIME.utcEpochNs"))
        status = ask(nsys, "SELECT utcEpochNs FROM TARGET_INFO_SESSION_START_TIME LIMIT 1",
                     take_start, error);
    if (!status)
        status = read_devices(nsys, error);
    if (!status)
        status = read_threads(nsys, error);
    if (!status)
        status = read_domains(nsys, error);
    if (!status)
        status = read_null_streams(nsys, error);
    return status ? status : mt_nsys_read_calls(nsys, error);
}

/* ---- the header */

static void add_count(struct mt_buf *lines, const char *what, uint64_t count)
{
    if (count)
        mt_buf_printf(lines, "%s: %llu\n", what, (unsigned long long)count);
}

static void describe(struct mt_nsys *nsys)
{
    struct mt_trace_header *header = &nsys->made.header;
    struct mt_buf *lacks = &nsys->not_recorded, *unused = &nsys->not_used;
    char bytes[MT_UNITS_TEXT];

    if (!nsys->begin_t_ns)
        mt_buf_add_text(lacks, "Unix time: times count from the start of the profile\n");
    if (!mt_nsys_has(nsys, MT_NSYS_MEMORY ".memKind"))
        mt_buf_add_text(lacks, "kinds of memory: host memory counts as memory of the device\n");
    if (!header->has_stacks)
        mt_buf_add_text(lacks,
                        "call chains: nsys profile --cudabacktrace=memory --sample=process-tree\n");
    mt_buf_add_text(lacks, "memory of cuMemCreate and of contexts\n");
    add_count(lacks, "sizes of calls that were refused for lack of memory", nsys->refused);
    add_count(lacks, "frees of blocks, which end when their address is given out again",
              nsys->frees_lost);
    add_count(unused, "frees of addresses that no block had", nsys->frees_unknown);
    add_count(unused, "sizes of frees that differ from their allocations", nsys->sizes_differ);
    add_count(unused, "numbers of unknown kinds of memory", nsys->kinds_unknown);
    if (nsys->has_more_pools)
        mt_buf_add_text(unused, "pools after the first 4,096\n");
    if (nsys->most_pool_bytes)
        mt_buf_printf(unused, "sizes of memory pools: the largest had %s\n",
                      mt_format_bytes(bytes, nsys->most_pool_bytes));
    header->not_recorded = lacks->data;
    header->not_used = unused->data;
    header->driver_calls = "Nsight Systems";
    header->has_free_requested = true;
    header->starts_in_middle = nsys->initial_count > 0;
}

static enum mt_status read_all(struct mt_nsys *nsys, struct mt_error *error)
{
    enum mt_status status = read_schema(nsys, error);

    if (!status)
        status = read_numbers(nsys, error);
    if (!status)
        status = choose_process(nsys, error);
    if (!status)
        status = mt_made_trace_start(&nsys->made, error);
    if (!status)
        status = count_odd(nsys, error);
    if (!status)
        status = read_facts(nsys, error);
    if (!status)
        status = mt_nsys_read_events(nsys, error);
    if (!status && !nsys->allocations && !nsys->initial_count)
        status = mt_fail(
            error, MT_ERR_FORMAT, MT_NO_OFFSET, "the export has no allocation that can be read%s%s",
            nsys->made.integrity.records_damaged ? ": " : "",
            nsys->made.integrity.records_damaged ? nsys->made.integrity.first_error.text : "");
    return status;
}

static void release(struct mt_nsys *nsys)
{
    struct mt_map *const maps[] = {&nsys->kinds,        &nsys->operations,   &nsys->stacks,
                                   &nsys->threads,      &nsys->pools,        &nsys->domains,
                                   &nsys->alive,        &nsys->null_streams, &nsys->string_ids,
                                   &nsys->call_threads, &nsys->call_stacks};

    for (size_t i = 0; i < MT_ARRAY_LEN(maps); i++)
        mt_map_release(maps[i]);
    mt_strings_release(&nsys->columns);
    mt_strings_release(&nsys->strings);
    mt_buf_release(&nsys->text);
    mt_buf_release(&nsys->not_used);
    mt_buf_release(&nsys->not_recorded);
    free(nsys->blocks);
    mt_made_trace_release(&nsys->made);
}

enum mt_status mt_nsys_read(const char *path, const struct mt_database_library *library,
                            struct mt_source **source, struct mt_error *error)
{
    struct mt_nsys nsys = {.path = path, .library = library, .stack = MT_NO_ID, .chain = INT64_MIN};

    nsys.until_ns = mt_now_ns() + MT_NSYS_SECONDS * (uint64_t)1000000000;
    enum mt_status status = read_all(&nsys, error);
    if (!status) {
        describe(&nsys);
        status = nsys.not_used.failed || nsys.not_recorded.failed
                     ? mt_fail_memory(error)
                     : mt_made_trace_finish(&nsys.made, MT_SOURCES_NSYS, source, error);
    }
    release(&nsys);
    return status;
}

enum mt_status mt_nsys_open(struct mt_feed *feed, struct mt_source **source, struct mt_error *error)
{
    const char *path = mt_feed_path(feed);
    enum mt_status status = check_file(path, error);
    const struct mt_database_library *library = status ? NULL : mt_database_library(error);

    if (status)
        return status;
    return library ? mt_nsys_read(path, library, source, error) : MT_ERR_UNSUPPORTED;
}

/* Exports of Nsight Systems. The first byte chooses: any bytes as a database, through SQLite if
 * this build has it; or any rows as the answers of a database, in any order, from which the
 * importer must make events that fit each other. */
#define _XOPEN_SOURCE 700 /* nftw */
#include "database.h"
#include "fuzz.h"
#include "importers.h"
#include "map.h"
#include "nsys_parts.h"
#include "scratch_folder.h"

enum { COLUMNS = 16, MAX_ROWS = 200 };

/* The rows of the answers. */
static struct fuzz_input rows;

static const char *const columns[] = {"CUDA_GPU_MEMORY_USAGE_EVENTS.start",
                                      "CUDA_GPU_MEMORY_USAGE_EVENTS.address",
                                      "CUDA_GPU_MEMORY_USAGE_EVENTS.bytes",
                                      "CUDA_GPU_MEMORY_USAGE_EVENTS.memoryOperationType",
                                      "CUDA_GPU_MEMORY_USAGE_EVENTS.globalPid",
                                      "CUDA_GPU_MEMORY_USAGE_EVENTS.memKind",
                                      "CUDA_GPU_MEMORY_USAGE_EVENTS.correlationId",
                                      "CUPTI_ACTIVITY_KIND_RUNTIME.correlationId",
                                      "CUPTI_ACTIVITY_KIND_RUNTIME.globalTid",
                                      "CUPTI_ACTIVITY_KIND_RUNTIME.callchainId",
                                      "CUDA_CALLCHAINS.stackDepth",
                                      "CUDA_CALLCHAINS.symbol",
                                      "StringIds.id",
                                      "StringIds.value",
                                      "ThreadNames.nameId",
                                      "ThreadNames.globalTid",
                                      "NVTX_EVENTS.domainId",
                                      "NVTX_EVENTS.text",
                                      "NVTX_EVENTS.eventType",
                                      "NVTX_EVENTS.globalTid",
                                      "TARGET_INFO_GPU.id",
                                      "TARGET_INFO_GPU.name",
                                      "ENUM_CUDA_MEM_KIND.name",
                                      "ENUM_CUDA_DEV_MEM_EVENT_OPER.name",
                                      "TARGET_INFO_SESSION_START_TIME.utcEpochNs",
                                      "TARGET_INFO_CUDA_CONTEXT_INFO.nullStreamId",
                                      "TARGET_INFO_CUDA_CONTEXT_INFO.processId"};

static struct mt_value make_value(void)
{
    static const char *const texts[] = {"", "a", "CUDA_MEMOPR_MEMORY_KIND_PINNED",
                                        "CUDA_DEV_MEM_EVENT_OPR_DEALLOCATION",
                                        "b9c7331b-1458-45e2-7457-a1a206cd964d"};
    uint64_t kind = fuzz_number(&rows, 1), number = fuzz_number(&rows, kind >> 4 & 3);

    switch (kind & 15) {
    case 0: return (struct mt_value){.kind = MT_VALUE_NULL};
    case 1: return (struct mt_value){.kind = MT_VALUE_REAL, .real = (double)number, .text = "1"};
    case 2:
        return (struct mt_value){
            .kind = MT_VALUE_TEXT, .text = texts[number % 5], .length = strlen(texts[number % 5])};
    case 3:
        return (struct mt_value){.kind = MT_VALUE_INTEGER,
                                 .integer = (int64_t)fuzz_number(&rows, 8)};
    default: return (struct mt_value){.kind = MT_VALUE_INTEGER, .integer = (int64_t)number};
    }
}

static void answer_schema(const struct mt_database_question *question)
{
    uint64_t absent = fuzz_number(&rows, 4);

    for (size_t i = 0; i < sizeof columns / sizeof *columns; i++) {
        const struct mt_value name = {
            .kind = MT_VALUE_TEXT, .text = columns[i], .length = strlen(columns[i])};

        if ((i < 4 || !(absent >> i & 1)) && !question->on_row(question->context, &name, 1))
            return;
    }
}

static enum mt_status answer(const struct mt_database_question *question, struct mt_error *error)
{
    struct mt_value row[COLUMNS];
    uint64_t count = fuzz_number(&rows, 1);

    if (strstr(question->sql, "sqlite_master")) {
        answer_schema(question);
        return MT_OK;
    }
    for (uint64_t i = 0; i < count % MAX_ROWS && rows.left; i++) {
        for (int k = 0; k < COLUMNS; k++)
            row[k] = make_value();
        if (strstr(question->sql, "ORDER BY 1, 2, 3, 4") && row[1].kind != MT_VALUE_INTEGER)
            row[1] = (struct mt_value){.kind = MT_VALUE_INTEGER, .integer = (int64_t)(i % 6)};
        if (!strstr(question->sql, "NVTX") && strstr(question->sql, "ORDER BY 1, 2, 3, 4"))
            row[1].integer = 4;
        if (!question->on_row(question->context, row, COLUMNS))
            return MT_OK;
    }
    return count == 255 ? mt_fail(error, MT_ERR_FORMAT, MT_NO_OFFSET, "damaged") : MT_OK;
}

static uint64_t place_of(const struct mt_event *event)
{
    return event->addr ^ mt_hash_u64(event->heap + 1u);
}

static void check_event(const struct mt_source *source, const struct mt_event *event,
                        struct mt_map *alive)
{
    FUZZ_CHECK(event->stack == MT_NO_ID || event->stack < source->symbols.stack_count);
    FUZZ_CHECK(event->thread < source->symbols.thread_count);
    FUZZ_CHECK(event->name == MT_NO_ID || event->name < source->symbols.strings.count);
    if (event->kind == MT_EVENT_ALLOC) {
        FUZZ_CHECK(event->size_bytes && event->heap < source->symbols.heap_count);
        FUZZ_CHECK(event->device < source->symbols.device_count);
        FUZZ_CHECK(mt_map_get(alive, place_of(event)) == MT_MAP_NONE);
        FUZZ_CHECK(!mt_map_set(alive, place_of(event), (uint32_t)event->size_bytes & INT32_MAX));
    } else if (event->kind == MT_EVENT_FREE_REQUESTED) {
        FUZZ_CHECK(mt_map_take(alive, place_of(event)) ==
                   ((uint32_t)event->size_bytes & INT32_MAX));
    }
}

static uint64_t read_all(struct mt_source *source)
{
    struct mt_event_batch batch;
    struct mt_map alive = {0};
    struct mt_error error;
    uint64_t seq = 0, t_ns = 0;

    source->view.level = MT_VIEW_EVERYTHING;
    while (mt_source_next(source, &batch, &error) == MT_OK)
        for (size_t i = 0; i < batch.count; i++) {
            FUZZ_CHECK(batch.events[i].seq == seq++ && batch.events[i].t_ns >= t_ns);
            t_ns = batch.events[i].t_ns;
            check_event(source, &batch.events[i], &alive);
        }
    mt_map_release(&alive);
    FUZZ_CHECK(mt_source_rewind(source, &error) == MT_OK);
    return seq;
}

static enum mt_status open_rows(struct mt_source **source, struct mt_error *error)
{
    static const struct mt_database_library library = {.ask = answer};

    return mt_nsys_read("rows", &library, source, error);
}

static enum mt_status open_file(struct mt_source **source, struct mt_error *error)
{
    char path[96];
    struct mt_feed *feed;
    FILE *file;

    snprintf(path, sizeof path, "%s/file", scratch_folder());
    file = fopen(path, "wb");
    FUZZ_CHECK(file && fwrite(rows.at, 1, rows.left, file) == rows.left && !fclose(file));
    enum mt_status status = mt_feed_open(path, &feed, error);
    if (status)
        return status;
    status = mt_nsys_open(feed, source, error);
    mt_feed_close(feed);
    return status;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct mt_source *source;
    struct mt_error error = {.status = MT_OK, .text = ""};
    bool is_file;

    if (!size)
        return 0;
    is_file = *data == 'S'; /* a seed is a database */
    rows = (struct fuzz_input){data + !is_file, size - !is_file};
    enum mt_status status = is_file ? open_file(&source, &error) : open_rows(&source, &error);
    if (status) {
        FUZZ_CHECK(error.status == status && *error.text);
        return 0;
    }
    FUZZ_CHECK(read_all(source) == read_all(source));
    mt_source_close(source);
    return 0;
}

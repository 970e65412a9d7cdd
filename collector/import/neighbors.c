#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* memmem */
#endif
#include "neighbors.h"

#include <stdbool.h>
#include <string.h>

#include "util.h"

#define RECORD                                                                                     \
    "record a snapshot (torch.cuda.memory._record_memory_history and _dump_snapshot), or run the " \
    "program under memtrace record"
#define TIMELINE                                                                                   \
    "a memory timeline of torch.profiler with sums only: give the file of "                        \
    "export_memory_timeline(\"NAME.raw.json.gz\"), or record a snapshot "                          \
    "(torch.cuda.memory._record_memory_history and _dump_snapshot)"
#define CHROME "a Chrome trace, which has no requests of memory: " RECORD
#define SAVED                                                                                      \
    "a file of torch.save: torch.cuda.memory._dump_snapshot writes memory snapshots, after "       \
    "_record_memory_history"
#define NSIGHT                                                                                     \
    "a report of Nsight Systems: export it with 'nsys export --type sqlite' and give that, if it " \
    "was made with --cuda-memory-usage=true"
#define NPU                                                                                        \
    "memory of operators from a profile of Ascend, which has no addresses: record a snapshot "     \
    "(torch_npu.npu.memory._record_memory_history and _dump_snapshot), or use msMemScope"
#define PAGE "a web page: give the trace or snapshot that it shows"

/* The first row that fits counts. NULL: anything. */
static const struct neighbor {
    const char *magic;  /* the first bytes */
    const char *within; /* text among the first bytes */
    const char *ending; /* of the name, without ".gz" */
    const char *advice;
} neighbors[] = {
    {"version https://git-lfs", NULL, NULL,
     "a pointer of Git LFS, without the file: get it with git lfs pull"},
    {"PK\003\004", "data.pkl", NULL, SAVED},
    {"\200\002\212\nl\374\234F\371 j\250P\031", NULL, NULL, SAVED}, /* before 1.6 */
    {"PK\003\004", NULL, NULL, "a zip archive: unpack it"},
    {"[", "\"ph\"", NULL, CHROME},
    {"[[", NULL, ".json", TIMELINE},
    {"<", "GPU Memory Timeline", NULL, TIMELINE},
    {"<", "<html", NULL, PAGE},
    {"<", "<!DOCTYPE html", NULL, PAGE},
    {"event,t_ns,device,requested,", NULL, NULL,
     "counters of memtrace replay, which are sums without blocks: give the trace itself"},
    {NULL, "Allocation Total Allocated(", NULL, NPU},
    {NULL, "Total Allocated(KB),", NULL, NPU},
    {NULL, NULL, ".nsys-rep", NSIGHT},
    {NULL, NULL, ".qdrep", NSIGHT},
};

static bool begins_with(const char *bytes, size_t length, const char *magic)
{
    return length >= strlen(magic) && memcmp(bytes, magic, strlen(magic)) == 0;
}

static bool is_named(const char *path, const char *ending)
{
    const size_t ending_length = strlen(ending);
    size_t length = strlen(path);

    if (length > 3 && memcmp(path + length - 3, ".gz", 3) == 0)
        length -= 3;
    return length >= ending_length &&
           memcmp(path + length - ending_length, ending, ending_length) == 0;
}

static bool has_text(const char *bytes, size_t length, const char *text)
{
    return memmem(bytes, length, text, strlen(text)) != NULL;
}

const char *mt_neighbor_advice(const void *bytes, size_t length, const char *path)
{
    for (size_t i = 0; i < MT_ARRAY_LEN(neighbors); i++) {
        const struct neighbor *neighbor = &neighbors[i];

        if ((!neighbor->magic || begins_with(bytes, length, neighbor->magic)) &&
            (!neighbor->within || has_text(bytes, length, neighbor->within)) &&
            (!neighbor->ending || is_named(path, neighbor->ending)))
            return neighbor->advice;
    }
    return NULL;
}

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
#define KINETO   "a trace of torch.profiler, which has no segments of memory: " RECORD
#define TIMELINE "a memory timeline of torch.profiler, which has only sums: " RECORD
#define CHROME   "a Chrome trace, which has no requests of memory: " RECORD
#define PPROF                                                                                      \
    "a profile for pprof, such as JAX's device memory: 'go tool pprof' shows it; for a history, "  \
    "use jax.profiler.trace (*.xplane.pb) or memtrace record"
#define SAVED                                                                                      \
    "a file of torch.save: torch.cuda.memory._dump_snapshot writes memory snapshots, after "       \
    "_record_memory_history"
#define NSIGHT "a report of Nsight Systems: run the program under memtrace record"
#define PAGE   "a web page: give the trace or snapshot that it shows"

#define GZIP "\037\213\010"
enum { GZIP_FLAGS_AT = 3, GZIP_HAS_NAME = 8, GZIP_NAME_AT = 10 };

/* The first row that fits counts. NULL: anything. */
static const struct neighbor {
    const char *magic;  /* the first bytes */
    const char *within; /* text among the first bytes */
    const char *ending; /* of the name, or of the name that gzip stored, without ".gz" */
    const char *advice;
} neighbors[] = {
    {"version https://git-lfs", NULL, NULL,
     "a pointer of Git LFS, without the file: get it with git lfs pull"},
    {GZIP, NULL, ".trace.json", KINETO},
    {GZIP, NULL, ".raw.json", TIMELINE},
    {GZIP, NULL, ".prof", PPROF},
    {GZIP, NULL, NULL, "compressed with gzip: decompress it with gunzip"},
    {"\n\004\010\001\020\002", NULL, NULL, PPROF},
    {"PK\003\004", "data.pkl", NULL, SAVED},
    {"\200\002\212\nl\374\234F\371 j\250P\031", NULL, NULL, SAVED}, /* before 1.6 */
    {"PK\003\004", NULL, NULL, "a zip archive: unpack it"},
    {"{", "\"schemaVersion\"", NULL, KINETO},
    {"{", "\"traceEvents\"", NULL, CHROME},
    {"[", "\"ph\"", NULL, CHROME},
    {"[[", NULL, ".json", TIMELINE},
    {"<", "GPU Memory Timeline", NULL, TIMELINE},
    {"<", "<html", NULL, PAGE},
    {"<", "<!DOCTYPE html", NULL, PAGE},
    {"Thread,Time,Action,Pointer,Size,Stream", NULL, NULL,
     "a log of RMM: run the program under memtrace record"},
    {"SQLite format 3", NULL, NULL,
     "a database, as nsys export writes: run the program under memtrace record"},
    {NULL, NULL, ".nsys-rep", NSIGHT},
    {NULL, NULL, ".qdrep", NSIGHT},
};

static bool begins_with(const char *bytes, size_t length, const char *magic)
{
    return length >= strlen(magic) && memcmp(bytes, magic, strlen(magic)) == 0;
}

static bool ends_with(const char *name, size_t length, const char *ending)
{
    const size_t ending_length = strlen(ending);

    if (length > 3 && memcmp(name + length - 3, ".gz", 3) == 0)
        length -= 3;
    return length >= ending_length &&
           memcmp(name + length - ending_length, ending, ending_length) == 0;
}

/* The name that gzip stored is after its header, and ends with a zero. */
static bool is_named(const char *bytes, size_t length, const char *path, const char *ending)
{
    const char *name = bytes + GZIP_NAME_AT, *end;

    if (ends_with(path, strlen(path), ending))
        return true;
    if (length <= GZIP_NAME_AT || !begins_with(bytes, length, GZIP) ||
        bytes[GZIP_FLAGS_AT] != GZIP_HAS_NAME)
        return false;
    end = memchr(name, 0, length - GZIP_NAME_AT);
    return end && ends_with(name, (size_t)(end - name), ending);
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
            (!neighbor->ending || is_named(bytes, length, path, neighbor->ending)))
            return neighbor->advice;
    }
    return NULL;
}

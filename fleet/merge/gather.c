#include "gather.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "grow.h"
#include "process_memory.h"
#include "util.h"

/* What one thread has read. */
struct reader {
    struct crew *crew;
    struct mt_rank_set set;
    struct mt_gather_failures failures;
    enum mt_status status;
    pthread_t thread;
};

struct crew {
    const struct mt_gather *gather;
    _Atomic uint64_t next;  /* the next path to read; 64 bits, so that adding cannot wrap */
    atomic_bool has_failed; /* too many paths: all threads stop */
};

void mt_gather_failures_add(struct mt_gather_failures *failures,
                            const struct mt_gather_failure *failure)
{
    if (failures->count == failures->capacity)
        mt_grow_to(&failures->list, &failures->capacity, (size_t)failures->count + 1,
                   sizeof *failures->list);
    failures->list[failures->count++] = *failure;
}

static int by_file(const void *a, const void *b)
{
    const struct mt_gather_failure *x = a, *y = b;

    return (x->file > y->file) - (x->file < y->file);
}

void mt_gather_failures_sort(struct mt_gather_failures *failures)
{
    if (failures->count)
        qsort(failures->list, failures->count, sizeof *failures->list, by_file);
}

void mt_gather_failures_release(struct mt_gather_failures *failures)
{
    free(failures->list);
    memset(failures, 0, sizeof *failures);
}

/* Reads into a separate set: records added before a file turns out to be damaged must not count. */
static enum mt_status read_file(struct reader *reader, uint32_t file)
{
    const struct mt_gather *gather = reader->crew->gather;
    struct mt_rank_set set = {0};
    struct mt_gather_failure failure = {.file = file};
    struct mt_error error = {0};
    enum mt_status status = gather->load(gather->context, gather->paths[file], &set, &error);

    if (status == MT_OK) {
        status = mt_rank_set_unite(&reader->set, &set);
    } else {
        failure.status = status;
        memcpy(failure.text, error.text, sizeof failure.text);
        failure.text[sizeof failure.text - 1] = '\0';
        mt_gather_failures_add(&reader->failures, &failure);
        status = MT_OK;
    }
    mt_rank_set_release(&set);
    if (gather->tell_read)
        gather->tell_read(gather->context);
    return status;
}

static void *read_files(void *argument)
{
    struct reader *reader = argument;
    struct crew *crew = reader->crew;
    uint64_t stride = mt_max_u64(1, crew->gather->share_count);

    while (reader->status == MT_OK && !atomic_load(&crew->has_failed)) {
        uint64_t file = atomic_fetch_add(&crew->next, stride);

        if (file >= crew->gather->path_count)
            break;
        reader->status = read_file(reader, (uint32_t)file);
    }
    if (reader->status != MT_OK)
        atomic_store(&crew->has_failed, true);
    return NULL;
}

static enum mt_status take(struct reader *reader, struct mt_rank_set *set,
                           struct mt_gather_failures *failures)
{
    enum mt_status status = reader->status;

    if (status == MT_OK)
        status = mt_rank_set_take(set, &reader->set);
    for (uint32_t i = 0; i < reader->failures.count && status == MT_OK; i++)
        mt_gather_failures_add(failures, &reader->failures.list[i]);
    mt_rank_set_release(&reader->set);
    mt_gather_failures_release(&reader->failures);
    return status;
}

/* The calling thread is one of the readers, so that all files are read even if no thread starts. */
static uint32_t run_crew(struct reader *readers, uint32_t count)
{
    uint32_t started = 1;

    while (started < count &&
           !pthread_create(&readers[started].thread, NULL, read_files, &readers[started]))
        started++;
    read_files(&readers[0]);
    for (uint32_t i = 1; i < started; i++)
        pthread_join(readers[i].thread, NULL);
    return started;
}

enum mt_status mt_gather_files(const struct mt_gather *gather, struct mt_rank_set *set,
                               struct mt_gather_failures *failures)
{
    struct crew crew = {.gather = gather, .next = gather->share};
    uint32_t count = (uint32_t)mt_max_u64(1, mt_min_u64(gather->threads, gather->path_count));
    struct reader *readers = mt_memory_zeroed(count, sizeof *readers);
    enum mt_status status = MT_OK;
    uint32_t started;

    for (uint32_t i = 0; i < count; i++)
        readers[i].crew = &crew;
    started = run_crew(readers, count);
    for (uint32_t i = 0; i < started; i++) {
        enum mt_status taken = take(&readers[i], set, failures);

        status = status == MT_OK ? taken : status;
    }
    free(readers);
    mt_gather_failures_sort(failures);
    return status == MT_OK ? mt_rank_set_sort(set) : status;
}

/* Reads many files into one set of records, and unites the sets of many processes. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "exchange.h"
#include "gather.h"
#include "grow.h"
#include "process_memory.h"
#include "rank_set.h"
#include "sha256.h"
#include "sorted.h"
#include "summary_file.h"
#include "util.h"

struct crew {
    const struct mt_gather *gather;
    _Atomic uint64_t next; /* the next path to read; 64 bits, so that adding cannot wrap */
};

/* What one thread has read. */
struct reader {
    struct crew *crew;
    struct mt_rank_set set;
    struct mt_gather_failures failures;
    pthread_t thread;
};

static void add_failure(struct mt_gather_failures *failures,
                        const struct mt_gather_failure *failure)
{
    if (failures->count == failures->capacity)
        mt_grow_to(&failures->list, &failures->capacity, (size_t)failures->count + 1,
                   sizeof *failures->list);
    failures->list[failures->count++] = *failure;
}

MT_DEFINE_ORDER(by_file, struct mt_gather_failure, MT_ASCENDING(file))

static void gather_failures_sort(struct mt_gather_failures *failures)
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
static void read_file(struct reader *reader, uint32_t file)
{
    const struct mt_gather *gather = reader->crew->gather;
    struct mt_rank_set set = {0};
    struct mt_gather_failure failure = {.file = file};
    struct mt_error error = {0};
    enum mt_status status = gather->load(gather->context, gather->paths[file], &set, &error);

    if (status == MT_OK) {
        if (reader->set.record_count)
            mt_rank_set_unite(&reader->set, &set);
        else
            mt_rank_set_take(&reader->set, &set); /* one large file is not copied */
    } else {
        failure.status = status;
        memcpy(failure.text, error.text, sizeof failure.text);
        failure.text[sizeof failure.text - 1] = '\0';
        add_failure(&reader->failures, &failure);
    }
    mt_rank_set_release(&set);
    if (gather->tell_read)
        gather->tell_read(gather->context);
}

static void *read_files(void *argument)
{
    struct reader *reader = argument;
    struct crew *crew = reader->crew;
    uint64_t stride = mt_max_u64(1, crew->gather->share_count);

    for (;;) {
        uint64_t file = atomic_fetch_add(&crew->next, stride);

        if (file >= crew->gather->path_count)
            return NULL;
        read_file(reader, (uint32_t)file);
    }
}

static void take(struct reader *reader, struct mt_rank_set *set,
                 struct mt_gather_failures *failures)
{
    mt_rank_set_take(set, &reader->set);
    for (uint32_t i = 0; i < reader->failures.count; i++)
        add_failure(failures, &reader->failures.list[i]);
    mt_rank_set_release(&reader->set);
    mt_gather_failures_release(&reader->failures);
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

void mt_gather_files(const struct mt_gather *gather, struct mt_rank_set *set,
                     struct mt_gather_failures *failures)
{
    struct crew crew = {.gather = gather, .next = gather->share};
    uint32_t count = (uint32_t)mt_max_u64(1, mt_min_u64(gather->threads, gather->path_count));
    struct reader *readers = mt_memory_zeroed(count, sizeof *readers);

    for (uint32_t i = 0; i < count; i++)
        readers[i].crew = &crew;
    uint32_t started = run_crew(readers, count);
    for (uint32_t i = 0; i < started; i++)
        take(&readers[i], set, failures);
    free(readers);
    gather_failures_sort(failures);
    mt_rank_set_sort(set);
}

static const char magic[8] = {'M', 'T', 'P', 'A', 'R', 'T', '1', '\0'};

/* The start of a message. The failures follow, then a summary file. Only processes of the same
 * program read it, so it has the layout of the machine. */
struct message_head {
    char magic[8];
    char paths_sha256[MT_SHA256_TEXT]; /* of the names of all files, as the process saw them */
    uint64_t failure_count;
};

/* What is the same for all messages of a process. */
struct reduction {
    const struct mt_exchange *exchange;
    uint32_t path_count;
    char paths_sha256[MT_SHA256_TEXT];
};

static void hash_paths(const struct mt_gather *gather, char digest[MT_SHA256_TEXT])
{
    struct mt_sha256 hash;

    mt_sha256_init(&hash);
    for (uint32_t i = 0; i < gather->path_count; i++)
        mt_sha256_add(&hash, gather->paths[i], strlen(gather->paths[i]) + 1);
    mt_sha256_finish(&hash, digest);
}

static enum mt_status write_message(const struct reduction *reduction, struct mt_rank_set *set,
                                    const struct mt_gather_failures *failures, struct mt_buf *out,
                                    struct mt_error *error)
{
    struct message_head head = {.failure_count = failures->count};

    memcpy(head.magic, magic, sizeof magic);
    memcpy(head.paths_sha256, reduction->paths_sha256, sizeof head.paths_sha256);
    mt_buf_add(out, &head, sizeof head);
    if (failures->count)
        mt_buf_add(out, failures->list, failures->count * sizeof *failures->list);
    return mt_summary_encode(set, out, error);
}

/* Adds the `count` failures at `bytes`. The caller has checked that the message has them. */
static enum mt_status read_failures(const char *bytes, uint64_t count, uint32_t path_count,
                                    struct mt_gather_failures *failures, struct mt_error *error)
{
    for (uint64_t i = 0; i < count; i++) {
        struct mt_gather_failure failure;

        memcpy(&failure, bytes + i * sizeof failure, sizeof failure);
        failure.text[sizeof failure.text - 1] = '\0';
        if (failure.file >= path_count)
            return mt_fail(error, MT_ERR_FORMAT, 0, "message of another process is damaged");
        add_failure(failures, &failure);
    }
    return MT_OK;
}

static enum mt_status read_message(const struct reduction *reduction, char *bytes, size_t length,
                                   struct mt_rank_set *set, struct mt_gather_failures *failures,
                                   struct mt_error *error)
{
    struct message_head head;
    const size_t one = sizeof *failures->list;

    if (length < sizeof head)
        return mt_fail(error, MT_ERR_FORMAT, 0, "the process that read it sent nothing");
    memcpy(&head, bytes, sizeof head);
    if (memcmp(head.magic, magic, sizeof magic) != 0 ||
        head.failure_count > reduction->path_count ||
        head.failure_count > (length - sizeof head) / one)
        return mt_fail(error, MT_ERR_FORMAT, 0, "message of another process is damaged");
    if (memcmp(head.paths_sha256, reduction->paths_sha256, sizeof head.paths_sha256) != 0)
        return mt_fail(error, MT_ERR_FORMAT, 0, "the process that read it saw other files");
    enum mt_status status = read_failures(bytes + sizeof head, head.failure_count,
                                          reduction->path_count, failures, error);
    size_t begin = sizeof head + (size_t)head.failure_count * one;
    return status == MT_OK ? mt_summary_decode(bytes + begin, length - begin, set, error) : status;
}

/* Counts all files of one process as failed. */
static void fail_share(uint64_t share, uint32_t share_count, uint32_t path_count,
                       enum mt_status status, const char *text, struct mt_gather_failures *failures)
{
    for (uint64_t file = share; file < path_count; file += share_count) {
        struct mt_gather_failure failure = {.file = (uint32_t)file, .status = status};

        snprintf(failure.text, sizeof failure.text, "%s", text);
        add_failure(failures, &failure);
    }
}

/* Counts the files of a lost message as failed: it represented the processes from `from` to from +
 * step - 1. */
static void fail_branch(const struct reduction *reduction, uint32_t from, uint32_t step,
                        enum mt_status why, const char *text, struct mt_gather_failures *failures)
{
    uint32_t size = reduction->exchange->size;
    uint64_t end = (uint64_t)from + step;

    if (!text[0])
        text = mt_status_text(why);
    for (uint64_t share = from; share < end && share < size; share++)
        fail_share(share, size, reduction->path_count, why, text, failures);
}

/* Receives the next message of `from`. The caller frees *bytes, even after a failure. */
static enum mt_status receive(const struct mt_exchange *exchange, uint32_t from, char **bytes,
                              size_t *length)
{
    uint64_t said = 0;
    enum mt_status status = exchange->expect(exchange->context, from, &said);

    *length = (size_t)said;
    if (status != MT_OK || !said)
        return status;
    *bytes = mt_memory_new(*length);
    return exchange->receive(exchange->context, from, *bytes, *length);
}

static void take_from(const struct reduction *reduction, uint32_t from, uint32_t step,
                      struct mt_rank_set *set, struct mt_gather_failures *failures)
{
    struct mt_gather_failures theirs = {0};
    struct mt_rank_set their_set = {0};
    struct mt_error error = {0};
    char *bytes = NULL;
    size_t length;
    enum mt_status status = receive(reduction->exchange, from, &bytes, &length);

    if (status == MT_OK)
        status = read_message(reduction, bytes, length, &their_set, &theirs, &error);
    free(bytes);
    if (status == MT_OK) {
        for (uint32_t i = 0; i < theirs.count; i++)
            add_failure(failures, &theirs.list[i]);
        mt_rank_set_take(set, &their_set);
    } else {
        fail_branch(reduction, from, step, status, error.text, failures);
    }
    mt_rank_set_release(&their_set);
    mt_gather_failures_release(&theirs);
}

static enum mt_status give_to(const struct reduction *reduction, uint32_t to,
                              struct mt_rank_set *set, struct mt_gather_failures *failures,
                              struct mt_error *error)
{
    const struct mt_exchange *exchange = reduction->exchange;
    struct mt_buf message = {0};
    enum mt_status status = write_message(reduction, set, failures, &message, error);
    /* The receiver waits for a message, so a failure is sent as an empty one. */
    enum mt_status sent =
        exchange->send(exchange->context, to, message.data, status == MT_OK ? message.length : 0);

    mt_buf_release(&message);
    return status == MT_OK ? sent : status;
}

enum mt_status mt_reduce(const struct mt_exchange *exchange, const struct mt_gather *gather,
                         struct mt_rank_set *set, struct mt_gather_failures *failures,
                         struct mt_error *error)
{
    struct reduction reduction = {.exchange = exchange, .path_count = gather->path_count};
    uint32_t rank = exchange->rank, size = exchange->size;

    MT_ASSERT(rank < size);
    hash_paths(gather, reduction.paths_sha256);
    for (uint64_t step = 1; step < size; step *= 2) {
        if (rank & step)
            return give_to(&reduction, rank - (uint32_t)step, set, failures, error);
        if (size - rank > step)
            take_from(&reduction, rank + (uint32_t)step, (uint32_t)step, set, failures);
    }
    gather_failures_sort(failures);
    mt_rank_set_sort(set);
    return MT_OK;
}

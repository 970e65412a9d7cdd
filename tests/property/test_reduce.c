/* Sets of several processes, handed down a binomial tree: the same set as one process has. Here the
 * processes are threads, and messages go through memory. */
#include "cmocka_all.h"

#include <pthread.h>
#include <time.h>

#include "gather.h"
#include "record_maker.h"
#include "summary_file.h"

enum { MOST_PROCESSES = 9, FILES = 23, CUT_BYTES = 200 /* within the first failure */ };

/* Messages from each process: at most one, since a process sends once. */
struct post {
    pthread_mutex_t lock;
    pthread_cond_t arrived;
    struct mt_buf messages[MOST_PROCESSES];
    bool is_there[MOST_PROCESSES];
    /* The process whose message is damaged or cut short, that sends nothing, that sees other files,
     * or whose names of files are divided at other places; else size */
    uint32_t spoils, cuts, dies, strays, divides;
};

struct process {
    struct post *post;
    struct mt_exchange exchange;
    const struct mt_gather *gather;
    enum mt_status status;
    struct mt_rank_set set;
    struct mt_gather_failures failures;
    pthread_t thread;
};

static enum mt_status send(void *context, uint32_t to, const void *bytes, size_t length)
{
    struct process *process = context;
    struct post *post = process->post;
    uint32_t rank = process->exchange.rank;

    (void)to;
    pthread_mutex_lock(&post->lock);
    if (rank == post->cuts)
        length = CUT_BYTES;
    mt_buf_add(&post->messages[rank], bytes, length);
    if (rank == post->spoils)
        post->messages[rank].data[length / 2] ^= 0x55;
    post->is_there[rank] = true;
    pthread_cond_broadcast(&post->arrived);
    pthread_mutex_unlock(&post->lock);
    return MT_OK;
}

static enum mt_status expect(void *context, uint32_t from, uint64_t *length)
{
    struct process *process = context;
    struct post *post = process->post;

    if (from == post->dies)
        return MT_ERR_IO;
    pthread_mutex_lock(&post->lock);
    while (!post->is_there[from])
        pthread_cond_wait(&post->arrived, &post->lock);
    *length = post->messages[from].length;
    pthread_mutex_unlock(&post->lock);
    return MT_OK;
}

static enum mt_status receive(void *context, uint32_t from, void *bytes, size_t length)
{
    struct process *process = context;

    memcpy(bytes, process->post->messages[from].data, length);
    return MT_OK;
}

/* The "file" is the number of a record in the source; one in seven cannot be read. */
static enum mt_status load(void *context, const char *path, struct mt_rank_set *set,
                           struct mt_error *error)
{
    const struct mt_rank_set *source = context;
    struct mt_rank_set all = {0};
    uint32_t number = (uint32_t)atoi(path);

    if (number % 7 == 3)
        return mt_fail(error, MT_ERR_FORMAT, 0, "file %u is damaged", number);
    mt_rank_set_unite(&all, source);
    all.records[0] = all.records[number];
    all.record_count = 1;
    mt_rank_set_unite(set, &all);
    mt_rank_set_release(&all);
    return MT_OK;
}

static void *run(void *argument)
{
    struct process *process = argument;
    struct mt_gather gather = *process->gather;
    struct mt_error error;
    const char *seen[FILES];

    gather.share = process->exchange.rank;
    gather.share_count = process->exchange.size;
    memcpy(seen, gather.paths, sizeof seen);
    if (process->exchange.rank == process->post->strays)
        seen[FILES - 1] = "0";
    if (process->exchange.rank == process->post->divides) {
        seen[20] = "2"; /* "20", "21"; others read them */
        seen[21] = "021";
    }
    gather.paths = seen;
    mt_gather_files(&gather, &process->set, &process->failures);
    process->status =
        mt_reduce(&process->exchange, &gather, &process->set, &process->failures, &error);
    return NULL;
}

static void start(struct post *post, struct process *processes, uint32_t size,
                  const struct mt_gather *gather)
{
    pthread_mutex_init(&post->lock, NULL);
    pthread_cond_init(&post->arrived, NULL);
    for (uint32_t i = 0; i < size; i++) {
        processes[i].post = post;
        processes[i].gather = gather;
        processes[i].exchange = (struct mt_exchange){.rank = i,
                                                     .size = size,
                                                     .context = &processes[i],
                                                     .send = send,
                                                     .expect = expect,
                                                     .receive = receive};
        assert_int_equal(pthread_create(&processes[i].thread, NULL, run, &processes[i]), 0);
    }
    for (uint32_t i = 0; i < size; i++)
        pthread_join(processes[i].thread, NULL);
}

static void stop_process(struct post *post, struct process *processes, uint32_t size)
{
    for (uint32_t i = 0; i < size; i++) {
        mt_rank_set_release(&processes[i].set);
        mt_gather_failures_release(&processes[i].failures);
        mt_buf_release(&post->messages[i]);
    }
    pthread_mutex_destroy(&post->lock);
    pthread_cond_destroy(&post->arrived);
}

static struct mt_rank_set source;
static char names[FILES][8];
static const char *paths[FILES];

static int make_source(void **unused)
{
    struct record_maker maker = {5, &source};

    (void)unused;
    for (uint32_t i = 0; i < FILES; i++) {
        struct mt_rank_record record = make_record(&maker);

        snprintf(names[i], sizeof names[i], "%u", i);
        paths[i] = names[i];
        mt_rank_set_add(&source, &record);
    }
    return 0;
}

static int release_source(void **unused)
{
    (void)unused;
    mt_rank_set_release(&source);
    return 0;
}

static struct mt_gather gather_of(uint32_t threads)
{
    return (struct mt_gather){.paths = paths,
                              .path_count = FILES,
                              .share_count = 1,
                              .threads = threads,
                              .load = load,
                              .context = &source};
}

static void write_set(struct mt_rank_set *set, struct mt_buf *out)
{
    struct mt_error error;

    assert_int_equal(mt_summary_encode(set, out, &error), MT_OK);
    assert_false(out->failed);
}

TEST(any_number_of_processes_and_threads_gives_the_same_bytes)
{
    struct mt_buf first = {0};

    for (uint32_t size = 1; size <= MOST_PROCESSES; size++) {
        struct mt_gather gather = gather_of(1 + size % 4);
        struct process processes[MOST_PROCESSES] = {0};
        struct post post = {
            .spoils = size, .cuts = size, .dies = size, .strays = size, .divides = size};
        struct mt_buf bytes = {0};

        start(&post, processes, size, &gather);
        assert_int_equal(processes[0].status, MT_OK);
        assert_int_equal(processes[0].failures.count, 3);
        for (uint32_t i = 0; i < 3; i++) {
            assert_int_equal(processes[0].failures.list[i].file, 3 + 7 * i);
            assert_non_null(strstr(processes[0].failures.list[i].text, "is damaged"));
        }
        assert_int_equal(processes[0].set.record_count, FILES - 3);
        write_set(&processes[0].set, size == 1 ? &first : &bytes);
        if (size > 1) {
            assert_int_equal(bytes.length, first.length);
            assert_memory_equal(bytes.data, first.data, bytes.length);
        }
        mt_buf_release(&bytes);
        stop_process(&post, processes, size);
    }
    mt_buf_release(&first);
}

/* Processes 2 and 3 of 4 hand over together. The message of 2 is damaged, does not come, is from a
 * process that saw other files, in two ways, or is cut short. */
TEST(files_of_a_branch_that_is_lost_are_named)
{
    for (int way = 0; way < 5; way++) {
        struct mt_gather gather = gather_of(1);
        struct process processes[4] = {0};
        struct post post = {.spoils = way == 0 ? 2 : 4,
                            .cuts = way == 4 ? 2 : 4,
                            .dies = way == 1 ? 2 : 4,
                            .strays = way == 2 ? 2 : 4,
                            .divides = way == 3 ? 2 : 4};
        uint32_t lost = 0, own = 0;

        start(&post, processes, 4, &gather);
        assert_int_equal(processes[0].status, MT_OK);
        for (uint32_t i = 0; i < processes[0].failures.count; i++) {
            const struct mt_gather_failure *failure = &processes[0].failures.list[i];

            if (i)
                assert_true(failure->file > failure[-1].file);
            assert_true(failure->text[0]);
            lost += failure->file % 4 >= 2;
            own += failure->file % 7 == 3;
        }
        /* Of 23 files, processes 2 and 3 have 11. */
        assert_int_equal(lost, 11);
        assert_true(own > 0);
        assert_int_equal(processes[0].set.record_count + processes[0].failures.count, FILES);
        stop_process(&post, processes, 4);
    }
}

/* No file can be read, and each takes long enough for threads to take turns. */
static enum mt_status load_nothing(void *context, const char *path, struct mt_rank_set *set,
                                   struct mt_error *error)
{
    const struct timespec pause = {.tv_nsec = 2000000};

    (void)context;
    (void)set;
    (void)nanosleep(&pause, NULL);
    return mt_fail(error, MT_ERR_FORMAT, 0, "file %s is damaged", path);
}

TEST(failures_are_in_the_order_of_files)
{
    struct mt_gather gather = gather_of(4);
    struct mt_gather_failures failures = {0};
    struct mt_rank_set set = {0};

    gather.load = load_nothing;
    mt_gather_files(&gather, &set, &failures);
    assert_int_equal(failures.count, FILES);
    for (uint32_t i = 0; i < FILES; i++)
        assert_int_equal(failures.list[i].file, i);
    mt_gather_failures_release(&failures);
    mt_rank_set_release(&set);
}

int main(void)
{
    return run_tests_of_file(make_source, release_source);
}

#include "policy_runs.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "heaps.h"
#include "import.h"
#include "open_input.h"
#include "policy.h"
#include "source.h"
#include "text_table.h"
#include "util.h"

enum { MAX_THREADS = 32, WHAT_BYTES = 48 };

struct outcome {
    enum mt_status status;
    struct mt_error error;
};

struct crew {
    const struct mt_policy_runs *runs;
    /* one for each policy */
    struct outcome outcomes[MT_ARRAY_LEN(((struct mt_text_list *)0)->items)];
    struct mt_reading reading; /* by the calling thread, which shows its progress */
    char what[WHAT_BYTES];     /* the text of this progress */
    pthread_mutex_t lock;      /* protects the fields below */
    size_t next, done;         /* next policy to take; number of finished policies */
    bool failed;
};

/* Takes the next policy of the list. Returns false if there is none, or if one has failed. All
 * policies before a failed one have been taken, so the first failure in the list is known. */
static bool take_policy(struct crew *crew, size_t *index)
{
    pthread_mutex_lock(&crew->lock);
    bool more = !crew->failed && crew->next < crew->runs->policies->count;
    if (more)
        *index = crew->next++;
    pthread_mutex_unlock(&crew->lock);
    return more;
}

/* Returns the number of finished policies. */
static size_t finish_policy(struct crew *crew, enum mt_status status)
{
    pthread_mutex_lock(&crew->lock);
    crew->failed = crew->failed || status != MT_OK;
    size_t done = ++crew->done;
    pthread_mutex_unlock(&crew->lock);
    return done;
}

static void show_done(struct crew *crew, size_t done)
{
    size_t count = crew->runs->policies->count;

    if (count > 1)
        snprintf(crew->what, sizeof crew->what, "%s, %zu of %zu policies done", crew->runs->what,
                 done, count);
    else
        snprintf(crew->what, sizeof crew->what, "%s", crew->runs->what);
}

/* Runs the taken policy with this source, which is at its start. Then takes and runs other policies
 * until there are none. */
static void work(struct crew *crew, struct mt_source *source, size_t index, bool shows_progress)
{
    const struct mt_policy_runs *runs = crew->runs;
    bool at_start = true;

    do {
        struct outcome *outcome = &crew->outcomes[index];

        outcome->error = (struct mt_error){MT_OK, MT_NO_OFFSET, ""};
        outcome->status = at_start ? MT_OK : mt_source_rewind(source, &outcome->error);
        if (outcome->status == MT_OK)
            outcome->status = runs->run(runs->context, source, runs->policies->items[index], index,
                                        &outcome->error);
        at_start = false;
        size_t done = finish_policy(crew, outcome->status);
        if (shows_progress)
            show_done(crew, done);
    } while (take_policy(crew, &index));
    mt_source_leave(source); /* the last reading may have stopped early */
}

/* The body of an additional thread. If it cannot open its own source, the other threads do the
 * work. */
static void *help(void *context)
{
    struct crew *crew = context;
    const struct mt_policy_runs *runs = crew->runs;
    struct mt_source *source = NULL;
    struct mt_error error;
    size_t index;

    if (mt_import_open_any(runs->path, &source, &error) == MT_OK &&
        (!runs->heap || mt_heap_view_choose_heap(source, runs->heap, &error) == MT_OK) &&
        take_policy(crew, &index))
        work(crew, source, index, false);
    mt_source_close(source);
    return NULL;
}

/* Returns the number of additional threads; 0 if the input is not a file, because it then cannot be
 * opened again. */
static size_t count_helpers(const struct mt_policy_runs *runs)
{
    long processors = sysconf(_SC_NPROCESSORS_ONLN);
    uint64_t jobs = runs->jobs;
    struct stat about;

    if (strcmp(runs->path, "-") == 0 || stat(runs->path, &about) != 0 || !S_ISREG(about.st_mode))
        return 0;
    if (!jobs)
        jobs = processors > 1 ? (uint64_t)processors : 1;
    jobs = mt_min_u64(jobs, mt_min_u64(runs->policies->count, MAX_THREADS));
    return jobs ? (size_t)jobs - 1 : 0;
}

int mt_policy_runs_run(const struct mt_policy_runs *runs)
{
    struct crew crew = {.runs = runs, .lock = PTHREAD_MUTEX_INITIALIZER};
    pthread_t threads[MAX_THREADS];
    size_t wanted = count_helpers(runs), started = 0, first, i;
    int exit_code = MT_EXIT_OK;

    if (!take_policy(&crew, &first))
        return MT_EXIT_OK;
    show_done(&crew, 0);
    mt_reading_start(&crew.reading, runs->source, crew.what, runs->common->quiet);
    while (started < wanted && pthread_create(&threads[started], NULL, help, &crew) == 0)
        started++;
    mt_source_read_ahead(runs->source, runs->policies->count == 1 && runs->jobs != 1);
    work(&crew, runs->source, first, true);
    mt_source_read_ahead(runs->source, false);
    for (i = 0; i < started; i++)
        pthread_join(threads[i], NULL);
    mt_reading_end(&crew.reading);
    for (i = 0; exit_code == MT_EXIT_OK && i < crew.next; i++) {
        struct outcome *outcome = &crew.outcomes[i];
        /* Some errors of the host have no text of their own, so the status must be right. */
        outcome->error.status = outcome->status;
        if (outcome->status != MT_OK)
            exit_code = mt_policy_error(runs->path, runs->policies->items[i], &outcome->error);
    }
    return exit_code;
}

/* Returns true if the view has physical memory that the program mapped. */
static bool has_pages(const struct mt_source *source)
{
    const struct mt_heap_view *view = &source->view;

    for (uint32_t i = view->one_heap ? view->heap : 0; i < source->symbols.heap_count; i++) {
        if (strcmp(mt_heap_name(&source->symbols, (uint16_t)i), "driver:virtual") == 0)
            return true;
        if (view->one_heap)
            break;
    }
    return false;
}

void mt_policy_runs_add_requests(struct mt_buf *out, const struct mt_source *source)
{
    if (!source || source->view.level != MT_VIEW_DRIVER)
        return;
    mt_buf_add_char(out, '\n');
    if (source->view.one_heap)
        mt_text_table_add_note(out, 0, "requests: only those of the heap %s",
                               mt_heap_name(&source->symbols, source->view.heap));
    else
        mt_text_table_add_note(
            out, 0,
            "requests: those to the driver, for all its heaps of device memory; the trace "
            "has no allocator above the driver");
    if (has_pages(source))
        mt_text_table_add_note(
            out, 0,
            "the heap driver:virtual holds whole pages, mostly of 2 MiB; the trace lacks "
            "the requests of the program within them");
}

void mt_json_requests(struct mt_json *json, const struct mt_source *source)
{
    if (source && source->view.level == MT_VIEW_DRIVER)
        mt_json_text(json, "requests",
                     source->view.one_heap ? mt_heap_name(&source->symbols, source->view.heap)
                                           : "driver");
}

int mt_policy_error(const char *path, const char *policy, const struct mt_error *error)
{
    if (!policy || (error->status != MT_ERR_USAGE && error->status != MT_ERR_UNSUPPORTED))
        return mt_report_error(path, error);
    mt_message("policy '%s': %s", policy, error->text);
    return MT_EXIT_USAGE;
}

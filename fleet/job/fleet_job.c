/* The files of a job and their records as one job. */
#include <dirent.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "arena.h"
#include "ascii.h"
#include "cli.h"
#include "fleet_job.h"
#include "gather.h"
#include "grow.h"
#include "job_answers.h"
#include "process_memory.h"
#include "sorted.h"
#include "status.h"
#include "summary_of_trace.h"
#include "util.h"

enum { MAX_DEPTH = 8 }; /* maximum depth of folders; links to parents would otherwise never end */

static bool is_input(const char *name)
{
    static const char *const ends[] = {".mtsum",      ".trace",     ".trace.zst",    ".pickle",
                                       ".pickle.zst", ".xplane.pb", ".xplane.pb.zst"};

    for (size_t i = 0; i < MT_ARRAY_LEN(ends); i++)
        if (mt_ends_with(name, ends[i]))
            return true;
    return false;
}

static void add_file(struct mt_fleet_files *files, const char *path)
{
    const char *copy = mt_arena_text(&files->arena, path, strlen(path));

    if (files->count == UINT32_MAX)
        mt_memory_end();
    if (files->count == files->capacity)
        mt_grow_to(&files->paths, &files->capacity, (size_t)files->count + 1, sizeof *files->paths);
    files->paths[files->count++] = copy;
}

static enum mt_status add_folder(struct mt_fleet_files *files, const char *path, int depth,
                                 struct mt_error *error);

/* Adds an entry of a folder. An entry that was deleted after it was listed is skipped. */
static enum mt_status add_entry(struct mt_fleet_files *files, const char *folder, const char *name,
                                int depth, struct mt_error *error)
{
    const char *path = mt_arena_printf(&files->arena, "%s/%s", folder, name);
    struct stat facts;

    if (stat(path, &facts) != 0)
        return MT_OK;
    if (S_ISDIR(facts.st_mode))
        return depth < MAX_DEPTH ? add_folder(files, path, depth + 1, error) : MT_OK;
    if (!S_ISREG(facts.st_mode) || !is_input(name) || mt_fleet_has_summary(path))
        return MT_OK;
    add_file(files, path);
    return MT_OK;
}

static enum mt_status add_folder(struct mt_fleet_files *files, const char *path, int depth,
                                 struct mt_error *error)
{
    DIR *folder = opendir(path);
    struct dirent *entry;
    enum mt_status status = MT_OK;
    int wrong = 0;

    if (!folder)
        return mt_fail(error, MT_ERR_IO, MT_NO_OFFSET, "%s", strerror(errno));
    for (errno = 0; status == MT_OK && (entry = readdir(folder)); errno = 0)
        if (entry->d_name[0] != '.')
            status = add_entry(files, path, entry->d_name, depth, error);
    if (status == MT_OK)
        wrong = errno;
    closedir(folder);
    return wrong ? mt_fail(error, MT_ERR_IO, MT_NO_OFFSET, "%s", strerror(wrong)) : status;
}

/* "traces/" and "traces" are the same folder. */
static const char *without_slashes(struct mt_fleet_files *files, const char *path)
{
    size_t length = strlen(path);

    while (length > 1 && path[length - 1] == '/')
        length--;
    return mt_arena_text(&files->arena, path, length);
}

enum mt_status mt_fleet_files_add(struct mt_fleet_files *files, const char *path,
                                  struct mt_error *error)
{
    struct stat facts;

    if (stat(path, &facts) == 0 && S_ISDIR(facts.st_mode))
        return add_folder(files, without_slashes(files, path), 0, error);
    add_file(files, path);
    return MT_OK;
}

struct key {
    const char *text;
    size_t length;
};

static int compare_key(const void *a, const void *b)
{
    const struct key *key = a;
    const char *const *path = b;
    int order = strncmp(key->text, *path, key->length);

    return order ? order : (*path)[key->length] ? -1 : 0;
}

/* Returns true if the path is that of the summary of one of the traces. */
static bool is_summary_of_one(const char *path, const char *const *traces, uint32_t count)
{
    struct key key = {.text = path};

    if (!mt_is_summary_name(path))
        return false;
    key.length = strlen(path) - strlen(".mtsum");
    return bsearch(&key, traces, count, sizeof *traces, compare_key) != NULL;
}

void mt_fleet_files_sort(struct mt_fleet_files *files)
{
    const char **paths = files->paths;
    uint32_t kept = 0;

    if (files->count)
        qsort(paths, files->count, sizeof *paths, mt_ascending_text);
    /* the path of a trace is before that of its summary */
    for (uint32_t i = 0; i < files->count; i++)
        if (!kept ||
            (strcmp(paths[i], paths[kept - 1]) != 0 && !is_summary_of_one(paths[i], paths, kept)))
            paths[kept++] = paths[i];
    files->count = kept;
}

void mt_fleet_files_release(struct mt_fleet_files *files)
{
    free(files->paths);
    mt_arena_release(&files->arena);
    memset(files, 0, sizeof *files);
}

static bool is_older(const struct stat *a, const struct stat *b)
{
    if (a->st_mtim.tv_sec != b->st_mtim.tv_sec)
        return a->st_mtim.tv_sec < b->st_mtim.tv_sec;
    return a->st_mtim.tv_nsec < b->st_mtim.tv_nsec;
}

bool mt_fleet_has_summary(const char *trace)
{
    struct mt_buf path = {0};
    struct stat facts, of_trace;

    mt_summary_add_path(&path, trace);
    bool has = stat(path.data, &facts) == 0 && stat(trace, &of_trace) == 0 &&
               S_ISREG(facts.st_mode) && !is_older(&facts, &of_trace) &&
               mt_summary_is_file(path.data);
    mt_buf_release(&path);
    return has;
}

/* Maximum number of unreadable files that are named. --all lifts the limit. */
enum { MOST_NAMED_FILES = 100 };

static enum mt_status read_summary_of(const char *trace, struct mt_rank_set *set,
                                      struct mt_error *error)
{
    struct mt_buf path = {0};

    mt_summary_add_path(&path, trace);
    enum mt_status status = mt_summary_read(path.data, set, error);
    mt_buf_release(&path);
    return status;
}

/* Writes the summary of a trace beside it. */
static enum mt_status summarize(const struct mt_fleet_reading *reading, const char *trace,
                                struct mt_error *error)
{
    const struct mt_summary_order order = {.trace = trace, .force = reading->force};
    struct mt_buf path = {0};

    mt_summary_add_path(&path, trace);
    enum mt_status status = mt_summary_of_trace(&order, path.data, error);
    mt_buf_release(&path);
    return status;
}

enum mt_status mt_fleet_load(void *context, const char *path, struct mt_rank_set *set,
                             struct mt_error *error)
{
    const struct mt_fleet_reading *reading = context;

    if (mt_summary_is_file(path) || mt_is_summary_name(path))
        return mt_summary_read(path, set, error);
    if (mt_fleet_has_summary(path))
        return read_summary_of(path, set, error);
    if (!reading->summarize)
        return mt_summary_add_trace(path, set, error);
    enum mt_status status = summarize(reading, path, error);
    return status == MT_OK ? read_summary_of(path, set, error) : status;
}

uint32_t mt_fleet_threads(uint64_t jobs)
{
    long processors = sysconf(_SC_NPROCESSORS_ONLN);
    uint64_t wanted = jobs ? jobs : processors > 0 ? (uint64_t)processors : 1;

    return wanted < 256 ? (uint32_t)wanted : 256;
}

void mt_fleet_print_failures(const struct mt_fleet_files *files,
                             const struct mt_gather_failures *failures, bool all)
{
    uint32_t count = failures->count;
    uint32_t named = all || count < MOST_NAMED_FILES ? count : MOST_NAMED_FILES;

    for (uint32_t i = 0; i < named; i++)
        mt_message("cannot read '%s': %s", files->paths[failures->list[i].file],
                   failures->list[i].text);
    if (count > 1)
        mt_message("fleet: %u files cannot be read%s", (unsigned)count,
                   named < count ? "; --all lists them" : "");
}

/* Prints the jobs from which the user can choose. */
static int say_jobs(const struct mt_rank_set *set, const struct mt_fleet_naming *naming)
{
    struct mt_arena arena = {0};
    struct mt_job_name *names;
    uint32_t count;

    mt_job_names(set, &arena, &names, &count);
    if (naming->is_base)
        mt_message("fleet: the base has %u jobs; --base takes files of one job: name a folder or a "
                   "summary with only one job",
                   (unsigned)count);
    else if (naming->option)
        mt_message("fleet: there are %u jobs; choose one with --%s NAME", (unsigned)count,
                   naming->option);
    else
        mt_message("fleet: there are %u jobs: name a folder or a summary with only one job",
                   (unsigned)count);
    for (uint32_t i = 0; i < count && i < 20; i++)
        mt_message("  '%s': %u record%s", names[i].name, (unsigned)names[i].record_count,
                   names[i].record_count == 1 ? "" : "s");
    mt_arena_release(&arena);
    return MT_EXIT_USAGE;
}

static bool has_several_jobs(const struct mt_rank_set *set)
{
    return set->record_count && strcmp(set->records[0].identity.job,
                                       set->records[set->record_count - 1].identity.job) != 0;
}

int mt_fleet_make_report(const struct mt_rank_set *set, const struct mt_fleet_files *files,
                         const struct mt_gather_failures *failures,
                         const struct mt_fleet_naming *naming, struct mt_job_report **report)
{
    struct mt_job_file *unreadable =
        mt_memory_zeroed((size_t)failures->count + 1, sizeof *unreadable);
    const struct mt_job_options options = {.job = naming->job,
                                           .mesh = naming->mesh,
                                           .unreadable = unreadable,
                                           .unreadable_count = failures->count};
    struct mt_error error = {.offset = MT_NO_OFFSET};
    enum mt_status status = MT_OK;

    for (uint32_t i = 0; i < failures->count; i++)
        unreadable[i] =
            (struct mt_job_file){files->paths[failures->list[i].file], failures->list[i].text};
    status = mt_job_report_make(set, &options, report, &error);
    free(unreadable);
    if (status == MT_OK)
        return MT_EXIT_OK;
    if (status != MT_ERR_USAGE) {
        error.status = status;
        return mt_report_error(naming->path, &error);
    }
    if (!naming->job && has_several_jobs(set))
        return say_jobs(set, naming);
    mt_message("fleet: %s", error.text);
    return MT_EXIT_USAGE;
}

static int find_files(struct mt_fleet_job *job)
{
    struct mt_error error = {.offset = MT_NO_OFFSET};
    enum mt_status status = mt_fleet_files_add(&job->files, job->path, &error);

    if (status != MT_OK) {
        error.status = status;
        return mt_report_error(job->path, &error);
    }
    mt_fleet_files_sort(&job->files);
    if (job->files.count)
        return MT_EXIT_OK;
    mt_message("fleet: no trace, snapshot or summary is in '%s'; their names end with .trace, "
               ".trace.zst, .pickle, .pickle.zst or .mtsum",
               job->path);
    return MT_EXIT_INPUT;
}

static int read_files(struct mt_fleet_job *job, const struct mt_fleet_reading *reading,
                      uint64_t jobs)
{
    struct mt_fleet_reading copy = *reading;
    const struct mt_gather gather = {.paths = job->files.paths,
                                     .path_count = job->files.count,
                                     .share_count = 1,
                                     .threads = mt_fleet_threads(jobs),
                                     .load = mt_fleet_load,
                                     .context = &copy};

    mt_gather_files(&gather, &job->set, &job->failures);
    mt_fleet_print_failures(&job->files, &job->failures, reading->name_all);
    return job->set.record_count ? MT_EXIT_OK : MT_EXIT_INPUT;
}

int mt_fleet_job_open(struct mt_fleet_job *job, const struct mt_fleet_naming *naming,
                      const struct mt_fleet_reading *reading, uint64_t jobs)
{
    *job = (struct mt_fleet_job){.path = naming->path};
    int code = find_files(job);
    if (code == MT_EXIT_OK)
        code = read_files(job, reading, jobs);
    if (code == MT_EXIT_OK)
        code = mt_fleet_make_report(&job->set, &job->files, &job->failures, naming, &job->report);
    return code;
}

void mt_fleet_job_release(struct mt_fleet_job *job)
{
    mt_job_report_free(job->report);
    mt_gather_failures_release(&job->failures);
    mt_rank_set_release(&job->set);
    mt_fleet_files_release(&job->files);
    memset(job, 0, sizeof *job);
}

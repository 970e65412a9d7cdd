#include "fleet_files.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "grow.h"
#include "process_memory.h"
#include "summary_of_trace.h"
#include "util.h"

enum { MAX_DEPTH = 8 }; /* maximum depth of folders; links to parents would otherwise never end */

static bool ends_with(const char *text, const char *end)
{
    size_t length = strlen(text), wanted = strlen(end);

    return length > wanted && strcmp(text + length - wanted, end) == 0;
}

static bool is_input(const char *name)
{
    static const char *const ends[] = {".mtsum",      ".trace",     ".trace.zst",    ".pickle",
                                       ".pickle.zst", ".xplane.pb", ".xplane.pb.zst"};

    for (size_t i = 0; i < MT_ARRAY_LEN(ends); i++)
        if (ends_with(name, ends[i]))
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

static int compare(const void *a, const void *b)
{
    const char *const *one = a, *const *other = b;

    return strcmp(*one, *other);
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

    if (!ends_with(path, ".mtsum"))
        return false;
    key.length = strlen(path) - strlen(".mtsum");
    return bsearch(&key, traces, count, sizeof *traces, compare_key) != NULL;
}

void mt_fleet_files_sort(struct mt_fleet_files *files)
{
    const char **paths = files->paths;
    uint32_t kept = 0;

    if (files->count)
        qsort(paths, files->count, sizeof *paths, compare);
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
    bool has;

    mt_summary_add_path(&path, trace);
    has = stat(path.data, &facts) == 0 && stat(trace, &of_trace) == 0 && S_ISREG(facts.st_mode) &&
          !is_older(&facts, &of_trace) && mt_is_summary_file(path.data);
    mt_buf_release(&path);
    return has;
}

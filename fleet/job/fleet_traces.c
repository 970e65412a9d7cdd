/* Reads the traces of a job, with several processes at a time. */
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "file_hash.h"
#include "fleet_job.h"
#include "fleet_traces.h"
#include "grow.h"
#include "io.h"
#include "process_memory.h"
#include "rank_record.h"
#include "sha256.h"
#include "sorted.h"
#include "summary_of_trace.h"

static void add_trace(struct mt_fleet_traces *traces, const char *folder, const char *name)
{
    const char *path = strcmp(folder, "") == 0
                           ? mt_arena_text(&traces->arena, name, strlen(name))
                           : mt_arena_printf(&traces->arena, "%s/%s", folder, name);

    if (traces->count == traces->capacity)
        mt_grow_to(&traces->list, &traces->capacity, traces->count + 1, sizeof *traces->list);
    traces->list[traces->count++] =
        (struct mt_fleet_trace){.name = path + strlen(path) - strlen(name), .path = path};
}

static void add_folder(struct mt_fleet_traces *traces, const char *path)
{
    DIR *folder = opendir(*path ? path : ".");
    struct dirent *entry;

    if (!folder && errno == ENOMEM)
        mt_memory_end();
    if (!folder)
        return;
    while ((entry = readdir(folder)))
        if (entry->d_name[0] != '.' && !mt_is_summary_name(entry->d_name))
            add_trace(traces, path, entry->d_name);
    closedir(folder);
}

MT_DEFINE_ORDER(compare, struct mt_fleet_trace, MT_BY_TEXT(name) || MT_BY_TEXT(path))

/* Returns the folders of the files in sorted order. "" is the current folder. */
static const char **find_folders(const struct mt_fleet_files *files, struct mt_arena *arena)
{
    const char **folders = mt_arena_array(arena, (size_t)files->count + 1, sizeof *folders);

    for (uint32_t i = 0; i < files->count; i++) {
        const char *path = files->paths[i], *slash = strrchr(path, '/');

        folders[i] = mt_arena_text(arena, path, slash ? (size_t)(slash - path) : 0);
    }
    if (files->count)
        qsort(folders, files->count, sizeof *folders, mt_ascending_text);
    return folders;
}

void mt_fleet_traces_find(const struct mt_fleet_files *files, struct mt_fleet_traces *traces)
{
    const char **folders = find_folders(files, &traces->arena);

    for (uint32_t i = 0; i < files->count; i++)
        if (!i || strcmp(folders[i], folders[i - 1]) != 0)
            add_folder(traces, folders[i]);
    if (traces->count)
        qsort(traces->list, traces->count, sizeof *traces->list, compare);
}

void mt_fleet_traces_release(struct mt_fleet_traces *traces)
{
    free(traces->list);
    mt_arena_release(&traces->arena);
    memset(traces, 0, sizeof *traces);
}

/* Returns the index of the first trace of this name; `count` if there is none. */
static size_t first_of(const struct mt_fleet_traces *traces, const char *name)
{
    size_t low = 0;

    MT_BISECT(low, traces->count, middle, strcmp(traces->list[middle].name, name) < 0);
    return low;
}

static const char *hash_of(struct mt_fleet_traces *traces, size_t index)
{
    struct mt_fleet_trace *trace = &traces->list[index];
    struct mt_error ignored;

    if (trace->is_hashed)
        return trace->sha256;
    trace->is_hashed = true;
    if (!mt_io_is_file(trace->path))
        return trace->sha256;
    traces->hashed_count++;
    if (mt_file_hash(trace->path, trace->sha256, &ignored) != MT_OK)
        trace->sha256[0] = '\0';
    return trace->sha256;
}

const char *mt_fleet_trace_of(struct mt_fleet_traces *traces, const struct mt_rank_record *record,
                              const char **reason)
{
    const char *name = record->trace_name;
    size_t first = first_of(traces, name), end = first;

    while (end < traces->count && !strcmp(traces->list[end].name, name))
        end++;
    *reason = "there is no trace beside its summary";
    if (end - first == 1)
        return mt_io_is_file(traces->list[first].path) ? traces->list[first].path : NULL;
    for (size_t i = first; i < end && *record->trace_sha256; i++)
        if (!strcmp(hash_of(traces, i), record->trace_sha256))
            return traces->list[i].path;
    if (first < end)
        *reason = "several files have the name of its trace, and none of them has its hash";
    return NULL;
}

enum mt_status mt_fleet_trace_check(const char *path, const struct mt_rank_record *record,
                                    struct mt_error *error)
{
    char text[MT_SHA256_TEXT];

    if (!*record->trace_sha256)
        return MT_OK;
    enum mt_status status = mt_file_hash(path, text, error);
    if (status == MT_OK && strcmp(text, record->trace_sha256) != 0)
        status = mt_fail(error, MT_ERR_FORMAT, MT_NO_OFFSET,
                         "the file is not the one that was summarized");
    return status;
}

#include "dry_run_notes.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ascii.h"
#include "buf.h"
#include "io.h"
#include "json.h"
#include "process_memory.h"
#include "settings_text.h"
#include "site_cache.h"
#include "util.h"

enum { MAX_NOTE_BYTES = 1024 * 1024 };

/* Creates the folder in the cache of simulated libraries. */
static bool make_in_cache(struct mt_dry_run_notes *notes, const char *path)
{
    struct mt_cache_making making = {.fd = -1};
    struct mt_error error = {.offset = MT_NO_OFFSET};
    struct mt_buf made = {0};
    struct mt_cache cache;

    if (mt_cache_open(path, &cache, &error) != MT_OK)
        return false;
    if (mt_cache_begin(&cache, &making, &error) == MT_OK) {
        mt_buf_printf(&made, "%s/%s", cache.path, making.name);
        (void)mt_temporary_folder_take(&notes->folder, made.data);
        if (!notes->folder.path)
            mt_cache_abandon(&cache, &making);
        else
            (void)mt_io_close(making.fd);
    }
    mt_buf_release(&made);
    mt_cache_close(&cache);
    return notes->folder.path != NULL;
}

void mt_dry_run_notes_open(struct mt_dry_run_notes *notes, const char *cache)
{
    *notes = (struct mt_dry_run_notes){.folder = MT_TEMPORARY_FOLDER_NONE};
    notes->folder_was_made = *cache ? make_in_cache(notes, cache)
                                    : mt_temporary_folder_new(&notes->folder, "memtrace-dry-run");
    notes->unreadable = !notes->folder_was_made;
}

char *mt_dry_run_notes_path(const struct mt_dry_run_notes *notes)
{
    struct mt_buf path = {0};

    if (!notes->folder.path)
        return NULL;
    mt_buf_printf(&path, "%s/notes", notes->folder.path);
    char *copy = mt_memory_text(path.data);
    mt_buf_release(&path);
    return copy;
}

/* Keeps the first text that is found. */
static void keep_text(char **text, const struct mt_settings *settings, const char *path)
{
    const char *found = mt_settings_text(settings, "%s", path);

    if (!*text && found)
        *text = mt_memory_text(found);
}

static void note_process(struct mt_dry_run_notes *notes, const struct mt_settings *settings)
{
    uint64_t *grown =
        mt_memory_resize(notes->process_ids, (notes->process_count + 1) * sizeof *grown);
    const struct mt_setting *simulated = mt_settings_find(settings, "facts.simulated");

    notes->process_ids = grown;
    grown[notes->process_count++] = mt_settings_number(settings, "pid");
    if (!simulated || simulated->kind != MT_SETTING_BOOL)
        return;
    notes->torch_processes++;
    notes->without_device += !simulated->number;
    keep_text(&notes->torch_folder, settings, "facts.torch_folder");
}

static void add_number(uint64_t *sum, const struct mt_settings *settings, const char *path)
{
    *sum = mt_add_most_u64(*sum, mt_settings_number(settings, "%s", path));
}

static void add_places(struct mt_dry_run_notes *notes, const struct mt_settings *settings)
{
    for (size_t i = 0; notes->place_count < MT_MAX_GUESS_PLACES; i++) {
        const char *kind = mt_settings_text(settings, "places.%zu.kind", i);
        const char *place = mt_settings_text(settings, "places.%zu.place", i);

        if (!kind || !place)
            return;
        notes->places =
            mt_memory_resize(notes->places, (notes->place_count + 1) * sizeof *notes->places);
        notes->places[notes->place_count++] =
            (struct mt_guess_place){.kind = mt_memory_text(kind),
                                    .place = mt_memory_text(place),
                                    .count = mt_settings_number(settings, "places.%zu.count", i),
                                    .size = mt_settings_number(settings, "places.%zu.size", i),
                                    .of = mt_settings_number(settings, "places.%zu.of", i)};
    }
}

/* False for the notes of the Python part. */
static bool is_of_libraries(const struct mt_settings *settings)
{
    return mt_settings_find(settings, "workspaces.measured") ||
           mt_settings_find(settings, "collectives.undecided") ||
           mt_settings_find(settings, "blocks.undecided") ||
           mt_settings_find(settings, "queries.undecided");
}

void mt_dry_run_notes_add(struct mt_dry_run_notes *notes, const char *text, size_t length)
{
    struct mt_settings settings = {0};
    struct mt_error error;

    if (mt_settings_parse_json(text, length, &settings, &error) == MT_OK &&
        mt_settings_number(&settings, "version") == 1) {
        add_number(&notes->sizes, &settings, "sizes_from_data");
        add_number(&notes->decisions, &settings, "answers.condition.count");
        add_number(&notes->compiled, &settings, "answers.compiled.count");
        add_number(&notes->eager, &settings, "answers.eager.count");
        add_number(&notes->failures, &settings, "failure_count");
        add_number(&notes->measured_workspaces, &settings, "workspaces.measured");
        add_number(&notes->queried_workspaces, &settings, "workspaces.asked");
        add_number(&notes->ruled_workspaces, &settings, "workspaces.by_rule");
        add_number(&notes->guessed_workspaces, &settings, "workspaces.guessed");
        add_number(&notes->fake_groups, &settings, "facts.fake_groups");
        notes->exchanged_counts |= mt_settings_find(&settings, "facts.exchanged_counts") != NULL;
        add_number(&notes->undecided.collectives, &settings, "collectives.undecided");
        add_number(&notes->undecided.blocks, &settings, "blocks.undecided");
        add_number(&notes->undecided.queries, &settings, "queries.undecided");
        notes->most_unsure_bytes =
            mt_max_u64(notes->most_unsure_bytes,
                       mt_settings_number(&settings, "workspaces.most_unsure_bytes"));
        keep_text(&notes->first_failure, &settings, "first_failure");
        keep_text(&notes->other_library, &settings, "facts.other_library");
        keep_text(&notes->suspect_place, &settings, "facts.suspect.place");
        keep_text(&notes->suspect_other, &settings, "facts.suspect.other");
        keep_text(&notes->suspect_error, &settings, "facts.suspect.error");
        add_places(notes, &settings);
        mt_applied_note(&notes->applied, &settings);
        if (!is_of_libraries(&settings))
            note_process(notes, &settings);
    } else {
        notes->unreadable++;
    }
    mt_settings_release(&settings);
}

static void read_file(struct mt_dry_run_notes *notes, const char *name)
{
    char *text = mt_memory_new(MAX_NOTE_BYTES);
    int fd = mt_io_open_at(notes->folder.fd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK, 0);
    ssize_t length = fd >= 0 ? mt_io_read_full(fd, text, MAX_NOTE_BYTES) : -1;

    if (length >= 0)
        mt_dry_run_notes_add(notes, text, (size_t)length);
    else
        notes->unreadable++;
    if (fd >= 0)
        close(fd);
    free(text);
}

/* False for the files of a killed process: ".notes.PID.half", "notes.convolutions.PID.half". */
static bool is_complete(const char *name)
{
    return name[0] != '.' && !mt_ends_with(name, ".half");
}

void mt_dry_run_notes_close(struct mt_dry_run_notes *notes)
{
    DIR *entries = notes->folder.path ? mt_io_open_entries(notes->folder.fd) : NULL;

    for (const struct dirent *entry; entries && (entry = readdir(entries)) != NULL;)
        if (is_complete(entry->d_name))
            read_file(notes, entry->d_name);
    if (entries)
        (void)closedir(entries);
    mt_temporary_folder_remove(&notes->folder);
}

void mt_json_undecided(struct mt_json *json, const struct mt_undecided *undecided)
{
    mt_json_object_begin(json, "depended_on_timing");
    mt_json_u64(json, "collectives", undecided->collectives);
    mt_json_u64(json, "blocks", undecided->blocks);
    mt_json_u64(json, "queries", undecided->queries);
    mt_json_object_end(json);
}

bool mt_is_undecided(const struct mt_undecided *undecided)
{
    return undecided->collectives || undecided->blocks || undecided->queries;
}

const char *mt_guess_place(const char *other)
{
    for (int words = 0; words < 2 && strchr(other, ' '); words++)
        other = strchr(other, ' ') + 1;
    return other;
}

bool mt_dry_run_notes_has(const struct mt_dry_run_notes *notes, uint64_t process_id)
{
    for (size_t i = 0; i < notes->process_count; i++)
        if (notes->process_ids[i] == process_id)
            return true;
    return false;
}

void mt_dry_run_notes_release(struct mt_dry_run_notes *notes)
{
    for (size_t i = 0; i < notes->place_count; i++) {
        free(notes->places[i].kind);
        free(notes->places[i].place);
    }
    free(notes->places);
    free(notes->suspect_place);
    free(notes->suspect_error);
    free(notes->suspect_other);
    mt_applied_release(&notes->applied);
    free(notes->first_failure);
    free(notes->torch_folder);
    free(notes->other_library);
    free(notes->process_ids);
}

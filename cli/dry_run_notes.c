#include "dry_run_notes.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "buf.h"
#include "io.h"
#include "settings_text.h"
#include "temporary_folder.h"
#include "util.h"

enum { MAX_NOTE_BYTES = 1024 * 1024 };

void mt_dry_run_notes_open(struct mt_dry_run_notes *notes)
{
    *notes = (struct mt_dry_run_notes){.folder = mt_temporary_folder_new("memtrace-dry-run")};
    notes->unreadable = !notes->folder;
}

static char *path_of(const struct mt_dry_run_notes *notes, const char *name)
{
    struct mt_buf path = {0};
    char *copy;

    mt_buf_printf(&path, "%s/%s", notes->folder, name);
    copy = path.data && !path.failed ? strdup(path.data) : NULL;
    mt_buf_release(&path);
    return copy;
}

char *mt_dry_run_notes_path(const struct mt_dry_run_notes *notes)
{
    return notes->folder ? path_of(notes, "notes") : NULL;
}

static uint64_t number_of(const struct mt_settings *settings, const char *path)
{
    const struct mt_setting *setting = mt_settings_find(settings, path);

    return setting && setting->kind == MT_SETTING_NUMBER && setting->is_whole ? setting->number : 0;
}

static void read_note(struct mt_dry_run_notes *notes, const char *text, size_t length)
{
    struct mt_settings settings = {0};
    struct mt_error error;

    if (mt_settings_parse(text, length, &settings, &error) == MT_OK &&
        number_of(&settings, "version") == 1) {
        notes->sizes = mt_add_most_u64(notes->sizes, number_of(&settings, "sizes_from_data"));
        notes->decisions =
            mt_add_most_u64(notes->decisions, number_of(&settings, "answers.condition.count"));
        notes->eager = mt_add_most_u64(notes->eager, number_of(&settings, "answers.eager.count"));
    } else {
        notes->unreadable++;
    }
    mt_settings_release(&settings);
}

static void read_file(struct mt_dry_run_notes *notes, const char *path)
{
    char *text = malloc(MAX_NOTE_BYTES);
    int fd = mt_io_open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0);
    ssize_t length = text && fd >= 0 ? mt_io_read_full(fd, text, MAX_NOTE_BYTES) : -1;

    if (length >= 0)
        read_note(notes, text, (size_t)length);
    else
        notes->unreadable++;
    if (fd >= 0)
        close(fd);
    free(text);
}

void mt_dry_run_notes_close(struct mt_dry_run_notes *notes)
{
    DIR *folder = notes->folder ? opendir(notes->folder) : NULL;
    const struct dirent *entry;

    while (folder && (entry = readdir(folder))) {
        char *path = path_of(notes, entry->d_name);

        if (!path)
            continue;
        if (entry->d_name[0] != '.') /* ".notes.PID.half": of a process that was killed */
            read_file(notes, path);
        free(path);
    }
    if (folder)
        closedir(folder);
    mt_temporary_folder_remove(notes->folder);
    notes->folder = NULL;
}

#include "next_step.h"

#include <dirent.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "annexes.h"
#include "foreign_text.h"
#include "outputs.h"
#include "util.h"

enum { COMMAND_COLUMNS = 46 }; /* a longer command has its purpose on the next line */

const char *mt_short_path(const char *path)
{
    char here[PATH_MAX];

    if (!getcwd(here, sizeof here))
        return path;
    size_t length = strlen(here);
    return strncmp(path, here, length) == 0 && path[length] == '/' && path[length + 1]
               ? path + length + 1
               : path;
}

void mt_next_step_note(struct mt_next_step *next, const struct mt_trace_end *end)
{
    const uint64_t ends = end->summary.closed; /* an event that says nothing */

    if (end->state == MT_TRACE_RUNNING || end->state == MT_TRACE_FAILED ||
        end->summary.events <= ends)
        return;
    if (next->count < MT_NEXT_TRACES)
        next->paths[next->count] = end->path;
    next->count++;
}

const char *mt_fleet_path(const char *path)
{
    return strcmp(path, "diff") == 0 ? "./diff" : path;
}

/* If there are too many traces to name, suggests to analyze one at a time. */
void mt_next_step_add(struct mt_buf *out, const struct mt_next_step *next)
{
    bool is_job =
        mt_annex_files && next->count > 1 && (next->folder || next->count <= MT_NEXT_TRACES);
    size_t named = is_job ? next->count : 1;

    if (!next->count)
        return;
    mt_buf_printf(out, "memtrace: next: memtrace %s", is_job ? "fleet" : "analyze");
    if (is_job && next->folder) {
        mt_buf_add_char(out, ' ');
        mt_buf_add_shell_path(out, mt_short_path(next->folder));
        named = 0;
    }
    for (size_t i = 0; i < named; i++) {
        const char *path = mt_short_path(next->paths[i]);

        mt_buf_add_char(out, ' ');
        mt_buf_add_shell_path(out, mt_fleet_path(path));
    }
    mt_buf_add_char(out, '\n');
}

void mt_next_step_print(const char *why, const char *command, const char *path)
{
    struct mt_buf word = {0};

    mt_buf_add_shell_path(&word, path);
    mt_message("%s: memtrace %s %s", why, command, word.data);
    mt_buf_release(&word);
}

static bool is_recording(const char *name)
{
    static const char *const ends[] = {".trace.zst",  ".trace",     ".pickle",
                                       ".pickle.zst", ".xplane.pb", ".xplane.pb.zst"};
    size_t length = strlen(name);

    for (size_t i = 0; i < MT_ARRAY_LEN(ends); i++) {
        size_t end = strlen(ends[i]);
        if (length > end && strcmp(name + length - end, ends[i]) == 0)
            return true;
    }
    return false;
}

static bool is_newer(const struct timespec *a, const struct timespec *b)
{
    return a->tv_sec != b->tv_sec ? a->tv_sec > b->tv_sec : a->tv_nsec > b->tv_nsec;
}

/* Finds the newest recording. Among equally new ones, chooses the first by name. `name` is empty if
 * there is none. */
static void find_newest(const char *folder, char name[NAME_MAX + 1])
{
    struct timespec newest = {0, 0};
    const struct dirent *entry;
    struct stat facts;
    DIR *open = opendir(folder);

    *name = '\0';
    while (open && (entry = readdir(open))) {
        if (!is_recording(entry->d_name) || fstatat(dirfd(open), entry->d_name, &facts, 0) != 0 ||
            !S_ISREG(facts.st_mode) || !facts.st_size)
            continue;
        if (*name && (is_newer(&newest, &facts.st_mtim) ||
                      (!is_newer(&facts.st_mtim, &newest) && strcmp(entry->d_name, name) > 0)))
            continue;
        newest = facts.st_mtim;
        snprintf(name, NAME_MAX + 1, "%s", entry->d_name);
    }
    if (open)
        closedir(open);
}

static void add_step(struct mt_buf *out, const char *command, const char *path, const char *purpose)
{
    size_t begin = out->length;

    mt_buf_printf(out, "  memtrace %s", command);
    if (path) {
        mt_buf_add_char(out, ' ');
        mt_buf_add_shell_path(out, path);
    }
    size_t used = out->length - begin;
    if (used > COMMAND_COLUMNS) {
        mt_buf_add_char(out, '\n');
        used = 0;
    }
    mt_buf_printf(out, "%*s %s\n", (int)(COMMAND_COLUMNS - used), "", purpose);
}

static void add_recording(struct mt_buf *out, const char *folder)
{
    char name[NAME_MAX + 1];
    struct mt_buf path = {0};

    find_newest(folder, name);
    if (*name && strcmp(folder, ".") != 0)
        mt_outputs_add_path(&path, folder, name);
    else if (*name)
        mt_buf_add_text(&path, name);
    if (!*name)
        add_step(out, "analyze TRACE", NULL, "explain a trace or a PyTorch snapshot (.pickle)");
    else
        add_step(out, "analyze --open", path.data, "show the newest recording here, in a browser");
    mt_buf_release(&path);
}

void mt_next_step_add_first(struct mt_buf *out, const char *folder, bool has_dry_run)
{
    add_recording(out, folder);
    add_step(out, "record -- python train.py", NULL, "record a program on a GPU");
    if (has_dry_run)
        add_step(out, "dry-run -- python train.py", NULL, "get its peak without a GPU");
    add_step(out, "doctor", NULL, "check what can be recorded on this machine");
    add_step(out, "--help", NULL, "list all commands");
}

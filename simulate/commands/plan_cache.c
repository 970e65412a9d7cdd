#include "plan_cache.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "grow.h"
#include "io.h"
#include "random.h"
#include "safe_path.h"
#include "sorted.h"
#include "util.h"

extern char **environ;

#define FOLDER "plans"

enum {
    FORMAT = 1,        /* increment it if the same program gives other results */
    KEPT = 4096,       /* results */
    MAX_FILES = 20000, /* in the folders of a program; with more, there is no cache */
    MAX_DEPTH = 8      /* of these folders */
};

/* A result as it is in memory: it has no pointers, and the key contains this memtrace. */
struct stored {
    char checksum[MT_SHA256_TEXT];
    struct mt_sweep_result result;
};

static void add_text(struct mt_sha256 *sha, const char *text)
{
    mt_sha256_add(sha, text, strlen(text) + 1);
}

static void add_number(struct mt_sha256 *sha, uint64_t number)
{
    mt_sha256_add(sha, &number, sizeof number);
}

static void add_status(struct mt_sha256 *sha, const struct stat *info)
{
    add_number(sha, (uint64_t)info->st_size);
    add_number(sha, (uint64_t)info->st_mtim.tv_sec);
    add_number(sha, (uint64_t)info->st_mtim.tv_nsec);
}

static void add_path(struct mt_sha256 *sha, const char *path)
{
    struct stat info;

    add_text(sha, path);
    if (stat(path, &info) == 0)
        add_status(sha, &info);
}

/* Variables of the terminal, the session and the scheduler, which differ between two shells and
 * between the jobs of an array. */
static bool is_noise(const char *variable)
{
    static const char *const names[] = {
        "_",        "SHLVL",     "OLDPWD",   "COLUMNS",  "LINES",          "PS1",  "PS2",
        "WINDOWID", "DISPLAY",   "HOSTNAME", "LOGNAME",  "MAIL",           "PWD",  "EDITOR",
        "PAGER",    "COLORTERM", "TMPDIR",   "NO_COLOR", "XDG_CACHE_HOME", "TERM", "HISTFILE",
        "HISTSIZE", "TMUX",      "TMUX_PANE"};
    static const char *const beginnings[] = {
        "SSH_",        "XDG_SESSION", "XDG_RUNTIME", "DBUS_",        "SLURM_JOB",
        "SLURM_ARRAY", "SLURM_STEP",  "PBS_JOBID",   "LSB_JOBINDEX", "LS_COLORS",
        "VTE_",        "INVOCATION_", "JOURNAL_"};
    size_t length = strcspn(variable, "=");

    for (size_t i = 0; i < MT_ARRAY_LEN(names); i++)
        if (strlen(names[i]) == length && strncmp(variable, names[i], length) == 0)
            return true;
    for (size_t i = 0; i < MT_ARRAY_LEN(beginnings); i++)
        if (strncmp(variable, beginnings[i], strlen(beginnings[i])) == 0)
            return true;
    return false;
}

static void add_environment(struct mt_sha256 *sha)
{
    const char **variables = NULL;
    size_t count = 0, capacity = 0;

    for (char **at = environ; *at; at++) {
        if (is_noise(*at))
            continue;
        mt_grow_to(&variables, &capacity, count + 1, sizeof *variables);
        variables[count++] = *at;
    }
    if (count)
        qsort(variables, count, sizeof *variables, mt_ascending_text);
    for (size_t i = 0; i < count; i++)
        add_text(sha, variables[i]);
    free(variables);
}

/* Programs write results as JSON into folders below: those would change the key of each command. */
static bool is_of_program(const char *name, unsigned depth)
{
    static const char *const ends[] = {".py", ".toml", ".yaml", ".yml", ".json", ".cfg", ".sh"};
    enum { EVERYWHERE = 4 };
    size_t length = strlen(name);

    for (size_t i = 0; i < (depth ? EVERYWHERE : MT_ARRAY_LEN(ends)); i++)
        if (length > strlen(ends[i]) && !strcmp(name + length - strlen(ends[i]), ends[i]))
            return true;
    return false;
}

/* Folders with environments and results of programs, not with their source. */
static bool is_skipped(int folder, const char *name)
{
    static const char *const names[] = {"__pycache__",    "node_modules", "site-packages",
                                        "lightning_logs", "wandb",        "mlruns"};
    char path[PATH_MAX];
    struct stat info;

    for (size_t i = 0; i < MT_ARRAY_LEN(names); i++)
        if (*name == '.' || !strcmp(name, names[i]))
            return true;
    snprintf(path, sizeof path, "%.255s/pyvenv.cfg", name);
    return fstatat(folder, path, &info, 0) == 0;
}

/* Returns the sorted names of the entries of an open folder, which stays open, and their number. */
static char **list_names(int fd, struct mt_arena *arena, size_t *count)
{
    DIR *entries = mt_io_open_entries(fd);
    size_t capacity = 0;
    char **names = NULL;

    *count = 0;
    for (const struct dirent *entry; entries && (entry = readdir(entries)) != NULL;) {
        mt_grow_to(&names, &capacity, *count + 1, sizeof *names);
        names[(*count)++] = mt_arena_text(arena, entry->d_name, strlen(entry->d_name));
    }
    if (entries)
        (void)closedir(entries);
    if (*count)
        qsort(names, *count, sizeof *names, mt_ascending_text);
    return names;
}

/* A folder that was added, and at which depth. */
struct seen {
    dev_t device;
    ino_t inode;
    unsigned depth;
};

/* The files of a program, of which some folders may be links. */
struct sources {
    struct mt_sha256 *sha;
    size_t files;
    struct seen *seen;
    size_t seen_count, seen_capacity;
};

/* Returns false for a folder that was already added with the same files or more. Links can lead to
 * it again, also from inside. */
static bool is_new(struct sources *sources, int fd, unsigned depth)
{
    struct stat info;

    if (fstat(fd, &info) != 0)
        return false;
    for (size_t i = 0; i < sources->seen_count; i++) {
        const struct seen *seen = &sources->seen[i];

        if (seen->inode == info.st_ino && seen->device == info.st_dev && seen->depth <= depth)
            return false;
    }
    mt_grow_to(&sources->seen, &sources->seen_capacity, sources->seen_count + 1,
               sizeof *sources->seen);
    sources->seen[sources->seen_count++] = (struct seen){info.st_dev, info.st_ino, depth};
    return true;
}

static bool add_folder(struct sources *sources, int fd, unsigned depth);

static bool add_entry(struct sources *sources, int fd, const char *name, unsigned depth)
{
    struct stat info;

    if (++sources->files > MAX_FILES)
        return false;
    if (fstatat(fd, name, &info, 0) != 0)
        return true;
    if (S_ISREG(info.st_mode) && is_of_program(name, depth)) {
        add_text(sources->sha, name);
        add_status(sources->sha, &info);
    }
    if (!S_ISDIR(info.st_mode) || depth == MAX_DEPTH || is_skipped(fd, name))
        return true;
    add_text(sources->sha, name);
    return add_folder(sources, mt_io_open_at(fd, name, O_RDONLY | O_DIRECTORY, 0), depth + 1);
}

/* Adds the files of a folder and of those inside, in the order of their names. Returns false if
 * there are too many. Closes the descriptor. */
static bool add_folder(struct sources *sources, int fd, unsigned depth)
{
    struct mt_arena arena = {0};
    size_t count = 0;
    char **names = fd >= 0 && is_new(sources, fd, depth) ? list_names(fd, &arena, &count) : NULL;
    bool fits = true;

    for (size_t i = 0; fits && i < count; i++)
        fits = add_entry(sources, fd, names[i], depth);
    if (fd >= 0)
        (void)mt_io_close(fd);
    free(names);
    mt_arena_release(&arena);
    return fits;
}

/* Adds the folder around a path. */
static bool add_folder_of(struct sources *sources, const char *path)
{
    char folder[PATH_MAX];

    snprintf(folder, sizeof folder, "%s", path);
    char *slash = strrchr(folder, '/');
    if (!slash)
        return true; /* the current folder */
    slash[slash == folder] = '\0';
    return add_folder(sources, mt_io_open(folder, O_RDONLY | O_DIRECTORY, 0), 0);
}

/* Adds the current folder, and the files that the words of the command name with the folders
 * around them, also of what a link leads to: Python imports from there. A word with a placeholder
 * that names a file belongs to one run: see make_key. */
static bool add_files(struct mt_sha256 *sha, char *const *command)
{
    struct sources sources = {.sha = sha};
    char path[PATH_MAX];
    bool fits = getcwd(path, sizeof path) != NULL;

    if (fits)
        add_text(sha, path);
    fits = fits && add_folder(&sources, mt_io_open(path, O_RDONLY | O_DIRECTORY, 0), 0);
    for (size_t i = 1; fits && command[i]; i++)
        if (realpath(command[i], path) && mt_io_is_file(path) &&
            (is_of_program(command[i], 0) || is_of_program(path, 0)))
            fits = add_folder_of(&sources, command[i]) && add_folder_of(&sources, path);
    free(sources.seen);
    return fits;
}

/* Packages of Python alone are not in the key of the site: installing one changes its folder. */
static void add_python(struct mt_sha256 *sha, const struct mt_simulated_site *site)
{
    struct sources sources = {.sha = sha};
    char folder[PATH_MAX];

    if (!site)
        return;
    add_text(sha, site->folder); /* ends with the key of all libraries */
    add_text(sha, site->torch_version);
    snprintf(folder, sizeof folder, "%s", site->torch_folder);
    char *slash = strrchr(folder, '/');
    if (slash)
        *slash = '\0';
    add_path(sha, folder);
    add_path(sha, site->python_path);
    (void)add_folder(&sources, mt_io_open(site->python_path, O_RDONLY | O_DIRECTORY, 0), 0);
    free(sources.seen);
}

static int open_results(struct mt_error *error)
{
    struct mt_cache cache;
    struct stat info;
    int fd = -1;

    if (mt_cache_open(NULL, &cache, error) != MT_OK)
        return -1;
    if (mkdirat(cache.fd, FOLDER, 0700) == 0 || errno == EEXIST)
        fd = mt_io_open_at(cache.fd, FOLDER, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
    mt_cache_close(&cache);
    if (fd >= 0 && fstat(fd, &info) == 0 && mt_cache_is_closed(&info))
        return fd;
    if (fd >= 0)
        (void)mt_io_close(fd);
    return -1;
}

void mt_plan_cache_open(struct mt_plan_cache *cache, const struct mt_run_settings *settings,
                        const struct mt_simulated_site *site)
{
    struct mt_error error = {.offset = MT_NO_OFFSET};

    *cache = (struct mt_plan_cache){.fd = -1};
    mt_sha256_init(&cache->base);
    add_number(&cache->base, FORMAT);
    add_number(&cache->base, MT_CARD_COSTS_VERSION);
    add_number(&cache->base, sizeof(struct stored));
    add_path(&cache->base, "/proc/self/exe");
    add_text(&cache->base, settings->card->name);
    add_number(&cache->base, mt_run_settings_memory_bytes(settings));
    add_environment(&cache->base);
    add_python(&cache->base, site);
    if (!add_files(&cache->base, settings->command))
        cache->why_off = "the folders of the program have too many files";
    else if ((cache->fd = open_results(&error)) < 0)
        cache->why_off = "there is no folder that only this user can write to";
}

static void make_key(const struct mt_plan_cache *cache, char *const *command,
                     const struct mt_sweep_run *run, char key[MT_SHA256_TEXT])
{
    struct mt_sha256 sha = cache->base;
    struct stat info;

    for (size_t i = 0; command[i]; i++) {
        add_text(&sha, command[i]);
        if (stat(command[i], &info) == 0 && S_ISREG(info.st_mode))
            add_status(&sha, &info);
    }
    for (size_t i = 0; i < MT_ARRAY_LEN(run->values) && run->values[i]; i++)
        add_text(&sha, run->values[i]);
    add_number(&sha, run->rank.rank);
    add_number(&sha, run->rank.world);
    add_number(&sha, run->rank.local_world);
    add_number(&sha, run->rank.is_launched);
    mt_sha256_finish(&sha, key);
}

static void checksum(const struct mt_sweep_result *result, const char *key,
                     char text[MT_SHA256_TEXT])
{
    struct mt_sha256 sha;

    mt_sha256_init(&sha);
    add_text(&sha, key);
    mt_sha256_add(&sha, result, sizeof *result);
    mt_sha256_finish(&sha, text);
}

/* Reads a file that only this user can have written. */
static bool read_stored(int folder, const char *key, struct stored *stored)
{
    int fd = mt_io_open_at(folder, key, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0);
    struct stat info;
    bool is_read = fd >= 0 && fstat(fd, &info) == 0 && S_ISREG(info.st_mode) &&
                   mt_cache_is_closed(&info) && info.st_size == (off_t)sizeof *stored &&
                   mt_io_read_full(fd, stored, sizeof *stored) == (ssize_t)sizeof *stored;

    if (fd >= 0)
        (void)mt_io_close(fd);
    return is_read;
}

bool mt_plan_cache_read(const struct mt_plan_cache *cache, char *const *command,
                        struct mt_sweep_run *run)
{
    char key[MT_SHA256_TEXT], text[MT_SHA256_TEXT];
    struct stored stored;

    if (cache->fd < 0)
        return false;
    make_key(cache, command, run, key);
    if (!read_stored(cache->fd, key, &stored))
        return false;
    checksum(&stored.result, key, text);
    if (memcmp(text, stored.checksum, sizeof text) != 0)
        return false;
    run->result = stored.result;
    run->is_ended = run->is_cached = true;
    return true;
}

/* A run that failed, or whose further runs failed or were interrupted, may do better next time. */
static bool is_whole(const struct mt_sweep_result *result)
{
    for (unsigned i = 0; i < MT_ASSUMED_COUNT; i++)
        if (result->assumed[i].outcome != MT_SWEEP_NOT_RUN &&
            !mt_assumed_has_peaks(&result->assumed[i]))
            return false;
    return result->outcome == MT_SWEEP_FINISHED || result->outcome == MT_SWEEP_OUT_OF_MEMORY;
}

void mt_plan_cache_write(const struct mt_plan_cache *cache, char *const *command,
                         const struct mt_sweep_run *run)
{
    char key[MT_SHA256_TEXT], name[32];
    struct stored stored;

    if (cache->fd < 0 || !is_whole(&run->result))
        return;
    make_key(cache, command, run, key);
    memset(&stored, 0, sizeof stored);
    stored.result = run->result;
    stored.result.trace[0] = '\0'; /* of this command only */
    checksum(&stored.result, key, stored.checksum);
    snprintf(name, sizeof name, "making-%016llx", (unsigned long long)mt_random_number(&stored));
    int fd = mt_io_open_at(cache->fd, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0)
        return;
    bool is_written = mt_io_write(fd, &stored, sizeof stored);
    is_written &= mt_io_close(fd);
    if (!is_written || renameat(cache->fd, name, cache->fd, key) != 0)
        (void)unlinkat(cache->fd, name, 0);
}

struct entry {
    const char *name;
    time_t written;
};

MT_DEFINE_ORDER(newest_first, struct entry, MT_DESCENDING(written))

static void remove_oldest(int folder)
{
    struct mt_arena arena = {0};
    size_t count = 0, name_count;
    char **names = list_names(folder, &arena, &name_count);
    struct entry *list = mt_arena_array(&arena, name_count, sizeof *list);
    struct stat info;

    for (size_t i = 0; i < name_count; i++)
        if (names[i][0] != '.' && strlen(names[i]) < MT_SHA256_TEXT &&
            fstatat(folder, names[i], &info, AT_SYMLINK_NOFOLLOW) == 0)
            list[count++] = (struct entry){names[i], info.st_mtime};
    if (count > KEPT)
        qsort(list, count, sizeof *list, newest_first);
    for (size_t i = KEPT; i < count; i++)
        (void)unlinkat(folder, list[i].name, 0);
    free(names);
    mt_arena_release(&arena);
}

void mt_plan_cache_close(struct mt_plan_cache *cache)
{
    if (cache->fd < 0)
        return;
    remove_oldest(cache->fd);
    (void)mt_io_close(cache->fd);
    cache->fd = -1;
}

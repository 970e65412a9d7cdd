#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* memmem */
#endif
#include "cgroup.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "buf.h"
#include "io.h"

enum { LIST_BYTES = 16384, FILE_BYTES = 1024, FOLDER_BYTES = 2048, MAX_LEVELS = 64 };

/* Version 1 writes "no limit" as the largest number of whole pages. */
#define NO_LIMIT_BYTES (UINT64_C(1) << 62)

struct group {
    bool is_unified; /* version 2 */
    size_t mount;    /* length of `folder` up to the mount point */
    char folder[FOLDER_BYTES];
};

/* Reads the file as text; returns false if it cannot be read completely. */
static bool read_text(const char *folder, const char *name, char *text, size_t capacity)
{
    char path[FOLDER_BYTES + 64];

    if (snprintf(path, sizeof path, "%s%s", folder, name) >= (int)sizeof path)
        return false;
    size_t length = mt_io_read_text(path, text, capacity);
    return length > 0 && length < capacity - 1;
}

/* Returns whether "memory" is in the list, which is separated by commas. */
static bool has_memory(const char *list, size_t length)
{
    static const char name[] = "memory";
    const char *at = list, *end = list + length;

    while (at < end) {
        size_t item = strcspn(at, ",:");
        if (item == sizeof name - 1 && !memcmp(at, name, item))
            return true;
        at += item + 1;
    }
    return false;
}

/* "0::/user.slice" or "4:cpu,memory:/job". A path outside the visible hierarchy counts as none. */
static const char *path_of(const char *line, size_t length, bool is_unified, size_t *path_length)
{
    const char *list = memchr(line, ':', length);

    if (!list)
        return NULL;
    list++;
    const char *path = memchr(list, ':', length - (size_t)(list - line));
    if (!path || (is_unified ? path != list || line[0] != '0' || line[1] != ':'
                             : !has_memory(list, (size_t)(path - list))))
        return NULL;
    path++;
    *path_length = length - (size_t)(path - line);
    if (*path_length && path[*path_length - 1] == '/')
        --*path_length;
    return *path_length < 3 || !memmem(path, *path_length, "/..", 3) ? path : NULL;
}

static bool join(struct group *group, const char *root, const char *mount, const char *path,
                 size_t length)
{
    int written =
        snprintf(group->folder, sizeof group->folder, "%s%s%.*s", root, mount, (int)length, path);

    group->mount = strlen(root) + strlen(mount);
    return written > 0 && written < (int)sizeof group->folder;
}

/* A group that counts memory has a file with its OOM kills, or at least a limit. */
static bool counts_memory(const struct group *group)
{
    char text[FILE_BYTES];

    return read_text(group->folder, group->is_unified ? "/memory.events" : "/memory.oom_control",
                     text, sizeof text) ||
           read_text(group->folder, group->is_unified ? "/memory.max" : "/memory.limit_in_bytes",
                     text, sizeof text);
}

/* The nearest ancestor with the memory controller accounts for a group that lacks it. In a
 * container the path may be the host's: then the mount itself is the group. */
static bool find_folder(struct group *group, const char *root, const char *mount, const char *path,
                        size_t length)
{
    if (length >= FOLDER_BYTES || !join(group, root, mount, path, length))
        length = 0;
    for (int level = 0; length && level < MAX_LEVELS; level++) {
        if (counts_memory(group))
            return true;
        while (length && path[--length] != '/')
            continue;
        group->folder[group->mount + length] = '\0';
    }
    return join(group, root, mount, "", 0) && counts_memory(group);
}

static bool find_group_of(struct group *group, const char *root, const char *list, bool is_unified)
{
    static const char *const mounts[2][2] = {{"/sys/fs/cgroup/memory", "/sys/fs/cgroup/memory"},
                                             {"/sys/fs/cgroup", "/sys/fs/cgroup/unified"}};

    group->is_unified = is_unified;
    for (const char *line = list; *line; line += *line == '\n') {
        size_t length = strcspn(line, "\n"), path_length = 0;
        const char *path = path_of(line, length, is_unified, &path_length);

        for (size_t i = 0; path && i < 2; i++)
            if (find_folder(group, root, mounts[is_unified][i], path, path_length))
                return true;
        line += length;
    }
    return false;
}

/* Version 1 first: if both are mounted, it has the memory controller. */
static bool find_group(struct group *group, const char *root)
{
    char *list = malloc(LIST_BYTES);
    bool found =
        list && read_text(root, "/proc/self/cgroup", list, LIST_BYTES) &&
        (find_group_of(group, root, list, false) || find_group_of(group, root, list, true));

    free(list);
    return found;
}

/* 0 = no limit. */
static uint64_t limit_here(const struct group *group)
{
    char text[FILE_BYTES];
    uint64_t bytes;

    if (!read_text(group->folder, group->is_unified ? "/memory.max" : "/memory.limit_in_bytes",
                   text, sizeof text) ||
        !mt_decimal_read(text, strcspn(text, "\n"), &bytes) || bytes >= NO_LIMIT_BYTES)
        return 0;
    return bytes;
}

uint64_t mt_cgroup_limit_bytes(const char *root)
{
    struct group group;
    uint64_t least = 0;

    if (!find_group(&group, root))
        return 0;
    for (int level = 0; level < MAX_LEVELS; level++) {
        uint64_t bytes = limit_here(&group);
        char *slash = strrchr(group.folder, '/');

        if (bytes && (!least || bytes < least))
            least = bytes;
        if (!slash || (size_t)(slash - group.folder) < group.mount)
            break;
        *slash = '\0';
    }
    return least;
}

bool mt_cgroup_oom_kills(const char *root, uint64_t *kills)
{
    static const char key[] = "oom_kill ";
    struct group group;
    char text[FILE_BYTES];

    if (!find_group(&group, root) ||
        !read_text(group.folder, group.is_unified ? "/memory.events" : "/memory.oom_control", text,
                   sizeof text))
        return false;
    for (const char *line = text; *line; line += *line == '\n') {
        size_t length = strcspn(line, "\n");

        if (length > sizeof key - 1 && !memcmp(line, key, sizeof key - 1))
            return mt_decimal_read(line + sizeof key - 1, length - (sizeof key - 1), kills);
        line += length;
    }
    return false;
}

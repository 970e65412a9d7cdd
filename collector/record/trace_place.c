/* See trace_place.h. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* fallocate */
#endif
#include "trace_place.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "io.h"
#include "tape_file.h"
#include "trace.h"

static enum mt_status refuse(struct mt_error *error, const char *text)
{
    return mt_fail(error, MT_ERR_OUTPUT, MT_NO_OFFSET, "%s", text);
}

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash ? slash + 1 : path;
}

static bool is_interpreter(const char *name)
{
    return strncmp(name, "python", 6) == 0 || strncmp(name, "pypy", 4) == 0;
}

/* Returns the script or module in the arguments of a Python interpreter; NULL: none. */
static const char *python_program(char *const *arguments)
{
    for (; *arguments; arguments++) {
        if ((*arguments)[0] != '-')
            return base_name(*arguments);
        if (!strcmp(*arguments, "-m"))
            return arguments[1];
        if (!strcmp(*arguments, "-c") || !strcmp(*arguments, "-"))
            return NULL;
        if ((!strcmp(*arguments, "-W") || !strcmp(*arguments, "-X")) && arguments[1])
            arguments++;
    }
    return NULL;
}

static bool is_plain(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
           c == '_' || c == '-';
}

void mt_command_word(char *const *command, char *word, size_t capacity)
{
    const char *name = base_name(command[0]), *script;
    size_t length, i;

    if (is_interpreter(name) && (script = python_program(command + 1)))
        name = script;
    length = strlen(name);
    if (length > 3 && !strcmp(name + length - 3, ".py"))
        length -= 3;
    length = length < capacity ? length : capacity - 1;
    for (i = 0; i < length; i++)
        word[i] = is_plain(name[i]) && (i || name[i] != '.') ? name[i] : '_';
    word[length] = '\0';
    if (!length)
        snprintf(word, capacity, "run");
}

/* Sets `text` as an absolute path with one / at the end. */
static enum mt_status set_folder(struct mt_trace_place *place, const char *text,
                                 struct mt_error *error)
{
    char real[PATH_MAX];
    size_t length;

    if (!realpath(text, real))
        return refuse(error, strerror(errno));
    length = strlen(real);
    if (length + 2 > sizeof place->folder)
        return refuse(error, "the path is too long");
    memcpy(place->folder, real, length + 1);
    if (real[length - 1] != '/')
        memcpy(place->folder + length, "/", 2);
    return MT_OK;
}

/* Makes `output` and its parent folders, and counts those that were missing. Other ranks may make
 * them at the same time. Returns 0, or the error for the first folder that could not be made. */
static int make_folders(const char *output, unsigned *made)
{
    char path[PATH_MAX];
    size_t length = strlen(output);
    int why = 0;

    if (length >= sizeof path)
        return ENAMETOOLONG;
    memcpy(path, output, length + 1);
    for (char *end = path + strspn(path, "/"); *end; end += strspn(end, "/")) {
        char next;

        end += strcspn(end, "/");
        next = *end;
        *end = '\0';
        if (mkdir(path, 0777) == 0)
            ++*made;
        else if (!why && errno != EEXIST)
            why = errno;
        *end = next;
    }
    return why;
}

/* Removes the innermost folder first. A folder that is not empty is kept with its parents. */
static void remove_folders(const char *innermost, unsigned made)
{
    char path[PATH_MAX];
    size_t length = strlen(innermost);

    if (length >= sizeof path)
        return;
    memcpy(path, innermost, length + 1);
    while (made && length) {
        made -= rmdir(path) == 0;
        while (length && path[length - 1] == '/')
            length--;
        while (length && path[length - 1] != '/')
            length--;
        path[length] = '\0';
    }
}

/* -o names a folder, which exists or is made. */
static enum mt_status take_folder(struct mt_trace_place *place, const char *output,
                                  struct mt_error *error)
{
    int why = make_folders(output, &place->made_folders);
    struct stat facts;

    if (stat(output, &facts) < 0) {
        why = why ? why : errno;
        remove_folders(output, place->made_folders);
        return refuse(error, strerror(why));
    }
    return set_folder(place, output, error);
}

/* -o names a file in an existing folder. */
static enum mt_status take_file(struct mt_trace_place *place, const char *output,
                                struct mt_error *error)
{
    const char *name = base_name(output);
    char parent[PATH_MAX];
    size_t length = (size_t)(name - output);

    if (strlen(name) >= sizeof place->name || length >= sizeof parent)
        return refuse(error, "the name is too long");
    memcpy(parent, output, length);
    parent[length] = '\0';
    memcpy(place->name, name, strlen(name) + 1);
    return set_folder(place, length ? parent : ".", error);
}

/* Returns 0, or why `room_bytes` cannot be reserved. File systems that cannot allocate fail
 * early. */
static int room_error(int fd, uint64_t room_bytes)
{
    struct statvfs facts;

    if (fallocate(fd, 0, 0, (off_t)room_bytes) == 0)
        return 0;
    if (errno != EOPNOTSUPP && errno != ENOSYS)
        return errno;
    if (fstatvfs(fd, &facts) < 0)
        return 0;
    return (uint64_t)facts.f_bavail * facts.f_frsize < room_bytes ? ENOSPC : 0;
}

/* Makes a file in the same way as the collector, and removes it. */
static enum mt_status check_room(const struct mt_trace_place *place, uint64_t room_bytes,
                                 struct mt_error *error)
{
    char path[PATH_MAX + 32];
    int fd, why;

    snprintf(path, sizeof path, "%s.memtrace-XXXXXX", place->folder);
    fd = mkostemp(path, O_CLOEXEC);
    if (fd < 0)
        return refuse(error, strerror(errno));
    unlink(path); /* at once, so that nothing is left if memtrace is killed */
    why = room_error(fd, room_bytes);
    close(fd);
    if (!why)
        return MT_OK;
    return mt_fail(error, MT_ERR_OUTPUT, MT_NO_OFFSET, "%s (a recording starts with %llu MiB)",
                   strerror(why), (unsigned long long)(room_bytes >> 20));
}

static bool is_being_recorded(const char *path)
{
    char tape_path[2 * PATH_MAX];

    snprintf(tape_path, sizeof tape_path, "%s" MT_TAPE_SUFFIX, path);
    return mt_tape_is_in_use(tape_path);
}

/* A file that is replaced must be a trace: `-o train.py` is a mistake. */
static enum mt_status check_replaced(const char *path, struct mt_error *error)
{
    unsigned char bytes[16];
    struct stat facts;
    ssize_t count = 0;
    int fd;

    if (is_being_recorded(path))
        return refuse(error, "the recording of a running process writes to it");
    if (stat(path, &facts) < 0)
        return errno == ENOENT ? MT_OK : refuse(error, strerror(errno));
    if (!S_ISREG(facts.st_mode))
        return refuse(error, "it is not a regular file");
    fd = mt_io_open(path, O_RDWR | O_NONBLOCK, 0);
    if (fd < 0)
        return refuse(error, strerror(errno));
    if (facts.st_size)
        count = mt_io_pread_full(fd, bytes, sizeof bytes, 0);
    (void)mt_io_close(fd);
    if (count < 0)
        return refuse(error, "it exists, and its contents cannot be read, so it is not "
                             "overwritten; choose another name");
    if (count > 0 && !mt_trace_probe(bytes, (size_t)count))
        return refuse(
            error, "it exists and is not a trace, so it is not overwritten; choose another name");
    return MT_OK;
}

enum mt_status mt_trace_place_prepare(struct mt_trace_place *place, const char *output,
                                      char *const *command, uint64_t room_bytes,
                                      struct mt_error *error)
{
    char path[PATH_MAX + sizeof place->name];
    enum mt_status status;
    struct stat facts;

    memset(place, 0, sizeof *place);
    if (output && !*output)
        return refuse(error, "the name is empty");
    if (!output) {
        place->named_by_process = true;
        mt_command_word(command, place->name, 128);
        status = set_folder(place, ".", error);
    } else if (output[strlen(output) - 1] == '/' ||
               (stat(output, &facts) == 0 && S_ISDIR(facts.st_mode)))
        status = take_folder(place, output, error);
    else
        status = take_file(place, output, error);
    if (status == MT_OK && *place->name && !place->named_by_process) {
        snprintf(path, sizeof path, "%s%s", place->folder, place->name);
        status = check_replaced(path, error);
    }
    return status == MT_OK ? check_room(place, room_bytes, error) : status;
}

bool mt_trace_place_output(const struct mt_trace_place *place, pid_t root, char output[PATH_MAX])
{
    int length = place->named_by_process
                     ? snprintf(output, PATH_MAX, "%s%s-%d" MT_TRACE_SUFFIX, place->folder,
                                place->name, (int)root)
                     : snprintf(output, PATH_MAX, "%s%s", place->folder, place->name);

    return length > 0 && length < PATH_MAX;
}

/* Never removes a device or a pipe, whatever was checked before. */
static void remove_file(const char *path)
{
    struct stat facts;

    if (lstat(path, &facts) == 0 && (S_ISREG(facts.st_mode) || S_ISLNK(facts.st_mode)))
        unlink(path);
}

void mt_trace_place_clear(const struct mt_trace_place *place)
{
    char path[2 * PATH_MAX];

    if (!*place->name || place->named_by_process)
        return;
    snprintf(path, sizeof path, "%s%s", place->folder, place->name);
    remove_file(path);
    snprintf(path, sizeof path, "%s%s" MT_TAPE_SUFFIX, place->folder, place->name);
    (void)mt_tape_make_way(path); /* otherwise the process chooses another name */
}

void mt_trace_place_leave(const struct mt_trace_place *place)
{
    remove_folders(place->folder, place->made_folders);
}

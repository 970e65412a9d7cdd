#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* fallocate */
#endif
#include "trace_target.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "ascii.h"
#include "buf.h"
#include "io.h"
#include "own_file.h"
#include "ring.h"
#include "run_identity.h"
#include "tape_file.h"
#include "trace.h"

enum { MAX_NUMBER = 10000, WORD_BYTES = 32 };

static enum mt_status refuse(struct mt_error *error, const char *text)
{
    return mt_fail(error, MT_ERR_OUTPUT, MT_NO_OFFSET, "%s", text);
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
            return mt_base_name(*arguments);
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
    return mt_is_alnum(c) || c == '.' || c == '_' || c == '-';
}

void mt_command_word(char *const *command, char *word, size_t capacity)
{
    const char *name = mt_base_name(command[0]), *script;

    if (is_interpreter(name) && (script = python_program(command + 1)))
        name = script;
    size_t length = strlen(name);
    if (length > 3 && !strcmp(name + length - 3, ".py"))
        length -= 3;
    length = length < capacity ? length : capacity - 1;
    for (size_t i = 0; i < length; i++)
        word[i] = is_plain(name[i]) && (i || name[i] != '.') ? name[i] : '_';
    word[length] = '\0';
    if (!length)
        snprintf(word, capacity, "run");
}

/* Sets `text` as an absolute path with one / at the end. */
static enum mt_status set_folder(struct mt_trace_target *place, const char *text,
                                 struct mt_error *error)
{
    char real[PATH_MAX];

    if (!realpath(text, real))
        return refuse(error, strerror(errno));
    size_t length = strlen(real);
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
        end += strcspn(end, "/");
        char next = *end;
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
static enum mt_status take_folder(struct mt_trace_target *place, const char *output,
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
static enum mt_status take_file(struct mt_trace_target *place, const char *output,
                                struct mt_error *error)
{
    const char *name = mt_base_name(output);
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
static enum mt_status check_room(const struct mt_trace_target *place, uint64_t room_bytes,
                                 struct mt_error *error)
{
    char path[PATH_MAX + 32];

    snprintf(path, sizeof path, "%s.memtrace-XXXXXX", place->folder);
    int fd = mkostemp(path, O_CLOEXEC);
    if (fd < 0)
        return refuse(error, strerror(errno));
    unlink(path); /* at once, so that nothing is left if memtrace is killed */
    int why = room_error(fd, room_bytes);
    close(fd);
    if (!why)
        return MT_OK;
    return mt_fail(error, MT_ERR_OUTPUT, MT_NO_OFFSET, "%s (a recording starts with %llu MiB)",
                   strerror(why), (unsigned long long)(room_bytes >> 20));
}

/* Sets the name and the path of the trace. Returns false if they are too long, also for its tape.
 */
static bool set_name(struct mt_trace_target *place, const char *given, const char *word)
{
    size_t stem = mt_trace_stem_length(given);
    int length = snprintf(place->name, sizeof place->name - sizeof MT_TAPE_SUFFIX, "%.*s%s%s",
                          (int)stem, given, word, given + stem);

    if (length < 0 || (size_t)length >= sizeof place->name - sizeof MT_TAPE_SUFFIX)
        return false;
    length = snprintf(place->path, sizeof place->path, "%s%s", place->folder, place->name);
    return length > 0 && (size_t)length < sizeof place->path - sizeof MT_TAPE_SUFFIX;
}

static void name_tape(const struct mt_trace_target *place, char tape[PATH_MAX])
{
    (void)snprintf(tape, PATH_MAX, "%.*s" MT_TAPE_SUFFIX, PATH_MAX - (int)sizeof MT_TAPE_SUFFIX,
                   place->path);
}

/* Returns true if the last number in the name is the rank: the name was made for this rank. */
static bool is_named_for(const char *name, long rank)
{
    size_t end = mt_trace_stem_length(name), begin;
    uint64_t number;

    while (end && !mt_is_digit(name[end - 1]))
        end--;
    for (begin = end; begin && mt_is_digit(name[begin - 1]);)
        begin--;
    return mt_decimal_read(name + begin, end - begin, &number) && number == (uint64_t)rank;
}

/* Each rank of a job has its own name, even if the ranks run one after the other, or on machines
 * that share a folder without locks. */
static bool add_rank(struct mt_trace_target *place, const char *given)
{
    const struct mt_run_ranks run = mt_run_ranks();
    char word[WORD_BYTES] = "";

    if (run.rank >= 0 && run.world != 1 && !is_named_for(given, run.rank))
        (void)snprintf(word, sizeof word, "-rank%ld", run.rank);
    return set_name(place, given, word);
}

static uint64_t changed_ns(const struct stat *facts)
{
    return (uint64_t)facts->st_ctim.tv_sec * 1000000000 + (uint64_t)facts->st_ctim.tv_nsec;
}

/* Returns true if another run still needs the name, although no running `memtrace record` has it: a
 * process that outlived its `memtrace record` writes to the trace, or the trace was written after
 * this run began. */
static bool is_busy(const struct mt_trace_target *place, uint64_t began_ns)
{
    char tape[PATH_MAX];
    struct stat facts;

    name_tape(place, tape);
    return mt_tape_is_in_use(tape) || (stat(place->path, &facts) == 0 && S_ISREG(facts.st_mode) &&
                                       changed_ns(&facts) > began_ns);
}

/* A file that is replaced must be a trace: `-o train.py` is a mistake. */
static enum mt_status check_replaced(struct mt_trace_target *place, struct mt_error *error)
{
    unsigned char bytes[16];
    struct stat facts;
    ssize_t count = 0;

    place->has_old = lstat(place->path, &place->old) == 0;
    if (stat(place->path, &facts) < 0)
        return errno == ENOENT ? MT_OK : refuse(error, strerror(errno));
    if (!S_ISREG(facts.st_mode))
        return refuse(error, "it is not a regular file");
    int fd = mt_io_open(place->path, O_RDWR | O_NONBLOCK, 0);
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

static bool exists(const struct mt_trace_target *place)
{
    char tape[PATH_MAX];
    struct stat facts;

    name_tape(place, tape);
    return lstat(place->path, &facts) == 0 || lstat(tape, &facts) == 0;
}

/* Claims the name of attempt `number`: 1 is the name that the user gave, which may replace a trace.
 * The others are used only if no file has them. Returns MT_END if another run has the name. */
static enum mt_status claim_name(struct mt_trace_target *place,
                                 const struct mt_trace_target_request *request, unsigned number,
                                 struct mt_error *error)
{
    bool is_ours;
    enum mt_status status =
        mt_trace_claim_take(&place->claim, place->path, request->unfinished, &is_ours, error);

    if (status != MT_OK)
        return status;
    if (!is_ours || (number > 1 ? exists(place) : is_busy(place, request->began_ns)))
        status = MT_END;
    else if (number == 1)
        status = check_replaced(place, error);
    if (status != MT_OK)
        mt_trace_claim_release(&place->claim);
    return status;
}

static enum mt_status choose_name(struct mt_trace_target *place,
                                  const struct mt_trace_target_request *request,
                                  struct mt_error *error)
{
    char given[sizeof place->name], word[WORD_BYTES] = "";
    enum mt_status status = MT_END;

    memcpy(given, place->name, sizeof given);
    if (!request->is_simulated && !add_rank(place, given))
        return refuse(error, "the name is too long");
    memcpy(given, place->name, sizeof given);
    for (unsigned number = 1; status == MT_END; number++) {
        if (number > 1)
            (void)snprintf(word, sizeof word, "-%u", number);
        if (number > MAX_NUMBER || !set_name(place, given, word))
            return refuse(error, "it is being recorded by another process");
        place->is_renamed = number > 1;
        status = claim_name(place, request, number, error);
    }
    return status;
}

enum mt_status mt_trace_target_prepare(struct mt_trace_target *place,
                                       const struct mt_trace_target_request *request,
                                       struct mt_error *error)
{
    const char *output = request->output;
    enum mt_status status;
    struct stat facts;

    memset(place, 0, sizeof *place);
    if (output && !*output)
        return refuse(error, "the name is empty");
    if (!output) {
        place->named_by_process = true;
        mt_command_word(request->command, place->name, 128);
        status = set_folder(place, ".", error);
    } else if (output[strlen(output) - 1] == '/' ||
               (stat(output, &facts) == 0 && S_ISDIR(facts.st_mode))) {
        status = take_folder(place, output, error);
    } else {
        status = take_file(place, output, error);
        if (status == MT_OK)
            status = choose_name(place, request, error);
    }
    if (status == MT_OK)
        status = check_room(place, request->room_bytes, error);
    if (status != MT_OK)
        mt_trace_claim_release(&place->claim);
    return status;
}

bool mt_trace_target_output(const struct mt_trace_target *place, pid_t root, char output[PATH_MAX])
{
    int length = place->named_by_process
                     ? snprintf(output, PATH_MAX, "%s%s-%d" MT_TRACE_SUFFIX, place->folder,
                                place->name, (int)root)
                     : snprintf(output, PATH_MAX, "%s%s", place->folder, place->name);

    return length > 0 && length < PATH_MAX;
}

/* The trace stays if it is not the file that was checked. While it exists, no process creates a
 * tape of this name, so the old tape goes first. */
void mt_trace_target_clear(const struct mt_trace_target *place)
{
    char tape[PATH_MAX];
    struct stat facts;

    if (!place->has_old || lstat(place->path, &facts) || facts.st_dev != place->old.st_dev ||
        facts.st_ino != place->old.st_ino || changed_ns(&facts) != changed_ns(&place->old))
        return;
    name_tape(place, tape);
    bool had_tape = lstat(tape, &facts) == 0;
    if (!mt_tape_make_way(tape))
        return; /* in use, or of somebody else: the process chooses another name */
    (void)mt_ring_make_way(place->path, had_tape);
    (void)unlink(place->path);
}

void mt_trace_target_leave(struct mt_trace_target *place)
{
    mt_trace_claim_release(&place->claim);
    remove_folders(place->folder, place->made_folders);
}

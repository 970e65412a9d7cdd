/* Chooses the file to which a process records. If another process of the run has taken the name,
 * this process's number is added. A process that execs gets a second file. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "collect.h"
#include "core.h"
#include "io.h"
#include "own_file.h"
#include "run_identity.h"
#include "run_names.h"
#include "settings.h"
#include "shell_word.h"
#include "tape_file.h"
#include "tell_user.h"
#include "trace_claim.h"

enum { MAX_TRIES = 100, FIRST_DEFINITION_BYTES = 4 << 20 };

/* The path of attempt 0, 1, 2, ... Returns false if it is too long. */
static bool name_trace(unsigned attempt)
{
    const char *output = mt_recorder_settings->output;
    size_t length = strlen(output), stem = mt_trace_stem_length(output);
    char *path = mt_core.trace_path, host[128], rank[32] = "", again[32] = "";
    int written;

    if (attempt > 1 || (attempt && output[length - 1] == '/'))
        (void)snprintf(again, sizeof again, "-%u",
                       output[length - 1] == '/' ? attempt + 1 : attempt);
    if (output[length - 1] == '/') {
        long number = mt_run_place().rank;
        mt_run_host(host, sizeof host);
        if (number >= 0)
            (void)snprintf(rank, sizeof rank, "-rank%ld", number);
        written = snprintf(path, sizeof mt_core.trace_path, "%s%s-%ld%s%s.trace.zst", output, host,
                           (long)getpid(), rank, again);
    } else if (!attempt) {
        written = snprintf(path, sizeof mt_core.trace_path, "%s", output);
    } else {
        written = snprintf(path, sizeof mt_core.trace_path, "%.*s-%ld%s%s", (int)stem, output,
                           (long)getpid(), again, output + stem);
    }
    if (written < 0 || (size_t)written >= sizeof mt_core.trace_path)
        return false;
    (void)snprintf(mt_core.tape_path, sizeof mt_core.tape_path, "%s%s", path, MT_TAPE_SUFFIX);
    return true;
}

/* A message is cut at the end of its line, so the command has a line of its own. */
static void say_unlisted(const char *manifest, int why)
{
    bool said[2] = {false, false}; /* a process lists its trace once; a child has its own trace */
    char trace[MT_COLLECT_LINE_BYTES - 64];
    struct mt_buf word = {.data = trace, .capacity = sizeof trace, .is_fixed = true};

    mt_collect_say(&said[0], "cannot write '%s': %s", manifest, strerror(why));
    mt_buf_add_shell_path(&word, mt_core.trace_path);
    mt_collect_say(&said[1], "when the program has ended, run: memtrace recover %s",
                   word.failed ? "TRACE" : trace);
}

/* `memtrace record` learns from the manifest which traces exist. The line begins with a newline,
 * because the previous line may be truncated. If the manifest is gone, `memtrace record` has ended
 * and nothing reads it. The name comes from the environment: another file is not changed, and a
 * pipe does not block. */
static void tell_manifest(void)
{
    const char *manifest = mt_recorder_settings->manifest;
    char line[sizeof mt_core.trace_path + 2];
    int fd, length;

    if (!manifest[0])
        return;
    fd = mt_io_open(manifest, O_RDWR | O_APPEND | O_NOFOLLOW | O_NONBLOCK, 0);
    if (fd < 0) {
        if (errno != ENOENT && errno != ELOOP)
            say_unlisted(manifest, errno);
        return;
    }
    length = snprintf(line, sizeof line, "\n%s\n", mt_core.trace_path);
    if (mt_manifest_is_mine(fd, manifest) && !mt_io_write(fd, line, (size_t)length))
        say_unlisted(manifest, errno);
    (void)mt_io_close(fd);
}

/* A name is taken if its trace exists, or if its tape is a file that must not be removed. */
static bool open_trace(void)
{
    unsigned attempt;

    for (attempt = 0; attempt < MAX_TRIES; attempt++) {
        if (!name_trace(attempt)) {
            errno = ENAMETOOLONG;
            return false;
        }
        if (mt_own_file_create(&mt_core.trace_file, mt_core.trace_path)) {
            if (mt_tape_make_way(mt_core.tape_path)) /* of a deleted trace */
                return true;
            mt_own_file_remove(&mt_core.trace_file);
            errno = EEXIST;
        }
        if (errno != EEXIST)
            return false;
    }
    return false;
}

static bool make_tape(struct mt_error *error)
{
    uint32_t slots = mt_recorder_settings->arena_mib * (uint32_t)((1u << 20) / MT_SLOT_BYTES);
    struct mt_tape *tape;

    if (mt_tape_create(mt_core.tape_path, slots, &tape, &mt_core.tape_file, error) != MT_OK)
        return false;
    mt_tape_set_trace(tape, &mt_core.trace_file);
    if (mt_tape_reserve_definitions(&mt_core.tape_file, tape, FIRST_DEFINITION_BYTES))
        atomic_store(&tape->definitions_reserved, FIRST_DEFINITION_BYTES);
    mt_core.tape = tape;
    return true;
}

bool mt_trace_file_create(void)
{
    struct mt_error error = {0};
    static bool said;

    if (!open_trace()) {
        mt_collect_say(&said, "cannot write '%s': %s; nothing is recorded", mt_core.trace_path,
                       strerror(errno));
        return false;
    }
    if (!make_tape(&error)) {
        mt_collect_say(&said, "cannot write '%s': %s; nothing is recorded", mt_core.tape_path,
                       error.text);
        mt_own_file_remove(&mt_core.trace_file);
        return false;
    }
    tell_manifest();
    return true;
}

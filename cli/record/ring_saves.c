#include "ring_saves.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "cli.h"
#include "grow.h"
#include "io.h"
#include "manifest.h"
#include "next_step.h"
#include "own_file.h"
#include "record_output.h"
#include "tape_file.h"

enum {
    MAX_SAVES = 4,                /* of one process, without SIGUSR2 */
    FLUSH_NS = 300 * 1000 * 1000, /* the writer of the process takes at most 0.2 s */
    MAX_NAMES = 100000
};

/* What was done about the ring of a process. */
struct mt_ring_seen {
    uint64_t reasons;
    unsigned saves;
    bool is_deaf; /* reported: what the user wants cannot be passed on */
};

static void say_unsaved(const char *trace, const char *why)
{
    mt_message("'%s' could not be saved while it is recorded: %s", mt_short_path(trace), why);
}

/* Returns the first free name of RUN-saved-1.trace.zst, RUN-saved-2.trace.zst, ..., or NULL with
 * errno. */
static char *name_target(const char *trace)
{
    const int stem = (int)mt_trace_stem_length(trace);
    struct stat facts;

    for (unsigned number = 1; number < MAX_NAMES; number++) {
        struct mt_buf name = {0};
        mt_buf_printf(&name, "%.*s-saved-%u%s", stem, trace, number, trace + stem);
        int why = name.failed ? ENOMEM : lstat(name.data, &facts) ? errno : 0;
        if (why == ENOENT)
            return name.data;
        mt_buf_release(&name);
        errno = why;
        if (why)
            return NULL;
    }
    errno = EEXIST;
    return NULL;
}

static void say(const struct mt_ring_saves *saves, const struct mt_trace_end *end)
{
    struct mt_buf out = {0};

    mt_record_add_trace_end(&out, end, "memtrace: ", saves->is_quiet);
    (void)!mt_io_write(STDERR_FILENO, out.data, out.length);
    mt_buf_release(&out);
}

static void save(const struct mt_ring_saves *saves, const char *trace, const char *target)
{
    const struct mt_trace_end_options options = {.redaction = saves->redaction};
    struct mt_error error = {.offset = MT_NO_OFFSET};
    struct mt_trace_end end;

    if (mt_ring_save(trace, target, NULL, &error) != MT_OK) {
        say_unsaved(trace, error.text);
        return;
    }
    mt_trace_end(&end, target, &options);
    if (!saves->is_silent)
        say(saves, &end);
}

/* Returns the entry for a position of the list, or NULL if memory runs out. */
static struct mt_ring_seen *seen_at(struct mt_ring_saves *saves, size_t position)
{
    if (mt_grow(&saves->seen, &saves->seen_capacity, position + 1, sizeof *saves->seen) != MT_OK)
        return NULL;
    for (; saves->seen_count <= position; saves->seen_count++)
        saves->seen[saves->seen_count] = (struct mt_ring_seen){0};
    return &saves->seen[position];
}

/* Passes on what the user wants of every process. A process that has not begun yet, but was asked
 * to, is asked to stop later, or the second request would replace the first one. */
static void pass_on(const struct mt_ring_saves *saves, const char *trace,
                    const struct mt_tape *tape, struct mt_ring_seen *seen)
{
    const uint64_t asked = atomic_load(&tape->asked);
    const bool begins =
        asked == MT_ASK_BEGIN && mt_tape_last_commit(tape)->began_t_ns == MT_TAPE_IDLE;

    if (saves->ask == asked || begins || mt_tape_ask(trace, saves->ask) || seen->is_deaf)
        return;
    seen->is_deaf = true;
    mt_message("'%s': the recording cannot be %s: its tape cannot be changed: %s; memtrace tries "
               "again",
               mt_short_path(trace), saves->ask == MT_ASK_BEGIN ? "started" : "stopped",
               strerror(errno));
}

/* Returns true if the ring of a trace has to be saved now. A request waits for a process that is
 * asked to begin. */
static bool is_due(struct mt_ring_saves *saves, size_t position, const char *trace, bool is_asked)
{
    struct mt_ring_seen *seen = seen_at(saves, position);
    struct mt_tape tape;

    /* a process that has ended needs no save: its trace is completed at the end */
    if (!seen || !mt_tape_is_running(trace, &tape))
        return false;
    pass_on(saves, trace, &tape, seen);
    const struct mt_tape_commit *commit = mt_tape_last_commit(&tape);
    saves->waits |= commit->began_t_ns == MT_TAPE_IDLE;
    if (!tape.ring_ns || commit->began_t_ns == MT_TAPE_IDLE)
        return false;
    uint64_t reasons = commit->save_reasons;
    bool is_new = reasons > seen->reasons;
    seen->reasons = reasons;
    if (is_asked || !is_new)
        return is_asked;
    if (seen->saves++ == MAX_SAVES && !saves->is_silent)
        mt_message("'%s' was saved %d times; now only SIGUSR2 saves it", mt_short_path(trace),
                   MAX_SAVES);
    return seen->saves <= MAX_SAVES;
}

static void wait_for_flush(void)
{
    const struct timespec flush = {0, FLUSH_NS};

    (void)nanosleep(&flush, NULL);
}

/* The first `count` of traces are saved, each to the target of the same position. */
static void start_saver(struct mt_ring_saves *saves, char *const *traces, char *const *targets,
                        size_t count)
{
    saves->saver = fork();
    if (saves->saver < 0) {
        saves->saver = 0;
        mt_message("the ring could not be saved: no process can be started");
    }
    if (saves->saver)
        return;
    close(saves->manifest_lock); /* only the process that waits for the command holds its lock */
    if (saves->is_asked)         /* another reason was seen in the trace */
        wait_for_flush();
    for (size_t i = 0; i < count; i++)
        save(saves, traces[i], targets[i]);
    _exit(0);
}

/* The saver itself reports what it cannot save, unless it dies. */
static bool saver_runs(struct mt_ring_saves *saves, int options)
{
    int status = 0;
    pid_t ended;

    if (!saves->saver)
        return false;
    do
        ended = waitpid(saves->saver, &status, options);
    while (ended < 0 && errno == EINTR);
    if (ended > 0 && status)
        mt_message("the ring could not be saved: the process that saves it ended abnormally");
    if (ended)
        saves->saver = 0;
    return !ended;
}

static bool add_target(struct mt_ring_saves *saves, const char *trace)
{
    char *target = name_target(trace);

    if (!target) {
        say_unsaved(trace, strerror(errno));
        return false;
    }
    if (mt_grow(&saves->saved, &saves->saved_capacity, saves->saved_count + 1,
                sizeof *saves->saved) != MT_OK) {
        free(target);
        say_unsaved(trace, "out of memory");
        return false;
    }
    saves->saved[saves->saved_count++] = target;
    return true;
}

/* Returns true if the signal asks for a save. */
static bool take_signal(struct mt_ring_saves *saves)
{
    if (!saves->is_idle || (saves->ask && saves->has_ring))
        return true;
    if (saves->ask == MT_ASK_STOP) {
        if (!saves->is_silent)
            mt_message("SIGUSR2 has no effect: the recording was stopped");
        return false;
    }
    saves->ask++;
    if (!mt_manifest_set_line(saves->manifest_lock,
                              saves->ask == MT_ASK_BEGIN ? MT_MANIFEST_BEGUN : MT_MANIFEST_STOPPED))
        mt_message("processes that start from now on may %s recorded: cannot write '%s': %s",
                   saves->ask == MT_ASK_BEGIN ? "not be" : "be", saves->manifest, strerror(errno));
    if (!saves->is_quiet && !saves->is_silent)
        mt_message(saves->ask == MT_ASK_STOP
                       ? "recording stops; a trace can be analyzed when its process has closed it"
                   : saves->has_ring ? "recording starts; SIGUSR2 now saves the ring"
                                     : "recording starts; SIGUSR2 now stops it");
    return false;
}

void mt_ring_saves_look(struct mt_ring_saves *saves, bool is_asked)
{
    struct mt_arena arena = {0};
    struct mt_error ignored;
    size_t count = 0, due = 0, first = saves->saved_count;
    char **traces = NULL;
    bool runs = false;

    saves->is_asked |= is_asked && take_signal(saves);
    saves->waits = false;
    if (saver_runs(saves, WNOHANG))
        return;
    if (mt_manifest_read(saves->manifest, &arena, &traces, &count, &ignored) == MT_OK)
        for (size_t i = 0; i < count; i++)
            if (is_due(saves, i, traces[i], saves->is_asked)) {
                runs = true;
                if (add_target(saves, traces[i]))
                    traces[due++] = traces[i];
            }
    if (saves->is_asked && !runs && !saves->waits)
        mt_message("nothing was saved: no process that is recorded runs now");
    if (due)
        start_saver(saves, traces, saves->saved + first, due);
    saves->is_asked = saves->is_asked && saves->waits && !runs;
    mt_arena_release(&arena);
}

void mt_ring_saves_finish(struct mt_ring_saves *saves,
                          void (*on_trace)(void *context, const struct mt_trace_end *end),
                          void *context)
{
    const struct mt_trace_end_options options = {.redaction = NULL};
    struct mt_trace_end end;
    struct stat facts;

    (void)saver_runs(saves, 0);
    for (size_t i = 0; i < saves->saved_count; i++) {
        if (on_trace && lstat(saves->saved[i], &facts) == 0) {
            mt_trace_end(&end, saves->saved[i], &options);
            on_trace(context, &end);
        }
        free(saves->saved[i]);
    }
    free(saves->saved);
    free(saves->seen);
    *saves = (struct mt_ring_saves){0};
}

#include "recorded_summaries.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "annexes.h"
#include "cli.h"
#include "io.h"
#include "outputs.h"
#include "process_memory.h"
#include "util.h"

enum {
    PAUSE_MS = 5,
    PATIENCE_MS = 2000 /* time for a process to end after SIGTERM */
};
static const struct timespec pause_time = {0, PAUSE_MS * 1000000L};

static uint64_t now_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

static void say_missing(struct mt_recorded_summaries *summaries, const char *path, const char *why)
{
    mt_progress_end(&summaries->progress);
    if (!summaries->is_quiet)
        mt_say("'%s': no summary for 'memtrace fleet' was written: %s; to write it later, use "
               "'memtrace fleet --summarize'",
               path, why);
}

/* Makes SIGTERM end this process, even if SIGTERM was ignored or blocked when memtrace started.
 * Otherwise memtrace could wait for a summary forever. */
static void let_sigterm_end_this(void)
{
    struct sigaction found;
    sigset_t only;

    if (sigaction(SIGTERM, NULL, &found) == 0 && found.sa_handler == SIG_IGN) {
        (void)signal(SIGTERM, SIG_DFL);
        mt_outputs_handle_signals();
    }
    sigemptyset(&only);
    sigaddset(&only, SIGTERM);
    sigprocmask(SIG_UNBLOCK, &only, NULL);
}

/* The last words of a process that makes a summary: memtrace itself prints a line about it. */
static void end_without_memory(void)
{
    mt_unfinished_unlink(mt_outputs_unfinished());
    _exit(MT_EXIT_INPUT);
}

/* Makes the summary, in a separate process. Returns the exit status of that process. */
static int work(struct mt_recorded_summaries *summaries, const char *path)
{
    struct mt_error error = {.offset = MT_NO_OFFSET};
    enum mt_status status;

    mt_memory_last_words_set(end_without_memory);
    mt_memory_return_failures(false);
    status = mt_annex_files->summarize(path, summaries->force, &error);
    if (status != MT_OK)
        say_missing(summaries, path, error.text);
    return status == MT_OK ? MT_EXIT_OK : MT_EXIT_OUTPUT;
}

static size_t most_jobs(void)
{
    long processors = sysconf(_SC_NPROCESSORS_ONLN);

    return processors < 1 ? 1 : (size_t)mt_min_u64((uint64_t)processors, MT_SUMMARY_JOBS);
}

/* Ends a job with SIGTERM, which lets the job remove its temporary file. Sends SIGTERM repeatedly,
 * because the job may not have called let_sigterm_end_this yet. Abandons a job that survives even
 * SIGKILL, which can happen if a file system hangs. */
static void end_job(const struct mt_summary_job *job)
{
    for (unsigned waited_ms = 0; waited_ms < 2 * PATIENCE_MS; waited_ms += PAUSE_MS) {
        (void)kill(job->process, waited_ms < PATIENCE_MS ? SIGTERM : SIGKILL);
        (void)nanosleep(&pause_time, NULL);
        if (waitpid(job->process, NULL, WNOHANG) != 0)
            return;
    }
}

/* Returns true if the job has ended. Ends a job that exceeds its timeout. */
static bool has_ended(struct mt_recorded_summaries *summaries, struct mt_summary_job *job)
{
    uint64_t timeout_ms =
        summaries->timeout_ms ? summaries->timeout_ms : MT_SUMMARY_DEFAULT_TIMEOUT_MS;
    int status;
    pid_t got = waitpid(job->process, &status, WNOHANG);

    if (got == 0 && now_ms() - job->started_ms < timeout_ms)
        return false;
    if (got == 0) {
        end_job(job);
        say_missing(summaries, job->path, "it would take too long");
    } else if (got > 0 && WIFSIGNALED(status)) {
        say_missing(summaries, job->path, "the process that writes it was killed");
    } else if (got > 0 && WEXITSTATUS(status) == MT_EXIT_INPUT) {
        say_missing(summaries, job->path, "memory ran out");
    }
    job->process = 0;
    return true;
}

/* Waits until at most `most` jobs are running. Returns a free place. */
static struct mt_summary_job *wait_for(struct mt_recorded_summaries *summaries, size_t most)
{
    for (;;) {
        struct mt_summary_job *place = NULL;
        size_t running = 0;

        for (size_t i = 0; i < MT_SUMMARY_JOBS; i++) {
            struct mt_summary_job *job = &summaries->jobs[i];

            if (job->process && !has_ended(summaries, job))
                running++;
            else
                place = job;
        }
        if (running <= most && place)
            return place;
        (void)nanosleep(&pause_time, NULL);
        mt_progress_update(&summaries->progress, "writing the summary", MT_SHARE_UNKNOWN);
    }
}

void mt_recorded_summaries_add(struct mt_recorded_summaries *summaries, const char *path)
{
    struct mt_summary_job *job;

    if (!mt_annex_files)
        return;
    if (!summaries->is_begun)
        mt_progress_start(&summaries->progress, summaries->is_quiet);
    summaries->is_begun = true;
    job = wait_for(summaries, most_jobs() - 1);
    mt_progress_end(&summaries->progress); /* the caller prints between two traces */
    *job = (struct mt_summary_job){.process = fork(), .path = path, .started_ms = now_ms()};
    if (job->process == 0) {
        mt_unfinished_forget(mt_outputs_unfinished());
        let_sigterm_end_this();
        summaries->progress.shown = !summaries->progress.off; /* the parent may show it */
        _exit(work(summaries, path));
    }
    if (job->process < 0) {
        job->process = 0;
        say_missing(summaries, path, strerror(errno));
    }
}

void mt_recorded_summaries_finish(struct mt_recorded_summaries *summaries)
{
    (void)wait_for(summaries, 0);
    mt_progress_end(&summaries->progress);
}

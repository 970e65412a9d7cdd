/* Summaries that commands write beside their traces: paths and errors. */
#include "cmocka_all.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "import.h"
#include "info_recorded.h"
#include "summary_of_trace.h"

struct place {
    char folder[64], traces[3][PATH_MAX], said[PATH_MAX];
};

static void copy_file(const char *from, const char *to)
{
    char piece[4096];
    size_t length;
    FILE *in = fopen(from, "rb"), *out = fopen(to, "wb");

    assert_non_null(in);
    assert_non_null(out);
    while ((length = fread(piece, 1, sizeof piece, in)) > 0)
        assert_int_equal(fwrite(piece, 1, length, out), length);
    (void)fclose(in);
    assert_int_equal(fclose(out), 0);
}

static void make_place(struct place *place)
{
    strcpy(place->folder, "/tmp/memtrace-summaries-XXXXXX");
    assert_non_null(mkdtemp(place->folder));
    for (int i = 0; i < 3; i++) {
        char name[PATH_MAX];

        snprintf(name, sizeof name, "%s/rank%d.trace.zst", place->folder, i);
        strcpy(place->traces[i], name);
        copy_file(MEMTRACE_FIXTURES "/recorded/mixed.trace.zst", place->traces[i]);
    }
    strcat(strcpy(place->said, place->folder), "/said");
}

static const char *summary_path(const struct place *place, int i)
{
    static char path[PATH_MAX + 8];

    snprintf(path, sizeof path, "%s.mtsum", place->traces[i]);
    return path;
}

static void remove_place(struct place *place)
{
    for (int i = 0; i < 3; i++) {
        (void)unlink(place->traces[i]);
        (void)unlink(summary_path(place, i));
    }
    (void)unlink(place->said);
    if (rmdir(place->folder) != 0)
        fail_msg("%s: %s", place->folder, strerror(errno)); /* a temporary file was left */
}

/* Writes summaries of all traces, in a process whose standard error is a file, and returns its
 * output. */
static void summarize(const struct place *place, struct mt_recorded_summaries summaries, char *said,
                      size_t room)
{
    int status;
    pid_t process = fork();

    if (process == 0) {
        if (!freopen(place->said, "w", stderr))
            _exit(9);
        for (int i = 0; i < 3; i++)
            mt_recorded_summaries_add(&summaries, place->traces[i]);
        mt_recorded_summaries_finish(&summaries);
        _exit(0);
    }
    assert_int_equal(waitpid(process, &status, 0), process);
    assert_int_equal(status, 0);
    FILE *file = fopen(place->said, "rb");
    assert_non_null(file);
    said[fread(said, 1, room - 1, file)] = '\0';
    (void)fclose(file);
}

TEST(each_trace_gets_its_own)
{
    struct place place;
    char said[4096];

    make_place(&place);
    summarize(&place, (struct mt_recorded_summaries){.is_quiet = false}, said, sizeof said);
    assert_string_equal(said, "");
    for (int i = 0; i < 3; i++) {
        struct mt_rank_set set = {0};
        struct mt_error error = {0};
        struct stat facts;

        assert_int_equal(stat(summary_path(&place, i), &facts), 0);
        assert_int_equal(facts.st_mode & 0777, 0600);
        assert_true(mt_summary_is_file(summary_path(&place, i)));
        assert_false(mt_summary_is_file(place.traces[i]));
        assert_int_equal(mt_summary_read(summary_path(&place, i), &set, &error), MT_OK);
        assert_true(set.record_count > 0);
        assert_int_equal(set.records[0].identity.rank, i);
        mt_rank_set_release(&set);
    }
    remove_place(&place);
}

/* A summary that never ends, however fast the machine is: it waits for a pipe without a writer. */
static void make_endless(struct place *place)
{
    for (int i = 0; i < 3; i++) {
        assert_int_equal(unlink(place->traces[i]), 0);
        assert_int_equal(mkfifo(place->traces[i], 0600), 0);
    }
}

/* Each summary that takes too long is killed and leaves nothing behind. */
TEST(time_is_limited)
{
    struct place place;
    char said[4096];

    make_place(&place);
    make_endless(&place);
    summarize(&place, (struct mt_recorded_summaries){.timeout_ms = 1}, said, sizeof said);
    for (int i = 0; i < 3; i++) {
        char words[200];

        snprintf(words, sizeof words,
                 "rank%d.trace.zst': no summary for 'memtrace fleet' was written: it would take "
                 "too long",
                 i);
        if (!strstr(said, words))
            fail_msg("'%s' is not in '%s'", words, said);
    }
    for (int i = 0; i < 3; i++)
        assert_int_equal(access(summary_path(&place, i), F_OK), -1);
    remove_place(&place);
}

/* Also if a command is started with SIGTERM ignored or blocked. */
TEST(time_is_limited_without_sigterm)
{
    struct sigaction before;
    sigset_t only, mask;

    sigemptyset(&only);
    sigaddset(&only, SIGTERM);
    for (int is_blocked = 0; is_blocked < 2; is_blocked++) {
        assert_int_equal(sigaction(SIGTERM, NULL, &before), 0);
        assert_int_equal(sigprocmask(SIG_BLOCK, is_blocked ? &only : NULL, &mask), 0);
        if (!is_blocked)
            (void)signal(SIGTERM, SIG_IGN);
        time_is_limited(state);
        assert_int_equal(sigaction(SIGTERM, &before, NULL), 0);
        assert_int_equal(sigprocmask(SIG_SETMASK, &mask, NULL), 0);
    }
}

TEST(failures_are_reported_once)
{
    struct place place;
    char said[4096];

    make_place(&place);
    FILE *file = fopen(place.traces[1], "wb");
    assert_non_null(file);
    (void)fclose(file);
    file = fopen(summary_path(&place, 2), "wb");
    assert_non_null(file);
    assert_true(fputs("mine", file) > 0);
    (void)fclose(file);
    summarize(&place, (struct mt_recorded_summaries){.is_quiet = false}, said, sizeof said);
    assert_null(strstr(said, "rank0"));
    assert_non_null(
        strstr(said, "rank1.trace.zst': no summary for 'memtrace fleet' was written: "));
    assert_non_null(strstr(said, "is not the summary of a rank by memtrace"));
    assert_true(mt_summary_is_file(summary_path(&place, 0)));
    assert_false(mt_summary_is_file(summary_path(&place, 2)));
    summarize(&place, (struct mt_recorded_summaries){.is_quiet = true, .force = true}, said,
              sizeof said);
    assert_string_equal(said, "");
    assert_true(mt_summary_is_file(summary_path(&place, 2)));
    remove_place(&place);
}

static const char capture[] = MEMTRACE_FIXTURES "/captures/lstm.pickle.zst";

static size_t read_summary(const struct place *place, char *bytes, size_t room)
{
    FILE *file = fopen(summary_path(place, 0), "rb");

    assert_non_null(file);
    size_t length = fread(bytes, 1, room, file);
    (void)fclose(file);
    assert_int_equal(unlink(summary_path(place, 0)), 0);
    return length;
}

/* Events in memory give the summary of the trace, which need not exist until it is added. */
TEST(a_summary_may_begin_early)
{
    struct mt_recorded_summaries early = {.is_quiet = true}, late = {.is_quiet = true};
    static char of_events[1 << 16], of_trace[1 << 16];
    struct mt_error error = {0};
    struct mt_source *source;
    struct place place;

    make_place(&place);
    assert_int_equal(mt_import_open_any(capture, &source, &error), MT_OK);
    mt_recorded_summaries_begin(&late, place.traces[0], source);
    struct mt_summary_job *job = &late.jobs[MT_SUMMARY_JOBS - 1];
    assert_true(job->is_gated);
    assert_int_equal(close(job->gate[1]), 0); /* as if this process had ended */
    assert_int_equal(waitpid(job->process, NULL, 0), job->process);
    assert_int_equal(access(summary_path(&place, 0), F_OK), -1);
    assert_int_equal(close(job->gate[0]), 0);
    *job = (struct mt_summary_job){0};
    mt_recorded_summaries_begin(&early, place.traces[0], source);
    mt_recorded_summaries_abandon(&early);
    assert_int_equal(waitpid(-1, NULL, WNOHANG), -1); /* no process is left */
    assert_int_equal(unlink(place.traces[0]), 0);
    mt_recorded_summaries_begin(&early, place.traces[0], source);
    copy_file(capture, place.traces[0]);
    mt_recorded_summaries_add(&early, place.traces[0]);
    mt_recorded_summaries_finish(&early);
    size_t length = read_summary(&place, of_events, sizeof of_events);
    mt_recorded_summaries_add(&late, place.traces[0]);
    mt_recorded_summaries_finish(&late);
    assert_int_equal(read_summary(&place, of_trace, sizeof of_trace), length);
    assert_memory_equal(of_events, of_trace, length);
    mt_source_close(source);
    remove_place(&place);
}

int main(void)
{
    return run_tests_of_file(NULL, NULL);
}

/* Counts of workspaces: complete files, one for each process. */
#include "cmocka_all.h"

#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <stdlib.h>

#include "../../simulate/driver/note_file.c"
#include "../../simulate/driver/cudnn/workspace_notes.c"

static char folder[] = "/tmp/memtrace-workspace-notes-XXXXXX";
static char base[sizeof folder + 16];

static int make_folder(void **state)
{
    (void)state;
    if (mkdtemp(folder) == NULL)
        return -1;
    snprintf(base, sizeof base, "%s/notes", folder);
    return setenv("MEMTRACE_DRY_RUN_NOTES", base, 1);
}

/* Reads and removes the counts of PID; empty if there are none. */
static void take_notes(pid_t pid, char *text, int capacity)
{
    char path[sizeof base + 64];

    snprintf(path, sizeof path, "%s.convolutions.%ld", base, (long)pid);
    FILE *file = fopen(path, "r");
    size_t length = file ? fread(text, 1, (size_t)capacity - 1, file) : 0;
    text[length] = '\0';
    if (file)
        fclose(file);
    unlink(path);
}

static void note(enum workspace_source source)
{
    sim_note_workspace((struct convolution_workspace){.bytes = 100, .source = source}, 700);
}

TEST(counts_are_written_when_they_double)
{
    char text[320];

    for (int i = 0; i < 5; i++)
        note(WORKSPACE_MEASURED);
    note(WORKSPACE_ASKED);
    note(WORKSPACE_BY_RULE);
    for (int i = 0; i < 3; i++)
        note(WORKSPACE_GUESSED);
    take_notes(getpid(), text, sizeof text);
    assert_non_null(strstr(text, "{\"measured\": 5, \"asked\": 1, \"by_rule\": 1, \"guessed\": 2, "
                                 "\"most_unsure_bytes\": 700}"));
    write_at_end();
    take_notes(getpid(), text, sizeof text);
    assert_non_null(strstr(text, "{\"measured\": 5, \"asked\": 1, \"by_rule\": 1, \"guessed\": 3, "
                                 "\"most_unsure_bytes\": 700}"));
}

/* cuDNN's own plan may be wrong by its workspace, the others by copies of the operands. */
TEST(what_may_be_wrong_depends_on_the_source)
{
    const struct convolution_workspace large = {.bytes = 900, .source = WORKSPACE_GUESSED};

    assert_int_equal(unsure_bytes((struct convolution_workspace){100, WORKSPACE_MEASURED}, 700), 0);
    assert_int_equal(unsure_bytes((struct convolution_workspace){100, WORKSPACE_ASKED}, 700), 100);
    assert_int_equal(unsure_bytes((struct convolution_workspace){100, WORKSPACE_BY_RULE}, 700),
                     700);
    assert_int_equal(unsure_bytes(large, 700), 900);
}

TEST(a_child_counts_its_own)
{
    char text[320];
    pid_t child = fork();

    if (child == 0) {
        write_at_end(); /* has no counts: the parent writes its own */
        note(WORKSPACE_GUESSED);
        _exit(0);
    }
    assert_int_equal(waitpid(child, NULL, 0), child);
    take_notes(child, text, sizeof text);
    assert_non_null(strstr(text, "{\"measured\": 0, \"asked\": 0, \"by_rule\": 0, \"guessed\": 1, "
                                 "\"most_unsure_bytes\": 700}"));
    take_notes(getpid(), text, sizeof text);
    assert_string_equal(text, "");
}

/* As on a full disk. An old note would pass for all that was made up. */
TEST(a_note_that_cannot_be_written_is_empty)
{
    struct rlimit usual;
    struct stat facts;
    char path[sizeof base + 64];

    snprintf(path, sizeof path, "%s.full.%ld", base, (long)getpid());
    sim_note_write("full", "an old note");
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &usual), 0);
    struct rlimit none = {.rlim_cur = 0, .rlim_max = usual.rlim_max};
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &none), 0);
    sim_note_write("full", "a new note");
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &usual), 0);
    assert_int_equal(stat(path, &facts), 0);
    assert_int_equal(facts.st_size, 0);
    unlink(path);
}

TEST(without_a_place_nothing_is_written)
{
    char text[320];

    setenv("MEMTRACE_DRY_RUN_NOTES", "/nowhere/at/all", 1);
    note(WORKSPACE_BY_RULE);
    unsetenv("MEMTRACE_DRY_RUN_NOTES");
    write_at_end();
    take_notes(getpid(), text, sizeof text);
    assert_string_equal(text, "");
    rmdir(folder);
}

int main(void)
{
    return run_tests_of_file(make_folder, NULL);
}

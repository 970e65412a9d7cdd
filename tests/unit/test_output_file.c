/* Results are written completely or not at all, and never overwrite other files. */
#define _GNU_SOURCE 1 /* setresuid */
#include "cmocka_all.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "io.h"
#include "output_file.h"

#define FOREIGN "the user's own words\n"
#define OWN     "OWN: an earlier result\n"
#define RESULT  "OWN: the result\n"

static char folder[] = "/tmp/memtrace-output-XXXXXX";

static bool begins_with_own(const void *start, size_t length)
{
    return length >= 4 && memcmp(start, "OWN:", 4) == 0;
}

static struct mt_output_rules rules_of(bool force)
{
    return (struct mt_output_rules){.force = force, .kind = "a result", .is_own = begins_with_own};
}

static void put(const char *path, const char *text)
{
    FILE *file = fopen(path, "w");

    assert_non_null(file);
    assert_int_equal(fwrite(text, 1, strlen(text), file), strlen(text));
    assert_int_equal(fclose(file), 0);
}

static void assert_holds(const char *path, const char *text)
{
    char bytes[256] = "";
    FILE *file = fopen(path, "r");

    assert_non_null(file);
    bytes[fread(bytes, 1, sizeof bytes - 1, file)] = '\0';
    (void)fclose(file);
    assert_string_equal(bytes, text);
}

static unsigned count_files(void)
{
    DIR *opened = opendir(folder);
    unsigned count = 0;

    assert_non_null(opened);
    for (struct dirent *entry; (entry = readdir(opened));)
        count += strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0;
    (void)closedir(opened);
    return count;
}

static enum mt_status write_result(const char *path, const struct mt_output_rules *rules,
                                   struct mt_error *error)
{
    return mt_output_write(path, rules, RESULT, strlen(RESULT), error);
}

static void assert_refused(const char *path, const struct mt_output_rules *rules,
                           enum mt_status status, const char *words)
{
    struct mt_error error = {.text = ""};
    unsigned before = count_files();

    assert_int_equal(mt_output_check(path, rules, &error), status);
    assert_non_null(strstr(error.text, words));
    error.text[0] = '\0';
    assert_int_equal(write_result(path, rules, &error), status);
    assert_non_null(strstr(error.text, words));
    assert_int_equal(count_files(), before);
}

static void assert_written(const char *path, const struct mt_output_rules *rules)
{
    struct mt_error error = {.text = ""};
    enum mt_status status = write_result(path, rules, &error);

    assert_string_equal(error.text, "");
    assert_int_equal(status, MT_OK);
    assert_holds(path, RESULT);
}

/* Root bypasses permissions: these tests run as the user nobody, whom a user namespace may not
 * have. */
static void become_nobody(void)
{
    if (geteuid() == 0) {
        if (chown(folder, 65534, 65534) && errno == EINVAL)
            skip();
        /* The real user as well: faccessat before glibc 2.33 asks for that one. */
        assert_int_equal(setresuid(65534, 65534, 0), 0);
    }
}

/* Every test has its own current folder. */
static int enter(void **state)
{
    (void)state;
    strcpy(folder + strlen(folder) - 6, "XXXXXX");
    return !mkdtemp(folder) || chdir(folder) != 0;
}

static int leave(void **state)
{
    char command[64];

    (void)state;
    (void)!setresuid(0, 0, 0);
    (void)umask(022);
    (void)snprintf(command, sizeof command, "rm -rf %s", folder);
    return chdir("/") != 0 || system(command) != 0;
}

TEST_WITH(new_files_and_earlier_results, enter, leave)
{
    const struct mt_output_rules rules = rules_of(false);

    assert_written("new", &rules);
    assert_written("new", &rules);
    put("earlier", OWN);
    assert_written("earlier", &rules);
    put("empty", "");
    assert_written("empty", &rules);
    assert_int_equal(count_files(), 3);
}

TEST_WITH(foreign_files_need_force, enter, leave)
{
    const struct mt_output_rules rules = rules_of(false), force = rules_of(true);

    put("notes", FOREIGN);
    assert_refused("notes", &rules, MT_ERR_OUTPUT, "it exists and is not a result");
    assert_holds("notes", FOREIGN);
    assert_written("notes", &force);
}

TEST_WITH(a_read_only_file_is_protected, enter, leave)
{
    const struct mt_output_rules rules = rules_of(false), force = rules_of(true);

    become_nobody();
    put("kept", OWN);
    assert_int_equal(chmod("kept", 0444), 0);
    assert_refused("kept", &rules, MT_ERR_OUTPUT, "Permission denied");
    assert_holds("kept", OWN);
    assert_written("kept", &force);
}

TEST_WITH(inputs_are_never_overwritten, enter, leave)
{
    static const char *const inputs[] = {"other", "input", "gone"};
    struct mt_output_rules rules = rules_of(true);

    rules.inputs = inputs;
    rules.input_count = 3;
    put("input", OWN);
    assert_int_equal(link("input", "hard"), 0);
    assert_int_equal(symlink("input", "soft"), 0);
    assert_int_equal(symlink("soft", "softer"), 0);
    assert_refused("input", &rules, MT_ERR_USAGE, "input of this command");
    assert_refused("./input", &rules, MT_ERR_USAGE, "input of this command");
    assert_refused("hard", &rules, MT_ERR_USAGE, "input of this command");
    assert_refused("soft", &rules, MT_ERR_USAGE, "input of this command");
    assert_refused("softer", &rules, MT_ERR_USAGE, "input of this command");
    assert_holds("input", OWN);
}

TEST_WITH(standard_input_is_an_input, enter, leave)
{
    static const char *const inputs[] = {"-"};
    struct mt_output_rules rules = rules_of(true);
    int saved = dup(STDIN_FILENO), fd;

    rules.inputs = inputs;
    rules.input_count = 1;
    put("input", OWN);
    fd = open("input", O_RDONLY);
    assert_true(fd >= 0 && dup2(fd, STDIN_FILENO) == STDIN_FILENO);
    assert_refused("input", &rules, MT_ERR_USAGE, "input of this command");
    assert_true(dup2(saved, STDIN_FILENO) == STDIN_FILENO);
    (void)close(fd);
    (void)close(saved);
}

TEST_WITH(a_link_to_an_earlier_result_is_followed, enter, leave)
{
    const struct mt_output_rules rules = rules_of(false);
    struct stat facts;

    assert_int_equal(mkdir("runs", 0777), 0);
    put("runs/12", OWN);
    assert_int_equal(symlink("runs/12", "latest"), 0);
    assert_written("latest", &rules);
    assert_holds("runs/12", RESULT);
    assert_true(lstat("latest", &facts) == 0 && S_ISLNK(facts.st_mode));
}

TEST_WITH(a_link_into_foreign_files_is_not, enter, leave)
{
    const struct mt_output_rules rules = rules_of(false), force = rules_of(true);
    struct stat facts;

    put("victim", FOREIGN);
    assert_int_equal(symlink("victim", "trap"), 0);
    assert_refused("trap", &rules, MT_ERR_OUTPUT, "symbolic link to a file that is not a result");
    assert_holds("victim", FOREIGN);
    assert_written("trap", &force);
    assert_holds("victim", FOREIGN);
    assert_true(lstat("trap", &facts) == 0 && S_ISREG(facts.st_mode));
}

TEST_WITH(a_dangling_link_makes_no_file_elsewhere, enter, leave)
{
    const struct mt_output_rules rules = rules_of(false), force = rules_of(true);

    assert_int_equal(symlink("elsewhere", "dangling"), 0);
    assert_int_equal(symlink("loop", "loop"), 0);
    assert_refused("dangling", &rules, MT_ERR_OUTPUT, "does not exist");
    assert_refused("loop", &rules, MT_ERR_OUTPUT, "does not exist");
    assert_written("dangling", &force);
    assert_int_not_equal(access("elsewhere", F_OK), 0);
}

TEST_WITH(missing_folders_are_made, enter, leave)
{
    const struct mt_output_rules rules = rules_of(false);
    struct mt_error error = {.text = ""};

    assert_written("a/b//c/result", &rules);
    assert_written("./a/b/d/result", &rules);
    assert_int_equal(mt_output_file_make_folders("a/b/", &error), MT_OK);
    assert_int_equal(mt_output_file_make_folders("/", &error), MT_OK);
    assert_int_equal(mt_output_file_make_folders("", &error), MT_OK);
    put("file", FOREIGN);
    assert_refused("file/result", &rules, MT_ERR_OUTPUT, "Not a directory");
    assert_int_equal(mt_output_file_make_folders("file", &error), MT_ERR_OUTPUT);
    assert_refused("a", &rules, MT_ERR_OUTPUT, "Is a directory");
    assert_refused("a/", &rules, MT_ERR_OUTPUT, "Is a directory");
    assert_refused("", &rules, MT_ERR_OUTPUT, "No such file");
}

TEST_WITH(a_folder_that_refuses_files, enter, leave)
{
    const struct mt_output_rules rules = rules_of(false);
    struct mt_error error = {.text = ""};

    become_nobody();
    assert_int_equal(mkdir("closed", 0555), 0);
    assert_int_equal(write_result("closed/result", &rules, &error), MT_ERR_OUTPUT);
    assert_string_equal(error.text, "Permission denied");
}

static mode_t mode_of(const char *path)
{
    struct stat facts;

    assert_int_equal(stat(path, &facts), 0);
    return facts.st_mode & 07777;
}

TEST_WITH(modes_follow_the_umask_and_the_old_file, enter, leave)
{
    struct mt_output_rules rules = rules_of(false), private = rules_of(false);

    private.is_private = true;
    (void)umask(027);
    assert_written("report", &rules);
    assert_int_equal(mode_of("report"), 0640);
    assert_written("trace", &private);
    assert_int_equal(mode_of("trace"), 0600);
    assert_int_equal(chmod("report", 0606), 0);
    assert_written("report", &rules);
    assert_int_equal(mode_of("report"), 0606);
    assert_int_equal(chmod("trace", 0644), 0);
    assert_written("trace", &private);
    assert_int_equal(mode_of("trace"), 0644);
}

TEST_WITH(other_names_keep_the_old_result, enter, leave)
{
    const struct mt_output_rules rules = rules_of(false);

    put("result", OWN);
    assert_int_equal(link("result", "copy"), 0);
    assert_written("result", &rules);
    assert_holds("copy", OWN);
}

static void *read_pipe(void *text)
{
    int fd = open("pipe", O_RDONLY);

    assert_int_equal(mt_io_read_full(fd, text, 64), strlen(RESULT));
    (void)close(fd);
    return NULL;
}

TEST_WITH(pipes_and_devices_are_written_through, enter, leave)
{
    const struct mt_output_rules rules = rules_of(false);
    struct mt_error error = {.text = ""};
    char text[64] = "";
    pthread_t reader;

    assert_int_equal(mkfifo("pipe", 0600), 0);
    assert_int_equal(pthread_create(&reader, NULL, read_pipe, text), 0);
    assert_int_equal(write_result("pipe", &rules, &error), MT_OK);
    (void)pthread_join(reader, NULL);
    assert_string_equal(text, RESULT);
    assert_int_equal(write_result("/dev/null", &rules, &error), MT_OK);
    assert_int_equal(symlink("/dev/null", "nothing"), 0);
    assert_int_equal(write_result("nothing", &rules, &error), MT_OK);
    assert_int_equal(write_result("/dev/full", &rules, &error), MT_ERR_OUTPUT);
    assert_string_equal(error.text, strerror(ENOSPC));
    assert_int_equal(count_files(), 2);
}

/* >FILE, then -o /dev/stdout: appends to the open file. */
TEST_WITH(standard_output_by_name, enter, leave)
{
    const struct mt_output_rules rules = rules_of(false);
    static const char *const names[] = {"-", "/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"};
    struct mt_error error = {.text = ""};
    enum mt_status status = MT_OK, through_name;
    int saved = dup(STDOUT_FILENO), fd = open("out", O_RDWR | O_CREAT, 0600);

    assert_true(saved >= 0 && fd >= 0);
    (void)fflush(stdout);
    (void)dup2(fd, STDOUT_FILENO);
    for (size_t i = 0; i < sizeof names / sizeof *names && status == MT_OK; i++)
        status = mt_output_write(names[i], &rules, "x", 1, &error);
    through_name = write_result("out", &rules, &error);
    (void)dup2(saved, STDOUT_FILENO);
    assert_int_equal(status, MT_OK);
    assert_holds("out", "xxxx");
    assert_int_equal(through_name, MT_ERR_USAGE);
    assert_non_null(strstr(error.text, "standard output"));
    (void)close(fd);
    (void)close(saved);
}

/* RLIMIT_FSIZE simulates a full disk: a write fails in the middle. */
TEST_WITH(a_full_disk_leaves_the_old_result, enter, leave)
{
    const struct rlimit small = {100000, RLIM_INFINITY};
    const struct mt_output_rules rules = rules_of(false);
    struct mt_error error = {.text = ""};
    char *bytes = calloc(1, 1 << 20);
    struct rlimit before;
    struct mt_output output;

    put("result", OWN);
    (void)signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    enum mt_status at_once = mt_output_write("result", &rules, bytes, 1 << 20, &error);
    assert_int_equal(mt_output_open(&output, "result", &rules, &error), MT_OK);
    for (int i = 0; i < 1 << 10; i++)
        (void)mt_output_add(&output, bytes, 1 << 10);
    assert_false(mt_output_add(&output, bytes, 1));
    assert_false(mt_output_restart(&output));
    enum mt_status status = mt_output_finish(&output, &error);
    (void)setrlimit(RLIMIT_FSIZE, &before);
    (void)signal(SIGXFSZ, SIG_DFL);
    free(bytes);
    assert_int_equal(at_once, MT_ERR_OUTPUT);
    assert_int_equal(status, MT_ERR_OUTPUT);
    assert_string_equal(error.text, strerror(EFBIG));
    assert_holds("result", OWN);
    assert_int_equal(count_files(), 1);
}

TEST_WITH(nothing_shows_before_the_end, enter, leave)
{
    const struct mt_output_rules rules = rules_of(false);
    struct mt_error error = {.text = ""};
    struct mt_output output;

    put("result", OWN);
    assert_int_equal(mt_output_open(&output, "result", &rules, &error), MT_OK);
    assert_true(mt_output_add(&output, "wrong", 5));
    assert_true(mt_output_restart(&output));
    assert_true(mt_output_add(&output, RESULT, strlen(RESULT)));
    assert_int_equal(output.bytes, strlen(RESULT));
    assert_holds("result", OWN);
    assert_int_equal(count_files(), 2);
    mt_output_abandon(&output);
    mt_output_abandon(&output);
    assert_holds("result", OWN);
    assert_int_equal(count_files(), 1);
}

/* The rename does not overwrite a file that is created after the first check. */
TEST_WITH(a_file_that_came_meanwhile_stays, enter, leave)
{
    const struct mt_output_rules rules = rules_of(false);
    struct mt_error error = {.text = ""};
    struct mt_output output;

    assert_int_equal(mt_output_open(&output, "result", &rules, &error), MT_OK);
    assert_true(mt_output_add(&output, RESULT, strlen(RESULT)));
    put("result", FOREIGN);
    assert_int_equal(mt_output_finish(&output, &error), MT_ERR_OUTPUT);
    assert_holds("result", FOREIGN);
    assert_int_equal(count_files(), 1);
    mt_output_abandon(&output); /* does nothing */
}

TEST_WITH(a_signal_handler_removes_what_is_unfinished, enter, leave)
{
    struct mt_unfinished list = {.handled = false};
    struct mt_output_rules rules = rules_of(false);
    struct mt_error error = {.text = ""};
    struct mt_output first, second;

    rules.unfinished = &list;
    assert_int_equal(mt_output_open(&first, "first", &rules, &error), MT_OK);
    assert_int_equal(mt_output_open(&second, "second", &rules, &error), MT_OK);
    assert_int_equal(mt_output_finish(&first, &error), MT_OK);
    assert_int_equal(count_files(), 2);
    mt_unfinished_unlink(&list);
    assert_int_equal(count_files(), 1);
    {
        char *lent = second.temporary.path; /* not freed if a handler owns it */

        assert_int_equal(mt_output_finish(&second, &error), MT_ERR_OUTPUT);
        free(lent);
    }
    assert_int_equal(count_files(), 1);
}

TEST_WITH(more_files_than_the_list_holds, enter, leave)
{
    struct mt_unfinished list = {.handled = false};
    struct mt_output outputs[MT_MAX_UNFINISHED + 2];
    struct mt_output_rules rules = rules_of(false);
    struct mt_error error = {.text = ""};

    rules.unfinished = &list;
    for (size_t i = 0; i < sizeof outputs / sizeof *outputs; i++)
        assert_int_equal(mt_output_open(&outputs[i], "same", &rules, &error), MT_OK);
    for (size_t i = 0; i < sizeof outputs / sizeof *outputs; i++) {
        assert_true(mt_output_add(&outputs[i], "OWN:", 4));
        assert_int_equal(mt_output_finish(&outputs[i], &error), MT_OK);
    }
    assert_int_equal(count_files(), 1);
}

TEST_WITH(durable_files, enter, leave)
{
    struct mt_output_rules rules = rules_of(false);

    rules.is_durable = true;
    assert_written("here", &rules);
    assert_written("a/there", &rules);
}

int main(void)
{
    return run_tests_of_file(NULL, NULL);
}

/* Hidden temporary files: their names, who may remove them, and their removal. */
#include "cmocka_all.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "temporary_file.h"

static char folder[] = "/tmp/memtrace-temporary-XXXXXX";
static char target[64];

static struct mt_temporary open_new(struct mt_unfinished *list)
{
    struct mt_error error = {.text = ""};
    struct mt_temporary file;

    if (mt_temporary_open(&file, target, 0600, list, &error) != MT_OK)
        fail_msg("%s", error.text);
    return file;
}

static bool exists(const char *path)
{
    return access(path, F_OK) == 0;
}

TEST(names_are_recognized)
{
    struct mt_temporary file = open_new(NULL);

    assert_memory_equal(file.path, target, strlen(folder) + 1);
    assert_true(mt_temporary_file_is_name(file.path + strlen(folder) + 1));
    assert_false(mt_temporary_file_is_name(file.path));
    mt_temporary_discard(&file);
    assert_true(mt_temporary_file_is_name(".memtrace-0123456789abcdef.tmp"));
    assert_false(mt_temporary_file_is_name(".memtrace-0123456789abcdef.tmp2"));
    assert_false(mt_temporary_file_is_name(".memtrace-0123456789abcdeF.tmp"));
    assert_false(mt_temporary_file_is_name(".memtrace-0123456789abcde.tmp"));
    assert_false(mt_temporary_file_is_name(".memtrace-notes"));
    assert_false(mt_temporary_file_is_name(""));
}

/* Opens the file and tries to lock it, as a cleaner does. */
TEST(open_files_are_locked)
{
    struct mt_temporary file = open_new(NULL);
    int fd = open(file.path, O_RDWR);
    struct stat facts;

    assert_true(fd >= 0);
    assert_int_not_equal(flock(fd, LOCK_EX | LOCK_NB), 0);
    assert_int_equal(fstat(fd, &facts), 0);
    assert_int_equal(facts.st_mode & 07777, 0600);
    assert_true(mt_temporary_close(&file));
    assert_int_equal(flock(fd, LOCK_EX | LOCK_NB), 0);
    close(fd);
    mt_temporary_discard(&file);
}

TEST(discarded_files_are_gone)
{
    struct mt_temporary file = open_new(NULL), none = MT_TEMPORARY_NONE;
    char path[96];

    snprintf(path, sizeof path, "%s", file.path);
    mt_temporary_discard(&file);
    assert_false(exists(path));
    mt_temporary_discard(&file);
    mt_temporary_discard(&none);
}

TEST(renamed_files_stay)
{
    struct mt_unfinished list = {.handled = false};
    struct mt_temporary file = open_new(&list);

    assert_true(mt_temporary_rename(&file, target));
    mt_unfinished_unlink(&list);
    mt_temporary_discard(&file);
    assert_true(exists(target));
    assert_true(mt_synchronize_folder_of(target));
    assert_int_equal(unlink(target), 0);
}

TEST(signals_remove_what_is_listed)
{
    struct mt_unfinished list = {.handled = false};
    struct mt_temporary file = open_new(&list);
    char *lent = file.path; /* owned by the handler */

    mt_unfinished_unlink(&list);
    assert_false(exists(lent));
    assert_false(mt_temporary_rename(&file, target));
    mt_temporary_discard(&file);
    free(lent);
}

TEST(a_forked_process_leaves_the_files_of_its_parent)
{
    struct mt_unfinished list = {.handled = false};
    struct mt_temporary file = open_new(&list);
    int status;
    pid_t child = fork();

    if (child == 0) {
        mt_unfinished_forget(&list);
        mt_unfinished_unlink(&list);
        _exit(0);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(exists(file.path));
    mt_temporary_discard(&file);
}

TEST(a_missing_folder_is_an_error)
{
    struct mt_error error = {.text = ""};
    struct mt_temporary file;

    assert_int_equal(mt_temporary_open(&file, "/nowhere/at/all", 0600, NULL, &error),
                     MT_ERR_OUTPUT);
    assert_string_equal(error.text, "No such file or directory");
    mt_temporary_discard(&file);
}

static int make_folder(void **state)
{
    (void)state;
    snprintf(target, sizeof target, "%s/target", mkdtemp(folder));
    return 0;
}

static int remove_folder(void **state)
{
    (void)state;
    return rmdir(folder); /* fails if anything is left */
}

int main(void)
{
    return run_tests_of_file(make_folder, remove_folder);
}

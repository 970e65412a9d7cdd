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

static void names_are_recognized(void **state)
{
    struct mt_temporary file = open_new(NULL);

    (void)state;
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
static void open_files_are_locked(void **state)
{
    struct mt_temporary file = open_new(NULL);
    int fd = open(file.path, O_RDWR);
    struct stat facts;

    (void)state;
    assert_true(fd >= 0);
    assert_int_not_equal(flock(fd, LOCK_EX | LOCK_NB), 0);
    assert_int_equal(fstat(fd, &facts), 0);
    assert_int_equal(facts.st_mode & 07777, 0600);
    assert_true(mt_temporary_close(&file));
    assert_int_equal(flock(fd, LOCK_EX | LOCK_NB), 0);
    close(fd);
    mt_temporary_discard(&file);
}

static void discarded_files_are_gone(void **state)
{
    struct mt_temporary file = open_new(NULL), none = MT_TEMPORARY_NONE;
    char path[96];

    (void)state;
    snprintf(path, sizeof path, "%s", file.path);
    mt_temporary_discard(&file);
    assert_false(exists(path));
    mt_temporary_discard(&file);
    mt_temporary_discard(&none);
}

static void renamed_files_stay(void **state)
{
    struct mt_unfinished list = {.handled = false};
    struct mt_temporary file = open_new(&list);

    (void)state;
    assert_true(mt_temporary_rename(&file, target));
    mt_unfinished_unlink(&list);
    mt_temporary_discard(&file);
    assert_true(exists(target));
    assert_true(mt_synchronize_folder_of(target));
    assert_int_equal(unlink(target), 0);
}

static void signals_remove_what_is_listed(void **state)
{
    struct mt_unfinished list = {.handled = false};
    struct mt_temporary file = open_new(&list);
    char *lent = file.path; /* owned by the handler */

    (void)state;
    mt_unfinished_unlink(&list);
    assert_false(exists(lent));
    assert_false(mt_temporary_rename(&file, target));
    mt_temporary_discard(&file);
    free(lent);
}

static void a_forked_process_leaves_the_files_of_its_parent(void **state)
{
    struct mt_unfinished list = {.handled = false};
    struct mt_temporary file = open_new(&list);
    int status;
    pid_t child = fork();

    (void)state;
    if (child == 0) {
        mt_unfinished_forget(&list);
        mt_unfinished_unlink(&list);
        _exit(0);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(exists(file.path));
    mt_temporary_discard(&file);
}

static void a_missing_folder_is_an_error(void **state)
{
    struct mt_error error = {.text = ""};
    struct mt_temporary file;

    (void)state;
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
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_are_recognized),
        cmocka_unit_test(open_files_are_locked),
        cmocka_unit_test(discarded_files_are_gone),
        cmocka_unit_test(renamed_files_stay),
        cmocka_unit_test(signals_remove_what_is_listed),
        cmocka_unit_test(a_forked_process_leaves_the_files_of_its_parent),
        cmocka_unit_test(a_missing_folder_is_an_error),
    };

    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}

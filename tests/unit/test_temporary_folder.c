/* temporary_folder.h: what is removed is the folder that was made, whatever gets its name later. */
#define _GNU_SOURCE
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cmocka_all.h"
#include "temporary_folder.h"

static char root[64];

static int make_root(void **state)
{
    (void)state;
    snprintf(root, sizeof root, "/tmp/memtrace-folder-XXXXXX");
    return mkdtemp(root) && setenv("TMPDIR", root, 1) == 0 ? 0 : -1;
}

static int remove_root(void **state)
{
    char command[128];
    (void)state;

    snprintf(command, sizeof command, "rm -rf %s", root);
    return system(command);
}

static void make_file(const char *folder, const char *name)
{
    char path[2 * PATH_MAX];

    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fclose(file);
}

static bool exists(const char *folder, const char *name)
{
    char path[2 * PATH_MAX];

    snprintf(path, sizeof path, "%s/%s", folder, name);
    return access(path, F_OK) == 0;
}

TEST(a_folder_is_removed_with_its_files)
{
    struct mt_temporary_folder folder;
    char path[PATH_MAX];

    assert_true(mt_temporary_folder_new(&folder, "memtrace-try"));
    assert_int_equal(strncmp(folder.path, root, strlen(root)), 0);
    make_file(folder.path, "one");
    make_file(folder.path, ".two");
    snprintf(path, sizeof path, "%s", folder.path);
    mt_temporary_folder_remove(&folder);
    assert_null(folder.path);
    assert_int_not_equal(access(path, F_OK), 0);
    mt_temporary_folder_remove(&folder);
    setenv("TMPDIR", "/nowhere", 1);
    assert_false(mt_temporary_folder_new(&folder, "memtrace-try"));
    setenv("TMPDIR", root, 1);
}

/* By a link, or by another folder of the user. */
TEST(a_folder_that_was_exchanged_stays)
{
    char documents[PATH_MAX], aside[PATH_MAX], path[PATH_MAX];
    struct mt_temporary_folder folder;

    snprintf(documents, sizeof documents, "%s/documents", root);
    for (int by_link = 0; by_link < 2; by_link++) {
        assert_int_equal(mkdir(documents, 0700), 0);
        make_file(documents, "thesis.tex");
        assert_true(mt_temporary_folder_new(&folder, "memtrace-try"));
        make_file(folder.path, "one");
        snprintf(path, sizeof path, "%s", folder.path);
        snprintf(aside, sizeof aside, "%s/aside%d", root, by_link);
        assert_int_equal(rename(path, aside), 0);
        assert_int_equal(by_link ? symlink(documents, path) : rename(documents, path), 0);
        mt_temporary_folder_remove(&folder);
        assert_true(exists(path, "thesis.tex"));
        assert_false(exists(aside, "one"));
    }
}

int main(void)
{
    return run_tests_of_file(make_root, remove_root);
}

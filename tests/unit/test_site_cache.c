/* site_cache.h and safe_path.h: nothing but memtrace's own files is removed, whatever other users
 * put into the cache or above it. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cmocka_all.h"
#include "safe_path.h"
#include "site_cache.h"

enum { NOBODY = 65534 };

#define KEY "0123456789abcdef0123456789abcdef"

static char root[64];

/* A path below the root, in one of eight buffers. */
static const char *at(const char *name)
{
    static char paths[8][PATH_MAX];
    static unsigned next;
    char *path = paths[next++ % 8];

    snprintf(path, PATH_MAX, "%s/%s", root, name);
    return path;
}

static int make_root(void **state)
{
    (void)state;
    snprintf(root, sizeof root, "/tmp/memtrace-cache-XXXXXX");
    return mkdtemp(root) ? 0 : -1;
}

static int remove_root(void **state)
{
    char command[128];
    (void)state;

    snprintf(command, sizeof command, "rm -rf %s", root);
    return system(command);
}

static void make_folder(const char *name, mode_t mode)
{
    assert_int_equal(mkdir(at(name), 0700), 0);
    assert_int_equal(chmod(at(name), mode), 0);
}

static void make_file(const char *name)
{
    FILE *file = fopen(at(name), "w");

    assert_non_null(file);
    assert_int_equal(fputs("years of work", file) >= 0, 1);
    assert_int_equal(fclose(file), 0);
}

static bool exists(const char *name)
{
    struct stat info;

    return lstat(at(name), &info) == 0;
}

static struct mt_cache opened(const char *name)
{
    struct mt_error error = {0};
    struct mt_cache cache;

    if (mt_cache_open(at(name), &cache, &error))
        fail_msg("%s", error.text);
    return cache;
}

static void expect_refusal(const char *name, const char *words)
{
    struct mt_error error = {0};
    struct mt_cache cache;

    assert_int_equal(mt_cache_open(at(name), &cache, &error), MT_ERR_OUTPUT);
    assert_int_equal(cache.fd, -1);
    if (!strstr(error.text, words))
        fail_msg("\"%s\" does not say \"%s\"", error.text, words);
}

/* A folder of the user, with files whose names memtrace also uses. */
static void make_documents(const char *name)
{
    char file[64];

    make_folder(name, 0700);
    snprintf(file, sizeof file, "%s/thesis.tex", name);
    make_file(file);
    snprintf(file, sizeof file, "%s/libmine.so", name);
    make_file(file);
}

TEST(a_link_is_removed_and_not_what_it_leads_to)
{
    struct mt_cache cache = opened("links");

    make_documents("documents");
    assert_int_equal(symlink(at("documents"), at("links/" KEY)), 0);
    assert_int_equal(mt_cache_site_open(&cache, KEY), -1);
    mt_cache_remove(&cache, KEY);
    assert_false(exists("links/" KEY));
    assert_true(exists("documents/thesis.tex") && exists("documents/libmine.so"));
    mt_cache_close(&cache);
}

TEST(files_that_memtrace_did_not_make_stay)
{
    static const char *const made[] = {"libcuda.so.1", "libcudart.so.12", "facts", "notes.7",
                                       ".notes.7.half"};
    struct mt_cache cache = opened("names");
    char file[128];

    make_folder("names/" KEY, 0700);
    for (size_t i = 0; i < sizeof made / sizeof *made; i++) {
        snprintf(file, sizeof file, "names/" KEY "/%s", made[i]);
        make_file(file);
    }
    make_file("names/" KEY "/weights.pt");
    make_file("names/" KEY "/.hidden");
    mt_cache_remove(&cache, KEY);
    for (size_t i = 0; i < sizeof made / sizeof *made; i++) {
        snprintf(file, sizeof file, "names/" KEY "/%s", made[i]);
        assert_false(exists(file));
    }
    assert_true(exists("names/" KEY "/weights.pt") && exists("names/" KEY "/.hidden"));
    mt_cache_close(&cache);
}

/* What was opened is used, not what has its name later. */
TEST(a_folder_that_was_exchanged_stays)
{
    struct mt_cache cache = opened("exchange");
    struct mt_cache_making making;
    struct mt_error error = {0};
    char name[64], aside[80];

    make_documents("papers");
    assert_int_equal(mt_cache_begin(&cache, &making, &error), MT_OK);
    snprintf(name, sizeof name, "exchange/%s", making.name);
    snprintf(aside, sizeof aside, "%s-aside", name);
    assert_int_equal(rename(at(name), at(aside)), 0);
    assert_int_equal(symlink(at("papers"), at(name)), 0);
    int fd = openat(making.fd, "libcuda.so.1", O_WRONLY | O_CREAT | O_EXCL, 0600);
    assert_true(fd >= 0 && close(fd) == 0);
    mt_cache_abandon(&cache, &making);
    assert_true(exists("papers/thesis.tex") && exists("papers/libmine.so") && exists(name));
    strcat(aside, "/libcuda.so.1");
    assert_false(exists(aside));
    mt_cache_close(&cache);
}

TEST(an_existing_site_or_file_is_not_replaced)
{
    struct mt_cache cache = opened("finish");
    struct mt_cache_making making;
    struct mt_error error = {0};

    make_folder("finish/" KEY, 0700);
    make_file("finish/" KEY "/facts");
    assert_int_equal(mt_cache_begin(&cache, &making, &error), MT_OK);
    assert_int_equal(mt_cache_finish(&cache, &making, KEY, &error), MT_OK);
    assert_true(exists("finish/" KEY "/facts"));
    make_file("finish/file");
    assert_int_equal(mt_cache_begin(&cache, &making, &error), MT_OK);
    assert_int_equal(mt_cache_finish(&cache, &making, "file", &error), MT_OK);
    mt_cache_remove(&cache, "file");
    assert_true(exists("finish/file"));
    mt_cache_close(&cache);
}

TEST(tidying_follows_no_link)
{
    const struct timespec old[2] = {{.tv_sec = 1000}, {.tv_sec = 1000}};
    struct mt_cache cache = opened("tidy");

    make_documents("letters");
    make_folder("tidy/making-left", 0700);
    assert_int_equal(symlink(at("letters"), at("tidy/making-link")), 0);
    assert_int_equal(utimensat(AT_FDCWD, at("letters"), old, 0), 0);
    assert_int_equal(utimensat(AT_FDCWD, at("tidy/making-link"), old, AT_SYMLINK_NOFOLLOW), 0);
    assert_int_equal(utimensat(AT_FDCWD, at("tidy/making-left"), old, 0), 0);
    mt_cache_tidy(&cache, KEY);
    assert_false(exists("tidy/making-left"));
    assert_true(exists("letters/thesis.tex") && exists("letters/libmine.so"));
    mt_cache_close(&cache);
}

/* Another user could put another folder in the place of one that was checked. */
TEST(folders_above_must_be_closed)
{
    char text[PATH_MAX];

    make_folder("shared", 0777);
    make_folder("shared/mine", 0700);
    snprintf(text, sizeof text, "other users can write to %s/shared", root);
    expect_refusal("shared/mine/cache", text);
    make_folder("closed", 0700);
    assert_int_equal(symlink("../shared/mine", at("closed/link")), 0);
    expect_refusal("closed/link/cache", text);
    assert_int_equal(chmod(at("shared"), 01777), 0); /* as /tmp */
    struct mt_cache cache = opened("shared/mine/cache");
    mt_cache_close(&cache);
    cache = opened("closed/link/cache");
    mt_cache_close(&cache);
    assert_int_equal(chmod(at("shared/mine/cache"), 01777), 0);
    expect_refusal("shared/mine/cache", "other users can write to");
    assert_int_equal(symlink("loop", at("closed/loop")), 0);
    struct mt_error error = {0};
    assert_int_equal(mt_safe_path_open(at("closed/loop"), &error), -1);
    assert_int_equal(error.status, MT_ERR_IO);
}

/* As on a cluster whose XDG_CACHE_HOME is in a folder of a group. */
TEST(the_next_folder_is_used)
{
    struct mt_error error = {0};
    struct mt_cache cache;

    make_folder("group", 0777);
    make_folder("home", 0700);
    setenv("XDG_CACHE_HOME", at("group"), 1);
    setenv("HOME", at("home"), 1);
    setenv("TMPDIR", at("home"), 1);
    assert_int_equal(mt_cache_open(NULL, &cache, &error), MT_OK);
    assert_string_equal(cache.path, at("home/.cache/memtrace"));
    mt_cache_close(&cache);
    assert_int_equal(chmod(at("home/.cache"), 0777), 0);
    assert_int_equal(mt_cache_open(NULL, &cache, &error), MT_OK);
    assert_ptr_equal(strstr(cache.path, at("home/memtrace-")), cache.path);
    mt_cache_close(&cache);
    assert_int_equal(chmod(at("home"), 0777), 0);
    assert_int_equal(mt_cache_open(NULL, &cache, &error), MT_ERR_OUTPUT);
    assert_non_null(strstr(error.text, at("group"))); /* the first reason */
}

TEST(folders_above_must_not_be_of_others)
{
    char text[PATH_MAX];

    if (geteuid() != 0)
        skip();
    make_folder("theirs", 0755);
    make_folder("theirs/cache", 0700);
    assert_int_equal(chown(at("theirs"), NOBODY, NOBODY), 0);
    snprintf(text, sizeof text, "another user owns %s/theirs", root);
    expect_refusal("theirs/cache", text);
    make_folder("sticky", 01777);
    make_documents("mine");
    assert_int_equal(symlink(at("mine"), at("sticky/link")), 0);
    assert_int_equal(lchown(at("sticky/link"), NOBODY, NOBODY), 0);
    snprintf(text, sizeof text, "another user owns %s/sticky/link", root);
    expect_refusal("sticky/link", text);
}

TEST(a_site_of_another_user_is_not_touched)
{
    if (geteuid() != 0)
        skip();
    struct mt_cache cache = opened("foreign");
    make_folder("foreign/" KEY, 0777);
    make_file("foreign/" KEY "/facts");
    assert_int_equal(chown(at("foreign/" KEY), NOBODY, NOBODY), 0);
    assert_int_equal(mt_cache_site_open(&cache, KEY), -1);
    mt_cache_remove(&cache, KEY);
    assert_true(exists("foreign/" KEY "/facts"));
    mt_cache_close(&cache);
}

TEST(a_safe_path_may_be_relative)
{
    struct mt_error error = {0};
    char before[PATH_MAX];
    struct stat info;

    assert_non_null(getcwd(before, sizeof before));
    make_folder("here", 0700);
    make_file("here/file");
    assert_int_equal(chdir(at("here")), 0);
    int fd = mt_safe_path_open("../here//./file", &error);
    assert_int_equal(chdir(before), 0);
    assert_true(fd >= 0 && fstat(fd, &info) == 0 && S_ISREG(info.st_mode));
    assert_true(mt_safe_is_closed(&info));
    assert_int_equal(close(fd), 0);
    assert_int_equal(mt_safe_path_open(at("here/missing"), &error), -1);
    assert_int_equal(error.status, MT_ERR_IO);
}

int main(void)
{
    return run_tests_of_file(make_root, remove_root);
}

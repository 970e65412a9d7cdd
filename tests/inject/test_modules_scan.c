/* What the loader has, as definitions: once each, again when it comes again. */
#define _GNU_SOURCE 1
#include <dlfcn.h>
#include <limits.h>
#include <link.h>
#include "cmocka_all.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "collect.h"
#include "intern.h"
#include "modules.h"
#include "modules_scan.h"
#include "settings.h"
#include "stacks.h"

/* A small library that no program has loaded by itself. */
#define LIBRARY "libresolv.so.2"

static struct mt_inject_settings settings = {.native_stacks = true};
const struct mt_inject_settings *const mt_recorder_settings = &settings;
static struct mt_modules *modules;
static unsigned defined, forgotten, depth;
static bool tape_is_full;

bool mt_collect_enter(void)
{
    depth++;
    return true;
}

void mt_collect_leave(void)
{
    depth--;
}

uint32_t mt_define(enum mt_definition_kind kind, const void *payload, size_t payload_bytes)
{
    assert_int_equal(depth, 1);
    assert_int_equal(kind, MT_DEFINE_MODULE);
    if (tape_is_full)
        return 0;
    assert_int_equal(mt_modules_add(modules, payload, payload_bytes), MT_OK);
    return ++defined;
}

static bool has_native, has_requested_native;
static unsigned facts;

bool mt_collect_takes_native(void)
{
    return settings.native_stacks;
}

bool mt_collect_has_native(void)
{
    return has_native;
}

bool mt_collect_has_requested_native(void)
{
    return has_requested_native;
}

void mt_collect_fact(const char *key, const char *value)
{
    assert_string_equal(key, "has_stacks");
    assert_string_equal(value, "1");
    facts++;
}

void mt_native_stack_forget(void)
{
    forgotten++;
}

static unsigned newly_defined(void)
{
    unsigned before = defined;

    mt_modules_source.poll();
    assert_int_equal(depth, 0);
    return defined - before;
}

static void place_of(const void *address, struct mt_native_position *place, char path[PATH_MAX])
{
    struct mt_native_frame frame;

    mt_modules_frame(modules, (uintptr_t)address + 1, &frame);
    assert_true(mt_native_frame_parse(&frame, place));
    assert_in_range(place->path_length, 1, PATH_MAX - 1);
    memcpy(path, frame.file, place->path_length);
    path[place->path_length] = '\0';
}

static void expect_path(const void *address, const char *expected)
{
    struct mt_native_position place;
    char path[PATH_MAX];

    place_of(address, &place, path);
    assert_string_equal(path, expected);
}

static const int data = 1;

TEST(test_what_is_loaded_at_first)
{
    char self[PATH_MAX] = "", path[PATH_MAX];
    struct mt_native_position place;

    settings.native_stacks = false;
    assert_int_equal(newly_defined(), 0);
    settings.native_stacks = true;
    assert_true(newly_defined() > 3);
    assert_int_equal(newly_defined(), 0);
    assert_true(readlink("/proc/self/exe", self, sizeof self - 1) > 0);
    expect_path(&data, self);
    if (getauxval(AT_SYSINFO_EHDR))
        expect_path((const void *)getauxval(AT_SYSINFO_EHDR), "linux-vdso.so.1");
    place_of(dlsym(RTLD_DEFAULT, "gnu_get_libc_version"), &place, path);
    assert_non_null(strstr(path, "/libc.so.6"));
    assert_in_range(place.build_id_bytes, 8, MT_MAX_BUILD_ID_BYTES);
}

/* Once, and not before an event has such a stack. */
TEST(test_the_header_says_that_there_are_stacks)
{
    mt_modules_source.poll();
    has_native = true; /* of a call of the driver: the framework's blocks have none */
    mt_modules_source.poll();
    assert_int_equal(facts, 0);
    has_requested_native = true;
    mt_modules_source.poll();
    mt_modules_source.poll();
    mt_modules_source.stop();
    assert_int_equal(facts, 1);
}

/* A module in which the last native frame lay, before Python came. */
TEST(test_modules_of_earlier_stacks_are_known)
{
    void *library = dlopen(LIBRARY, RTLD_NOW);

    assert_non_null(library);
    settings.native_stacks = false;
    has_native = false;
    assert_int_equal(newly_defined(), 0);
    has_native = true;
    assert_int_equal(newly_defined(), 1);
    assert_int_equal(dlclose(library), 0);
    assert_int_equal(newly_defined(), 0);
    settings.native_stacks = true;
}

TEST(test_what_comes_and_goes)
{
    struct link_map *map;
    struct mt_native_position place;
    char path[PATH_MAX];
    void *library;

    for (int round = 0; round < 2; round++) {
        library = dlopen(LIBRARY, RTLD_NOW);
        assert_non_null(library);
        assert_int_equal(dlinfo(library, RTLD_DI_LINKMAP, &map), 0);
        assert_int_equal(newly_defined(), 1);
        place_of((const void *)map->l_ld, &place, path);
        assert_string_equal(path, map->l_name);
        assert_int_equal(place.address, (uintptr_t)map->l_ld - map->l_addr);
        forgotten = 0;
        assert_int_equal(newly_defined(), 0);
        assert_int_equal(forgotten, 0);
        assert_int_equal(dlclose(library), 0);
        assert_int_equal(newly_defined(), 0);
        assert_int_equal(forgotten, 1);
    }
}

TEST(test_relative_paths_become_absolute)
{
    char folder[] = "/tmp/test_modules_XXXXXX", old[PATH_MAX], line[2 * PATH_MAX],
         expected[PATH_MAX];
    struct link_map *map;
    void *library = dlopen(LIBRARY, RTLD_NOW);

    assert_non_null(library);
    assert_int_equal(dlinfo(library, RTLD_DI_LINKMAP, &map), 0);
    assert_non_null(mkdtemp(folder));
    snprintf(line, sizeof line, "cp '%s' '%s/copy.so'", map->l_name, folder);
    assert_int_equal(system(line), 0);
    dlclose(library);
    assert_non_null(getcwd(old, sizeof old));
    assert_int_equal(chdir(folder), 0);
    library = dlopen("./copy.so", RTLD_NOW);
    assert_non_null(library);
    assert_int_equal(chdir(old), 0);
    assert_int_equal(newly_defined(), 1);
    assert_int_equal(dlinfo(library, RTLD_DI_LINKMAP, &map), 0);
    snprintf(expected, sizeof expected, "%s/copy.so", folder);
    expect_path((const void *)map->l_ld, expected);
    dlclose(library);
    assert_int_equal(newly_defined(), 0);
    snprintf(line, sizeof line, "rm -r '%s'", folder);
    assert_int_equal(system(line), 0);
}

TEST(test_a_full_tape_is_tried_again)
{
    void *library = dlopen(LIBRARY, RTLD_NOW), *other;

    assert_non_null(library);
    tape_is_full = true;
    assert_int_equal(newly_defined(), 0);
    tape_is_full = false;
    other = dlopen("libutil.so.1", RTLD_NOW); /* something changes */
    assert_true(newly_defined() >= 1);
    dlclose(library);
    if (other)
        dlclose(other);
}

static void expect_exit(pid_t child, int expected)
{
    int status;

    assert_true(child > 0);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), expected);
}

/* Returns true if this program is known by this path. */
static bool knows_program(const char *path)
{
    struct mt_native_frame frame;
    struct mt_native_position place;

    modules = mt_modules_new();
    (void)newly_defined();
    mt_modules_frame(modules, (uintptr_t)&data + 1, &frame);
    return mt_native_frame_parse(&frame, &place) && place.path_length == strlen(path) &&
           !memcmp(frame.file, path, place.path_length);
}

/* Not even a descriptor is free. */
TEST(test_a_forked_child_begins_anew)
{
    char self[PATH_MAX] = "";

    assert_true(readlink("/proc/self/exe", self, sizeof self - 1) > 0);
    newly_defined();
    pid_t child = fork();
    if (child == 0) {
        mt_modules_source.forked();
        _exit(setrlimit(RLIMIT_NOFILE, &(struct rlimit){0, 0}) || !knows_program(self) ? 1 : 7);
    }
    expect_exit(child, 7);
}

/* /proc/self/exe is the loader then. */
TEST(test_the_loader_can_be_the_program)
{
    char self[PATH_MAX] = "";
    Dl_info loader;

    assert_true(readlink("/proc/self/exe", self, sizeof self - 1) > 0);
    assert_true(dladdr((const void *)getauxval(AT_BASE), &loader) != 0);
    pid_t child = fork();
    if (child == 0) {
        execl(loader.dli_fname, loader.dli_fname, self, self, (char *)NULL);
        _exit(1);
    }
    expect_exit(child, 7);
}

int main(int count, char **words)
{
    if (count == 2)
        return knows_program(words[1]) ? 7 : 1;
    modules = mt_modules_new();
    int failures = run_tests_of_file(NULL, NULL);
    mt_modules_free(modules);
    return failures;
}

/* Finding CUPTI: which copies are tried, in which order. Copies are links to the
 * stand-in in folders of our own. And real copies, if there are any, know the
 * calls of the table by their names. */
#include "cmocka_all.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cupti_calls.h"
#include "cupti_library.h"
#include "recorded_events.h" /* for the decoders of the table */
#include "source_nvml.h"

/* The sampler, which is not here. */
void mt_nvml_sample_soon(int device)
{
    (void)device;
}

static bool lacks_memory; /* the loader, for libcupti */

void *dlopen(const char *path, int flags)
{
    void *(*original)(const char *, int) = NULL;
    void *symbol = dlsym(RTLD_NEXT, "dlopen");
    memcpy(&original, &symbol, sizeof symbol);
    if (lacks_memory && path && strstr(path, "libcupti")) {
        errno = ENOMEM;
        return NULL;
    }
    return original(path, flags);
}

static char root[256];   /* of our folders */
static char seen[16384]; /* paths that were tried, "|" between them */

static bool note(void *user, const struct mt_cupti_library *library)
{
    const char *wanted = user;
    strcat(strcat(seen, library->path), "|");
    return wanted && strstr(library->path, wanted) != NULL;
}

static void make_folder(const char *name)
{
    char command[1024];
    snprintf(command, sizeof command, "mkdir -p %s/%s", root, name);
    assert_int_equal(system(command), 0);
}

static void link_to(const char *target, const char *folder, const char *name)
{
    char path[1024];
    make_folder(folder);
    snprintf(path, sizeof path, "%s/%s/%s", root, folder, name);
    unlink(path);
    assert_int_equal(symlink(target, path), 0);
}

/* A copy of a file under another name: a library of its own for the loader. */
static void copy_to(const char *source, const char *folder, const char *name)
{
    char command[1024];
    make_folder(folder);
    snprintf(command, sizeof command, "cp '%s' '%s/%s/%s'", source, root, folder, name);
    assert_int_equal(system(command), 0);
}

static int set_up(void **unused)
{
    (void)unused;
    seen[0] = 0;
    unsetenv("CUDA_HOME");
    unsetenv("CUDA_PATH");
    return 0;
}

static int make_root(void **unused)
{
    (void)unused;
    snprintf(root, sizeof root, "/tmp/test_cupti_library.XXXXXX");
    return mkdtemp(root) ? 0 : -1;
}

static int remove_root(void **unused)
{
    char command[512];
    (void)unused;
    snprintf(command, sizeof command, "rm -rf %s", root);
    return system(command);
}

TEST_WITH(test_wanted_path_only, set_up, NULL)
{
    char path[1024];
    link_to(STANDIN_CUPTI, "wanted", "libcupti.so.77");
    snprintf(path, sizeof path, "%s/wanted/libcupti.so.77", root);
    assert_true(mt_cupti_search(path, note, (void *)(uintptr_t) "wanted"));
    seen[0] = 0;
    assert_false(mt_cupti_search(path, note, (void *)(uintptr_t) "another"));
    assert_non_null(strstr(seen, "libcupti.so.77|"));
    assert_int_equal(strlen(seen), strlen(path) + 1);
    seen[0] = 0;
    assert_false(mt_cupti_search("/no/such/libcupti.so", note, (void *)(uintptr_t) "no"));
    assert_false(mt_cupti_search("/etc/passwd", note, (void *)(uintptr_t) "passwd"));
    assert_false(
        mt_cupti_search(NOT_CUPTI, note, (void *)(uintptr_t) "")); /* a library of something else */
    assert_string_equal(seen, "");
}

/* A library that could not be loaded for want of memory is not one that is missing. */
TEST_WITH(test_lack_of_memory, set_up, NULL)
{
    char path[1024];
    link_to(STANDIN_CUPTI, "lacking", "libcupti.so.13");
    snprintf(path, sizeof path, "%s/lacking/libcupti.so.13", root);
    lacks_memory = true;
    assert_false(mt_cupti_search(path, note, (void *)(uintptr_t) "lacking"));
    assert_int_equal(errno, ENOMEM);
    lacks_memory = false;
    assert_false(mt_cupti_search("/no/such/libcupti.so", note, NULL));
    assert_int_equal(errno, 0);
    assert_true(mt_cupti_search(path, note, (void *)(uintptr_t) "lacking"));
}

TEST_WITH(test_toolkits, set_up, NULL)
{
    char home[512];
    link_to(STANDIN_CUPTI, "kit/extras/CUPTI/lib64", "libcupti.so.12");
    link_to(STANDIN_CUPTI, "kit/lib64", "libcupti.so.11.8");
    link_to(STANDIN_CUPTI, "other/lib64", "libcupti.so.13");
    snprintf(home, sizeof home, "%s/kit", root);
    setenv("CUDA_HOME", home, 1);
    snprintf(home, sizeof home, "%s/other", root);
    setenv("CUDA_PATH", home, 1);
    assert_true(mt_cupti_search("", note, (void *)(uintptr_t) "other/lib64/libcupti.so.13"));
    const char *first = strstr(seen, "kit/extras/CUPTI/lib64/libcupti.so.12|");
    const char *second = strstr(seen, "kit/lib64/libcupti.so.11.8|");
    assert_non_null(first);
    assert_non_null(second);
    assert_true(first < second);
}

/* What the process has comes first, then what lies beside its CUDA libraries. */
TEST_WITH(test_mapped_copies_and_neighbours, set_up, NULL)
{
    char path[1024];
    copy_to(NOT_CUPTI, "packages/nvidia/cuda_runtime/lib", "libcudart.so.12");
    link_to(STANDIN_CUPTI, "packages/nvidia/cuda_cupti/lib", "libcupti.so.12");
    link_to(STANDIN_CUPTI, "packages/torch/lib/../../nvidia/cu13/lib", "libcupti.so.13");
    copy_to(NOT_CUPTI, "packages/torch/lib", "libtorch_cuda.so");
    copy_to(STANDIN_CUPTI, "mapped", "libcupti.so.12");
    snprintf(path, sizeof path, "%s/packages/nvidia/cuda_runtime/lib/libcudart.so.12", root);
    void *runtime = dlopen(path, RTLD_NOW);
    snprintf(path, sizeof path, "%s/packages/torch/lib/libtorch_cuda.so", root);
    void *torch = dlopen(path, RTLD_NOW);
    snprintf(path, sizeof path, "%s/mapped/libcupti.so.12", root);
    void *mapped = dlopen(path, RTLD_NOW);
    assert_non_null(runtime);
    assert_non_null(torch);
    assert_non_null(mapped);

    assert_false(mt_cupti_search("", note, NULL));
    const char *first = strstr(seen, path);
    const char *beside =
        strstr(seen, "nvidia/cuda_runtime/lib/../../cuda_cupti/lib/libcupti.so.12|");
    assert_non_null(first);
    assert_non_null(beside);
    assert_true(first < beside);
    assert_non_null(strstr(seen, "torch/lib/../../nvidia/cu13/lib/libcupti.so.13|"));
    assert_non_null(strstr(seen, "torch/lib/../../nvidia/cuda_cupti/lib/libcupti.so.12|"));
    dlclose(mapped);
    dlclose(torch);
    dlclose(runtime);
}

static unsigned known, unknown;

static bool compare_names(void *user, const struct mt_cupti_library *library)
{
    uint32_t version = 0;
    (void)user;
    (void)library->version(&version); /* some do not know it without a driver */
    known = unknown = 0;
    for (size_t i = 0; i < mt_cupti_entry_count; i++) {
        const char *name = NULL;
        if (library->name(MT_CUPTI_DRIVER, mt_cupti_entries[i].cbid, &name) != 0 || !name) {
            unknown++;
            continue;
        }
        if (strcmp(name, mt_cupti_entries[i].name) != 0)
            fail_msg("%s: %u is %s", library->path, mt_cupti_entries[i].cbid, name);
        known++;
    }
    print_message("%s: version %u, %s, %u calls known, %u not\n", strrchr(library->path, '/') + 1,
                  version, library->subscribe_v2 ? "subscribers have names" : "one subscriber",
                  known, unknown);
    return true;
}

/* MEMTRACE_CUPTI_LIBRARIES=PATH:PATH... */
TEST_WITH(test_real_copies, set_up, NULL)
{
    const char *list = getenv("MEMTRACE_CUPTI_LIBRARIES");
    char paths[8192];
    if (!list || !*list)
        skip();
    snprintf(paths, sizeof paths, "%s", list);
    for (char *path = strtok(paths, ":"); path; path = strtok(NULL, ":")) {
        assert_true(mt_cupti_search(path, compare_names, NULL));
        assert_true(known >= 48 || known == 0); /* 13.4 knows nothing without a driver */
    }
}

int main(void)
{
    return run_tests_of_file(make_root, remove_root);
}

/* An imitation of Python and PyTorch in a temporary folder: a shell script that answers like the
 * probe, and libraries that import functions of CUDA. */
#ifndef TESTS_IMITATED_SITE_H
#define TESTS_IMITATED_SITE_H

#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "cmocka_all.h"
#include "elf_writer.h"
#include "python_of_command.h"
#include "simulated_site.h"
#include "site_cache.h"
#include "wheel.h"

static char root[64], python[128], cache[128];

/* printf into one of eight buffers. */
static inline const char *format(const char *pattern, const char *argument)
{
    static char texts[8][PATH_MAX];
    static unsigned next;
    char *text = texts[next++ % 8];
    size_t length = strcspn(pattern, "%");

    snprintf(text, PATH_MAX, "%.*s%.200s%s", (int)length, pattern, argument,
             pattern[length] ? pattern + length + 2 : "");
    return text;
}

static inline void write_text(const char *path, const char *text, mode_t mode)
{
    FILE *file = fopen(path, "w");

    assert_non_null(file);
    fputs(text, file);
    fclose(file);
    assert_int_equal(chmod(path, mode), 0);
}

/* The Python's output about its packages, one line "memtrace-KEY=VALUE" each. */
static inline void python_says(const char *lines)
{
    char text[3 * PATH_MAX];

    snprintf(text, sizeof text,
             "#!/bin/sh\necho some greeting\ncat <<'END'\n\nmemtrace-version=3.12\n"
             "memtrace-executable=%s\n%s\nEND\n",
             python, lines);
    write_text(python, text, 0700);
}

static inline const char *torch_lines(const char *version, const char *cuda)
{
    static char lines[PATH_MAX + 200];

    snprintf(
        lines, sizeof lines,
        "memtrace-torch=%s/torch\nmemtrace-torch-__version__=%s\n%s%s\nmemtrace-cudnn=9.1.0.70\n"
        "memtrace-packages=/nowhere:%s\nmemtrace-nccl=2.20.5",
        root, version, *cuda ? "memtrace-torch-cuda=" : "", cuda, root);
    return lines;
}

static inline void write_library(const char *path, const struct mt_elf_recipe *recipe)
{
    struct mt_buf bytes = {0};
    FILE *file = fopen(path, "w");

    assert_non_null(file);
    assert_int_equal(mt_elf_write(recipe, &bytes, NULL), MT_OK);
    assert_int_equal(fwrite(bytes.data, 1, bytes.length, file), bytes.length);
    fclose(file);
    mt_buf_release(&bytes);
}

/* Libraries that import CUDA's functions: of the runtime with versions, of NCCL without. */
static inline void write_torch(const char *runtime)
{
    static const struct mt_stub calls[] = {{"cudaMalloc", NULL, MT_STUB_JUMP, 0},
                                           {"cudaGetDeviceProperties_v2", NULL, MT_STUB_JUMP, 0},
                                           {"cudaNobodyKnowsThis", NULL, MT_STUB_JUMP, 0}};
    static const struct mt_stub of_nccl[] = {{"ncclCommResume", NULL, MT_STUB_JUMP, 0}};
    static const char *const nccl = "libnccl.so.2";

    write_library(format("%s/torch/lib/libtorch_cuda.so", root),
                  &(struct mt_elf_recipe){.soname = "libtorch_cuda.so",
                                          .needed = &runtime,
                                          .needed_count = 1,
                                          .target = runtime,
                                          .target_version = runtime,
                                          .stubs = calls,
                                          .stub_count = 3});
    write_library(format("%s/torch/lib/libtorch_nccl.so", root),
                  &(struct mt_elf_recipe){.soname = "libtorch_nccl.so",
                                          .needed = &nccl,
                                          .needed_count = 1,
                                          .target = nccl,
                                          .stubs = of_nccl,
                                          .stub_count = 1});
}

/* Another package, with a copy of the runtime under a name of its own, as wheels have it. */
static inline void write_extension(const char *function)
{
    static const char *const runtime = "libcudart.faf08d9a.so.12";
    const struct mt_stub calls[] = {{function, NULL, MT_STUB_JUMP, 0}};

    mkdir(format("%s/other", root), 0700);
    write_text(format("%s/other/no_library.so", root), "text", 0600);
    write_library(format("%s/other/_C.so", root),
                  &(struct mt_elf_recipe){.soname = "_C.so",
                                          .needed = &runtime,
                                          .needed_count = 1,
                                          .target = runtime,
                                          .target_version = "libcudart.so.12",
                                          .stubs = calls,
                                          .stub_count = 1});
}

static inline int make_root(void **state)
{
    (void)state;
    snprintf(root, sizeof root, "/tmp/memtrace-site-XXXXXX");
    if (!mkdtemp(root))
        return -1;
    snprintf(python, sizeof python, "%s/python3", root);
    snprintf(cache, sizeof cache, "%s/cache", root);
    mkdir(format("%s/torch", root), 0700);
    mkdir(format("%s/torch/lib", root), 0700);
    write_torch("libcudart.so.12");
    write_extension("cudaOtherOne");
    python_says(torch_lines("2.4.1+cu121", "12.1"));
    return 0;
}

static inline int remove_root(void **state)
{
    char command[PATH_MAX + 16];
    (void)state;

    snprintf(command, sizeof command, "rm -rf %s", root);
    return system(command);
}

#endif

/* The checks of `memtrace doctor` in order, and those of the machine and of this build. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* mkostemp, fallocate */
#endif

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "child_run.h"
#include "environment.h"
#include "io.h"
#include "probes.h"
#include "process_memory.h"
#include "symbolize.h"

/* Checks of the machine and of this build; see probes.h. */

enum { TAPE_BYTES = 32 << 20 };

const char *mt_probe_remedy(enum mt_status status)
{
    if (!mt_collector_is_built())
        return "install a complete package (pip install memtrace-gpu), or build with "
               "-DMEMTRACE_COLLECTOR=ON";
    if (status == MT_ERR_UNSUPPORTED)
        return "install memtrace in a folder without colons or semicolons in its path";
    return "reinstall memtrace: the program and its libraries";
}

static void probe_library(struct mt_probe_result *result)
{
    struct mt_error error = {.offset = MT_NO_OFFSET};
    char path[PATH_MAX];

    if (mt_collector_library(MT_COLLECTOR_NAME, path, &error) != MT_OK)
        mt_probe_set(result, MT_PROBE_MISSING, mt_probe_remedy(error.status), "%s", error.text);
    else if (!dlopen(path, RTLD_NOW | RTLD_LOCAL))
        mt_probe_set(result, MT_PROBE_MISSING, "build memtrace on this machine", "%s", dlerror());
    else
        mt_probe_set(result, MT_PROBE_OK, "", "%s", path);
}

static void probe_nvtx(struct mt_probe_result *result)
{
    const char *other = getenv("NVTX_INJECTION64_PATH");
    struct mt_error error = {.offset = MT_NO_OFFSET};
    char path[PATH_MAX];
    void *library = NULL;

    if (mt_collector_library(MT_COLLECTOR_NAME, path, &error) == MT_OK)
        library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!library || !dlsym(library, "InitializeInjectionNvtx2"))
        mt_probe_set(result, MT_PROBE_MISSING, "", "the recording library does not support NVTX");
    else if (other && *other && strcmp(other, path) != 0)
        mt_probe_set(result, MT_PROBE_OK, "", "ready; %.200s is called first", other);
    else
        mt_probe_set(result, MT_PROBE_OK, "", "ready");
}

/* The collector reads call frame information itself on architectures whose registers it knows. */
static void probe_native(struct mt_probe_result *result)
{
#if defined(__x86_64__) || defined(__aarch64__)
    mt_probe_set(result, MT_PROBE_OK, "", "from call frame information");
#else
    mt_probe_set(result, MT_PROBE_MISSING, "use --stacks python",
                 "supported only on x86-64 and aarch64");
#endif
}

static void probe_symbols(struct mt_probe_result *result)
{
    struct mt_error error = {.offset = MT_NO_OFFSET};

    if (mt_symbolize_available(&error))
        mt_probe_set(result, MT_PROBE_OK, "", "elfutils libdw");
    else
        mt_probe_set(result, MT_PROBE_DEGRADED,
                     "install it, and build memtrace again if it was built without; memtrace from "
                     "pip needs none",
                     "native frames are addresses without names: %s", error.text);
}

/* Returns 0, or the error of the file system. */
static int try_tape(int fd)
{
    int refused = 0;

    if (fallocate(fd, 0, 0, TAPE_BYTES) < 0 && errno != EOPNOTSUPP)
        return errno;
    while (ftruncate(fd, TAPE_BYTES) < 0)
        if (errno != EINTR)
            return errno;
    volatile char *bytes = mmap(NULL, TAPE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (bytes == MAP_FAILED)
        return errno;
    bytes[0] = bytes[TAPE_BYTES - 1] = 1;
    if (munmap((void *)(uintptr_t)bytes, TAPE_BYTES) < 0)
        refused = errno;
    return refused;
}

static void probe_tape(struct mt_probe_result *result)
{
    char path[] = ".memtrace-XXXXXX", folder[256];

    if (!getcwd(folder, sizeof folder))
        snprintf(folder, sizeof folder, "the current folder");
    int fd = mkostemp(path, O_CLOEXEC);
    int refused = fd < 0 ? errno : try_tape(fd);
    if (fd >= 0) {
        close(fd);
        unlink(path);
    }
    if (refused)
        mt_probe_set(result, MT_PROBE_MISSING, "write to another folder: memtrace record -o FILE",
                     "%.200s: %s", folder, strerror(refused));
    else
        mt_probe_set(result, MT_PROBE_OK, "", "%.200s is writable", folder);
}

static void probe_clock(struct mt_probe_result *result)
{
    char source[32];

    (void)mt_io_read_text("/sys/devices/system/clocksource/clocksource0/current_clocksource",
                          source, sizeof source);
    source[strcspn(source, "\n")] = '\0';
    if (strcmp(source, "tsc") == 0 || strcmp(source, "arch_sys_counter") == 0)
        mt_probe_set(result, MT_PROBE_OK, "", "%s", source);
    else
        mt_probe_set(result, MT_PROBE_DEGRADED, "",
                     "the system uses the clock '%s', not the counter of the processor: recording "
                     "an event takes longer",
                     *source ? source : "unknown");
}

const struct mt_probe mt_probes[] = {
    {"collector", "the library that records inside programs", probe_library, 10},
    {"driver", "GPUs and their driver", mt_probe_driver, 60},
    {"cupti", "calls of the driver", mt_probe_cupti, 60},
    {"nvtx", "named ranges of programs", probe_nvtx, 10},
    {"nvml", "memory in use on the whole device", mt_probe_nvml, 30},
    {"pytorch", "blocks of PyTorch's allocator", mt_probe_pytorch, 120},
    {"python", "Python call stacks", mt_probe_python, 20},
    {"native", "native call stacks", probe_native, 10},
    {"symbols", "function names of native frames", probe_symbols, 10},
    {"tape", "events that survive a killed process", probe_tape, 30},
    {"clock", "timestamps", probe_clock, 10},
    {NULL, NULL, NULL, 0},
};

static void check(const void *subject, void *answer)
{
    const struct mt_probe *probe = subject;

    probe->check(answer);
    if (mt_memory_has_failed()) /* the result then describes this moment, not the machine */
        mt_probe_set(answer, MT_PROBE_MISSING, "", "out of memory");
}

void mt_probe_run(const struct mt_probe *probe, struct mt_probe_result *result)
{
    const struct mt_child_call call = {check, probe, result, sizeof *result, probe->limit_s};
    int signal_number;

    memset(result, 0, sizeof *result);
    switch (mt_child_run(&call, &signal_number)) {
    case MT_CHILD_ANSWERED: break;
    case MT_CHILD_DIED:
        if (signal_number)
            mt_probe_set(result, MT_PROBE_MISSING, "", "the check was killed by signal %d (%s)",
                         signal_number, strsignal(signal_number));
        else
            mt_probe_set(result, MT_PROBE_MISSING, "", "the check ended without a result");
        break;
    case MT_CHILD_LATE:
        mt_probe_set(result, MT_PROBE_MISSING, "", "the check took longer than %u s",
                     probe->limit_s);
        break;
    case MT_CHILD_IMPOSSIBLE:
        mt_probe_set(result, MT_PROBE_MISSING, "", "cannot start a process: %s", strerror(errno));
        break;
    }
}

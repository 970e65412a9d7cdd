/* LD_PRELOAD library: allocations of one process fail on command.
 *
 *   FAIL_ALLOC=N, FAIL_ALLOC_FROM=1, FAIL_ALLOC_PROGRAM=TEXT, FAIL_ALLOC_LOG=FILE
 *                          as in fault_shim.h; the log also gets "total N PID" at the end
 *   FAIL_ALLOC_IN=TEXT     counts only allocations that a library (or program) whose path contains
 *                          TEXT makes, itself or through functions that it calls
 *   FAIL_ALLOC_CALLER=TEXT counts only what code in such a library asks for itself, by the return
 *                          address alone: stacks of CUDA's libraries cannot be walked. The library
 *                          must be loaded when the program starts
 *   FAIL_ALLOC_THREAD=NAME with FAIL_ALLOC_CALLER: counts what threads of that name ask for in
 *                          addition, with what the C library asks for on their behalf
 *   FAIL_ALLOC_NOT_IN=TEXT the opposite of FAIL_ALLOC_IN: does not count those; TEXT may be a list,
 *                          separated by colons
 *   FAIL_ALLOC_STACK=1     prints the call stack of the first failure on standard error
 *   FAIL_ALLOC_SITES=FILE  writes "N SITE" for every allocation, where SITE is a number of its call
 *                          stack: sweeps fail the first and the last allocation of each
 *
 * What the loader allocates before the constructors run is not counted and never fails. It counts
 * the calls of all libraries, cairo's and zstd's included. It calls glibc by its own names instead
 * of dlsym, which allocates. Not for programs with sanitizers: they bring a malloc of their own,
 * so the sweeps use a build without them. */
#define _GNU_SOURCE 1
#include "fault_shim.h"

#include <dlfcn.h>
#include <errno.h>
#include <execinfo.h>
#include <link.h>
#include <stdint.h>
#include <sys/prctl.h>

enum { DEPTH = 24, SITE_DEPTH = 12, HIGH_FD = 700 };

extern void *__libc_malloc(size_t size);
extern void *__libc_calloc(size_t count, size_t size);
extern void *__libc_realloc(void *memory, size_t size);
extern void *__libc_memalign(size_t alignment, size_t size);

static bool prints_stack;
static const char *library, *no_library, *caller_library, *thread_name;
static int sites_fd = -1;
/* backtrace and dladdr may allocate. initial-exec: otherwise the first access on a thread can
 * allocate, and its malloc is this one. */
static _Thread_local __attribute__((tls_model("initial-exec"))) bool is_inside;

/* Where the library of FAIL_ALLOC_CALLER lies. Found once, at the start: while the loader
 * changes its lists it allocates, and dladdr would read them half changed. */
static uintptr_t caller_begin, caller_end;

static int note_caller_library(struct dl_phdr_info *info, size_t size, void *name)
{
    (void)size;
    if (!strstr(info->dlpi_name, name))
        return 0;
    caller_begin = info->dlpi_addr;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *part = &info->dlpi_phdr[i];
        uintptr_t end = caller_begin + part->p_vaddr + part->p_memsz;

        if (part->p_type == PT_LOAD && end > caller_end)
            caller_end = end;
    }
    return 1;
}

static bool is_asked_for_there(const void *caller)
{
    char name[16] = "";

    if ((uintptr_t)caller >= caller_begin && (uintptr_t)caller < caller_end)
        return true;
    return thread_name && !prctl(PR_GET_NAME, name, 0, 0, 0) && !strcmp(name, thread_name);
}

static int open_sites(const char *path)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600), high;

    if (fd < 0)
        return -1;
    high = fcntl(fd, F_DUPFD_CLOEXEC, HIGH_FD); /* the program's numbers stay as they are */
    if (high < 0)
        return fd;
    close(fd);
    return high;
}

__attribute__((constructor)) static void start(void)
{
    const char *sites;
    void *frames[DEPTH];

    (void)backtrace(frames, DEPTH); /* the first call loads a library */
    if (!shim_start("FAIL_ALLOC"))
        return;
    prints_stack = shim_setting("STACK") != NULL;
    library = shim_setting("IN");
    no_library = shim_setting("NOT_IN");
    caller_library = shim_setting("CALLER");
    thread_name = shim_setting("THREAD");
    if (caller_library)
        (void)dl_iterate_phdr(note_caller_library, (void *)(uintptr_t)caller_library);
    sites = shim_setting("SITES");
    if (sites)
        sites_fd = open_sites(sites);
    shim.ready = true;
}

/* `list` has parts of names, separated by colons. */
static bool is_named(const char *list, const char *path)
{
    char part[64];

    for (; *list; list += strcspn(list, ":"), list += *list == ':') {
        snprintf(part, sizeof part, "%.*s", (int)strcspn(list, ":"), list);
        if (strstr(path, part))
            return true;
    }
    return false;
}

static bool is_in(const char *wanted, void *const *frames, int count)
{
    for (int i = 0; i < count; i++) {
        Dl_info info;

        if (dladdr(frames[i], &info) && info.dli_fname && is_named(wanted, info.dli_fname))
            return true;
    }
    return false;
}

static void write_site(unsigned long number, void *const *frames, int count)
{
    uint64_t site = UINT64_C(1469598103934665603);
    char line[64];
    int length;

    for (int i = 0; i < count && i < SITE_DEPTH; i++)
        site = (site ^ (uintptr_t)frames[i]) * UINT64_C(1099511628211);
    length = snprintf(line, sizeof line, "%lu %016llx\n", number, (unsigned long long)site);
    (void)!write(sites_fd, line, (size_t)length);
}

/* Counts an allocation; true if it has to fail. noinline: its frames are skipped by number. */
__attribute__((noinline)) static bool must_fail(void *caller)
{
    enum { OWN_FRAMES = 2 }; /* must_fail and malloc */
    void *frames[DEPTH];
    unsigned long number;
    int count = 0;
    bool fails;

    if (caller_library && !is_asked_for_there(caller))
        return false;
    if (library || no_library || sites_fd >= 0 || prints_stack) {
        is_inside = true;
        count = backtrace(frames, DEPTH);
        is_inside = false;
    }
    if ((library && !is_in(library, frames + OWN_FRAMES, count - OWN_FRAMES)) ||
        (no_library && is_in(no_library, frames + OWN_FRAMES, count - OWN_FRAMES)))
        return false;
    number = shim_count();
    if (sites_fd >= 0)
        write_site(number, frames + OWN_FRAMES, count - OWN_FRAMES);
    fails = shim_is_chosen(number);
    if (fails && number == shim.fails_at) {
        shim_log("failed", number);
        if (prints_stack)
            backtrace_symbols_fd(frames + OWN_FRAMES, count - OWN_FRAMES, STDERR_FILENO);
    }
    if (fails)
        errno = ENOMEM;
    return fails;
}

static bool fails(void *caller)
{
    return shim.ready && !is_inside && must_fail(caller);
}

#define FAILS() fails(__builtin_return_address(0))

__attribute__((destructor)) static void end(void)
{
    if (shim.ready)
        shim_log("total", atomic_load(&shim.counted));
}

void *malloc(size_t size)
{
    return FAILS() ? NULL : __libc_malloc(size);
}

void *calloc(size_t count, size_t size)
{
    return FAILS() ? NULL : __libc_calloc(count, size);
}

void *realloc(void *memory, size_t size)
{
    return FAILS() ? NULL : __libc_realloc(memory, size);
}

void *reallocarray(void *memory, size_t count, size_t size)
{
    if (size && count > SIZE_MAX / size) {
        errno = ENOMEM;
        return NULL;
    }
    return realloc(memory, count * size);
}

void *memalign(size_t alignment, size_t size);
void *memalign(size_t alignment, size_t size)
{
    return FAILS() ? NULL : __libc_memalign(alignment, size);
}

void *aligned_alloc(size_t alignment, size_t size)
{
    return memalign(alignment, size);
}

int posix_memalign(void **memory, size_t alignment, size_t size)
{
    void *block = memalign(alignment, size);

    if (!block)
        return ENOMEM;
    *memory = block;
    return 0;
}

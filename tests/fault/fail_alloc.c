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
/* backtrace may allocate. initial-exec: otherwise the first access on a thread can allocate, and
 * its malloc is this one. */
static _Thread_local __attribute__((tls_model("initial-exec"))) bool is_inside;

/* The library of FAIL_ALLOC_CALLER. Found once, at the start: while the loader changes its lists it
 * allocates, and they would be read half changed. */
static struct dl_phdr_info caller_info;

static int note_caller_library(struct dl_phdr_info *info, size_t size, void *name)
{
    (void)size;
    if (!strstr(info->dlpi_name, name))
        return 0;
    caller_info = *info;
    return 1;
}

static bool is_code_of(const struct dl_phdr_info *info, const void *address)
{
    bool is_found = false;

    for (int i = 0; i < info->dlpi_phnum && !is_found; i++)
        is_found = info->dlpi_phdr[i].p_type == PT_LOAD &&
                   (uintptr_t)address - info->dlpi_addr - info->dlpi_phdr[i].p_vaddr <
                       info->dlpi_phdr[i].p_memsz;
    return is_found;
}

static bool is_asked_for_there(const void *caller)
{
    char name[16] = "";

    return is_code_of(&caller_info, caller) ||
           (thread_name && !prctl(PR_GET_NAME, name, 0, 0, 0) && !strcmp(name, thread_name));
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
    const char *sites = shim_setting("SITES");
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

struct search {
    const char *wanted;
    void *const *frames;
    int count;
};

static int find_frames(struct dl_phdr_info *info, size_t size, void *context)
{
    const struct search *search = context;
    const char *path = *info->dlpi_name ? info->dlpi_name : program_invocation_name;
    bool is_found = false;

    (void)size;
    for (int i = 0; is_named(search->wanted, path) && i < search->count && !is_found; i++)
        is_found = is_code_of(info, search->frames[i]);
    return is_found;
}

/* By ranges of addresses: dladdr would look for a symbol, which takes 1 s of a run with libdw. */
static bool is_in(const char *wanted, void *const *frames, int count)
{
    return dl_iterate_phdr(find_frames, &(struct search){wanted, frames, count});
}

static void write_site(unsigned long number, void *const *frames, int count)
{
    uint64_t site = UINT64_C(1469598103934665603);
    char line[64];

    for (int i = 0; i < count && i < SITE_DEPTH; i++)
        site = (site ^ (uintptr_t)frames[i]) * UINT64_C(1099511628211);
    int length = snprintf(line, sizeof line, "%lu %016llx\n", number, (unsigned long long)site);
    (void)!write(sites_fd, line, (size_t)length);
}

/* Counts an allocation; true if it has to fail. noinline: its frames are skipped by number. */
__attribute__((noinline)) static bool must_fail(void *caller)
{
    enum { OWN_FRAMES = 2 }; /* must_fail and malloc */
    void *frames[DEPTH];
    int count = 0;

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
    unsigned long number = shim_count();
    if (sites_fd >= 0)
        write_site(number, frames + OWN_FRAMES, count - OWN_FRAMES);
    bool fails = shim_is_chosen(number);
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

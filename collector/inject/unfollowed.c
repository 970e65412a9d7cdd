/* `memtrace record --follow none`: the command is recorded, its children are not. The command
 * passes its environment on, and a process keeps it through exec (a shell script that execs the
 * program is the command), so only a child can detect that it is one. There, before main, the
 * environment is restored to that without memtrace: neither programs that the child starts nor the
 * driver load this library.
 *
 * Everything is changed in place: an allocator may not be ready yet. */
#include <dlfcn.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>

#include "settings.h"

extern char **environ;

static const char interposer_name[] = "libmemtrace-cuda.so";
static const char calm[] = "verify_asan_link_order=0";

/* The variables of collector/record/environment.c. Variables of the user are kept. */
static const char *const own_variables[] = {
    "MEMTRACE_OUTPUT",   "MEMTRACE_MANIFEST",  "MEMTRACE_STACKS",    "MEMTRACE_PHASES",
    "MEMTRACE_FOLLOW",   "MEMTRACE_ROOT",      "MEMTRACE_SAMPLE_HZ", "MEMTRACE_QUIET",
    "MEMTRACE_WITH_ENV", "MEMTRACE_CUDA_NEXT", "MEMTRACE_NVTX_NEXT", NULL};

/* The entry of a variable; NULL if it is not set. */
static char **entry_of(const char *name)
{
    size_t length = strlen(name);

    for (char **entry = environ; entry && *entry; entry++)
        if (!strncmp(*entry, name, length) && (*entry)[length] == '=')
            return entry;
    return NULL;
}

static void unset(const char *name)
{
    for (char **entry = entry_of(name); entry && *entry; entry++)
        entry[0] = entry[1];
}

static char *value_of(const char *name)
{
    char **entry = entry_of(name);

    return entry ? *entry + strlen(name) + 1 : NULL;
}

static size_t folder_length(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash ? (size_t)(slash - path) + 1 : 0;
}

static bool is_text(const char *at, size_t length, const char *text)
{
    return length == strlen(text) && !memcmp(at, text, length);
}

/* Returns whether it is this library, or the library with the driver's functions next to it. The
 * launcher sets only their names if the folder has a space. */
static bool is_ours(const char *path, size_t length, const char *own)
{
    size_t folder = folder_length(own);

    if (length > folder && !memcmp(path, own, folder)) {
        path += folder;
        length -= folder;
    }
    return is_text(path, length, own + folder) || is_text(path, length, interposer_name);
}

static void restore_preload(const char *own)
{
    char *value = value_of("LD_PRELOAD"), *to = value, *at = value;

    while (at && *at) {
        size_t length = strcspn(at, ":");
        bool kept = length && !is_ours(at, length, own);
        if (kept && to != value)
            *to++ = ':';
        if (kept) {
            memmove(to, at, length);
            to += length;
        }
        at += length + (at[length] == ':');
    }
    if (to)
        *to = '\0';
    if (value && !*value)
        unset("LD_PRELOAD");
}

/* The folder of memtrace is the last one, and is there only if it has a space. */
static void restore_search_path(const char *own)
{
    char *value = value_of("LD_LIBRARY_PATH"), *colon = value ? strrchr(value, ':') : NULL;
    const char *last = colon ? colon + 1 : value;
    size_t folder = folder_length(own);

    if (!value || !folder || !memchr(own, ' ', folder) || strlen(last) != folder - 1 ||
        memcmp(last, own, folder - 1) != 0)
        return;
    if (colon)
        *colon = '\0';
    else
        unset("LD_LIBRARY_PATH");
}

/* The option of memtrace is the last one. */
static void restore_sanitizer(void)
{
    char *value = value_of("ASAN_OPTIONS");
    size_t length = value ? strlen(value) : 0, ours = sizeof calm - 1;

    if (length < ours || strcmp(value + length - ours, calm) != 0)
        return;
    if (length == ours)
        unset("ASAN_OPTIONS");
    else
        value[length - ours - 1] = '\0';
}

/* `text` becomes the storage of the variable. */
static void restore_injection(const char *name, const char *next, char *text, size_t capacity)
{
    char **entry = entry_of(name);
    size_t length = strlen(name);

    if (!entry || !*next || length + strlen(next) + 2 > capacity) {
        unset(name);
        return;
    }
    memcpy(text, name, length);
    text[length] = '=';
    memcpy(text + length + 1, next, strlen(next) + 1);
    *entry = text;
}

__attribute__((constructor(102))) static void restore_environment(void)
{
    static char cuda[sizeof mt_recorder_settings->next_cuda + 64],
        nvtx[sizeof mt_recorder_settings->next_nvtx + 64];
    static const char here;
    const char *const *name;
    Dl_info facts;

    if (!mt_recorder_settings->asked || mt_recorder_settings->follow ||
        (uint32_t)getpid() == mt_recorder_settings->root_process || !dladdr(&here, &facts))
        return;
    restore_preload(facts.dli_fname);
    restore_search_path(facts.dli_fname);
    restore_sanitizer();
    restore_injection("CUDA_INJECTION64_PATH", mt_recorder_settings->next_cuda, cuda, sizeof cuda);
    restore_injection("NVTX_INJECTION64_PATH", mt_recorder_settings->next_nvtx, nvtx, sizeof nvtx);
    for (name = own_variables; *name; name++)
        unset(*name);
}

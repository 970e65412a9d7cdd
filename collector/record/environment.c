/* The environment of the command, and the libraries that it makes the command load. */
#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

#include "arena.h"
#include "environment.h"
#include "module.h"
#include "status.h"

/* The loader splits LD_PRELOAD at spaces and colons, and LD_LIBRARY_PATH, which replaces the former
 * for a path with a space (mt_record_preload_word), at colons and semicolons. Neither has quotes.
 */
static enum mt_status check_path(const char *path, struct mt_error *error)
{
    if (!strchr(path, ':') && !(strchr(path, ' ') && strchr(path, ';')))
        return MT_OK;
    return mt_fail(error, MT_ERR_UNSUPPORTED, MT_NO_OFFSET,
                   "the loader cannot preload '%.150s' because of its colon or semicolon: install "
                   "memtrace in another folder",
                   path);
}

bool mt_collector_is_built(void)
{
    return HAS_COLLECTOR;
}

enum mt_status mt_collector_library(const char *name, char path[PATH_MAX], struct mt_error *error)
{
    const char *told = strcmp(name, MT_COLLECTOR_NAME) == 0 ? getenv("MEMTRACE_INJECT") : NULL;

    if (told && *told) {
        if (realpath(told, path) && access(path, R_OK) == 0)
            return check_path(path, error);
        return mt_fail(error, MT_ERR_IO, MT_NO_OFFSET, "MEMTRACE_INJECT is '%.100s': %s", told,
                       strerror(errno));
    }
    if (!mt_collector_is_built())
        return mt_fail(error, MT_ERR_IO, MT_NO_OFFSET,
                       "this memtrace was built without the recorder: install a complete package");
    enum mt_status status = mt_private_file(name, path, error);
    return status == MT_OK ? check_path(path, error) : status;
}

enum { MAX_ADDED = 24 };

struct block {
    char *const *inherited;
    size_t inherited_count;
    char **entries;
    size_t count;
    struct mt_arena *arena;
    bool failed;
};

static bool is_of(const char *entry, const char *name)
{
    size_t length = strlen(name);

    return strncmp(entry, name, length) == 0 && entry[length] == '=';
}

static const char *value_of(const struct block *block, const char *name)
{
    for (size_t i = 0; i < block->inherited_count; i++)
        if (is_of(block->inherited[i], name))
            return block->inherited[i] + strlen(name) + 1;
    return NULL;
}

static void unset(struct block *block, const char *name)
{
    size_t kept = 0;

    for (size_t i = 0; i < block->count; i++)
        if (!is_of(block->entries[i], name))
            block->entries[kept++] = block->entries[i];
    block->count = kept;
}

static void set(struct block *block, const char *name, const char *value)
{
    char *entry = mt_arena_printf(block->arena, "%s=%s", name, value);

    unset(block, name);
    if (entry)
        block->entries[block->count++] = entry;
    else
        block->failed = true;
}

static void set_number(struct block *block, const char *name, uint64_t number)
{
    char *text = mt_arena_printf(block->arena, "%llu", (unsigned long long)number);

    if (text)
        set(block, name, text);
    else
        block->failed = true;
}

static bool is_separator(char c)
{
    return c == ':' || c == ' ';
}

const char *mt_record_preload_word(const char *library)
{
    const char *slash = strrchr(library, '/');

    return strchr(library, ' ') && slash ? slash + 1 : library;
}

static bool is_word(const char *at, size_t length, const char *library)
{
    const char *word = library ? mt_record_preload_word(library) : "";

    return strlen(word) == length && !memcmp(at, word, length);
}

/* Returns the inherited LD_PRELOAD without the libraries that are now put in front of it. */
static char *others_preloaded(struct block *block, const struct mt_record_settings *settings)
{
    const char *old = value_of(block, "LD_PRELOAD");
    char *text = mt_arena_text(block->arena, "", 0);

    for (const char *at = old ? old : ""; *at && text;) {
        size_t length = strcspn(at, ": ");
        bool ours =
            is_word(at, length, settings->library) || is_word(at, length, settings->interposer);
        if (length && !ours)
            text = mt_arena_printf(block->arena, "%s:%.*s", text, (int)length, at);
        for (at += length; is_separator(*at);)
            at++;
    }
    return text;
}

static void set_preload(struct block *block, const struct mt_record_settings *settings)
{
    const char *others = others_preloaded(block, settings);
    char *text = NULL;

    if (others)
        text = mt_arena_printf(
            block->arena, "%s%s%s%s", mt_record_preload_word(settings->library),
            settings->interposer ? ":" : "",
            settings->interposer ? mt_record_preload_word(settings->interposer) : "", others);
    if (text)
        set(block, "LD_PRELOAD", text);
    else
        block->failed = true;
}

static bool has_element(const char *list, const char *element, size_t length)
{
    for (; list && *list; list += strspn(list, ":")) {
        size_t next = strcspn(list, ":");

        if (next == length && !memcmp(list, element, length))
            return true;
        list += next;
    }
    return false;
}

/* Lets the loader find a library whose path LD_PRELOAD cannot contain. The folder goes last, so
 * that it changes nothing for other libraries. */
static void set_search_path(struct block *block, const char *library)
{
    const char *old = value_of(block, MT_SEARCH_PATH);
    size_t length = (size_t)(mt_record_preload_word(library) - library);

    if (!length || has_element(old, library, length - 1))
        return;
    char *text = mt_arena_printf(block->arena, "%s%s%.*s", old ? old : "", old && *old ? ":" : "",
                                 (int)length - 1, library);
    if (text)
        set(block, MT_SEARCH_PATH, text);
    else
        block->failed = true;
}

/* A program with AddressSanitizer refuses to start after any other preloaded library. memtrace's
 * library does not replace the functions that AddressSanitizer replaces. */
static void calm_sanitizer(struct block *block)
{
    static const char calm[] = "verify_asan_link_order=0";
    const char *old = value_of(block, "ASAN_OPTIONS");
    char *text = old && *old ? mt_arena_printf(block->arena, "%s:%s", old, calm)
                             : mt_arena_text(block->arena, calm, sizeof calm - 1);

    if (text)
        set(block, "ASAN_OPTIONS", text);
    else
        block->failed = true;
}

/* Sets the variable `name` to memtrace's library, and passes its previous value to the
 * collector. */
static void set_injection(struct block *block, const char *name, const char *next_name,
                          const char *library)
{
    const char *old = value_of(block, name);

    if (old && *old && strcmp(old, library) != 0)
        set(block, next_name, old);
    set(block, name, library);
}

static const char *stacks_word(const struct mt_record_settings *settings)
{
    if (settings->auto_stacks)
        return "auto";
    if (settings->python_stacks)
        return settings->native_stacks ? "python,native" : "python";
    return settings->native_stacks ? "native" : "none";
}

static void set_stacks(struct block *block, const struct mt_record_settings *settings)
{
    char *text = mt_arena_printf(block->arena, "%s%s", stacks_word(settings),
                                 settings->free_stacks ? ",frees" : "");

    if (text)
        set(block, "MEMTRACE_STACKS", text);
    else
        block->failed = true;
}

/* With these settings, requests go to the driver's own pool, and nothing is preallocated
 * (jax/_src/xla_bridge.py, tensorflow/core/common_runtime/gpu). */
static void set_xla_requests(struct block *block)
{
    set(block, "XLA_PYTHON_CLIENT_ALLOCATOR", "cuda_async");
    set(block, "XLA_PYTHON_CLIENT_PREALLOCATE", "false");
    set(block, "TF_GPU_ALLOCATOR", "cuda_malloc_async");
    set(block, "TF_FORCE_GPU_ALLOW_GROWTH", "true");
}

static void set_all(struct block *block, const struct mt_record_settings *settings)
{
    if (!settings->no_preload) {
        set_preload(block, settings);
        set_search_path(block, settings->library);
        calm_sanitizer(block);
    }
    set_injection(block, "CUDA_INJECTION64_PATH", "MEMTRACE_CUDA_NEXT", settings->library);
    set_injection(block, "NVTX_INJECTION64_PATH", "MEMTRACE_NVTX_NEXT", settings->library);
    set(block, "MEMTRACE_OUTPUT", settings->output);
    set(block, "MEMTRACE_MANIFEST", settings->manifest);
    set_stacks(block, settings);
    set(block, "MEMTRACE_PHASES", settings->phases);
    set(block, "MEMTRACE_FOLLOW", settings->follow ? "all" : "none");
    set_number(block, "MEMTRACE_SAMPLE_HZ", settings->sample_hz);
    set_number(block, "MEMTRACE_ROOT", (uint64_t)settings->root);
    unset(block, "MEMTRACE_RING_SECONDS");
    if (settings->ring_seconds)
        set_number(block, "MEMTRACE_RING_SECONDS", settings->ring_seconds);
    unset(block, "MEMTRACE_RING_ABOVE");
    if (settings->ring_above_bytes)
        set_number(block, "MEMTRACE_RING_ABOVE", settings->ring_above_bytes);
    unset(block, "MEMTRACE_IDLE");
    if (settings->idle)
        set(block, "MEMTRACE_IDLE", "1");
    unset(block, "MEMTRACE_QUIET");
    unset(block, "MEMTRACE_WITH_ENV");
    if (settings->quiet)
        set(block, "MEMTRACE_QUIET", "1");
    if (settings->with_env)
        set(block, "MEMTRACE_WITH_ENV", "1");
    if (settings->xla_requests)
        set_xla_requests(block);
}

char **mt_record_environment(char *const *inherited, const struct mt_record_settings *settings,
                             struct mt_arena *arena)
{
    struct block block = {.inherited = inherited, .arena = arena};

    while (inherited[block.inherited_count])
        block.inherited_count++;
    block.entries = mt_arena_array(arena, block.inherited_count + MAX_ADDED, sizeof(char *));
    if (!block.entries)
        return NULL;
    block.count = block.inherited_count;
    if (block.count)
        memcpy(block.entries, inherited, block.count * sizeof(char *));
    if (settings->library)
        set_all(&block, settings);
    block.entries[block.count] = NULL;
    return block.failed ? NULL : block.entries;
}

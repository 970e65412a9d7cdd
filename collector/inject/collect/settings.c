#include "settings.h"

#include <stdlib.h>
#include <string.h>

enum { DEFAULT_SAMPLE_HZ = 10, DEFAULT_FLUSH_MS = 100, MAX_FLUSH_MS = 200, DEFAULT_ARENA_MIB = 32 };

static struct mt_inject_settings settings;
const struct mt_inject_settings *const mt_recorder_settings = &settings;

static void read_text(const char *name, char *out, size_t capacity)
{
    const char *value = getenv(name);

    if (value && strlen(value) < capacity)
        memcpy(out, value, strlen(value) + 1);
}

static uint64_t read_long_number(const char *name, uint64_t usual, uint64_t least, uint64_t most)
{
    const char *value = getenv(name);
    char *end;

    if (!value || *value < '0' || *value > '9') /* strtoull also reads "-1" */
        return usual;
    unsigned long long number = strtoull(value, &end, 10);
    if (*end)
        return usual;
    return number < least ? least : number > most ? most : number;
}

static uint32_t read_number(const char *name, uint32_t usual, uint32_t least, uint32_t most)
{
    return (uint32_t)read_long_number(name, usual, least, most);
}

/* Returns true if `word` is one of the comma-separated words of the variable. */
static bool has_word(const char *name, const char *word, bool usual)
{
    const char *at = getenv(name);
    size_t length = strlen(word);

    if (!at)
        return usual;
    for (; *at; at += *at == ',') {
        size_t next = strcspn(at, ",");
        if (next == length && !memcmp(at, word, length))
            return true;
        at += next;
    }
    return false;
}

/* Runs before main, in one thread. Every program that inherits the environment runs it, so it only
 * reads. */
__attribute__((constructor(101))) static void read_settings(void)
{
    read_text("MEMTRACE_OUTPUT", settings.output, sizeof settings.output);
    settings.asked = settings.output[0] == '/';
    if (!settings.asked)
        return;
    read_text("MEMTRACE_MANIFEST", settings.manifest, sizeof settings.manifest);
    settings.native_without_python = has_word("MEMTRACE_STACKS", "auto", true);
    settings.python_stacks =
        settings.native_without_python || has_word("MEMTRACE_STACKS", "python", false);
    settings.native_stacks = has_word("MEMTRACE_STACKS", "native", false);
    settings.free_stacks = has_word("MEMTRACE_STACKS", "frees", false);
    settings.phases_nvtx = has_word("MEMTRACE_PHASES", "nvtx", true);
    settings.phases_torch = has_word("MEMTRACE_PHASES", "torch", true);
    settings.phases_autograd = has_word("MEMTRACE_PHASES", "autograd", false);
    settings.follow = !has_word("MEMTRACE_FOLLOW", "none", false);
    settings.idle = has_word("MEMTRACE_IDLE", "1", false);
    settings.quiet = has_word("MEMTRACE_QUIET", "1", false);
    settings.with_command = has_word("MEMTRACE_WITH_ENV", "1", false);
    settings.sample_hz = read_number("MEMTRACE_SAMPLE_HZ", DEFAULT_SAMPLE_HZ, 0, 1000);
    settings.flush_ms = read_number("MEMTRACE_FLUSH_MS", DEFAULT_FLUSH_MS, 5, MAX_FLUSH_MS);
    settings.arena_mib = read_number("MEMTRACE_ARENA_MIB", DEFAULT_ARENA_MIB, 4, 1024);
    settings.ring_seconds = read_number("MEMTRACE_RING_SECONDS", 0, 0, UINT32_MAX);
    settings.ring_above_bytes = read_long_number("MEMTRACE_RING_ABOVE", 0, 0, UINT64_MAX);
    settings.root_process = read_number("MEMTRACE_ROOT", 0, 0, UINT32_MAX);
    read_text("MEMTRACE_DRY_RUN_FACT", settings.dry_run, sizeof settings.dry_run);
    read_text("MEMTRACE_CUPTI", settings.cupti, sizeof settings.cupti);
    read_text("MEMTRACE_CUDA_NEXT", settings.next_cuda, sizeof settings.next_cuda);
    read_text("MEMTRACE_NVTX_NEXT", settings.next_nvtx, sizeof settings.next_nvtx);
}

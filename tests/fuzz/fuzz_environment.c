/* Any values of the variables that tell the injected library what to do. The
 * reader is a constructor, so the file is included here. */
#include "fuzz.h"

#include "../../collector/inject/collect/settings.c"

extern char **environ; /* POSIX has no header that declares it */

static const char *const names[] = {"MEMTRACE_STACKS",    "MEMTRACE_PHASES",   "MEMTRACE_FOLLOW",
                                    "MEMTRACE_SAMPLE_HZ", "MEMTRACE_FLUSH_MS", "MEMTRACE_ARENA_MIB",
                                    "MEMTRACE_ROOT",      "MEMTRACE_MANIFEST", "MEMTRACE_CUPTI"};
enum { NAMES = sizeof names / sizeof *names };

static char *variable(const char *name, const char *value, size_t length)
{
    size_t size = strlen(name) + length + 2;
    char *text = malloc(size);

    FUZZ_CHECK(text);
    snprintf(text, size, "%s=%.*s", name, (int)length, value);
    return text;
}

static void check_settings(void)
{
    FUZZ_CHECK(settings.asked && settings.sample_hz <= 1000);
    FUZZ_CHECK(settings.arena_mib >= 4 && settings.arena_mib <= 1024);
    FUZZ_CHECK(settings.flush_ms >= 5 && settings.flush_ms <= MAX_FLUSH_MS);
    FUZZ_CHECK(memchr(settings.manifest, 0, sizeof settings.manifest));
    FUZZ_CHECK(memchr(settings.cupti, 0, sizeof settings.cupti));
}

/* setenv never frees a value, so the target has an environment of its own. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = fuzz_text(data, size), *at = text, output[] = "MEMTRACE_OUTPUT=/x";
    char *variables[NAMES + 2], **before = environ;

    for (size_t i = 0; i < NAMES; i++) { /* one value a line */
        size_t length = strcspn(at, "\n");
        variables[i] = variable(names[i], at, length);
        at += length + (at[length] != '\0');
    }
    variables[NAMES] = output;
    variables[NAMES + 1] = NULL;
    memset(&settings, 0, sizeof settings);
    environ = variables;
    read_settings();
    environ = before;
    check_settings();
    for (size_t i = 0; i < NAMES; i++)
        free(variables[i]);
    free(text);
    return 0;
}

#include "memory_limit.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli.h"
#include "io.h"
#include "process_memory.h"
#include "screen.h"
#include "units.h"
#include "util.h"

enum { MAX_PATH = 4096, MAX_CGROUP_FILE = 8192, MAX_INPUT_NAME = 512 };

/* The origin of the budget for messages; NULL = the option --max-memory. */
static const char *source;

/* Variables, because the last words have no argument. */
static struct mt_unfinished *unfinished; /* borrowed */
static char input[MAX_INPUT_NAME];
static int exit_code = MT_EXIT_INPUT;

static const char CGROUPS[] = "/sys/fs/cgroup";

/* Returns the limit in a file, or UINT64_MAX if there is none: "max" in version 2, and the largest
 * number in version 1. */
static uint64_t limit_in(const char *path)
{
    char text[64];

    if (!mt_io_read_text(path, text, sizeof text) || text[0] < '0' || text[0] > '9')
        return UINT64_MAX;
    unsigned long long limit = strtoull(text, NULL, 10);
    return limit && limit < (unsigned long long)INT64_MAX / 2 ? limit : UINT64_MAX;
}

/* The files of one version of cgroups. */
struct version {
    /* inactive: key in memory.stat, including the space after it */
    const char *limit, *used, *inactive;
};

static const struct version versions[] = {
    {"memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file "},
    {"memory.max", "memory.current", "inactive_file "}};

/* Returns UINT64_MAX if the file is missing. */
static uint64_t value_in(const char *folder, int length, const char *group, const char *file)
{
    char path[MAX_PATH];
    int written = snprintf(path, sizeof path, "%s%.*s/%s", folder, length, group, file);

    return written > 0 && (size_t)written < sizeof path ? limit_in(path) : UINT64_MAX;
}

/* Returns the file cache that was not used recently. The kernel drops it before it kills a
 * process. */
static uint64_t reclaimable(const char *folder, int length, const char *group,
                            const struct version *version)
{
    char path[MAX_PATH], text[MAX_CGROUP_FILE];
    int written = snprintf(path, sizeof path, "%s%.*s/memory.stat", folder, length, group);

    if (written <= 0 || (size_t)written >= sizeof path || !mt_io_read_text(path, text, sizeof text))
        return 0;
    for (const char *line = text; *line; line += strcspn(line, "\n"), line += *line != '\0')
        if (!strncmp(line, version->inactive, strlen(version->inactive)))
            return strtoull(line + strlen(version->inactive), NULL, 10);
    return 0;
}

/* Returns the limit of one group, or the part of the limit that is left. */
static uint64_t limit_of(const char *folder, int length, const char *group,
                         const struct version *version, bool is_left)
{
    uint64_t limit = value_in(folder, length, group, version->limit);

    if (!is_left || limit == UINT64_MAX)
        return limit;
    uint64_t used = value_in(folder, length, group, version->used);
    if (used == UINT64_MAX)
        return limit;
    used = mt_sub_or_0_u64(used, reclaimable(folder, length, group, version));
    return mt_sub_or_0_u64(limit, used);
}

/* Returns the minimum over a group and its ancestors, because a limit applies to all groups below
 * it. In a container, the path may be that of the host, which is invisible. The visible root is
 * then the group of the container. */
static uint64_t least_limit(const char *folder, const char *group, size_t length,
                            const struct version *version, bool is_left)
{
    uint64_t least = UINT64_MAX;

    for (;;) {
        least = mt_min_u64(least, limit_of(folder, (int)length, group, version, is_left));
        if (!length)
            return least;
        while (length && group[length - 1] != '/')
            length--;
        length -= length != 0;
    }
}

static bool is_memory_controller(const char *names, size_t length)
{
    size_t at = 0;

    while (at < length) {
        size_t name = strcspn(names + at, ",:");

        if (name == strlen("memory") && strncmp(names + at, "memory", name) == 0)
            return true;
        at += name + 1;
    }
    return false;
}

/* Returns the minimum over the groups of all lines. A line is "0::/group" in version 2, or
 * "5:memory,other:/group" in version 1. */
static uint64_t least_of_groups(const char *root, const char *self, bool is_left)
{
    uint64_t least = UINT64_MAX;
    char folder[MAX_PATH];

    while (*self) {
        size_t end = strcspn(self, "\n"), names = strcspn(self, ":\n") + 1;
        size_t group = names < end ? names + strcspn(self + names, ":\n") + 1 : end;

        if (group < end && group == names + 1) {
            least = mt_min_u64(least,
                               least_limit(root, self + group, end - group, &versions[1], is_left));
        } else if (group < end && is_memory_controller(self + names, group - names - 1)) {
            snprintf(folder, sizeof folder, "%s/memory", root);
            least = mt_min_u64(
                least, least_limit(folder, self + group, end - group, &versions[0], is_left));
        }
        self += end + (self[end] == '\n');
    }
    return least;
}

uint64_t mt_memory_cgroup_limit(const char *root, const char *self)
{
    return least_of_groups(root, self, false);
}

uint64_t mt_memory_cgroup_available(const char *root, const char *self)
{
    return least_of_groups(root, self, true);
}

static uint64_t container_limit(void)
{
    char self[MAX_CGROUP_FILE];

    return mt_io_read_text("/proc/self/cgroup", self, sizeof self)
               ? mt_memory_cgroup_limit(CGROUPS, self)
               : UINT64_MAX;
}

static uint64_t container_available(void)
{
    char self[MAX_CGROUP_FILE];

    return mt_io_read_text("/proc/self/cgroup", self, sizeof self)
               ? mt_memory_cgroup_available(CGROUPS, self)
               : UINT64_MAX;
}

uint64_t mt_memory_available_in(const char *meminfo)
{
    static const char name[] = "MemAvailable:";
    const char *line = strstr(meminfo, name);
    uint64_t bytes;

    return line && mt_mul_ok(strtoull(line + strlen(name), NULL, 10), 1024, &bytes) ? bytes
                                                                                    : UINT64_MAX;
}

uint64_t mt_memory_available(void)
{
    char meminfo[MAX_CGROUP_FILE];
    uint64_t container = container_available();

    if (!mt_io_read_text("/proc/meminfo", meminfo, sizeof meminfo))
        return container;
    return mt_min_u64(mt_memory_available_in(meminfo), container);
}

static uint64_t machine_memory(void)
{
    long pages = sysconf(_SC_PHYS_PAGES), page_bytes = sysconf(_SC_PAGESIZE);

    return pages > 0 && page_bytes > 0 ? (uint64_t)pages * (uint64_t)page_bytes : UINT64_MAX;
}

static void set_default(void)
{
    uint64_t machine = machine_memory(), container = container_limit();

    source = container < machine ? "half of this container's memory limit"
                                 : "half of this machine's memory";
    machine = mt_min_u64(machine, container);
    mt_memory_budget_set(machine == UINT64_MAX ? 0 : machine / 2);
}

/* The last words of the program. Allocates nothing. Only one thread prints and ends the process. */
static void end_without_memory(void)
{
    static atomic_flag is_ending = ATOMIC_FLAG_INIT;
    char reason[MT_MEMORY_TEXT];

    while (atomic_flag_test_and_set(&is_ending))
        (void)pause();
    mt_unfinished_unlink(unfinished);
    mt_progress_clear();
    mt_memory_reason(reason);
    if (strcmp(input, "-") == 0)
        mt_message("cannot read standard input: %s", reason);
    else if (*input)
        mt_message("cannot read '%s': %s", input, reason);
    else
        mt_message("%s", reason);
    _exit(exit_code);
}

int mt_memory_limit_start(struct mt_unfinished *list)
{
    const char *text = getenv("MEMTRACE_MAX_MEMORY");
    uint64_t bytes;

    unfinished = list;
    mt_memory_last_words_set(end_without_memory);
    if (!text || !*text) {
        set_default();
        return -1;
    }
    if (mt_parse_bytes(text, &bytes) != MT_OK || !bytes) {
        mt_message("MEMTRACE_MAX_MEMORY needs a number of bytes such as 12GiB, not '%s'", text);
        return MT_EXIT_USAGE;
    }
    source = "MEMTRACE_MAX_MEMORY";
    mt_memory_budget_set(bytes);
    return -1;
}

void mt_memory_limit_set(uint64_t bytes)
{
    source = NULL;
    mt_memory_budget_set(bytes);
}

const char *mt_memory_reason(char text[MT_MEMORY_TEXT])
{
    char budget[MT_UNITS_TEXT];

    mt_format_bytes(budget, mt_memory_budget());
    if (!mt_memory_refused())
        snprintf(text, MT_MEMORY_TEXT, "out of memory");
    else if (source)
        snprintf(text, MT_MEMORY_TEXT,
                 "needs more memory than %s (%s); raise the limit with --max-memory", budget,
                 source);
    else
        snprintf(text, MT_MEMORY_TEXT,
                 "needs more memory than the %s that --max-memory allows; raise --max-memory",
                 budget);
    return text;
}

void mt_memory_input_set(const char *path)
{
    snprintf(input, sizeof input, "%s", path);
}

void mt_memory_exit_code_set(int code)
{
    exit_code = code;
}

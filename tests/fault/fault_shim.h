/* What the LD_PRELOAD libraries of the sweeps share: which process, which call, and the log.
 *
 * Each reads its settings under a prefix of its own, FAIL_ALLOC or FAIL_FILE:
 *   PREFIX=N             call number N, counted from 1, fails; 0 = none does
 *   PREFIX_FROM=1        ... and all that follow
 *   PREFIX_PROGRAM=TEXT  only in processes whose executable's path contains TEXT
 *   PREFIX_LOG=FILE      gets a line at the first failure
 *
 * Everything is static: both libraries may be in one process. Nothing here allocates or goes
 * through a function that one of them replaces. */
#ifndef MT_TEST_FAULT_SHIM_H
#define MT_TEST_FAULT_SHIM_H

#include <fcntl.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static struct {
    const char *prefix;
    atomic_ulong counted;
    unsigned long fails_at;
    bool ready, from_there_on;
    const char *log_path;
} shim;

/* The setting PREFIX_NAME, or PREFIX if the name is empty; NULL if it is not set. */
static const char *shim_setting(const char *name)
{
    char full[64];

    (void)snprintf(full, sizeof full, "%s%s%s", shim.prefix, *name ? "_" : "", name);
    return getenv(full);
}

static bool shim_is_this_program(void)
{
    const char *wanted = shim_setting("PROGRAM");
    char path[4096];
    ssize_t length = readlink("/proc/self/exe", path, sizeof path - 1);

    path[length > 0 ? length : 0] = '\0';
    return !wanted || strstr(path, wanted);
}

/* Reads the settings; false if this process is not meant. The caller sets `ready` when it is. */
static bool shim_start(const char *prefix)
{
    shim.prefix = prefix;
    if (!shim_is_this_program())
        return false;
    const char *number = shim_setting("");
    shim.fails_at = number ? strtoul(number, NULL, 10) : 0;
    shim.from_there_on = shim_setting("FROM") != NULL;
    shim.log_path = shim_setting("LOG");
    return true;
}

/* Appends "WORD NUMBER PID" to the log. */
static void shim_log(const char *word, unsigned long number)
{
    char line[64];
    int length = snprintf(line, sizeof line, "%s %lu %ld\n", word, number, (long)getpid());
    long fd = shim.log_path ? syscall(SYS_openat, AT_FDCWD, shim.log_path,
                                      O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600)
                            : -1;

    if (fd < 0)
        return;
    (void)syscall(SYS_write, fd, line, length);
    (void)syscall(SYS_close, fd);
}

static unsigned long shim_count(void)
{
    return atomic_fetch_add(&shim.counted, 1) + 1;
}

static bool shim_is_chosen(unsigned long number)
{
    return shim.fails_at &&
           (shim.from_there_on ? number >= shim.fails_at : number == shim.fails_at);
}

#endif

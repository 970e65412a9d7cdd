/* The notes of the Python part have this form too (simulate/python/memtrace_dry_run/notes.py): a
 * file is complete or not there. */
#include "workspace_notes.h"

#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static unsigned long counts[WORKSPACE_SOURCES];
static pid_t counted_in; /* a child of fork begins with no counts */

static bool write_to(const char *path)
{
    FILE *file = fopen(path, "we");
    if (file == NULL) {
        return false;
    }
    fprintf(file,
            "{\"version\": 1, \"pid\": %ld, \"workspaces\": {\"measured\": %lu, \"asked\": %lu, "
            "\"by_rule\": %lu, \"guessed\": %lu}}\n",
            (long)getpid(), counts[WORKSPACE_MEASURED], counts[WORKSPACE_ASKED],
            counts[WORKSPACE_BY_RULE], counts[WORKSPACE_GUESSED]);
    return fclose(file) == 0;
}

static void write_counts(void)
{
    const char *base = getenv("MEMTRACE_DRY_RUN_NOTES");
    char path[PATH_MAX], half[PATH_MAX + 8];
    int length = base == NULL
                     ? -1
                     : snprintf(path, sizeof path, "%s.convolutions.%ld", base, (long)getpid());
    if (length <= 0 || length >= (int)sizeof path) {
        return;
    }
    /* The reader leaves this name out; it stays if the process is killed here. */
    snprintf(half, sizeof half, "%s.half", path);
    if (!write_to(half) || rename(half, path) != 0) {
        unlink(half);
    }
}

static bool is_power_of_two(unsigned long number)
{
    return (number & (number - 1)) == 0;
}

void sim_note_workspace(enum workspace_source source)
{
    pthread_mutex_lock(&lock);
    if (counted_in != getpid()) {
        counted_in = getpid();
        for (int i = 0; i < WORKSPACE_SOURCES; i++) {
            counts[i] = 0;
        }
    }
    if (is_power_of_two(++counts[source])) {
        write_counts();
    }
    pthread_mutex_unlock(&lock);
}

/* Other threads may still count. In a child of fork that counted nothing the lock may be held by a
 * thread that it does not have. */
__attribute__((destructor)) static void write_at_end(void)
{
    if (counted_in == getpid()) {
        pthread_mutex_lock(&lock);
        write_counts();
        pthread_mutex_unlock(&lock);
    }
}

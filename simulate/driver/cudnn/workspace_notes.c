/* The notes of the Python part have the same form (simulate/python/memtrace_dry_run/notes.py). */
#include "workspace_notes.h"

#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

#include "note_file.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static unsigned long counts[WORKSPACE_SOURCES];
static pid_t counted_in; /* the process of the counts: in a forked child they start at 0 */

static void write_counts(void)
{
    enum { NOTE_BYTES = 256 };
    char text[NOTE_BYTES];
    snprintf(text, sizeof text,
             "{\"version\": 1, \"pid\": %ld, \"workspaces\": {\"measured\": %lu, \"asked\": %lu, "
             "\"by_rule\": %lu, \"guessed\": %lu}}\n",
             (long)getpid(), counts[WORKSPACE_MEASURED], counts[WORKSPACE_ASKED],
             counts[WORKSPACE_BY_RULE], counts[WORKSPACE_GUESSED]);
    sim_note_write("convolutions", text);
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

/* Other threads may still count. In a forked child that has counted nothing, a thread that does not
 * exist there may hold the lock. */
__attribute__((destructor)) static void write_at_end(void)
{
    if (counted_in == getpid()) {
        pthread_mutex_lock(&lock);
        write_counts();
        pthread_mutex_unlock(&lock);
    }
}

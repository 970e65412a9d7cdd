/* The notes of the Python part have the same form (simulate/python/memtrace_dry_run/notes.py). */
#include "workspace_notes.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "note_file.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static unsigned long counts[WORKSPACE_SOURCES];
static int64_t most_unsure_bytes;
static pid_t counted_in; /* the process of the counts: in a forked child they start at 0 */

static void write_counts(void)
{
    enum { NOTE_BYTES = 320 };
    char text[NOTE_BYTES];
    snprintf(text, sizeof text,
             "{\"version\": 1, \"pid\": %ld, \"workspaces\": {\"measured\": %lu, \"asked\": %lu, "
             "\"by_rule\": %lu, \"guessed\": %lu, \"most_unsure_bytes\": %lld}}\n",
             (long)getpid(), counts[WORKSPACE_MEASURED], counts[WORKSPACE_ASKED],
             counts[WORKSPACE_BY_RULE], counts[WORKSPACE_GUESSED], (long long)most_unsure_bytes);
    sim_note_write("convolutions", text);
}

/* By how much a workspace may be wrong. cuDNN's own plan is right for most convolutions, so that a
 * wrong one is one of several with a workspace; a rule or a guess may also miss copies of the
 * operands. */
static int64_t unsure_bytes(struct convolution_workspace workspace, int64_t operand_bytes)
{
    switch (workspace.source) {
    case WORKSPACE_ASKED: return workspace.bytes;
    case WORKSPACE_BY_RULE:
    case WORKSPACE_GUESSED:
        return workspace.bytes > operand_bytes ? workspace.bytes : operand_bytes;
    default: return 0;
    }
}

static bool is_power_of_two(unsigned long number)
{
    return (number & (number - 1)) == 0;
}

void sim_note_workspace(struct convolution_workspace workspace, int64_t operand_bytes)
{
    int64_t unsure = unsure_bytes(workspace, operand_bytes);
    pthread_mutex_lock(&lock);
    if (counted_in != getpid()) {
        counted_in = getpid();
        memset(counts, 0, sizeof counts);
        most_unsure_bytes = 0;
    }
    most_unsure_bytes = unsure > most_unsure_bytes ? unsure : most_unsure_bytes;
    if (is_power_of_two(++counts[workspace.source]))
        write_counts();
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

/* Traces that `record --ring` writes while the command runs: when a request was refused for lack of
 * memory, and on SIGUSR2. A process of its own writes them, so the command and its signals do not
 * wait. */
#ifndef MT_CLI_RING_SAVES_H
#define MT_CLI_RING_SAVES_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "redaction.h"
#include "trace_end.h"

struct mt_ring_saves {
    /* set by the caller */
    const char *manifest; /* list of the traces of the run */
    int manifest_lock;
    const struct mt_redaction *redaction; /* NULL: nothing is redacted */
    bool is_quiet, is_silent;             /* only problems; nothing (a document follows) */
    /* PRIVATE */
    pid_t saver; /* 0: none runs */
    bool is_asked;
    struct mt_ring_seen *seen; /* by position in the list */
    size_t seen_count, seen_capacity;
    char **saved; /* from malloc */
    size_t saved_count, saved_capacity;
};

/* Looks for reasons to save, and saves. `is_asked`: the user sent the signal. Never waits. */
void mt_ring_saves_look(struct mt_ring_saves *saves, bool is_asked);

/* Waits until the last save is complete. Then calls `on_trace` (may be NULL) for each. */
void mt_ring_saves_finish(struct mt_ring_saves *saves,
                          void (*on_trace)(void *context, const struct mt_trace_end *end),
                          void *context);

#endif

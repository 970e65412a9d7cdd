/* What SIGUSR2 to `record` does: with --idle, the first one starts the recording. Then it saves a
 * ring, or stops the recording if there is no ring.
 *
 * Traces that `record --ring` writes while the command runs: when a request was refused for lack of
 * memory, when the memory of a device rose above --ring-above, and on SIGUSR2. A process of its own
 * writes them, so the command and its signals do not wait. */
#ifndef MT_CLI_RING_SAVES_H
#define MT_CLI_RING_SAVES_H

#include <stdbool.h>
#include <sys/types.h>

#include "redaction.h"
#include "tape.h"
#include "trace_end.h"

struct mt_ring_saves {
    /* set by the caller */
    const char *manifest; /* list of the traces of the run */
    int manifest_lock;
    const struct mt_redaction *redaction; /* NULL: nothing is redacted */
    bool is_quiet, is_silent;             /* only problems, before the document if one follows */
    bool is_idle, has_ring;               /* --idle, --ring */
    /* PRIVATE */
    pid_t saver;               /* 0: none runs */
    bool is_asked, waits;      /* a process has not begun yet */
    enum mt_tape_ask ask;      /* with --idle: of every process */
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

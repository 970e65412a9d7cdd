/* Moves events from a tape to a trace: takes committed raw events in their global order, resolves
 * their references, and adds them to a writer. The writer thread of the traced process uses it, and
 * so does the recovery of a dead process's tape. */
#ifndef MT_COLLECTOR_DRAIN_H
#define MT_COLLECTOR_DRAIN_H

#include <stdbool.h>

#include "tape.h"
#include "trace.h"

struct mt_drain;

enum mt_drain_mode {
    MT_DRAIN_LIVE, /* stop at a number that is taken but not committed */
    MT_DRAIN_SKIP, /* do not wait for such a number: count it as dropped and continue */
    MT_DRAIN_DEAD  /* no thread writes any more: like SKIP, up to the end */
};

struct mt_drain_result {
    uint64_t events;   /* added to the writer by this pass */
    uint64_t followed; /* only followed, because the recording has not begun */
    uint64_t missing;  /* numbers that were passed without an event, and damaged events; the trace
                          reports their sum */
    uint64_t waiting;  /* LIVE: committed events after a number that is not committed */
};

/* `symbols` (borrowed) are those of the writer that mt_drain_pass gets; they may contain
 * definitions of an earlier part of the trace. The first pass begins at `from`: all zeros for a new
 * tape, the last commit for the tape of a dead process. */
enum mt_status mt_drain_new(struct mt_tape *tape, struct mt_symbols *symbols,
                            const struct mt_tape_commit *from, struct mt_drain **drain,
                            struct mt_error *error) MT_MUST_USE;
void mt_drain_free(struct mt_drain *drain); /* NULL is fine */

/* Reads new definitions. Sets whether header facts changed since the last mt_drain_header. */
enum mt_status mt_drain_definitions(struct mt_drain *drain, bool *header_changed) MT_MUST_USE;

/* Sets the header facts that the tape has, and leaves other facts unchanged. Strings are valid
 * until the next mt_drain_definitions. */
void mt_drain_header(struct mt_drain *drain, struct mt_trace_header *header);

/* One pass over the committed events. Does not flush the writer. Cost: linear in the new events. */
enum mt_status mt_drain_pass(struct mt_drain *drain, struct mt_writer *writer,
                             enum mt_drain_mode mode, struct mt_drain_result *result,
                             struct mt_error *error) MT_MUST_USE;

/* Call it after the writer was flushed: everything passed so far is then in the file, which has
 * `trace_bytes` bytes. Frees the slots of these events. */
void mt_drain_commit(struct mt_drain *drain, uint64_t trace_bytes);

/* A ring (ring.h). Call the first before the first pass: the drain then follows what is alive. The
 * second returns true if the current part has the time that the ring keeps. Then, after a commit,
 * begin the next part, make a new writer with the same symbols, write what is alive to it, flush
 * it, and commit. */
enum mt_status mt_drain_follow(struct mt_drain *drain) MT_MUST_USE;
bool mt_drain_part_is_full(const struct mt_drain *drain);
void mt_drain_begin_part(struct mt_drain *drain);
enum mt_status mt_drain_write_state(struct mt_drain *drain, struct mt_writer *writer,
                                    struct mt_error *error) MT_MUST_USE;

/* For `record --idle`. While the first returns true, the recording has not begun, and a pass adds
 * nothing to the writer: it only follows what is alive, if the drain follows. The second begins the
 * recording and writes what is alive. After it, flush the writer, and commit. */
bool mt_drain_is_idle(const struct mt_drain *drain);
enum mt_status mt_drain_begin(struct mt_drain *drain, struct mt_writer *writer,
                              struct mt_error *error) MT_MUST_USE;

/* Number of the part that the next commit describes. */
uint64_t mt_drain_part(const struct mt_drain *drain);

/* The next event gets this number. For a trace that was put together from parts. */
void mt_drain_renumber(struct mt_drain *drain, uint64_t next_seq);

#endif

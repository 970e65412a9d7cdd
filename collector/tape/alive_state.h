/* What is alive after a sequence of events: blocks, segments, open ranges, contexts, communicators
 * and registered buffers. A trace that begins in the middle of a run starts with it
 * (MT_EVENT_INITIAL in event.h). */
#ifndef MT_COLLECTOR_ALIVE_STATE_H
#define MT_COLLECTOR_ALIVE_STATE_H

#include <stdint.h>

#include "event.h"
#include "status.h"
#include "trace.h"

struct mt_alive_state;

/* A program that opens this many ranges at once never closes them. More are lost events. */
enum { MT_ALIVE_MAX_RANGES = 65536 };

/* `symbols` (borrowed) are those of the writer. NULL: out of memory */
struct mt_alive_state *mt_alive_state_new(struct mt_symbols *symbols);
void mt_alive_state_free(struct mt_alive_state *self);

/* Follows an event. Its ids are those of one table of symbols during the life of the state. O(1)
 * except for ranges of expandable segments, which are few. Memory: at most about 150 bytes for each
 * thing that is alive. MT_ERR_MEMORY: the state is no longer right. */
enum mt_status mt_alive_state_add(struct mt_alive_state *self,
                                  const struct mt_event *event) MT_MUST_USE;

/* From now on, counts how often the memory that the program has from the driver on one device rises
 * above this limit. */
void mt_alive_state_watch(struct mt_alive_state *self, uint64_t limit_bytes);
uint64_t mt_alive_state_exceeded(const struct mt_alive_state *self);

/* Writes the state as initial events of time `t_ns`: segments, blocks, then the rest, each in the
 * order in which it began. Events that were lost before follow as one event for each reason,
 * because the state may then be wrong. Numbers begin at *next_seq, which is advanced. The state
 * stays. */
enum mt_status mt_alive_state_write(const struct mt_alive_state *self, struct mt_writer *writer,
                                    uint64_t t_ns, uint64_t *next_seq,
                                    struct mt_error *error) MT_MUST_USE;

#endif

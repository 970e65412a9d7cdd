/* Holders of memory at every time: the trace cut into columns of equal busy time, or of equally
 * many events, each with the state at its fullest instant, as differences between neighbors. Exact
 * to the byte. Detail that does not fit in a page is merged, not dropped: groups that never held
 * much are merged, first over sizes, then over stacks, then over sites.
 *
 * Built in one pass; size does not depend on the length of the trace. */
#ifndef MT_ANALYZER_HISTORY_MODEL_H
#define MT_ANALYZER_HISTORY_MODEL_H

#include "history.h"

#define MT_HISTORY_COLUMNS 512u

/* Limits of the finished history, for all devices together. */
#define MT_HISTORY_GROUPS  2000u
#define MT_HISTORY_CHANGES 20000u

struct mt_history_builder;

/* Creates a builder. `start` is the state before the first event. Its allocated bytes are those of
 * the blocks that begin `at_start`. */
void mt_history_builder_new(struct mt_arena *arena, const struct mt_symbols *symbols,
                            const struct mt_timeline *axis, bool by_event,
                            const struct mt_bytes *start, struct mt_history_builder **builder);
void mt_history_builder_release(struct mt_history_builder *builder);

/* Interns a text in the builder, so that equal texts have equal pointers. */
const char *mt_history_word(struct mt_history_builder *builder, const char *text);

/* A block is allocated or freed. Live blocks have different numbers. `group` has words of the
 * builder. at_start: the event describes the state at the start of the trace. */
void mt_history_birth(struct mt_history_builder *builder, uint32_t block,
                      const struct mt_history_group *group, uint64_t bytes, bool at_start);
void mt_history_death(struct mt_history_builder *builder, uint32_t block, uint64_t bytes,
                      bool at_start);

/* State after an event, following its allocations and frees; in order. Blocks that begin before the
 * first event are the state at the start. */
void mt_history_state(struct mt_history_builder *builder, uint64_t t_ns, uint64_t event,
                      int32_t phase, const struct mt_bytes *bytes);

/* The model, not reduced, in the arena. The builder must still be released. */
void mt_history_finish(struct mt_history_builder *builder, struct mt_history **history);

#endif

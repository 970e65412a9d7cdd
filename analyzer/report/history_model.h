/* What was alive, by whom, at every time: the trace cut into columns of equal
 * busy time, or of equally many events, each with the state at its fullest instant, as differences
 * between neighbours. Exact to the byte whatever the trace; what a page cannot hold is not left out
 * but told less finely: groups that never held much are put together, first over sizes, then over
 * stacks, then over sites.
 *
 * Built in one pass; size does not depend on the length of the trace. */
#ifndef MT_ANALYZER_HISTORY_MODEL_H
#define MT_ANALYZER_HISTORY_MODEL_H

#include "timeline_model.h"

#define MT_HISTORY_COLUMNS 512u
/* What is left when it is finished, of all devices together. */
#define MT_HISTORY_GROUPS  2000u
#define MT_HISTORY_CHANGES 20000u

/* What the blocks of a group have in common. */
enum mt_history_detail {
    MT_HISTORY_BY_SIZE,  /* stack, phase and role, and the size of each */
    MT_HISTORY_BY_STACK, /* of several sizes */
    MT_HISTORY_BY_SITE,  /* of several stacks with one site */
    MT_HISTORY_BY_ROLE   /* all that is small in a role */
};

/* Who holds memory. Equal words are equal pointers; they live as long as the
 * history's arena. */
struct mt_history_group {
    const char *site;     /* as `memtrace live` tells it; "" = several */
    const char *phase;    /* name, of birth; "" = none; NULL = several */
    uint32_t stack;       /* of several: what they have in common, MT_NO_ID = nothing */
    uint64_t block_bytes; /* of each, 0 = of several sizes */
    enum mt_role role;
    enum mt_history_detail detail;
    bool is_initial;     /* alive when the trace began */
    bool is_backward;    /* without a stack: the autograd engine's */
    uint64_t most_bytes; /* that it held at the instant of any column, or more */
};

struct mt_history_change {
    uint32_t group;
    int64_t bytes, blocks;
};

struct mt_history_column {
    uint64_t begin_t_ns;  /* where it begins */
    uint64_t begin_event; /* the first event in it, or after it */
    uint64_t t_ns, event; /* of its fullest instant: after that event */
    int32_t phase;        /* innermost, then */
    struct mt_bytes bytes;
    uint32_t first_change, change_count; /* since the instant of the column before */
};

struct mt_history {
    struct mt_arena *arena;
    bool by_event; /* columns have equally many events, not equal time */
    const struct mt_symbols *symbols;
    struct mt_timeline axis; /* its spans: where time is folded; no bins */
    struct mt_history_column *columns;
    uint32_t column_count;
    struct mt_history_group *groups;
    uint32_t group_count;
    struct mt_history_change *changes; /* of each column by group */
    uint32_t change_count;
    uint64_t small_bytes; /* groups that held less may have been put together; 0 = none */
};

/* Puts groups together until no more than so many groups and changes are left:
 * the smallest first. */
enum mt_status mt_history_reduce(struct mt_history *history, uint32_t most_groups,
                                 uint32_t most_changes) MT_MUST_USE;

/* ---- building ---- */

struct mt_history_builder;

/* `start`: before the first event; its allocated bytes are those of the blocks that
 * are born at_start. */
enum mt_status mt_history_builder_new(struct mt_arena *arena, const struct mt_symbols *symbols,
                                      const struct mt_timeline *axis, bool by_event,
                                      const struct mt_bytes *start,
                                      struct mt_history_builder **builder) MT_MUST_USE;
void mt_history_builder_release(struct mt_history_builder *builder);

/* Words as the builder keeps them: equal texts, equal pointers. NULL without memory. */
const char *mt_history_word(struct mt_history_builder *builder, const char *text);

/* A block is allocated, or not any more; no two that live at the same time have
 * the same number. `group` has words of the builder. at_start: by what tells of the
 * state that the trace begins with. */
enum mt_status mt_history_birth(struct mt_history_builder *builder, uint32_t block,
                                const struct mt_history_group *group, uint64_t bytes,
                                bool at_start) MT_MUST_USE;
enum mt_status mt_history_death(struct mt_history_builder *builder, uint32_t block, uint64_t bytes,
                                bool at_start) MT_MUST_USE;

/* After an event, with all that was born and died in it; in order. Births
 * before the first are what the trace begins with. */
enum mt_status mt_history_state(struct mt_history_builder *builder, uint64_t t_ns, uint64_t event,
                                int32_t phase, const struct mt_bytes *bytes) MT_MUST_USE;

/* The model, not reduced, in the arena. The builder is still to be released. */
enum mt_status mt_history_finish(struct mt_history_builder *builder,
                                 struct mt_history **history) MT_MUST_USE;

/* ---- of an analysis ---- */

struct mt_analysis;
struct mt_block_life;
struct mt_model_state;

/* The same, fed with the lives of an analysis' device; words are those of
 * `memtrace live`. */
struct mt_history_feed;

enum mt_status mt_history_feed_new(struct mt_analysis *analysis, uint32_t slot,
                                   struct mt_history_feed **feed) MT_MUST_USE;
void mt_history_feed_release(void *feed); /* NULL is fine */
enum mt_status mt_history_feed_birth(void *feed, const struct mt_block_life *life) MT_MUST_USE;
enum mt_status mt_history_feed_end(void *feed, const struct mt_block_life *life) MT_MUST_USE;
enum mt_status mt_history_feed_state(void *feed, const struct mt_model_state *state) MT_MUST_USE;
/* Reduced to what a page can hold. */
enum mt_status mt_history_feed_finish(struct mt_history_feed *feed,
                                      struct mt_history **history) MT_MUST_USE;

#endif

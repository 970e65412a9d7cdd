/* The passes of a program through its models. One pass is one call of the outermost module,
 * however it is called, and whatever repeats below its forward. A turn of a loop of the program
 * shows in one of these ways:
 *
 * - control returns to an earlier line of a function outside of models;
 * - one line calls several functions, and control returns to one that it called before;
 * - the forward of a module at one line is entered again: an event at the line itself, or at a
 *   caller's, came in between; or control returns from the last line of the forward to its first
 *   one. Turns of a loop within the forward end before its last line or begin after its first
 *   one. If the loop has all of its lines, there are fewer events outside than turns. */
#ifndef MT_ANALYZER_MODEL_PASSES_H
#define MT_ANALYZER_MODEL_PASSES_H

#include "python_tree.h"

struct mt_pass_turn {
    struct mt_turn turn;        /* of the program's loop */
    uint32_t call;              /* index of the call of a forward whose lines are the only evidence;
                                   MT_NO_ID: there is other evidence */
    uint32_t inner, inner_from; /* these lines: where control returned to, and from where */
};

/* Zeroed memory with `places` is ready. */
struct mt_model_passes {
    const struct mt_loop_places *places;
    bool has_line;
    uint32_t line; /* the last one, without those of callers of its function */
    bool left;     /* an event of a caller came since then */
    bool moved;    /* to another line of the program, with the last event */
    uint32_t site; /* the line of the program */

    struct mt_map order; /* bodies, in the order in which their callers called them */
    struct mt_map call_ids;
    struct mt_forward_call {
        uint32_t begin, end, last; /* lines of the forward: lowest, highest, of the last event */
        uint32_t head, turns; /* turns from the highest line: lowest line that one returned to */
        uint32_t exits;       /* events outside after one within */
    } * calls;
    size_t call_count, call_capacity;
};

/* An event at that line (mt_loop_places_line). Returns whether it begins a turn. `is_free`: a free
 * reports only that control was there. */
bool mt_model_passes_move(struct mt_model_passes *passes, uint32_t line, bool is_free,
                          struct mt_pass_turn *turn);

/* After all events: counts the turns from the highest line of each forward. */
void mt_model_passes_learn(struct mt_model_passes *passes, const struct mt_pass_turn *turn);
/* After that: whether the turn is one of the program, not of a loop within a forward. */
bool mt_model_passes_counts(const struct mt_model_passes *passes, const struct mt_pass_turn *turn);

void mt_model_passes_release(struct mt_model_passes *passes);

#endif

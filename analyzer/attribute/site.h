/* From a stack to words: the code that its memory belongs to, and how to name it. One rule, for
 * every output:
 *
 * The site of a stack is the innermost Python frame that does not belong to PyTorch (or another
 * such framework), to Python's library, or to a known wrapper (accelerate's hooks, peft's dispatch,
 * Lightning's strategies; frame_judge.c has the list). It is the code of the model, in the user's
 * folder or below site-packages. Functions of torch.optim are sites, because an optimizer owns its
 * state; module.cuda() and .to() are not, their caller is.
 *
 * The user's place accompanies the site: the innermost frame of the user's own files, if it is
 * another one.
 *
 * Native frames are sites only in stacks without any Python frame: then the innermost node of the
 * autograd graph ("MmBackward0"), otherwise the innermost frame that is not plumbing, otherwise the
 * innermost. So a run recorded with native stacks has the same sites as one without. */
#ifndef MT_ANALYZER_SITE_H
#define MT_ANALYZER_SITE_H

#include "arena.h"
#include "frame_judge.h"
#include "symbols.h"

#include <stdbool.h>

struct mt_site {
    uint32_t frame; /* MT_NO_ID: no stack */
    uint32_t own;   /* innermost frame of the user's files; MT_NO_ID: none, or it is the site */
};

/* Walks the stack and reads texts. */
struct mt_site mt_stack_site(const struct mt_symbols *symbols, uint32_t stack);

/* "LlamaMLP.forward modeling_llama.py:175 < train.py:13"; "" for no frame. */
const char *mt_site_text(struct mt_arena *arena, const struct mt_symbols *symbols,
                         struct mt_site site);

/* The same for a stack; for MT_NO_ID "autograd engine (no Python stack)" if `phase_is_backward`,
 * otherwise "no stack recorded". */
const char *mt_site_label(struct mt_arena *arena, const struct mt_symbols *symbols, uint32_t stack,
                          bool phase_is_backward);

/* Length of a label without the user's place, which is dropped first if there is little room; and
 * that place, NULL if the label has none. */
size_t mt_site_label_head(const char *label);
const char *mt_site_label_own(const char *label);

/* "forward linear.py:134": function, base name of the file, line; unknown parts are omitted. C++
 * names are shortened. */
const char *mt_frame_label(struct mt_arena *arena, const struct mt_symbols *symbols,
                           uint32_t frame);

/* The two halves of a label: "forward", and "linear.py:134" or "". The place in a
 * notebook is "cell[3105878423]:21". */
const char *mt_frame_function(struct mt_arena *arena, const struct mt_symbols *symbols,
                              uint32_t frame);
const char *mt_frame_position(struct mt_arena *arena, const struct mt_symbols *symbols,
                              uint32_t frame);

/* The same, cached.
 *
 * The functions above read texts each time. For use on every event or every stack, a table judges
 * every frame and stack once; each query is one array access. Zeroed memory is an empty table. */
struct mt_site_table {
    struct mt_judged_bits {
        uint8_t origin, rank;
    } * frames;
    struct mt_site *sites; /* by stack */
    uint32_t frame_count, stack_count;
    size_t frame_capacity, stack_capacity;
    bool has_python; /* for any stack: mt_site_table_has_python */
};

/* Adds the new frames and stacks of `symbols`. O(new ones). */
void mt_site_table_update(struct mt_site_table *table, const struct mt_symbols *symbols);
void mt_site_table_release(struct mt_site_table *table);

/* For ids that the table does not have: MT_ORIGIN_NATIVE, true, MT_RANK_NATIVE_PLUMBING, MT_NO_ID,
 * false. */
enum mt_origin mt_site_table_origin(const struct mt_site_table *table, uint32_t frame);
bool mt_site_table_is_plumbing(const struct mt_site_table *table, uint32_t frame);
enum mt_frame_rank mt_site_table_rank(const struct mt_site_table *table, uint32_t frame);
struct mt_site mt_site_table_at(const struct mt_site_table *table, uint32_t stack);
/* Only the frame of the site. */
uint32_t mt_site_table_site(const struct mt_site_table *table, uint32_t stack);
/* Whether it has a Python frame. A stack of only native frames belongs to a thread that works for
 * Python code elsewhere, as in backward. */
bool mt_site_table_has_python(const struct mt_site_table *table, uint32_t stack);
/* The operation: the innermost frame that is not plumbing ("mm", "Linear.forward linear.py:134");
 * if all are, the innermost. Reads the frames. */
uint32_t mt_site_table_operation(const struct mt_site_table *table,
                                 const struct mt_symbols *symbols, uint32_t stack);

#endif

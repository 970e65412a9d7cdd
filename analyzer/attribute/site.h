/* From a stack to the words a person looks for: which code its memory is, and
 * what to call it. One rule, for every output:
 *
 * The site of a stack is the innermost Python frame that is not PyTorch's (or
 * another framework's of that kind, or of Python's library), nor a known wrapper's
 * (accelerate's hooks, peft's dispatch, Lightning's strategies; frame_judge.c has
 * the list): the code of the model, whether it lies in the user's folder or below
 * site-packages. Functions of torch.optim are sites, because what an optimizer
 * keeps is its own; module.cuda() and .to() are not, their caller is.
 *
 * Beside it stands the user's place: the innermost frame of the user's own files,
 * if that is another.
 *
 * Native frames are sites only in stacks without any Python frame: then the
 * innermost node of the autograd graph ("MmBackward0"), else the innermost frame
 * that is not plumbing, else the innermost. So a run that was recorded with native
 * stacks has the sites that it has without. */
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

/* Walks the stack and looks at texts. */
struct mt_site mt_stack_site(const struct mt_symbols *symbols, uint32_t stack);

/* "LlamaMLP.forward modeling_llama.py:175 < train.py:13"; "" for no frame. */
const char *mt_site_text(struct mt_arena *arena, const struct mt_symbols *symbols,
                         struct mt_site site);

/* The same of a stack; for MT_NO_ID "autograd engine (no Python stack)" if
 * `phase_is_backward`, else "no stack recorded". */
const char *mt_site_label(struct mt_arena *arena, const struct mt_symbols *symbols, uint32_t stack,
                          bool phase_is_backward);

/* Length of a label without the user's place, which is the first to go if there
 * is little room; and that place, NULL if the label has none. */
size_t mt_site_label_head(const char *label);
const char *mt_site_label_own(const char *label);

/* "forward linear.py:134": function, base name of the file, line; what is not
 * known is left out. C++ names are shortened. */
const char *mt_frame_label(struct mt_arena *arena, const struct mt_symbols *symbols,
                           uint32_t frame);

/* The two halves of a label: "forward", and "linear.py:134" or "". The place in a
 * notebook is "cell[3105878423]:21". */
const char *mt_frame_function(struct mt_arena *arena, const struct mt_symbols *symbols,
                              uint32_t frame);
const char *mt_frame_place(struct mt_arena *arena, const struct mt_symbols *symbols,
                           uint32_t frame);

/* The same, remembered.
 *
 * The functions above look at texts each time. Who asks for every event or
 * every stack keeps a table: every frame and stack is looked at once, an answer
 * is one array access. Zeroed memory is an empty table. */
struct mt_site_table {
    struct mt_judged_bits {
        uint8_t origin, rank;
    } * frames;
    struct mt_site *sites; /* by stack */
    uint32_t frame_count, stack_count;
    size_t frame_capacity, stack_capacity;
    bool has_python; /* of any stack: mt_site_table_has_python */
};

/* Takes in the frames and stacks that are new in `symbols`. O(new ones). */
enum mt_status mt_site_table_update(struct mt_site_table *table,
                                    const struct mt_symbols *symbols) MT_MUST_USE;
void mt_site_table_release(struct mt_site_table *table);

/* Ids that the table has not seen: MT_ORIGIN_NATIVE, true, MT_RANK_NATIVE_PLUMBING, MT_NO_ID,
 * false. */
enum mt_origin mt_site_table_origin(const struct mt_site_table *table, uint32_t frame);
bool mt_site_table_is_plumbing(const struct mt_site_table *table, uint32_t frame);
enum mt_rank mt_site_table_rank(const struct mt_site_table *table, uint32_t frame);
struct mt_site mt_site_table_at(const struct mt_site_table *table, uint32_t stack);
/* The site's frame alone. */
uint32_t mt_site_table_site(const struct mt_site_table *table, uint32_t stack);
/* Has it a Python frame? A stack of native frames alone is that of a thread which
 * works for Python code elsewhere, as backward's do. */
bool mt_site_table_has_python(const struct mt_site_table *table, uint32_t stack);
/* What was done there: the innermost frame that is not plumbing ("mm", "Linear.forward
 * linear.py:134"); if all are, the innermost. Looks at the frames. */
uint32_t mt_site_table_operation(const struct mt_site_table *table,
                                 const struct mt_symbols *symbols, uint32_t stack);

#endif

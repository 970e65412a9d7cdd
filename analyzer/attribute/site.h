/* From a stack to the words a person looks for: which frame is the user's,
 * which is plumbing, what to call it. */
#ifndef MT_ANALYZER_SITE_H
#define MT_ANALYZER_SITE_H

#include "arena.h"
#include "symbols.h"

#include <stdbool.h>

enum mt_origin {
    MT_ORIGIN_USER,      /* your code */
    MT_ORIGIN_NN,        /* torch.nn */
    MT_ORIGIN_OPTIM,     /* torch.optim */
    MT_ORIGIN_FRAMEWORK, /* the rest of the framework or of site-packages */
    MT_ORIGIN_ENGINE,    /* no stack: the autograd engine; its own C++ frames */
    MT_ORIGIN_NATIVE     /* C or C++ frames */
};
enum { MT_ORIGIN_COUNT = MT_ORIGIN_NATIVE + 1 };

/* "your code", "torch.nn", ... */
const char *mt_origin_name(enum mt_origin origin);

/* Where a frame comes from, by its file. */
enum mt_origin mt_frame_origin(const struct mt_symbols *symbols, uint32_t frame);

/* Wrappers that say nothing: _call_impl, _wrapped_call_impl, _apply, wrapper,
 * _use_grad, <lambda>, decorate_context, ...; hidden in pictures. User code is
 * never plumbing. Of native frames, those of the interpreter, the dispatcher
 * and the allocator are. */
bool mt_frame_is_plumbing(const struct mt_symbols *symbols, uint32_t frame);

/* The site of a stack: its innermost user frame; if it has none, the innermost
 * node of the autograd graph ("MmBackward0", native stacks only), else its
 * innermost frame that is not plumbing, else its innermost frame. MT_NO_ID for
 * MT_NO_ID. */
uint32_t mt_stack_site_frame(const struct mt_symbols *symbols, uint32_t stack);

/* "forward linear.py:134": function, base name of the file, line; what is not
 * known is left out. C++ names are shortened. */
const char *mt_frame_label(struct mt_arena *arena, const struct mt_symbols *symbols,
                           uint32_t frame);

/* The two halves of a label: "forward", and "linear.py:134" or "". */
const char *mt_frame_function(struct mt_arena *arena, const struct mt_symbols *symbols,
                              uint32_t frame);
const char *mt_frame_place(struct mt_arena *arena, const struct mt_symbols *symbols,
                           uint32_t frame);

/* Label of the site of a stack; for MT_NO_ID "autograd engine (no Python
 * stack)" if `phase_is_backward`, else "no stack recorded". */
const char *mt_site_label(struct mt_arena *arena, const struct mt_symbols *symbols, uint32_t stack,
                          bool phase_is_backward);

/* The same, remembered.
 *
 * The functions above look at texts each time. Who asks for every event or
 * every stack keeps a table: every frame and stack is looked at once, an answer
 * is one array access. Zeroed memory is an empty table. */
struct mt_site_table {
    uint8_t *frames;    /* origin, and plumbing and node bits */
    uint32_t *user;     /* by stack: innermost user frame, or MT_NO_ID */
    uint32_t *fallback; /* by stack: what stands in for one */
    uint32_t frame_count, stack_count;
    size_t frame_capacity, stack_capacity;
};

/* Takes in the frames and stacks that are new in `symbols`. O(new ones). */
enum mt_status mt_site_table_update(struct mt_site_table *table,
                                    const struct mt_symbols *symbols) MT_MUST_USE;
void mt_site_table_release(struct mt_site_table *table);

/* Ids that the table has not seen: MT_ORIGIN_NATIVE, true, MT_NO_ID. */
enum mt_origin mt_site_table_origin(const struct mt_site_table *table, uint32_t frame);
bool mt_site_table_is_plumbing(const struct mt_site_table *table, uint32_t frame);
uint32_t mt_site_table_site(const struct mt_site_table *table, uint32_t stack);
/* The innermost frame that is not plumbing; if all are, the innermost. Looks at the frames. */
uint32_t mt_site_table_inner(const struct mt_site_table *table, const struct mt_symbols *symbols,
                             uint32_t stack);

#endif

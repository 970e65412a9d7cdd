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
    MT_ORIGIN_ENGINE,    /* no stack: the autograd engine */
    MT_ORIGIN_NATIVE     /* C or C++ frames */
};

/* Where a frame comes from, by its file. */
enum mt_origin mt_frame_origin(const struct mt_symbols *symbols, uint32_t frame);

/* Wrappers that say nothing: _call_impl, _wrapped_call_impl, _apply, wrapper,
 * _use_grad, <lambda>, decorate_context, ...; hidden in pictures. */
bool mt_frame_is_plumbing(const struct mt_symbols *symbols, uint32_t frame);

/* The site of a stack: its innermost user frame; if it has none, its innermost
 * frame that is not plumbing. MT_NO_ID for MT_NO_ID. */
uint32_t mt_stack_site_frame(const struct mt_symbols *symbols, uint32_t stack);

/* "forward linear.py:134": function, base name of the file, line. */
const char *mt_frame_label(struct mt_arena *arena, const struct mt_symbols *symbols,
                           uint32_t frame);

/* Label of the site of a stack; for MT_NO_ID "autograd engine (no Python
 * stack)" if `phase_is_backward`, else "no stack recorded". */
const char *mt_site_label(struct mt_arena *arena, const struct mt_symbols *symbols, uint32_t stack,
                          bool phase_is_backward);

#endif

/* What is known of other people's code: where a frame comes from, and whether
 * memory can be said to be its. */
#ifndef MT_ANALYZER_FRAME_JUDGE_H
#define MT_ANALYZER_FRAME_JUDGE_H

#include "symbols.h"

#include <stdbool.h>
#include <stddef.h>

enum mt_origin {
    MT_ORIGIN_USER,      /* your code */
    MT_ORIGIN_NN,        /* torch.nn */
    MT_ORIGIN_OPTIM,     /* torch.optim */
    MT_ORIGIN_FRAMEWORK, /* the rest of PyTorch, of Python, or of site-packages */
    MT_ORIGIN_ENGINE,    /* no stack: the autograd engine; its own C++ frames */
    MT_ORIGIN_NATIVE     /* C or C++ frames */
};
enum { MT_ORIGIN_COUNT = MT_ORIGIN_NATIVE + 1 };

/* "your code", "torch.nn", ... */
const char *mt_origin_name(enum mt_origin origin);

/* How much a frame says about where memory comes from. The site of a stack is
 * its innermost frame of the highest rank. Python frames come before native
 * ones, so that native stacks change no site. */
enum mt_rank {
    MT_RANK_NATIVE_PLUMBING, /* interpreter, dispatcher, allocator, threads */
    MT_RANK_NATIVE,          /* operators, the autograd engine, code of one's own */
    MT_RANK_NODE,            /* a node of the autograd graph: "MmBackward0" */
    MT_RANK_PLUMBING,        /* a Python function that only calls on */
    MT_RANK_FRAMEWORK,       /* PyTorch, Python's library, wrappers of other packages */
    MT_RANK_CODE             /* the user's, a model's of an installed package, an optimizer's */
};

struct mt_judged {
    enum mt_origin origin;
    enum mt_rank rank;
};

/* By its file and its function; looks at texts. */
struct mt_judged mt_judge_frame(const struct mt_symbols *symbols, uint32_t frame);

enum mt_origin mt_frame_origin(const struct mt_symbols *symbols, uint32_t frame);

/* Wrappers that say nothing: _call_impl, _wrapped_call_impl, _apply, wrapper,
 * _use_grad, <lambda>, decorate_context, ...; hidden in pictures. User code is
 * never plumbing. Of native frames, those of the interpreter, the dispatcher
 * and the allocator are. */
bool mt_frame_is_plumbing(const struct mt_symbols *symbols, uint32_t frame);

static inline bool mt_rank_is_plumbing(enum mt_rank rank)
{
    return rank == MT_RANK_PLUMBING || rank == MT_RANK_NATIVE_PLUMBING;
}

static inline bool mt_rank_is_python(enum mt_rank rank)
{
    return rank >= MT_RANK_PLUMBING;
}

/* Is any frame that of a Python function? Judges frames until there is one. */
bool mt_symbols_have_python(const struct mt_symbols *symbols);

/* C or C++, as far as function and file tell. */
bool mt_code_is_native(const char *function, const char *file);

/* Is `part` in the path? A '/' in it also stands for a '\\' of Windows. A part that
 * starts with a letter begins where a component does. */
bool mt_path_has(const char *path, const char *part);

/* What follows the last separator of a path. */
const char *mt_code_base_name(const char *path);

/* A native function as people know it: how long the part of its cleaned name
 * (cxx_name.h) is that stands for it, and where it begins; a constant text
 * instead, for some; else NULL and 0: the name stands for itself. */
const char *mt_code_short_name(const char *name, size_t *length);

#endif

/* Knowledge about other people's code: the origin of a frame, and whether memory can be attributed
 * to it. */
#ifndef MT_ANALYZER_FRAME_JUDGE_H
#define MT_ANALYZER_FRAME_JUDGE_H

#include <stdbool.h>
#include <stddef.h>

#include "symbols.h"

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

/* How informative a frame is about the origin of memory. The site of a stack is its innermost frame
 * of the highest rank. Python frames come before native ones, so native stacks change no site. */
enum mt_frame_rank {
    MT_RANK_NATIVE_PLUMBING, /* interpreter, dispatcher, allocator, threads */
    MT_RANK_NATIVE,          /* operators, the autograd engine, other native code */
    MT_RANK_NODE,            /* a node of the autograd graph: "MmBackward0" */
    MT_RANK_PLUMBING,        /* a Python function that only forwards a call */
    MT_RANK_FRAMEWORK,       /* PyTorch, Python's library, wrappers of other packages */
    MT_RANK_CODE             /* the user's, a model's of an installed package, an optimizer's */
};

struct mt_judged {
    enum mt_origin origin;
    enum mt_frame_rank rank;
};

/* Judges a frame by its file and its function; reads texts. */
struct mt_judged mt_judge_frame(const struct mt_symbols *symbols, uint32_t frame);

enum mt_origin mt_frame_origin(const struct mt_symbols *symbols, uint32_t frame);

/* Wrappers without information: _call_impl, _wrapped_call_impl, _apply, wrapper, _use_grad,
 * <lambda>, decorate_context, ...; hidden in pictures. User code is never plumbing. Native frames
 * of the interpreter, the dispatcher and the allocator are. */
bool mt_frame_is_plumbing(const struct mt_symbols *symbols, uint32_t frame);

/* Whether the function is called "forward", as a module's is. */
bool mt_frame_is_forward(const struct mt_symbols *symbols, uint32_t frame);

static inline bool mt_rank_is_plumbing(enum mt_frame_rank rank)
{
    return rank == MT_RANK_PLUMBING || rank == MT_RANK_NATIVE_PLUMBING;
}

static inline bool mt_rank_is_python(enum mt_frame_rank rank)
{
    return rank >= MT_RANK_PLUMBING;
}

/* Whether any frame is a Python function. Judges frames until it finds one. */
bool mt_symbols_have_python(const struct mt_symbols *symbols);

/* Whether function and file look like C or C++. */
bool mt_code_is_native(const char *function, const char *file);

/* Whether `part` is in the path. A '/' in it also matches a '\\' of Windows. A part that starts
 * with a letter must begin at a component. */
bool mt_path_has(const char *path, const char *part);

/* Returns the part of a path after its last separator. */
const char *mt_code_base_name(const char *path);

/* The common name of a native function: returns the start of the part of its cleaned name
 * (mt_cxx_name) that is shown, and its length, or a constant text for some; otherwise NULL and 0:
 * the name itself is shown. */
const char *mt_code_short_name(const char *name, size_t *length);

/* Shortens demangled C++ symbols to the part that people use. */

/* Maximum length of a name; longer ones are cut. */
#define MT_CXX_NAME_SIZE 256

/* The qualified name without return type, arguments, template arguments and anonymous namespaces:
 *     at::Tensor at::_sum_to<c10::SymInt>(at::Tensor, bool)  ->  at::_sum_to
 * Other text is returned unchanged. Returns `name`. */
char *mt_cxx_name(const char *symbol, char name[MT_CXX_NAME_SIZE]);

/* Its last two components: "DeviceCachingAllocator::malloc". Points into name. */
const char *mt_cxx_last_components(const char *name);

#endif

/* Kinds of work: of a phase by its name, and of a stack by its frames. */
#ifndef MT_ANALYZER_WORK_KINDS_H
#define MT_ANALYZER_WORK_KINDS_H

#include <stdbool.h>
#include <stdint.h>

#include "arena.h"
#include "symbols.h"

/* Parses the name of a range: the number of a step, the part of a training step, whether the
 * framework inserted it. Pure functions of the name. */

enum mt_phase_kind {
    MT_PHASE_UNKNOWN,
    MT_PHASE_SETUP, /* only from stacks: model construction and conversion */
    MT_PHASE_DATA,
    MT_PHASE_FORWARD, /* also validation and inference */
    MT_PHASE_LOSS,
    MT_PHASE_BACKWARD,
    MT_PHASE_ZERO_GRAD,
    MT_PHASE_OPTIMIZER
};

/* The forward pass or the loss. */
static inline bool mt_phase_is_forward(uint8_t kind)
{
    return kind == MT_PHASE_FORWARD || kind == MT_PHASE_LOSS;
}

/* Rank of a name, and its number: "step#3", "ProfilerStep#3", "iteration 3",
 * "train_step[3]", "batch 3/100", "epoch 3". */
int mt_phase_step_rank(const char *name, int64_t *number);

enum mt_phase_kind mt_phase_kind_of(const char *name);

/* "Optimizer.step#Adam.step", "nccl:all_reduce", "aten::mm", ... */
bool mt_phase_name_is_plumbing(const char *name);

/* Whether a phase matches that path. "step#2/backward" is the whole path or its end. The words of
 * reports also match: "step 2, backward"; "step 2" and "step 2, between phases" are the step
 * itself, whatever the program calls its steps. */
bool mt_phase_path_matches(const char *path, const char *asked);

/* The part of a training step that a stack belongs to, for traces without annotations and events
 * outside of them. Judged once per distinct stack. */

/* The byte of a judged stack has enum mt_phase_kind in its low bits, and these flags. */
#define MT_STACK_KIND_MASK 0x07
#define MT_STACK_CASTS     0x08 /* it ends where a tensor is converted: native frames only */
#define MT_STACK_KV_CACHE  0x10 /* it has a frame of a key-value cache */
#define MT_STACK_MOVES     0x40 /* it ends where a module is moved or converted */
#define MT_STACK_BUCKETS   0x20 /* it ends where DDP or FSDP2 makes blocks for gradients */
#define MT_STACK_CLOSURE   0x80 /* in an optimizer, in the closure passed to it */

/* Zeroed memory is ready. */
struct mt_stack_kinds {
    uint8_t *frames, *stacks;
    uint8_t *made; /* enum mt_made by stack, or NULL */
    uint32_t frame_count, stack_count;
    size_t frame_capacity, stack_capacity;
};

/* Judges new stacks of the symbols. */
void mt_stack_kinds_update(struct mt_stack_kinds *kinds, const struct mt_symbols *symbols);

/* What the innermost function with a telling name makes: "load_weights", "init_parameters",
 * "alloc_cache". Weaker than the kind of the stack: for blocks of which nothing else is known. */
enum mt_made { MT_MAKES_UNKNOWN, MT_MAKES_WEIGHTS, MT_MAKES_CACHE };

/* Fills `made` for all judged stacks. */
void mt_stack_kinds_judge_names(struct mt_stack_kinds *kinds, const struct mt_symbols *symbols);

/* Megatron's buffers: the constructor in param_and_grad_buffer.py makes the one for parameters, if
 * there is one, and then the one for gradients. If stacks end at two lines of it, those of the
 * later line get MT_STACK_BUCKETS. Call it after the last update. */
void mt_stack_kinds_find_buffers(struct mt_stack_kinds *kinds, const struct mt_symbols *symbols);

/* Whether the stack, or an outer part of it, calls a model. A checkpoint does so in backward. */
bool mt_stack_kinds_calls_model(const struct mt_stack_kinds *kinds,
                                const struct mt_symbols *symbols, uint32_t stack);
void mt_stack_kinds_release(struct mt_stack_kinds *kinds);

static inline uint8_t mt_stack_kind(const struct mt_stack_kinds *kinds, uint32_t stack)
{
    return stack < kinds->stack_count ? kinds->stacks[stack] : MT_PHASE_UNKNOWN;
}

/* Parts that an optimizer does not do itself, but that a closure passed to it may. */
static inline bool mt_stack_kind_trains(uint8_t kind)
{
    return mt_phase_is_forward(kind) || kind == MT_PHASE_BACKWARD || kind == MT_PHASE_ZERO_GRAD;
}

/* Returns the frames of a stack without plumbing, root first. Fast enough for every event. */

/* Deeper frames are omitted: the caller above represents them. */
#define MT_NAMED_FRAMES_DEPTH 24

struct mt_named_frames {
    struct mt_arena *arena;
    const struct mt_symbols *symbols;
    uint8_t *plumbing; /* by frame */
    uint32_t *node;    /* by stack: its innermost ancestor that is not plumbing */
    uint8_t *depth;    /* by stack: number of such frames down to that one */
    uint32_t frame_count, frame_capacity, stack_count, stack_capacity;
};

/* Both are borrowed. */
void mt_named_frames_init(struct mt_named_frames *named, struct mt_arena *arena,
                          const struct mt_symbols *symbols);

/* Fills frames[] with the frames of `stack`, and *count: 0 for MT_NO_ID; a stack of only plumbing
 * gives its innermost frame. O(count), plus O(1) once for every stack and frame of the trace. */
void mt_named_frames_get(struct mt_named_frames *named, uint32_t stack,
                         uint32_t frames[MT_NAMED_FRAMES_DEPTH], uint32_t *count);

#endif

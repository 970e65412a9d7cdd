/* Parses the name of a range: the number of a step, the part of a training step, whether the
 * framework inserted it. Pure functions of the name. */
#ifndef MT_ANALYZER_PHASE_NAMES_H
#define MT_ANALYZER_PHASE_NAMES_H

#include <stdbool.h>
#include <stdint.h>

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

/* How certainly a numbered name is a step: in a trace with several kinds ("epoch 1" around "step
 * 3") those of the highest rank are the steps. */
#define MT_STEP_RANK_NONE 0

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

#endif

/* The plans that cuDNN's heuristics propose for a convolution. The framework takes the first one
 * that its settings allow (deterministic, TF32), or tries them all (benchmark). */
#ifndef MT_CONVOLUTION_PLANS_H
#define MT_CONVOLUTION_PLANS_H

#include "convolution_workspace.h"
#include "cudnn_question.h"

struct convolution_plan {
    struct convolution_workspace workspace;
    uint32_t numerical_notes; /* 1 << cudnnBackendNumericalNote_t */
    int32_t engine;           /* global index of the engine */
};

struct convolution_plans {
    uint32_t count; /* at least 1 */
    struct convolution_plan plans[MAX_CUDNN_CONFIGURATIONS];
};

/* Like sim_convolution_workspace, but the source of a size from the table is WORKSPACE_MEASURED
 * only for the card and the cuDNN of the measurement (H200, 9.19). For others it is
 * WORKSPACE_BY_RULE. Never WORKSPACE_ASKED. */
struct convolution_workspace sim_workspace_unasked(const struct convolution *convolution);

/* Returns the plans that the program's own cuDNN proposes (cudnn_asker.h), or one plan if it
 * proposes none. The table has the workspace of the first plan, because it was measured with
 * settings under which all plans are allowed. */
void sim_convolution_plans(const struct convolution *convolution, struct convolution_plans *plans);

#endif

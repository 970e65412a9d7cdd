#include "convolution_plans.h"

#include <string.h>

#include "cudnn_asker.h"
#include "simulated_device.h"
#include "stream_k_tail.h"
#include "wheel_versions.h"

/* The cards that stream_k_tail.h describes. */
enum { CAPABILITY_MAJOR = 9, MULTIPROCESSORS = 132 };

/* The card and the cuDNN of convolution_workspaces.def. */
#define MEASURED_CARD "NVIDIA H200"
enum { MEASURED_CUDNN = 919 };

static const int64_t MAX_WORKSPACE_BYTES = INT64_C(1) << 50;

static bool was_measured_here(void)
{
    return strcmp(sim_card()->name, MEASURED_CARD) == 0 &&
           sim_cudnn_version() / 100 == MEASURED_CUDNN;
}

/* For another card or another cuDNN, the table is only a rule: their workspace may differ. */
struct convolution_workspace sim_workspace_unasked(const struct convolution *convolution)
{
    struct convolution_workspace workspace = sim_convolution_workspace(convolution);
    if (workspace.source == WORKSPACE_MEASURED && !was_measured_here())
        workspace.source = WORKSPACE_BY_RULE;
    return workspace;
}

static bool has_described_tail(void)
{
    return sim_card()->major == CAPABILITY_MAJOR && sim_card()->multiprocessors == MULTIPROCESSORS;
}

/* Negative: the answer is invalid. */
static int64_t bytes_of(const struct convolution *convolution,
                        const struct cudnn_configuration *configuration)
{
    int64_t described = configuration->workspace_bytes;
    if (described < 0 || described > MAX_WORKSPACE_BYTES || !has_described_tail())
        return described > MAX_WORKSPACE_BYTES ? -1 : described;
    int64_t bytes = described + sim_stream_k_tail(convolution, configuration);
    return bytes < 0 ? described : bytes;
}

static void take_answer(const struct convolution *convolution, const struct cudnn_answer *answer,
                        struct convolution_plans *plans)
{
    for (uint32_t i = 0; i < answer->count; i++) {
        const struct cudnn_configuration *from = &answer->configurations[i];
        int64_t bytes = bytes_of(convolution, from);
        if (bytes >= 0) {
            plans->plans[plans->count++] = (struct convolution_plan){
                {bytes, WORKSPACE_ASKED}, from->numerical_notes, from->engine};
        }
    }
}

void sim_convolution_plans(const struct convolution *convolution, struct convolution_plans *plans)
{
    struct convolution_workspace otherwise = sim_workspace_unasked(convolution);
    struct cudnn_answer answer;

    plans->count = 0;
    if (otherwise.source != WORKSPACE_GUESSED && sim_ask_cudnn(convolution, &answer))
        take_answer(convolution, &answer, plans);
    if (plans->count == 0)
        plans->plans[plans->count++] = (struct convolution_plan){.workspace = otherwise};
    else if (otherwise.source == WORKSPACE_MEASURED)
        plans->plans[0].workspace = otherwise;
}

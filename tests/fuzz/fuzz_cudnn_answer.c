/* Any bytes as a packet from memtrace-ask-cudnn (cudnn_question.h), for a convolution of any small
 * size. */
#define _GNU_SOURCE /* clone */
#include "fuzz.h"

/* The real function starts a process. This target answers instead. */
#define sim_ask_cudnn sim_ask_another_process
#include "../../simulate/driver/cudnn/cudnn_asker.c"
#undef sim_ask_cudnn

#include "convolution_plans.h"
#include "simulated_device.h"
#include "wheel_versions.h"

bool sim_ask_cudnn(const struct convolution *convolution, struct cudnn_answer *answer);

static struct cudnn_answer received;
static ssize_t received_bytes;
static const struct sim_card card = {.name = "NVIDIA H200", .major = 9, .multiprocessors = 132};

const struct sim_card *sim_card(void)
{
    return &card;
}

int sim_cudnn_version(void)
{
    return 91900;
}

void sim_device_json(char text[MAX_DEVICE_JSON])
{
    text[0] = '\0';
}

struct convolution_workspace sim_convolution_workspace(const struct convolution *convolution)
{
    (void)convolution;
    return (struct convolution_workspace){.bytes = 512, .source = WORKSPACE_BY_RULE};
}

bool sim_ask_cudnn(const struct convolution *convolution, struct cudnn_answer *answer)
{
    (void)convolution;
    *answer = received;
    return is_sound(answer, received_bytes) && answer->state == CUDNN_ANSWERED;
}

static void take_sizes(struct fuzz_input *input, struct convolution_tensor *tensor)
{
    tensor->dimensions = 4;
    for (int i = 0; i < tensor->dimensions; i++)
        tensor->sizes[i] = 1 + (int64_t)fuzz_number(input, 1 + (unsigned)(i % 2));
    tensor->element_bytes = 1 << (int)(fuzz_number(input, 1) % 4);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fuzz_input input = {data, size};
    struct convolution convolution = {.kind = (enum convolution_kind)(fuzz_number(&input, 1) % 3)};
    struct convolution_plans plans;

    take_sizes(&input, &convolution.x);
    take_sizes(&input, &convolution.w);
    take_sizes(&input, &convolution.y);
    convolution.w.sizes[1] = convolution.x.sizes[1];
    memset(&received, 0, sizeof received);
    size_t got = input.left < sizeof received ? input.left : sizeof received;
    if (got)
        memcpy(&received, input.at, got);
    received_bytes = fuzz_number(&input, 1) % 8 ? (ssize_t)sizeof received : (ssize_t)got;
    asker.questions = received.number;
    sim_convolution_plans(&convolution, &plans);
    FUZZ_CHECK(plans.count >= 1 && plans.count <= MAX_CUDNN_CONFIGURATIONS);
    for (uint32_t i = 0; i < plans.count; i++)
        FUZZ_CHECK(plans.plans[i].workspace.bytes >= 0);
    return 0;
}

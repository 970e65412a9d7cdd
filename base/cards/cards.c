#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "cards.h"
#include "ascii.h"
#include "near_word.h"
#include "util.h"

/* How the rows of CUDA itself were measured: a recorded trace has NVML's samples of the process's
 * memory and every call that takes memory from the driver. The row is the difference in the largest
 * sample. Handles and communicators: the driver calls that the library made to create them. */
#define H200_CUDA_13 "H200 141 GB", 13
#define H100_CUDA_13 "H100 80 GB", 13
#define NVML_REST    "NVML's use of the process less what driver calls took: recordings of "

/* Terminated by a row with card NULL. */
static const struct mt_card_cost card_costs[] = {
    {MT_COST_CUDA, H200_CUDA_13, 652214272, 769339908, NVML_REST "PyTorch 2.11, driver 580.159"},
    {MT_COST_CUDA_WITH_NCCL, H200_CUDA_13, 834402304, 1048261112,
     NVML_REST "DDP and FSDP2 of one and two ranks, PyTorch 2.11, driver 580.159"},
    {MT_COST_CUBLAS_HANDLE, H200_CUDA_13, 67240960, 67240960, "driver calls in cublasCreate"},
    {MT_COST_CUDNN_HANDLE, H200_CUDA_13, 25348, 25348, "driver calls in cudnnCreate"},
    {MT_COST_NCCL_ONE_RANK, H200_CUDA_13, 406847488, 406847488,
     "driver calls in ncclCommInitRankConfig and ncclCommSplit, NCCL 2.28.9: 194 blocks each"},
    {MT_COST_NCCL_TWO_RANKS, H200_CUDA_13, 507510784, 507510784,
     "driver calls in ncclCommInitRankConfig, NCCL 2.28.9: 146 blocks on each of two devices"},
    {MT_COST_CUDA, H100_CUDA_13, 555745280, 681259512,
     NVML_REST "three processes, PyTorch 2.11, driver 580.159"},
    {MT_COST_CUDA_WITH_NCCL, H100_CUDA_13, 1052455416, 1304428544,
     NVML_REST "DDP, FSDP2 and pipelines of two and four ranks, PyTorch 2.11, driver 580.159"},
    {MT_COST_CUBLAS_HANDLE, H100_CUDA_13, 67240960, 67240960, "driver calls in cublasCreate"},
    {MT_COST_CUDNN_HANDLE, H100_CUDA_13, 25348, 25348, "driver calls in cudnnCreate"},
    {MT_COST_NCCL_TWO_RANKS, H100_CUDA_13, 507510784, 507510784,
     "driver calls in ncclCommInitRankConfig and the first collective, NCCL 2.28.9, the same with "
     "two and four ranks of one node, without NVLink multicast"},
    {MT_COST_CUDA, NULL, 0, 0, 0, NULL},
};

const struct mt_card_cost *mt_card_cost(const char *card, unsigned cuda_major,
                                        enum mt_card_cost_kind kind)
{
    for (const struct mt_card_cost *cost = card_costs; cost->card; cost++)
        if (cost->kind == kind && cost->cuda_major == cuda_major && !strcmp(cost->card, card))
            return cost;
    return NULL;
}

/* Total memory as reported to programs (cudaMemGetInfo). It is less than the nominal size because
 * error correction and the driver use some. It differs by 0.1 to 0.2 GiB between drivers. Sources:
 * what PyTorch's out-of-memory messages call "total capacity" in the named public reports, in
 * hundredths of a GiB; H200: cudaMemGetInfo of the runs in fixtures/captures.
 *
 * Compute capability decides threads and shared memory (CUDA C++ Programming Guide, "Technical
 * Specifications per Compute Capability"). Multiprocessors and L2: NVIDIA's architecture
 * whitepapers and data sheets; B200: cudaGetDeviceProperties in pytorch/ao pull request 4002. */
#define HUNDREDTHS_GIB(n) ((uint64_t)(n)*1024 * 1024 * 1024 / 100)
#define KIB(n)            ((uint32_t)(n)*1024)

/* major, minor, threads and shared memory of a multiprocessor, largest shared memory of a block */
#define CAPABILITY_7_0  7, 0, 2048, KIB(96), KIB(96)
#define CAPABILITY_7_5  7, 5, 1024, KIB(64), KIB(64)
#define CAPABILITY_8_0  8, 0, 2048, KIB(164), KIB(163)
#define CAPABILITY_8_6  8, 6, 1536, KIB(100), KIB(99)
#define CAPABILITY_8_9  8, 9, 1536, KIB(100), KIB(99)
#define CAPABILITY_9_0  9, 0, 2048, KIB(228), KIB(227)
#define CAPABILITY_10_0 10, 0, 2048, KIB(228), KIB(227)
#define CAPABILITY_12_0 12, 0, 1536, KIB(100), KIB(99)

const struct mt_card mt_cards[] = {
    /* smy20011/dreambooth-gui issue 78 */
    {"RTX 3060 12 GB", "RTX 3060", "NVIDIA GeForce RTX 3060", HUNDREDTHS_GIB(1175), 28,
     CAPABILITY_8_6, KIB(2304)},
    /* Zheng-Chong/CatVTON issue 133 */
    {"T4 16 GB", "T4", "Tesla T4", HUNDREDTHS_GIB(1456), 40, CAPABILITY_7_5, KIB(4096)},
    /* meta-llama/llama issue 918 */
    {"V100 16 GB", "V100", "Tesla V100-SXM2-16GB", HUNDREDTHS_GIB(1577), 80, CAPABILITY_7_0,
     KIB(6144)},
    /* vllm-project/vllm issue 12539 */
    {"L4 24 GB", "L4", "NVIDIA L4", HUNDREDTHS_GIB(2196), 58, CAPABILITY_8_9, KIB(49152)},
    /* Soul-AILab/SoulX-FlashTalk issue 5 */
    {"RTX 4090 24 GB", "RTX 4090", "NVIDIA GeForce RTX 4090", HUNDREDTHS_GIB(2352), 128,
     CAPABILITY_8_9, KIB(73728)},
    /* vllm-project/vllm issue 2140 */
    {"RTX 3090 24 GB", "RTX 3090", "NVIDIA GeForce RTX 3090", HUNDREDTHS_GIB(2369), 82,
     CAPABILITY_8_6, KIB(6144)},
    /* TrajectoryCrafter/TrajectoryCrafter issue 20 */
    {"RTX 5090 32 GB", "RTX 5090", "NVIDIA GeForce RTX 5090", HUNDREDTHS_GIB(3136), 170,
     CAPABILITY_12_0, KIB(98304)},
    /* haotian-liu/LLaVA issue 812 */
    {"V100 32 GB", "V100", "Tesla V100-SXM2-32GB", HUNDREDTHS_GIB(3174), 80, CAPABILITY_7_0,
     KIB(6144)},
    /* TianheWu/CoSeR issue 10 */
    {"A100 40 GB", "A100", "NVIDIA A100-SXM4-40GB", HUNDREDTHS_GIB(3950), 108, CAPABILITY_8_0,
     KIB(40960)},
    /* vllm-project/vllm issue 15598 */
    {"L40S 48 GB", "L40S", "NVIDIA L40S", HUNDREDTHS_GIB(4453), 142, CAPABILITY_8_9, KIB(98304)},
    /* vllm-project/vllm issue 27508 */
    {"H100 80 GB", "H100", "NVIDIA H100 80GB HBM3", HUNDREDTHS_GIB(7911), 132, CAPABILITY_9_0,
     KIB(51200)},
    /* lianqi1008/Control-GIC issue 6 */
    {"A100 80 GB", "A100", "NVIDIA A100-SXM4-80GB", HUNDREDTHS_GIB(7914), 108, CAPABILITY_8_0,
     KIB(40960)},
    /* fixtures/captures: *.truth.json */
    {"H200 141 GB", "H200", "NVIDIA H200", UINT64_C(150109880320), 132, CAPABILITY_9_0, KIB(61440)},
    /* pytorch/ao pull request 4002 */
    {"B200 180 GB", "B200", "NVIDIA B200", HUNDREDTHS_GIB(17835), 148, CAPABILITY_10_0,
     KIB(129536)},
    {NULL, NULL, NULL, 0, 0, 0, 0, 0, 0, 0, 0},
};

enum { CARDS = MT_ARRAY_LEN(mt_cards) - 1 };

bool mt_card_exceeds_all(uint64_t bytes)
{
    const struct mt_card *card = mt_cards;

    while (card[1].name)
        card++;
    return bytes / 2 > card->memory_bytes;
}

/* Only letters and digits count. */
static bool is_same(const char *a, const char *b)
{
    for (;;) {
        while (*a && !mt_is_alnum(*a))
            a++;
        while (*b && !mt_is_alnum(*b))
            b++;
        if (mt_lower(*a) != mt_lower(*b))
            return false;
        if (!*a)
            return true;
        a++;
        b++;
    }
}

const struct mt_card *mt_card_find(const char *word, const char **near)
{
    const struct mt_card *of_model = NULL;
    const char *names[2 * CARDS];
    size_t models = 0;

    *near = NULL;
    for (const struct mt_card *card = mt_cards; card->name; card++) {
        if (is_same(word, card->name) || is_same(word, card->driver_name))
            return card;
        if (is_same(word, card->model)) {
            of_model = card; /* among several: the one with most memory */
            models++;
        }
        names[card - mt_cards] = card->name;
        names[CARDS + (card - mt_cards)] = card->model;
    }
    if (models == 1)
        return of_model;
    *near = of_model ? of_model->name : mt_did_you_mean(word, names, MT_ARRAY_LEN(names));
    return NULL;
}

const struct mt_card *mt_card_of_size(const char *text)
{
    for (const struct mt_card *card = mt_cards; card->name; card++)
        if (is_same(text, card->name + strlen(card->model)))
            return card;
    return NULL;
}

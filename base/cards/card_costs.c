#include "card_costs.h"

#include <stddef.h>
#include <string.h>

/* How the rows of CUDA itself were measured: a recorded trace has NVML's samples of the process's
 * memory and every call that takes memory from the driver. The row is the difference in the largest
 * sample. Handles and communicators: the driver calls that the library made to create them. */
#define H200_CUDA_13 "H200 141 GB", 13
#define H100_CUDA_13 "H100 80 GB", 13
#define NVML_REST    "NVML's use of the process less what driver calls took: recordings of "

const struct mt_card_cost mt_card_costs[] = {
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
    for (const struct mt_card_cost *cost = mt_card_costs; cost->card; cost++)
        if (cost->kind == kind && cost->cuda_major == cuda_major && !strcmp(cost->card, card))
            return cost;
    return NULL;
}

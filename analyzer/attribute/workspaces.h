/* The sizes of the workspaces of cuBLAS. */
#ifndef MT_ANALYZER_WORKSPACES_H
#define MT_ANALYZER_WORKSPACES_H

#include <stdbool.h>
#include <stdint.h>

/* Taken once per handle and stream: more blocks are tensors that happen to have the size. */
#define MT_WORKSPACES_MAX 6

/* cuBLASLt's, taken once; tensors often have that size. */
#define MT_LT_WORKSPACE_BYTES (UINT64_C(1) << 20)

/* 8.125 MiB before Hopper, 32 MiB since. */
static inline bool mt_is_workspace(uint64_t requested_bytes)
{
    return requested_bytes == 8519680 || requested_bytes == 33554432;
}

#endif

/* The workspace size that cuDNN requests for a batch norm in training. */
#ifndef MT_BATCH_NORM_WORKSPACE_H
#define MT_BATCH_NORM_WORKSPACE_H

#include <stdbool.h>
#include <stddef.h>

struct batch_norm {
    size_t rows; /* elements of a channel: batch times positions */
    size_t channels;
    bool is_float;
};

/* Return bytes. For channels-last tensors they equal those on an H200 (cuDNN 9.19) for all shapes
 * that were tested, 106 in float32 and 106 in float16. For bfloat16 PyTorch uses its own kernels.
 * For other layouts cuDNN requests nothing. */
size_t sim_batch_norm_forward_bytes(const struct batch_norm *norm);
size_t sim_batch_norm_backward_bytes(const struct batch_norm *norm);

#endif

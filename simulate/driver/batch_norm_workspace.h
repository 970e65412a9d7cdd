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

/* For channels-last tensors, equals the bytes on an H200 (cuDNN 9.19) in all 106 tested shapes each
 * of float32 and float16. PyTorch has its own kernels for bfloat16. Otherwise cuDNN requests
 * nothing. */
size_t sim_batch_norm_forward_bytes(const struct batch_norm *norm);
size_t sim_batch_norm_backward_bytes(const struct batch_norm *norm);

#endif

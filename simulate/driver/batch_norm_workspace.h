/* How large a workspace cuDNN wants for a batch norm in training. */
#ifndef MT_BATCH_NORM_WORKSPACE_H
#define MT_BATCH_NORM_WORKSPACE_H

#include <stdbool.h>
#include <stddef.h>

struct batch_norm {
    size_t rows; /* elements of a channel: batch times positions */
    size_t channels;
    bool is_float;
};

/* For channels that come last, bytes as an H200 has them (cuDNN 9.19) in all 106 shapes each of
 * float32 and float16 that were tried. PyTorch has kernels of its own for bfloat16. Where the
 * channels do not come last, cuDNN wants nothing. */
size_t sim_batch_norm_forward_bytes(const struct batch_norm *norm);
size_t sim_batch_norm_backward_bytes(const struct batch_norm *norm);

#endif

/* How much more workspace the plan of a convolution requests on an H200 than the plan for a card
 * that is only described. */
#ifndef MT_STREAM_K_TAIL_H
#define MT_STREAM_K_TAIL_H

#include "cudnn_question.h"

/* Bytes to add to the workspace of CONFIGURATION, which cuDNN planned for CONVOLUTION on a
 * described card; negative if the plan for the described card requests more, and 0 if the
 * configuration is not stream-K. For cards of compute capability 9 with 132 multiprocessors.
 *
 * A stream-K kernel shares the last tiles of the output between blocks, and keeps a partial sum for
 * each share. A plan for a described card assumes the 18 multiprocessors of one cluster domain; a
 * plan with a handle assumes the number that a cluster can occupy according to the driver. Measured
 * with cuDNN 9.19 on an H200 for 14,242 convolutions: within 256 bytes for 75%, and within 1 MiB or
 * 2% of the operands for 89%, compared with 54% without the correction. */
int64_t sim_stream_k_tail(const struct convolution *convolution,
                          const struct cudnn_configuration *configuration);

#endif

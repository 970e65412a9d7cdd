/* Memory that cuDNN needs for a recurrent network besides its weights and its output. */
#ifndef MT_RNN_WORKSPACE_H
#define MT_RNN_WORKSPACE_H

#include <stdbool.h>
#include <stddef.h>

struct rnn_shape {
    int gates; /* 4 for an LSTM, 3 for a GRU, 1 for a plain network */
    int layers;
    int directions; /* 1 or 2 */
    int input_size, hidden_size;
    int projected_size; /* equals hidden_size without a projection */
    size_t steps, batch;
    size_t element_bytes;
    bool is_persistent; /* one kernel for all steps; cuDNN has none for bfloat16 */
};

/* Returns the bytes of the workspace. Compared with 700 networks on an H200 (cuDNN 9.19): in
 * inference it is exact for 619, and for 692 after rounding to the 512 bytes of PyTorch's
 * allocator. In training it is exact for 567, for 623 after rounding, and within 2% for 695,
 * because it is unknown how backward of several layers in one direction divides long sequences. The
 * tested projections were to half of the hidden size; results for others are guesses. */
size_t sim_rnn_workspace_bytes(const struct rnn_shape *shape, bool is_training);

/* Returns the bytes that training keeps from forward for backward. Exact for 681 of the 700
 * networks, and for all after rounding to 512 bytes. */
size_t sim_rnn_reserve_bytes(const struct rnn_shape *shape);

/* Returns the number of elements in the matrices of all layers, without biases. */
size_t sim_rnn_matrix_elements(const struct rnn_shape *shape);

#endif

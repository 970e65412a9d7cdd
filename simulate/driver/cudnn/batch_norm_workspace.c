/* Two partial sums for each channel of each block of rows, and a flag for each block. A block has
 * 64 channels. If there are at most 4 channels, a block has 4 channels and more rows. */
#include "batch_norm_workspace.h"

enum {
    BLOCK_CHANNELS = 64,
    FEW_CHANNELS = 4,
    BLOCK_ROWS_FLOAT = 64,
    BLOCK_ROWS_HALF = 160,
    BLOCK_ROWS_BACKWARD = 96,
    OTHER_BYTES_FORWARD = 1072,
    OTHER_BYTES_BACKWARD = 1056
};

static size_t blocks(size_t count, size_t size)
{
    return count / size + (count % size != 0);
}

static size_t workspace_bytes(const struct batch_norm *norm, size_t block_rows, size_t flag_bytes)
{
    bool is_narrow = norm->channels <= FEW_CHANNELS;
    size_t channels = is_narrow ? FEW_CHANNELS : BLOCK_CHANNELS;
    size_t wide = blocks(norm->channels, channels);
    size_t high = blocks(norm->rows, is_narrow ? block_rows * FEW_CHANNELS : block_rows);
    size_t block_bytes = 2 * channels * sizeof(float) + flag_bytes;
    return wide * high * block_bytes + wide * sizeof(float);
}

size_t sim_batch_norm_forward_bytes(const struct batch_norm *norm)
{
    size_t block_rows = norm->is_float ? BLOCK_ROWS_FLOAT : BLOCK_ROWS_HALF;
    return workspace_bytes(norm, block_rows, sizeof(float)) + OTHER_BYTES_FORWARD;
}

size_t sim_batch_norm_backward_bytes(const struct batch_norm *norm)
{
    return workspace_bytes(norm, BLOCK_ROWS_BACKWARD, 0) + OTHER_BYTES_BACKWARD;
}

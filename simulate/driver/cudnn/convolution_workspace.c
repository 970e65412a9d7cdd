/* A table of measured shapes, and a rule for all others. Tensor cores read channels-last operands.
 * cuDNN copies operands with another layout into its workspace, and pads the channels to the next
 * size that an instruction supports. */
#include "convolution_workspace.h"

enum {
    ALIGNMENT_BYTES = 16,
    FEW_CHANNELS = 4,
    CHANNELS_OF_AN_INSTRUCTION = 8,
    CHANNELS_OF_A_TILE = 64,
    MANY_POSITIONS = 1 << 15 /* of a whole batch */
};

static const int64_t MAX_TENSOR_BYTES = INT64_C(1) << 56;

struct row {
    int16_t dimensions, batch, channels, out_channels, size, kernel, stride, padding, dilation;
    int16_t groups, element_bytes, channels_last;
    int64_t forward, data, filter;
};

static const struct row rows[] = {
#define ROW(...) {__VA_ARGS__},
#include "convolution_workspaces.def"
#undef ROW
};

static int64_t bytes_of(const struct convolution_tensor *t)
{
    int64_t bytes = t->element_bytes;
    for (int i = 0; i < t->dimensions; i++)
        if (t->sizes[i] <= 0 || __builtin_mul_overflow(bytes, t->sizes[i], &bytes))
            return 0;
    return bytes;
}

static bool is_channels_last(const struct convolution_tensor *t)
{
    return t->dimensions > 2 && t->strides[1] == 1 && t->sizes[1] > 1;
}

static int64_t groups_of(const struct convolution *c)
{
    return c->w.sizes[1] > 0 ? c->x.sizes[1] / c->w.sizes[1] : 1;
}

/* PyTorch represents a convolution of one dimension by leading spatial dimensions of size 1. */
static int first_spatial(const struct convolution *c)
{
    int first = 2;
    while (first < c->x.dimensions - 1 && c->x.sizes[first] == 1 && c->w.sizes[first] == 1)
        first++;
    return first;
}

static bool all_spatial_are(const struct convolution *c, const struct row *row, int first)
{
    for (int i = first; i < c->x.dimensions; i++)
        if (c->x.sizes[i] != row->size || c->w.sizes[i] != row->kernel ||
            c->stride[i - 2] != row->stride || c->padding[i - 2] != row->padding ||
            c->dilation[i - 2] != row->dilation)
            return false;
    return true;
}

static bool is_row(const struct convolution *c, const struct row *row)
{
    int first = first_spatial(c);
    return c->x.dimensions - first == row->dimensions && c->x.sizes[0] == row->batch &&
           c->x.sizes[1] == row->channels && c->w.sizes[0] == row->out_channels &&
           groups_of(c) == row->groups && c->x.element_bytes == row->element_bytes &&
           is_channels_last(&c->x) == (row->channels_last != 0) && all_spatial_are(c, row, first);
}

static bool kernel_is_one(const struct convolution *c)
{
    for (int i = 2; i < c->w.dimensions; i++)
        if (c->w.sizes[i] != 1)
            return false;
    return true;
}

static bool has_stride(const struct convolution *c)
{
    for (int i = 2; i < c->x.dimensions; i++)
        if (c->stride[i - 2] != 1)
            return true;
    return false;
}

/* Returns the size of a tensor of `bytes` with its `channels` padded to a multiple of `step`. */
static int64_t filled(int64_t bytes, int64_t channels, int64_t step)
{
    return channels > 0 ? bytes / channels * ((channels + step - 1) / step * step) : 0;
}

/* A matrix product needs no copies. Its filter gradient is summed over the batch afterwards. */
static int64_t product_bytes(const struct convolution *c)
{
    int64_t bytes;
    if (c->kind != CONVOLUTION_FILTER ||
        __builtin_mul_overflow(c->x.sizes[0], bytes_of(&c->w), &bytes) ||
        __builtin_mul_overflow(bytes / c->w.element_bytes, (int64_t)sizeof(float), &bytes))
        return 0;
    return bytes;
}

static int64_t channels_last_bytes(const struct convolution *c)
{
    if (c->x.sizes[1] >= CHANNELS_OF_AN_INSTRUCTION || c->x.element_bytes == 4)
        return 0;
    return filled(bytes_of(&c->x), c->x.sizes[1], CHANNELS_OF_AN_INSTRUCTION) +
           filled(bytes_of(&c->w), c->w.sizes[1], CHANNELS_OF_AN_INSTRUCTION) + ALIGNMENT_BYTES;
}

/* Kernels that write directly to the result: single precision, few channels. */
static bool keeps_output(const struct convolution *c)
{
    return c->kind == CONVOLUTION_FORWARD && c->x.element_bytes == 4 && !has_stride(c) &&
           c->x.sizes[1] <= CHANNELS_OF_A_TILE &&
           (c->w.sizes[0] <= CHANNELS_OF_A_TILE ||
            c->y.sizes[0] * convolution_positions(&c->y) >= MANY_POSITIONS);
}

static int64_t copies_bytes(const struct convolution *c)
{
    int64_t x = bytes_of(&c->x), w = bytes_of(&c->w);
    int64_t y = keeps_output(c) ? 0 : bytes_of(&c->y);
    if (c->x.element_bytes == 4 && c->x.sizes[1] < CHANNELS_OF_AN_INSTRUCTION && !has_stride(c))
        return 0;
    if (c->x.element_bytes == 2 && c->x.sizes[1] < CHANNELS_OF_AN_INSTRUCTION) {
        x = filled(x, c->x.sizes[1], FEW_CHANNELS);
        w = filled(w, c->w.sizes[1], FEW_CHANNELS);
    }
    return x + y + (kernel_is_one(c) ? 0 : w) + ALIGNMENT_BYTES;
}

static int64_t by_rule(const struct convolution *c)
{
    if (groups_of(c) > 1 && c->w.sizes[1] == 1) /* depthwise convolutions have special kernels */
        return 0;
    if (is_channels_last(&c->x))
        return channels_last_bytes(c);
    bool is_product = kernel_is_one(c) && !has_stride(c) &&
                      convolution_positions(&c->x) % CHANNELS_OF_AN_INSTRUCTION == 0;
    return is_product ? product_bytes(c) : copies_bytes(c);
}

static const struct row *find_row(const struct convolution *c)
{
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (is_row(c, &rows[i]))
            return &rows[i];
    return NULL;
}

/* The sums of products below cannot overflow if each padded tensor has less than 2^56 bytes. */
static bool makes_sense(const struct convolution *c)
{
    const struct convolution_tensor *tensors[] = {&c->x, &c->w, &c->y};
    if (c->x.dimensions < 3 || c->w.dimensions != c->x.dimensions ||
        c->y.dimensions != c->x.dimensions)
        return false;
    for (int i = 0; i < 3; i++) {
        int64_t bytes = bytes_of(tensors[i]);
        if (bytes <= 0 || bytes >= MAX_TENSOR_BYTES)
            return false;
    }
    return true;
}

struct convolution_workspace sim_convolution_workspace(const struct convolution *c)
{
    struct convolution_workspace answer = {0, WORKSPACE_GUESSED};
    if (!makes_sense(c))
        return answer;
    const struct row *row = find_row(c);
    if (row != NULL) {
        answer.source = WORKSPACE_MEASURED;
        answer.bytes = c->kind == CONVOLUTION_FORWARD ? row->forward
                       : c->kind == CONVOLUTION_DATA  ? row->data
                                                      : row->filter;
    } else {
        answer.source = WORKSPACE_BY_RULE;
        answer.bytes = by_rule(c);
    }
    return answer;
}

int64_t sim_convolution_operand_bytes(const struct convolution *c)
{
    return makes_sense(c) ? bytes_of(&c->x) + bytes_of(&c->w) + bytes_of(&c->y) : 0;
}

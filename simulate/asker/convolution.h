/* A convolution, as cuDNN's operation graphs describe it. */
#ifndef MT_CONVOLUTION_H
#define MT_CONVOLUTION_H

#include <stdint.h>

enum { MAX_CONVOLUTION_DIMENSIONS = 8 };

enum convolution_kind { CONVOLUTION_FORWARD, CONVOLUTION_DATA, CONVOLUTION_FILTER };

struct convolution_tensor {
    int64_t sizes[MAX_CONVOLUTION_DIMENSIONS], strides[MAX_CONVOLUTION_DIMENSIONS];
    int64_t alignment_bytes;
    int32_t dimensions;
    int32_t element_bytes;
    int32_t data_type; /* cudnnDataType_t */
};

/* Returns the number of positions in space: of all but the first two dimensions. */
static inline int64_t convolution_positions(const struct convolution_tensor *t)
{
    int64_t count = 1;
    for (int i = 2; i < t->dimensions; i++)
        count *= t->sizes[i];
    return count;
}

struct convolution {
    enum convolution_kind kind;
    struct convolution_tensor x, w, y; /* or their gradients */
    int64_t stride[MAX_CONVOLUTION_DIMENSIONS], padding[MAX_CONVOLUTION_DIMENSIONS];
    int64_t post_padding[MAX_CONVOLUTION_DIMENSIONS], dilation[MAX_CONVOLUTION_DIMENSIONS];
    int32_t compute_type; /* cudnnDataType_t */
    int32_t mode;         /* cudnnConvolutionMode_t */
};

#endif

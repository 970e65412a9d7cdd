/* The weights of recurrent networks are consecutive in the space that cuDNN requests. */
#include "cmocka_all.h"

#include "../../simulate/driver/cudnn/batch_norm_workspace.c"
#include "../../simulate/driver/cudnn/rnn_workspace.c"
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wmissing-prototypes" /* they are in the vendor's headers */
#include "../../simulate/driver/cudnn/simulated_cudnn.c"
#pragma GCC diagnostic pop

enum { MAX_ELEMENTS = 1 << 14 };

int sim_cudnn_version(void)
{
    return 91900;
}

int sim_cuda_version(void)
{
    return 13000;
}

struct network {
    int cell, gates, directions, input, hidden, projected, layers;
};

static cudnnRNNDescriptor_t describe_network(const struct network *n)
{
    cudnnRNNDescriptor_t rnn = NULL;

    assert_int_equal(cudnnCreateRNNDescriptor(&rnn), CUDNN_STATUS_SUCCESS);
    assert_int_equal(
        cudnnSetRNNDescriptor_v8(
            rnn, CUDNN_RNN_ALGO_STANDARD, (cudnnRNNMode_t)n->cell, CUDNN_RNN_DOUBLE_BIAS,
            n->directions == 2 ? CUDNN_BIDIRECTIONAL : CUDNN_UNIDIRECTIONAL, 0, CUDNN_DATA_FLOAT,
            CUDNN_DATA_FLOAT, 0, n->input, n->hidden, n->projected, n->layers, NULL, 0),
        CUDNN_STATUS_SUCCESS);
    return rnn;
}

static void mark(unsigned char *seen, const float *space, const void *at,
                 cudnnTensorDescriptor_t desc)
{
    size_t first = (size_t)((const float *)at - space);
    size_t count = (size_t)(desc->sizes[0] * desc->sizes[1] * desc->sizes[2]);

    for (size_t i = first; i < first + count; i++) {
        assert_in_range(i, 0, MAX_ELEMENTS - 1);
        seen[i]++;
    }
}

static void mark_parameter(unsigned char *seen, float *space, cudnnRNNDescriptor_t rnn, int layer,
                           int id)
{
    struct cudnnTensorStruct matrix = {0}, bias = {0};
    void *matrix_at = NULL, *bias_at = NULL;

    cudnnGetRNNWeightParams(NULL, rnn, layer, 0, space, id, &matrix, &matrix_at, &bias, &bias_at);
    mark(seen, space, matrix_at, &matrix);
    if (bias_at != NULL)
        mark(seen, space, bias_at, &bias);
}

static void check_space(const struct network *n)
{
    static float space[MAX_ELEMENTS];
    unsigned char seen[MAX_ELEMENTS] = {0};
    cudnnRNNDescriptor_t rnn = describe_network(n);
    size_t bytes = 0;

    cudnnGetRNNWeightSpaceSize(NULL, rnn, &bytes);
    for (int layer = 0; layer < n->layers * n->directions; layer++)
        for (int id = 0; id < 2 * n->gates + (n->projected > 0); id++)
            mark_parameter(seen, space, rnn, layer, id);
    assert_in_range(bytes / sizeof(float), 1, MAX_ELEMENTS - 1);
    for (size_t i = 0; i < MAX_ELEMENTS; i++)
        assert_int_equal(seen[i], i < bytes / sizeof(float));
    cudnnDestroyRNNDescriptor(rnn);
}

TEST(each_weight_has_a_place_of_its_own)
{
    const struct network networks[] = {
        {CUDNN_LSTM, 4, 1, 5, 7, 0, 1},  {CUDNN_LSTM, 4, 2, 5, 7, 3, 3},
        {CUDNN_GRU, 3, 2, 11, 6, 0, 2},  {0, 1, 1, 4, 9, 0, 4},
        {CUDNN_LSTM, 4, 1, 12, 8, 2, 2},
    };

    for (size_t i = 0; i < sizeof networks / sizeof networks[0]; i++)
        check_space(&networks[i]);
}

TEST(a_projection_beyond_the_hidden_size_is_refused)
{
    struct cudnnRNNStruct rnn;

    assert_int_equal(cudnnSetRNNDescriptor_v8(&rnn, CUDNN_RNN_ALGO_STANDARD, CUDNN_LSTM,
                                              CUDNN_RNN_DOUBLE_BIAS, CUDNN_UNIDIRECTIONAL, 0,
                                              CUDNN_DATA_FLOAT, CUDNN_DATA_FLOAT, 0, 4, 8, 9, 1,
                                              NULL, 0),
                     CUDNN_STATUS_NOT_SUPPORTED);
}

int main(void)
{
    return run_tests_of_file(NULL, NULL);
}

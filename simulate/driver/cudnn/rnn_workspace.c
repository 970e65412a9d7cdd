/* The workspace has 8 MiB and a copy of the matrices for each layer and direction. It also has
 * buffers as long as the sequence, states of one step, and counters. The factors were fitted as
 * integers. */
#include "rnn_workspace.h"

enum {
    ALIGNMENT_BYTES = 256,
    BYTES_OF_A_LAYER = 8 << 20,
    COUNTER_BYTES = 8, /* for each sequence of the batch, rounded up to COUNTER_ALIGNMENT */
    COUNTER_ALIGNMENT = 32,
    STEPS_OF_A_CHUNK = 24 /* approximate: backward of several layers in one direction */
};

/* Sums of such products stay far below the largest number. */
static const size_t MAX_PRODUCT = (size_t)1 << 56;

/* Buffers of steps x batch x hidden_size, and, for each layer, of batch x hidden_size. */
struct factors {
    int forward, forward_states, backward_states;
    int persistent_states, persistent_backward; /* the latter is added */
};

/* Indexed by cell and by the number of directions minus 1. */
static const struct factors factors[3][2] = {
    {{2, 3, 5, 4, 9}, {8, 10, 14, 10, 9}},
    {{4, 5, 5, 4, 14}, {12, 14, 14, 10, 14}},
    {{5, 10, 11, 8, 12}, {14, 24, 26, 18, 12}},
};

static size_t product(size_t a, size_t b)
{
    size_t result;
    return __builtin_mul_overflow(a, b, &result) || result > MAX_PRODUCT ? MAX_PRODUCT : result;
}

static size_t smaller(size_t a, size_t b)
{
    return a < b ? a : b;
}

static const struct factors *factors_of(const struct rnn_shape *shape)
{
    int cell = shape->gates == 4 ? 2 : shape->gates == 3 ? 1 : 0;
    return &factors[cell][shape->directions == 2];
}

static bool is_projected(const struct rnn_shape *shape)
{
    return shape->projected_size != shape->hidden_size;
}

static size_t sequence_bytes(const struct rnn_shape *shape, int width)
{
    return product(product(shape->steps, shape->batch),
                   product((size_t)width, shape->element_bytes));
}

static size_t state_bytes(const struct rnn_shape *shape)
{
    size_t one = product(shape->batch, product((size_t)shape->hidden_size, shape->element_bytes));
    return product((size_t)shape->layers, one);
}

size_t sim_rnn_matrix_elements(const struct rnn_shape *shape)
{
    size_t hidden = (size_t)shape->hidden_size, out = (size_t)shape->projected_size;
    size_t directions = (size_t)shape->directions;
    size_t rows = product((size_t)shape->gates, hidden);
    size_t projection = is_projected(shape) ? product(hidden, out) : 0;
    size_t first = product(rows, (size_t)shape->input_size + out) + projection;
    size_t other = product(rows, out * directions + out) + projection;
    size_t all = first + product((size_t)shape->layers - 1, other);
    return product(directions, smaller(all, MAX_PRODUCT));
}

static size_t fixed_bytes(const struct rnn_shape *shape)
{
    size_t layers = (size_t)shape->layers * (size_t)shape->directions;
    size_t counters = product(COUNTER_BYTES, shape->batch) + COUNTER_ALIGNMENT - 1;
    return product(layers, BYTES_OF_A_LAYER) +
           product(sim_rnn_matrix_elements(shape), shape->element_bytes) + ALIGNMENT_BYTES +
           counters / COUNTER_ALIGNMENT * COUNTER_ALIGNMENT;
}

static size_t forward_bytes(const struct rnn_shape *shape)
{
    const struct factors *f = factors_of(shape);
    int sequences = f->forward + (shape->is_persistent ? 4 * shape->gates : 0);
    int states = shape->is_persistent ? f->persistent_states : f->forward_states;
    size_t projected = 0;
    if (is_projected(shape)) {
        states -= shape->directions;
        projected = (size_t)shape->directions * sequence_bytes(shape, shape->projected_size);
    }
    return (size_t)sequences * sequence_bytes(shape, shape->hidden_size) +
           sequence_bytes(shape, shape->input_size) + projected +
           (size_t)states * state_bytes(shape);
}

/* Unless it is persistent, backward of several layers in one direction processes chunks of steps,
 * and needs this memory for the steps after the first chunk. */
static size_t not_at_once_bytes(const struct rnn_shape *shape)
{
    if (shape->layers == 1 || shape->directions == 2 || shape->is_persistent ||
        shape->steps <= STEPS_OF_A_CHUNK)
        return 0;
    return product(
        shape->steps - STEPS_OF_A_CHUNK,
        product(shape->batch, product((size_t)shape->hidden_size, shape->element_bytes)));
}

static int backward_sequences(const struct rnn_shape *shape)
{
    bool is_deep = shape->layers > 1;
    if (shape->directions == 2)
        return is_deep ? 8 : 6;
    return 3 + (is_deep && shape->is_persistent);
}

static size_t backward_bytes(const struct rnn_shape *shape)
{
    const struct factors *f = factors_of(shape);
    int wide = shape->input_size > shape->hidden_size ? shape->input_size : shape->hidden_size;
    int sequences = backward_sequences(shape), states = f->backward_states;
    if (shape->is_persistent) {
        sequences += f->persistent_backward;
        states += shape->directions == 1;
    }
    if (is_projected(shape))
        states -= 2 * shape->directions;
    return (size_t)sequences * sequence_bytes(shape, shape->hidden_size) +
           2 * sequence_bytes(shape, shape->input_size) +
           (shape->directions == 2 ? 4U : 1U) * sequence_bytes(shape, wide) +
           (size_t)states * state_bytes(shape) - not_at_once_bytes(shape);
}

size_t sim_rnn_workspace_bytes(const struct rnn_shape *shape, bool is_training)
{
    size_t forward = forward_bytes(shape);
    size_t backward = is_training ? backward_bytes(shape) : 0;
    return fixed_bytes(shape) + (backward > forward ? backward : forward);
}

/* The gates, and the state of a cell or the input of the hidden part of a gate. */
static size_t values_kept(const struct rnn_shape *shape)
{
    return shape->gates == 4 ? 5 : shape->gates == 3 ? 6 : 1;
}

size_t sim_rnn_reserve_bytes(const struct rnn_shape *shape)
{
    size_t layers = (size_t)shape->layers;
    size_t hidden = sequence_bytes(shape, shape->hidden_size);
    size_t kept = product(layers, product(values_kept(shape), hidden));
    if (is_projected(shape))
        kept += product(layers, hidden + sequence_bytes(shape, shape->projected_size));
    return (size_t)shape->directions * (kept + product(layers - 1, hidden)) + ALIGNMENT_BYTES;
}

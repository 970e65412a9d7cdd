/* The part of cuDNN's graph interface (version 9) that one convolution needs. The numbers are from
 * cudnn_graph.h. */
#include "cudnn_heuristics.h"

#include <dlfcn.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

typedef void *descriptor;

/* An engine has up to 12 knobs. */
enum { MAX_KNOBS = 24, MAX_NOTES = 32 };
enum { MAX_DESCRIPTORS = MAX_CUDNN_CONFIGURATIONS + MAX_KNOBS + 16 };

enum type {
    TYPE_DATA_TYPE = 1,
    TYPE_INT64 = 3,
    TYPE_FLOAT = 4,
    TYPE_DOUBLE = 5,
    TYPE_CONVOLUTION_MODE = 7,
    TYPE_HEURISTICS_MODE = 8,
    TYPE_KNOB_TYPE = 9,
    TYPE_NUMERICAL_NOTE = 11,
    TYPE_DESCRIPTOR = 15,
    TYPE_CHAR = 24
};

enum descriptor_type {
    CONVOLUTION_DESCRIPTOR = 1,
    ENGINE_DESCRIPTOR = 2,
    CONFIGURATION_DESCRIPTOR = 3,
    HEURISTICS_DESCRIPTOR = 4,
    KNOB_DESCRIPTOR = 7,
    FORWARD_DESCRIPTOR = 10,
    FILTER_GRADIENT_DESCRIPTOR = 11,
    DATA_GRADIENT_DESCRIPTOR = 12,
    GRAPH_DESCRIPTOR = 15,
    TENSOR_DESCRIPTOR = 17,
    DEVICE_DESCRIPTOR = 38
};

enum attribute {
    CONVOLUTION_COMPUTE_TYPE = 100,
    CONVOLUTION_MODE = 101,
    CONVOLUTION_DILATIONS = 102,
    CONVOLUTION_STRIDES = 103,
    CONVOLUTION_POST_PADDINGS = 104,
    CONVOLUTION_PRE_PADDINGS = 105,
    CONVOLUTION_SPATIAL_DIMENSIONS = 106,
    HEURISTICS_MODE = 200,
    HEURISTICS_GRAPH = 201,
    HEURISTICS_RESULTS = 202,
    HEURISTICS_DEVICE = 204,
    CONFIGURATION_ENGINE = 300,
    CONFIGURATION_KNOBS = 302,
    CONFIGURATION_WORKSPACE_BYTES = 303,
    KNOB_TYPE = 600,
    KNOB_VALUE = 601,
    GRAPH_OPERATIONS = 801,
    TENSOR_ALIGNMENT = 900,
    TENSOR_DATA_TYPE = 901,
    TENSOR_SIZES = 902,
    TENSOR_STRIDES = 903,
    TENSOR_ID = 906,
    ENGINE_INDEX = 1301,
    ENGINE_NUMERICAL_NOTES = 1303,
    DEVICE_JSON = 2702
};

/* Offset from the first attribute of an operation. */
enum operation_part { ALPHA, BETA, GEOMETRY, OPERAND_W, OPERAND_X, OPERAND_Y };

static const struct {
    int descriptor, first_attribute;
} operations[] = {
    [CONVOLUTION_FORWARD] = {FORWARD_DESCRIPTOR, 700},
    [CONVOLUTION_DATA] = {DATA_GRADIENT_DESCRIPTOR, 706},
    [CONVOLUTION_FILTER] = {FILTER_GRADIENT_DESCRIPTOR, 712},
};

enum { DATA_DOUBLE = 1, MODE_INSTANT = 0 };

struct cudnn_heuristics {
    int (*create)(int type, descriptor *made);
    int (*destroy)(descriptor made);
    int (*set)(descriptor to, int attribute, int type, int64_t count, const void *values);
    int (*get)(descriptor from, int attribute, int type, int64_t room, int64_t *count,
               void *values);
    int (*finalize)(descriptor made);
    descriptor device;
    descriptor made[MAX_DESCRIPTORS]; /* of one question */
    size_t made_count;
    bool failed; /* a call for this question */
};

static bool find(void *library, const char *name, void *function)
{
    void *found = dlsym(library, name);

    memcpy(function, &found, sizeof found);
    return found != NULL;
}

static bool find_all(struct cudnn_heuristics *h, void *library)
{
    return find(library, "cudnnBackendCreateDescriptor", &h->create) &&
           find(library, "cudnnBackendDestroyDescriptor", &h->destroy) &&
           find(library, "cudnnBackendSetAttribute", &h->set) &&
           find(library, "cudnnBackendGetAttribute", &h->get) &&
           find(library, "cudnnBackendFinalize", &h->finalize);
}

static bool describe_device(struct cudnn_heuristics *h, const char *json)
{
    return h->create(DEVICE_DESCRIPTOR, &h->device) == 0 &&
           h->set(h->device, DEVICE_JSON, TYPE_CHAR, (int64_t)strlen(json), json) == 0 &&
           h->finalize(h->device) == 0;
}

struct cudnn_heuristics *cudnn_heuristics_open(const char *library, const char *device_json)
{
    struct cudnn_heuristics *h = calloc(1, sizeof *h);
    void *loaded = h != NULL ? dlopen(library, RTLD_NOW | RTLD_GLOBAL) : NULL;

    if (loaded != NULL && find_all(h, loaded) && describe_device(h, device_json)) {
        return h;
    }
    free(h);
    return NULL;
}

static descriptor make(struct cudnn_heuristics *h, int type)
{
    descriptor made = NULL;

    if (h->made_count == MAX_DESCRIPTORS || h->create(type, &made) != 0) {
        h->failed = true;
        return NULL;
    }
    h->made[h->made_count++] = made;
    return made;
}

static void set(struct cudnn_heuristics *h, descriptor to, int attribute, int type, int64_t count,
                const void *values)
{
    h->failed = h->failed || h->set(to, attribute, type, count, values) != 0;
}

static void set_numbers(struct cudnn_heuristics *h, descriptor to, int attribute, int64_t count,
                        const int64_t *numbers)
{
    set(h, to, attribute, TYPE_INT64, count, numbers);
}

static void set_one(struct cudnn_heuristics *h, descriptor to, int attribute, int type, int value)
{
    set(h, to, attribute, type, 1, &value);
}

static void set_other(struct cudnn_heuristics *h, descriptor to, int attribute, descriptor other)
{
    set(h, to, attribute, TYPE_DESCRIPTOR, 1, &other);
}

static void finalize(struct cudnn_heuristics *h, descriptor made)
{
    h->failed = h->failed || h->finalize(made) != 0;
}

static descriptor make_tensor(struct cudnn_heuristics *h, int64_t id,
                              const struct convolution_tensor *from)
{
    descriptor tensor = make(h, TENSOR_DESCRIPTOR);

    set_one(h, tensor, TENSOR_DATA_TYPE, TYPE_DATA_TYPE, from->data_type);
    set_numbers(h, tensor, TENSOR_SIZES, from->dimensions, from->sizes);
    set_numbers(h, tensor, TENSOR_STRIDES, from->dimensions, from->strides);
    set_numbers(h, tensor, TENSOR_ID, 1, &id);
    set_numbers(h, tensor, TENSOR_ALIGNMENT, 1, &from->alignment_bytes);
    finalize(h, tensor);
    return tensor;
}

static descriptor make_geometry(struct cudnn_heuristics *h, const struct convolution *c)
{
    descriptor geometry = make(h, CONVOLUTION_DESCRIPTOR);
    int64_t spatial = c->x.dimensions - 2;

    set_one(h, geometry, CONVOLUTION_COMPUTE_TYPE, TYPE_DATA_TYPE, c->compute_type);
    set_one(h, geometry, CONVOLUTION_MODE, TYPE_CONVOLUTION_MODE, c->mode);
    set_numbers(h, geometry, CONVOLUTION_SPATIAL_DIMENSIONS, 1, &spatial);
    set_numbers(h, geometry, CONVOLUTION_PRE_PADDINGS, spatial, c->padding);
    set_numbers(h, geometry, CONVOLUTION_POST_PADDINGS, spatial, c->post_padding);
    set_numbers(h, geometry, CONVOLUTION_DILATIONS, spatial, c->dilation);
    set_numbers(h, geometry, CONVOLUTION_STRIDES, spatial, c->stride);
    finalize(h, geometry);
    return geometry;
}

static void set_scale(struct cudnn_heuristics *h, descriptor to, int attribute, bool wide,
                      double value)
{
    float narrow = (float)value;

    set(h, to, attribute, wide ? TYPE_DOUBLE : TYPE_FLOAT, 1,
        wide ? (const void *)&value : (const void *)&narrow);
}

static descriptor make_operation(struct cudnn_heuristics *h, const struct convolution *c)
{
    descriptor x = make_tensor(h, 'x', &c->x), w = make_tensor(h, 'w', &c->w);
    descriptor y = make_tensor(h, 'y', &c->y), geometry = make_geometry(h, c);
    descriptor operation = make(h, operations[c->kind].descriptor);
    int first = operations[c->kind].first_attribute;
    bool wide = c->compute_type == DATA_DOUBLE;

    set_scale(h, operation, first + ALPHA, wide, 1);
    set_scale(h, operation, first + BETA, wide, 0);
    set_other(h, operation, first + GEOMETRY, geometry);
    set_other(h, operation, first + OPERAND_W, w);
    set_other(h, operation, first + OPERAND_X, x);
    set_other(h, operation, first + OPERAND_Y, y);
    finalize(h, operation);
    return operation;
}

static descriptor make_heuristics(struct cudnn_heuristics *h, const struct convolution *c)
{
    descriptor operation = make_operation(h, c), graph = make(h, GRAPH_DESCRIPTOR);
    descriptor heuristics = make(h, HEURISTICS_DESCRIPTOR);

    set_other(h, graph, GRAPH_OPERATIONS, operation);
    finalize(h, graph);
    set_other(h, heuristics, HEURISTICS_GRAPH, graph);
    set_one(h, heuristics, HEURISTICS_MODE, TYPE_HEURISTICS_MODE, MODE_INSTANT);
    set_other(h, heuristics, HEURISTICS_DEVICE, h->device);
    finalize(h, heuristics);
    return heuristics;
}

static uint32_t numerical_notes(struct cudnn_heuristics *h, descriptor engine)
{
    int notes[MAX_NOTES] = {0};
    int64_t count = 0;
    uint32_t mask = 0;

    if (h->get(engine, ENGINE_NUMERICAL_NOTES, TYPE_NUMERICAL_NOTE, MAX_NOTES, &count, notes) !=
        0) {
        return 0;
    }
    for (int64_t i = 0; i < count && i < MAX_NOTES; i++) {
        mask |= notes[i] >= 0 && notes[i] < MAX_NOTES ? UINT32_C(1) << notes[i] : 0;
    }
    return mask;
}

/* Destroys what was made after the first `kept` descriptors. */
static void keep_descriptors(struct cudnn_heuristics *h, size_t kept)
{
    while (h->made_count > kept) {
        (void)h->destroy(h->made[--h->made_count]);
    }
}

static void read_knob(struct cudnn_heuristics *h, descriptor knob, int32_t knobs[CUDNN_KNOB_TYPES])
{
    int64_t count = 0, value = CUDNN_NO_KNOB;
    int type = -1;

    if (h->get(knob, KNOB_TYPE, TYPE_KNOB_TYPE, 1, &count, &type) == 0 &&
        h->get(knob, KNOB_VALUE, TYPE_INT64, 1, &count, &value) == 0 && type >= 0 &&
        type < CUDNN_KNOB_TYPES && value >= 0 && value <= INT32_MAX) {
        knobs[type] = (int32_t)value;
    }
}

static void read_knobs(struct cudnn_heuristics *h, descriptor configuration,
                       int32_t knobs[CUDNN_KNOB_TYPES])
{
    descriptor brought[MAX_KNOBS];
    size_t made_before = h->made_count;
    int64_t count = 0;

    for (int i = 0; i < CUDNN_KNOB_TYPES; i++) {
        knobs[i] = CUDNN_NO_KNOB;
    }
    for (int i = 0; i < MAX_KNOBS; i++) {
        brought[i] = make(h, KNOB_DESCRIPTOR);
    }
    if (!h->failed && h->get(configuration, CONFIGURATION_KNOBS, TYPE_DESCRIPTOR, MAX_KNOBS, &count,
                             brought) == 0) {
        for (int64_t i = 0; i < count && i < MAX_KNOBS; i++) {
            read_knob(h, brought[i], knobs);
        }
    }
    keep_descriptors(h, made_before);
}

static bool read_configuration(struct cudnn_heuristics *h, descriptor configuration,
                               struct cudnn_configuration *found)
{
    size_t made_before = h->made_count;
    descriptor engine = make(h, ENGINE_DESCRIPTOR);
    int64_t count = 0, bytes = -1, index = -1;
    bool is_read = false;

    if (engine != NULL &&
        h->get(configuration, CONFIGURATION_WORKSPACE_BYTES, TYPE_INT64, 1, &count, &bytes) == 0 &&
        h->get(configuration, CONFIGURATION_ENGINE, TYPE_DESCRIPTOR, 1, &count, &engine) == 0 &&
        h->get(engine, ENGINE_INDEX, TYPE_INT64, 1, &count, &index) == 0) {
        found->workspace_bytes = bytes;
        found->engine = (int32_t)index;
        found->numerical_notes = numerical_notes(h, engine);
        read_knobs(h, configuration, found->knobs);
        is_read = bytes >= 0;
    }
    keep_descriptors(h, made_before);
    return is_read;
}

static int64_t list_configurations(struct cudnn_heuristics *h, descriptor heuristics,
                                   descriptor *configurations)
{
    int64_t count = 0, made = 0;

    if (h->failed ||
        h->get(heuristics, HEURISTICS_RESULTS, TYPE_DESCRIPTOR, 0, &count, NULL) != 0) {
        return 0;
    }
    while (made < count && made < MAX_CUDNN_CONFIGURATIONS) {
        configurations[made++] = make(h, CONFIGURATION_DESCRIPTOR);
    }
    count = 0;
    if (h->failed || made == 0 ||
        h->get(heuristics, HEURISTICS_RESULTS, TYPE_DESCRIPTOR, made, &count, configurations) !=
            0) {
        return 0;
    }
    return count < made ? count : made;
}

uint32_t cudnn_heuristics_ask(struct cudnn_heuristics *h, const struct convolution *convolution,
                              struct cudnn_configuration found[MAX_CUDNN_CONFIGURATIONS])
{
    descriptor configurations[MAX_CUDNN_CONFIGURATIONS];
    uint32_t count = 0;

    h->failed = false;
    int64_t listed = list_configurations(h, make_heuristics(h, convolution), configurations);
    for (int64_t i = 0; i < listed; i++) {
        if (read_configuration(h, configurations[i], &found[count])) {
            count++;
        }
    }
    keep_descriptors(h, 0);
    return count;
}

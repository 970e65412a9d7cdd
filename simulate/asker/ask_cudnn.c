/* memtrace-ask-cudnn LIBRARY DEVICE PROCESS: answers the questions of the simulated cuDNN with a
 * real one. It is a separate process, because the real library has the same names as the simulated
 * one, and its failures must not harm the program. Standard input is the socket to the program. The
 * process ends when PROCESS (the program) ends, and if a question takes too long. */
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "cudnn_question.h"

/* Queries the heuristics of a real cuDNN for a device that is described but not present.
 *
 * The part of cuDNN's graph interface (version 9) that one convolution needs. The numbers are from
 * cudnn_graph.h. */

typedef void *descriptor;

/* An engine has up to 12 knobs. */
enum { MAX_KNOBS = 24, MAX_NOTES = 32 };
enum { MAX_DESCRIPTORS = MAX_CUDNN_CONFIGURATIONS + MAX_KNOBS + 16 };

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

struct cudnn_heuristics;

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

/* Loads cuDNN's graph library (libcudnn_graph.so.9), which loads the other parts of cuDNN, and
 * passes it the description of the device, the JSON text of
 * CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION. Takes 0.2 to 0.5 s and 70 to 170 MB, depending on the
 * version. NULL: the library cannot be loaded, lacks functions, or does not accept descriptions of
 * devices. A process may open it only once, and it stays loaded until the process ends. */
static struct cudnn_heuristics *cudnn_heuristics_open(const char *library, const char *device_json)
{
    struct cudnn_heuristics *h = calloc(1, sizeof *h);
    void *loaded = h != NULL ? dlopen(library, RTLD_NOW | RTLD_GLOBAL) : NULL;

    if (loaded != NULL && find_all(h, loaded) && describe_device(h, device_json))
        return h;
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

    if (h->get(engine, ENGINE_NUMERICAL_NOTES, TYPE_NUMERICAL_NOTE, MAX_NOTES, &count, notes) != 0)
        return 0;
    for (int64_t i = 0; i < count && i < MAX_NOTES; i++)
        mask |= notes[i] >= 0 && notes[i] < MAX_NOTES ? UINT32_C(1) << notes[i] : 0;
    return mask;
}

/* Destroys what was made after the first `kept` descriptors. */
static void keep_descriptors(struct cudnn_heuristics *h, size_t kept)
{
    while (h->made_count > kept)
        (void)h->destroy(h->made[--h->made_count]);
}

static void read_knob(struct cudnn_heuristics *h, descriptor knob, int32_t knobs[CUDNN_KNOB_TYPES])
{
    int64_t count = 0, value = CUDNN_NO_KNOB;
    int type = -1;

    if (h->get(knob, KNOB_TYPE, TYPE_KNOB_TYPE, 1, &count, &type) == 0 &&
        h->get(knob, KNOB_VALUE, TYPE_INT64, 1, &count, &value) == 0 && type >= 0 &&
        type < CUDNN_KNOB_TYPES && value >= 0 && value <= INT32_MAX)
        knobs[type] = (int32_t)value;
}

static void read_knobs(struct cudnn_heuristics *h, descriptor configuration,
                       int32_t knobs[CUDNN_KNOB_TYPES])
{
    descriptor brought[MAX_KNOBS];
    size_t made_before = h->made_count;
    int64_t count = 0;

    for (int i = 0; i < CUDNN_KNOB_TYPES; i++)
        knobs[i] = CUDNN_NO_KNOB;
    for (int i = 0; i < MAX_KNOBS; i++)
        brought[i] = make(h, KNOB_DESCRIPTOR);
    if (!h->failed && h->get(configuration, CONFIGURATION_KNOBS, TYPE_DESCRIPTOR, MAX_KNOBS, &count,
                             brought) == 0)
        for (int64_t i = 0; i < count && i < MAX_KNOBS; i++)
            read_knob(h, brought[i], knobs);
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

    if (h->failed || h->get(heuristics, HEURISTICS_RESULTS, TYPE_DESCRIPTOR, 0, &count, NULL) != 0)
        return 0;
    while (made < count && made < MAX_CUDNN_CONFIGURATIONS)
        configurations[made++] = make(h, CONFIGURATION_DESCRIPTOR);
    count = 0;
    if (h->failed || made == 0 ||
        h->get(heuristics, HEURISTICS_RESULTS, TYPE_DESCRIPTOR, made, &count, configurations) != 0)
        return 0;
    return count < made ? count : made;
}

/* Writes the configurations that cuDNN would try for `convolution` to `found`, the best one first.
 * Omits those whose workspace is unknown. Returns their number; 0 if there are none, or if cuDNN
 * rejects the convolution. Takes 1 ms, or 0.4 s for the first convolution of a kind. */
static uint32_t cudnn_heuristics_ask(struct cudnn_heuristics *h,
                                     const struct convolution *convolution,
                                     struct cudnn_configuration found[MAX_CUDNN_CONFIGURATIONS])
{
    descriptor configurations[MAX_CUDNN_CONFIGURATIONS];
    uint32_t count = 0;

    h->failed = false;
    int64_t listed = list_configurations(h, make_heuristics(h, convolution), configurations);
    for (int64_t i = 0; i < listed; i++)
        if (read_configuration(h, configurations[i], &found[count]))
            count++;
    keep_descriptors(h, 0);
    return count;
}

enum { LOOK_FOR_PROGRAM_MS = 1000, LOAD_S = 60, QUESTION_S = 20, USAGE = 2 };

/* Closes files that were inherited from the program. */
static void close_others(void)
{
    DIR *folder = opendir("/proc/self/fd");
    const struct dirent *entry;

    while (folder != NULL && (entry = readdir(folder)) != NULL) {
        int fd = atoi(entry->d_name);
        if (fd > STDERR_FILENO && fd != dirfd(folder))
            (void)close(fd);
    }
    if (folder != NULL)
        closedir(folder);
}

/* The program blocked all signals while it started this process. Signals of its terminal are not
 * meant for this process. */
static void set_signals(void)
{
    sigset_t none;

    sigemptyset(&none);
    (void)signal(SIGALRM, SIG_DFL);
    (void)signal(SIGINT, SIG_IGN);
    (void)signal(SIGQUIT, SIG_IGN);
    (void)signal(SIGHUP, SIG_IGN);
    (void)sigprocmask(SIG_SETMASK, &none, NULL);
}

static bool is_alive(pid_t process)
{
    return kill(process, 0) == 0 || errno == EPERM;
}

/* A child of the program may keep the other end open. */
static bool wait_for_question(pid_t program)
{
    struct pollfd wait = {.fd = CUDNN_ASKER_SOCKET, .events = POLLIN};

    while (is_alive(program))
        if (poll(&wait, 1, LOOK_FOR_PROGRAM_MS) > 0)
            return true;
    return false;
}

static bool is_sound(const struct cudnn_question *question)
{
    const struct convolution *c = &question->convolution;
    const struct convolution_tensor *tensors[] = {&c->x, &c->w, &c->y};

    for (size_t i = 0; i < sizeof tensors / sizeof tensors[0]; i++)
        if (tensors[i]->dimensions < 3 || tensors[i]->dimensions > MAX_CONVOLUTION_DIMENSIONS)
            return false;
    return question->mark == CUDNN_QUESTION_MARK && (unsigned)c->kind <= CONVOLUTION_FILTER;
}

static bool serve(struct cudnn_heuristics *heuristics)
{
    struct cudnn_question question;
    struct cudnn_answer answer = {.mark = CUDNN_ANSWER_MARK};

    if (recv(CUDNN_ASKER_SOCKET, &question, sizeof question, 0) != (ssize_t)sizeof question)
        return false;
    (void)alarm(QUESTION_S);
    answer.number = question.number;
    answer.state = heuristics != NULL ? CUDNN_ANSWERED : CUDNN_CANNOT_PLAN;
    if (heuristics != NULL && is_sound(&question)) {
        answer.count =
            cudnn_heuristics_ask(heuristics, &question.convolution, answer.configurations);
    }
    (void)alarm(0);
    return send(CUDNN_ASKER_SOCKET, &answer, sizeof answer, MSG_NOSIGNAL) == (ssize_t)sizeof answer;
}

int main(int count, char **arguments)
{
    pid_t program = count == 4 ? (pid_t)atol(arguments[3]) : 0;

    if (program <= 0)
        return USAGE;
    close_others();
    set_signals();
    (void)!chdir("/");
    (void)alarm(LOAD_S);
    struct cudnn_heuristics *heuristics = cudnn_heuristics_open(arguments[1], arguments[2]);
    (void)alarm(0);
    while (wait_for_question(program) && serve(heuristics))
        continue;
    return 0;
}

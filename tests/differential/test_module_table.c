/* Compares layers and their parameters with named_parameters() of the models. */
#include "cmocka_all.h"

#include <jansson.h>
#include <string.h>

#include "capture.h"
#include "module_table.h"
#include "util.h"

static struct capture analyze(const char *folder, const char *name, const char *suffix)
{
    static const struct mt_analyze_options options = {.models = MT_MODEL_MODULES};

    return capture_analyze(capture_path(folder, name, suffix), &options);
}

static const struct mt_module_row *layer_at(const struct mt_modules *modules, const char *path,
                                            uint32_t layer)
{
    for (uint32_t i = 0; i < modules->layer_count; i++)
        if (modules->rows[i].layer == layer && !strcmp(modules->rows[i].path, path))
            return &modules->rows[i];
    return NULL;
}

static uint64_t parameters_of(const struct mt_modules *modules, const char *path, uint32_t layer)
{
    const struct mt_module_row *row = layer_at(modules, path, layer);

    assert_non_null(row);
    return row->role_requested_bytes[MT_ROLE_PARAMETERS];
}

static uint64_t beside_layers(const struct mt_modules *modules)
{
    for (uint32_t i = 0; i < modules->row_count; i++)
        if (modules->rows[i].kind == MT_MODULE_BESIDE)
            return modules->rows[i].role_requested_bytes[MT_ROLE_PARAMETERS];
    return 0;
}

/* Sums modules whose names have that prefix. */
static uint64_t named_bytes(json_t *truth, const char *prefix)
{
    const char *name;
    json_t *bytes;
    uint64_t sum = 0;

    json_object_foreach(json_object_get(truth, "parameters"), name, bytes)
    {
        if (!strncmp(name, prefix, strlen(prefix)))
            sum += (uint64_t)json_integer_value(bytes);
    }
    return sum;
}

#define BERT_PATH    "BertForSequenceClassification/BertModel/BertEncoder/BertLayer"
#define BERT_BUFFERS 8192 /* position_ids and token_type_ids, 512 int64 each */

TEST(bert)
{
    struct capture capture = analyze("modules", "bert", ".trace.zst");
    const struct mt_modules *modules = capture.report->devices[0].modules;
    json_t *truth = json_load_file(capture_path("modules", "bert", ".truth.json"), 0, NULL);
    uint64_t all = named_bytes(truth, ""), in_layers = named_bytes(truth, "bert.encoder.layer.");

    assert_non_null(truth);
    assert_int_equal(modules->layer_count, 6);
    for (uint32_t layer = 0; layer < 6; layer++) {
        char prefix[64];

        snprintf(prefix, sizeof prefix, "bert.encoder.layer.%u.", layer);
        assert_int_equal(parameters_of(modules, BERT_PATH, layer), named_bytes(truth, prefix));
        assert_true(layer_at(modules, BERT_PATH, layer)->role_bytes[MT_ROLE_OPTIMIZER_STATE] >=
                    2 * named_bytes(truth, prefix));
    }
    assert_int_equal(beside_layers(modules), all - in_layers + BERT_BUFFERS);
    json_decref(truth);
    capture_close(&capture);
}

/* The program names its layers; their stacks are all the same. Activations of each are one hidden
 * result of the wide layer, its GELU, and two of the narrow one. */
TEST(ranges)
{
    struct capture capture = analyze("modules", "ranges", ".trace.zst");
    const struct mt_modules *modules = capture.report->devices[0].modules;
    json_t *truth = json_load_file(capture_path("modules", "ranges", ".truth.json"), 0, NULL);
    const uint64_t narrow = 4 * 16 * 64 * 256;

    assert_non_null(truth);
    assert_int_equal(modules->layer_count, 5);
    for (uint32_t layer = 0; layer < 5; layer++) {
        const struct mt_module_row *row = layer_at(modules, "layer", layer);
        char prefix[64];

        snprintf(prefix, sizeof prefix, "layers.%u.", layer);
        assert_int_equal(parameters_of(modules, "layer", layer), named_bytes(truth, prefix));
        assert_int_equal(row->role_requested_bytes[MT_ROLE_ACTIVATIONS], 9 * narrow);
    }
    assert_int_equal(beside_layers(modules),
                     named_bytes(truth, "embedding") + named_bytes(truth, "head"));
    json_decref(truth);
    capture_close(&capture);
}

/* Teacher and student have the same class, and the teacher skips layers in one of its two calls:
 * each layer has exactly what the teacher's full call kept in it. */
TEST(distill)
{
    struct capture capture = analyze("modules", "distill", ".trace.zst");
    const struct mt_modules *modules = capture.report->devices[0].modules;
    json_t *truth = json_load_file(capture_path("modules", "distill", ".truth.json"), 0, NULL);
    const uint64_t tokens = 32 * 64, kept = 4 * (6 * 128 + 2) * tokens;

    assert_non_null(truth);
    assert_int_equal(modules->layer_count, 8);
    for (uint32_t layer = 0; layer < 8; layer++) {
        const uint64_t *bytes = modules->rows[layer].role_requested_bytes;
        char prefix[64];

        snprintf(prefix, sizeof prefix, "teacher.layers.%u.", layer);
        assert_int_equal(bytes[MT_ROLE_PARAMETERS], named_bytes(truth, prefix));
        assert_int_equal(bytes[MT_ROLE_ACTIVATIONS], kept);
    }
    assert_int_equal(beside_layers(modules), named_bytes(truth, "teacher.embedding") +
                                                 named_bytes(truth, "student.embedding"));
    json_decref(truth);
    capture_close(&capture);
}

/* The parameters of the decoder come first and its calls last, so nothing is reported. */
TEST(decoder_first)
{
    struct capture capture = analyze("modules", "decoder_first", ".trace.zst");
    const struct mt_modules *modules = capture.report->devices[0].modules;

    assert_int_equal(modules->layer_count, 0);
    assert_int_equal(beside_layers(modules), 0);
    capture_close(&capture);
}

/* train.py: twelve Blocks, d = 768, two embeddings, a norm, a head. */
TEST(gpt)
{
    struct capture capture = analyze("captures", "gpt_default", ".pickle.zst");
    const struct mt_modules *modules = capture.report->devices[0].modules;
    const uint64_t d = 768, block = 4 * (2 * d + (d + 1) * 3 * d + (d + 1) * d + 2 * d +
                                         (d + 1) * 4 * d + (4 * d + 1) * d);

    assert_int_equal(modules->layer_count, 12);
    for (uint32_t i = 0; i < 12; i++) {
        const uint64_t *bytes = modules->rows[i].role_requested_bytes;

        assert_int_equal(modules->rows[i].layer, i);
        assert_int_equal(bytes[MT_ROLE_PARAMETERS], block);
        assert_int_equal(bytes[MT_ROLE_OPTIMIZER_STATE], 2 * block);
    }
    assert_int_equal(beside_layers(modules), 4 * (2 * 32000 * d + 2048 * d + 2 * d));
    capture_close(&capture);
}

/* The same model, failed in the ninth layer of its first forward. */
TEST(gpt_without_memory)
{
    struct capture capture = analyze("captures", "oom_adam", ".pickle.zst");
    const struct mt_modules *modules = capture.report->devices[0].modules;

    assert_int_equal(modules->layer_count, 12);
    for (uint32_t i = 0; i < 12; i++)
        assert_int_equal(modules->rows[i].role_bytes[MT_ROLE_ACTIVATIONS] > 0, i < 9);
    capture_close(&capture);
}

/* A convolution without bias, and its norm with buffers: two sums, and a count of batches. */
static uint64_t convolution(uint64_t in, uint64_t out, uint64_t side)
{
    return 4 * (in * out * side * side + 4 * out) + 8;
}

static uint64_t bottleneck(uint64_t in, uint64_t width, bool is_first)
{
    uint64_t bytes =
        convolution(in, width, 1) + convolution(width, width, 3) + convolution(width, 4 * width, 1);

    return is_first ? bytes + convolution(in, 4 * width, 1) : bytes;
}

/* What is trained: no buffers. */
static uint64_t trained(uint64_t in, uint64_t width, bool is_first)
{
    uint64_t norms = is_first ? 4 : 3, channels = width + width + 4 * width;

    if (is_first)
        channels += 4 * width;
    return bottleneck(in, width, is_first) - 4 * 2 * channels - 8 * norms;
}

/* Four stages; the first block of each has a convolution more than the others. */
TEST(resnet)
{
    static const uint32_t blocks[] = {3, 4, 6, 3}, lines[] = {273, 274, 275, 276};
    struct capture capture = analyze("captures", "resnet50_cap1900", ".pickle.zst");
    const struct mt_modules *modules = capture.report->devices[0].modules;

    assert_int_equal(modules->layer_count, 3 + 4 + 6 + 3);
    for (uint32_t stage = 0; stage < 4; stage++) {
        uint64_t width = UINT64_C(64) << stage;
        char path[96];

        snprintf(path, sizeof path, "resnet.py:285/_forward_impl resnet.py:%u/resnet.py:146",
                 lines[stage]);
        for (uint32_t i = 0; i < blocks[stage]; i++) {
            uint64_t in = i ? 4 * width : stage ? 2 * width : 64;

            assert_int_equal(parameters_of(modules, path, i), bottleneck(in, width, i == 0));
            assert_int_equal(
                layer_at(modules, path, i)->role_requested_bytes[MT_ROLE_OPTIMIZER_STATE],
                trained(in, width, i == 0));
        }
    }
    for (uint32_t i = 1; i < 3; i++) /* backward has been in the last stage */
        assert_int_equal(modules->rows[13 + i].role_requested_bytes[MT_ROLE_GRADIENTS],
                         trained(2048, 512, false));
    assert_int_equal(beside_layers(modules), convolution(3, 64, 7) + 4 * (2048 * 10 + 10));
    capture_close(&capture);
}

/* A recurrent cell is entered repeatedly. Its entries are no layers, because the parameters do not
 * repeat. */
TEST(no_layers)
{
    static const char *const names[] = {"seq2seq", "lstm", "churn", "gpt_ring", "streams"};

    for (size_t i = 0; i < MT_ARRAY_LEN(names); i++) {
        struct capture capture = analyze("captures", names[i], ".pickle.zst");

        assert_int_equal(capture.report->devices[0].modules->layer_count, 0);
        assert_int_equal(beside_layers(capture.report->devices[0].modules), 0);
        capture_close(&capture);
    }
}

/* Rows sum to the peak, role by role. */
TEST(sums)
{
    static const char *const names[] = {"gpt_default", "gpt_ring", "seq2seq_native", "streams",
                                        "twogpu",      "cache",    "oom_adam",       "ddp_rank0",
                                        "accumulate",  "graph",    "churn_noctx",    "lengths"};

    for (size_t i = 0; i < MT_ARRAY_LEN(names); i++) {
        struct capture capture = analyze("captures", names[i], ".pickle.zst");

        for (uint32_t d = 0; d < capture.report->device_count; d++) {
            const struct mt_device_report *device = &capture.report->devices[d];
            uint64_t bytes = 0, roles[MT_ROLE_COUNT] = {0};

            for (uint32_t j = 0; j < device->modules->row_count; j++) {
                const struct mt_module_row *row = &device->modules->rows[j];
                uint64_t whole = 0;

                for (int role = 0; role < MT_ROLE_COUNT; role++) {
                    roles[role] += row->role_bytes[role];
                    whole += row->role_bytes[role];
                }
                assert_int_equal(whole, row->bytes);
                bytes += row->bytes;
            }
            assert_int_equal(bytes, device->allocated_peak.bytes);
            assert_memory_equal(roles, device->peak_role_bytes, sizeof roles);
        }
        capture_close(&capture);
    }
}

int main(void)
{
    return run_tests_of_file(NULL, NULL);
}

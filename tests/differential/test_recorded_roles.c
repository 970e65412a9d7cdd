/* Roles that the trace records equal those of PyTorch's own profiler, summed in Python
 * (fixtures/categories), to the byte. Other roles are inferred. */
#include "cmocka_all.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "capture.h"
#include "recorded_roles.h"
#include "util.h"

static struct mt_source *source;
static struct mt_report *report;

static void analyze(const char *path)
{
    const struct mt_analyze_options options = {.path = path};
    const struct capture capture = capture_analyze(path, &options);

    source = capture.source;
    report = capture.report;
}

static void finish(void)
{
    mt_report_release(report);
    mt_source_close(source);
}

static json_t *truth_of(const char *name, const char *key)
{
    char path[512];
    json_error_t error;

    snprintf(path, sizeof path, "%s/categories/%s.truth.json", MEMTRACE_FIXTURES, name);
    json_t *root = json_load_file(path, 0, &error);
    assert_non_null(root);
    json_t *value = json_incref(json_object_get(root, key));
    json_decref(root);
    assert_non_null(value);
    return value;
}

static uint64_t number_of(const char *name, const char *key)
{
    json_t *value = truth_of(name, key);
    uint64_t number = (uint64_t)json_integer_value(value);

    json_decref(value);
    return number;
}

/* The truth's categories, converted to roles. */
static void roles_of(json_t *categories, uint64_t *recorded, uint64_t *rest)
{
    static const struct {
        const char *category;
        enum mt_role role;
    } known[] = {{"parameter", MT_ROLE_PARAMETERS},  {"optimizer_state", MT_ROLE_OPTIMIZER_STATE},
                 {"gradient", MT_ROLE_GRADIENTS},    {"activation", MT_ROLE_ACTIVATIONS},
                 {"temporary", MT_ROLE_TEMPORARIES}, {"autograd_detail", MT_ROLE_TEMPORARIES},
                 {"input", MT_ROLE_INPUTS}};
    size_t i, found = json_object_get(categories, "none") != NULL;

    memset(recorded, 0, MT_ROLE_COUNT * sizeof *recorded);
    *rest = (uint64_t)json_integer_value(json_object_get(categories, "none"));
    for (i = 0; i < MT_ARRAY_LEN(known); i++) {
        json_t *bytes = json_object_get(categories, known[i].category);
        recorded[known[i].role] += (uint64_t)json_integer_value(bytes);
        found += bytes != NULL;
    }
    assert_int_equal(found, json_object_size(categories));
}

/* At the allocated peak, in requested bytes. */
static void expect_roles(const char *name, const char *key)
{
    const struct mt_device_report *device = &report->devices[0];
    const struct mt_instant *peak = &device->instants[0];
    uint64_t recorded[MT_ROLE_COUNT], got[MT_ROLE_COUNT] = {0}, blocks[MT_ROLE_COUNT] = {0};
    uint64_t rest, got_rest = 0;
    json_t *truth = truth_of(name, key);

    roles_of(truth, recorded, &rest);
    json_decref(truth);
    for (uint32_t i = 0; i < peak->holding_count; i++) {
        const struct mt_holding *holding = &peak->holdings[i];
        got[holding->role] += holding->role_recorded ? holding->requested_bytes : 0;
        blocks[holding->role] += holding->role_recorded ? holding->bytes : 0;
        got_rest += holding->role_recorded ? 0 : holding->requested_bytes;
    }
    assert_memory_equal(got, recorded, sizeof got);
    assert_memory_equal(blocks, device->peak_recorded_role_bytes, sizeof blocks);
    assert_int_equal(got_rest, rest);
}

static void expect_program(const char *name)
{
    char path[512];

    snprintf(path, sizeof path, "%s/categories/%s.pickle.zst", MEMTRACE_FIXTURES, name);
    analyze(path);
    assert_int_equal(report->devices[0].allocated_peak.bytes, number_of(name, "allocated_peak"));
    assert_null(report->pytorch_difference);
    assert_true(report->roles_inferred); /* workspaces are no tensors */
    assert_true(report->devices[0].peak_role_bytes[MT_ROLE_WORKSPACE] > 60 * MT_MIB);
    expect_roles(name, "requested_at_peak");
    finish();
}

TEST(roles_are_those_of_the_profiler)
{
    expect_program("mlp");
    expect_program("gpt");
}

static void expect_profile(const char *name, bool all)
{
    char path[512];

    snprintf(path, sizeof path, "%s/categories/%s_profile.pickle.zst", MEMTRACE_FIXTURES, name);
    analyze(path);
    assert_string_equal(source->header.sources, "pytorch-profiler");
    assert_int_equal(report->devices[0].allocated_peak.bytes, number_of(name, "profile_peak"));
    assert_int_equal(report->devices[0].replay.verify.covered, 0); /* it has tensors only */
    assert_int_equal(report->roles_inferred, !all);
    assert_false(report->has_segments);
    expect_roles(name, "profile_at_peak");
    finish();
}

/* Only tensors, without times and segments; the host is a device there. */
TEST(a_profile_alone_has_them_too)
{
    expect_profile("mlp", true);
    expect_profile("gpt", false);
}

/* A memtrace trace keeps them. */
TEST(an_imported_trace_has_them)
{
    char path[] = "/tmp/memtrace-roles-XXXXXX", command[1536];
    int file = mkstemp(path);

    assert_true(file >= 0);
    close(file);
    snprintf(command, sizeof command, "'%s' import -q -o %s '%s/categories/mlp.pickle.zst'",
             MEMTRACE_PROGRAM, path, MEMTRACE_FIXTURES);
    assert_int_equal(system(command), 0);
    analyze(path);
    expect_roles("mlp", "requested_at_peak");
    finish();
    unlink(path);
}

/* MT_ROLE_COUNT: none. */
static int role_of(struct mt_symbols *symbols, const char *text)
{
    enum mt_role role = MT_ROLE_OTHER;
    uint32_t id;

    assert_int_equal(mt_symbols_string(symbols, text, strlen(text), &id), MT_OK);
    return mt_recorded_role(symbols, id, &role) ? (int)role : (int)MT_ROLE_COUNT;
}

TEST(tags_are_words_of_torch_memtrace_and_people)
{
    static const struct {
        const char *text;
        int role;
    } wanted[] = {
        {"parameter", MT_ROLE_PARAMETERS},
        {"autograd_detail", MT_ROLE_TEMPORARIES},
        {"KV cache", MT_ROLE_KV_CACHE},
        {"kv-cache", MT_ROLE_KV_CACHE},
        {"Weights", MT_ROLE_PARAMETERS},
        {"OPTIMIZER_STATE", MT_ROLE_OPTIMIZER_STATE},
        {"temporaries", MT_ROLE_TEMPORARIES},
        {"{\"role\": \"activation\", \"layer\": 3}", MT_ROLE_ACTIVATIONS},
        {"{\"layer\":3,\"role\":\"grad\"}", MT_ROLE_GRADIENTS},
        {"weights; layer 3", MT_ROLE_PARAMETERS},
        {"weights; layer 3; input", MT_ROLE_INPUTS},
        {"weights; {\"role\":\"input\"}", MT_ROLE_INPUTS},
        {"", MT_ROLE_COUNT},
        {"s", MT_ROLE_COUNT},
        {"; ", MT_ROLE_COUNT},
        {"my weights", MT_ROLE_COUNT},
        {"{\"role\"", MT_ROLE_COUNT},
        {"{\"role\":3}", MT_ROLE_COUNT},
        {"{\"role\":\"weights", MT_ROLE_COUNT},
        {"{\"role\":\"mine\"}", MT_ROLE_COUNT},
        {"parameters and then some more words", MT_ROLE_COUNT},
    };
    struct mt_symbols symbols = {0};
    enum mt_role role;
    char deep[2000];

    assert_int_equal(mt_symbols_init(&symbols), MT_OK);
    for (size_t i = 0; i < MT_ARRAY_LEN(wanted); i++)
        assert_int_equal(role_of(&symbols, wanted[i].text), wanted[i].role);
    for (int i = 0; i < MT_ROLE_COUNT; i++)
        assert_int_equal(role_of(&symbols, mt_role_name((enum mt_role)i)), i);
    memset(deep, ';', sizeof deep - 1); /* too long to be looked at */
    strcpy(deep + sizeof deep - 10, "; weights");
    assert_int_equal(role_of(&symbols, deep), MT_ROLE_COUNT);
    assert_false(mt_recorded_role(&symbols, MT_NO_ID, &role));
    mt_symbols_release(&symbols);
}

int main(void)
{
    return run_tests_of_file(NULL, NULL);
}

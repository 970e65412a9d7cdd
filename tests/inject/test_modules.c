/* Addresses to places in files, and back from the texts of a trace. */
#include "cmocka_all.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "modules.h"

struct payload {
    struct mt_module_definition definition;
    char texts[128];
};

/* Adds a module; `id` are the bytes of its build id. */
static enum mt_status add(struct mt_modules *modules, uint64_t begin, uint64_t end, const char *id,
                          const char *path)
{
    struct payload payload = {
        .definition = {begin, end, begin, (uint32_t)strlen(id), (uint32_t)strlen(path)}};

    snprintf(payload.texts, sizeof payload.texts, "%s%s", id, path);
    return mt_modules_add(modules, &payload, sizeof payload.definition + strlen(id) + strlen(path));
}

static void expect(struct mt_modules *modules, uint64_t address, const char *function,
                   const char *file)
{
    struct mt_native_frame frame;

    mt_modules_frame(modules, address, &frame);
    assert_string_equal(frame.function, function);
    assert_string_equal(frame.file, file);
    assert_int_equal(frame.function_length, strlen(function));
    assert_int_equal(frame.file_length, strlen(file));
}

TEST(test_addresses_find_their_module)
{
    struct mt_modules *modules = mt_modules_new();

    assert_non_null(modules);
    expect(modules, 0x1234, "0x1233", "");
    assert_int_equal(add(modules, 0x9000, 0xA000, "", "/lib/c"), MT_OK);
    assert_int_equal(add(modules, 0x1000, 0x2000, "\x01\xAB", "/lib/a"), MT_OK);
    assert_int_equal(add(modules, 0x4000, 0x5000, "", "/lib/b"), MT_OK);
    expect(modules, 0x1000, "0xfff", "");
    expect(modules, 0x1001, "+0x0", "/lib/a (build id 01ab)");
    expect(modules, 0x2000, "+0xfff", "/lib/a (build id 01ab)");
    expect(modules, 0x2001, "0x2000", "");
    expect(modules, 0x4801, "+0x800", "/lib/b");
    expect(modules, 0xA000, "+0xfff", "/lib/c");
    expect(modules, 0, "0xffffffffffffffff", "");
    mt_modules_free(modules);
}

TEST(test_later_definitions_replace_what_they_overlap)
{
    struct mt_modules *modules = mt_modules_new();

    assert_int_equal(add(modules, 0x1000, 0x2000, "", "/lib/a"), MT_OK);
    assert_int_equal(add(modules, 0x2000, 0x3000, "", "/lib/b"), MT_OK);
    assert_int_equal(add(modules, 0x3000, 0x4000, "", "/lib/c"), MT_OK);
    assert_int_equal(add(modules, 0x1800, 0x2001, "", "/lib/new"), MT_OK);
    expect(modules, 0x1002, "0x1001", "");
    expect(modules, 0x1802, "+0x1", "/lib/new");
    expect(modules, 0x2801, "0x2800", "");
    expect(modules, 0x3002, "+0x1", "/lib/c");
    assert_int_equal(add(modules, 0, UINT64_MAX, "", "/lib/all"), MT_OK);
    expect(modules, 0x3002, "+0x3001", "/lib/all");
    mt_modules_free(modules);
}

TEST(test_nonsense_is_refused)
{
    struct mt_modules *modules = mt_modules_new();
    struct payload payload = {.definition = {0x1000, 0x2000, 0, 0, 4}, .texts = "/lib"};
    const size_t fixed = sizeof payload.definition;

    assert_int_equal(mt_modules_add(modules, &payload, fixed + 4), MT_OK);
    assert_int_equal(mt_modules_add(modules, &payload, fixed + 3), MT_ERR_FORMAT);
    assert_int_equal(mt_modules_add(modules, &payload, fixed + 5), MT_ERR_FORMAT);
    assert_int_equal(mt_modules_add(modules, &payload, fixed - 1), MT_ERR_FORMAT);
    assert_int_equal(mt_modules_add(modules, &payload, 0), MT_ERR_FORMAT);
    payload.definition.path_bytes = UINT32_MAX;
    payload.definition.build_id_bytes = 5; /* their sum overflows 32 bits */
    assert_int_equal(mt_modules_add(modules, &payload, fixed + 4), MT_ERR_FORMAT);
    payload.definition.path_bytes = 0;
    payload.definition.build_id_bytes = 4;
    assert_int_equal(mt_modules_add(modules, &payload, fixed + 4), MT_ERR_FORMAT);
    payload.definition = (struct mt_module_definition){0x2000, 0x2000, 0, 0, 4};
    assert_int_equal(mt_modules_add(modules, &payload, fixed + 4), MT_ERR_FORMAT);
    expect(modules, 0x1801, "+0x1800", "/lib");
    mt_modules_free(modules);
}

static bool parse(const char *function, const char *file, struct mt_native_position *place)
{
    struct mt_native_frame frame = {file, function, strlen(file), strlen(function)};

    return mt_native_frame_parse(&frame, place);
}

TEST(test_texts_lead_back)
{
    struct mt_native_position place;

    assert_true(parse("+0x12ab", "/lib/a b.so (build id 01ab)", &place));
    assert_int_equal(place.address, 0x12AB);
    assert_int_equal(place.path_length, strlen("/lib/a b.so"));
    assert_int_equal(place.build_id_bytes, 2);
    assert_memory_equal(place.build_id, "\x01\xAB", 2);
    assert_true(parse("+0xffffffffffffffff", "/lib/a.so", &place));
    assert_int_equal(place.address, UINT64_MAX);
    assert_int_equal(place.path_length, strlen("/lib/a.so"));
    assert_int_equal(place.build_id_bytes, 0);
    assert_true(parse("0x10", "", &place));
    assert_int_equal(place.path_length, 0);
}

TEST(test_other_texts_do_not)
{
    static const char *const functions[] = {
        "", "+0x", "0x10", "+0x10g", "+0x12345678901234567", "main", "+0xA0", "+0x 1", "-0x10"};
    static const char *const odd_files[] = {"/lib/a (build id )",
                                            "/lib/a (build id abc)",
                                            "/lib/a (build id ab",
                                            "(build id ab)",
                                            ")",
                                            "ab)"};
    struct mt_native_position place;

    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++)
        assert_false(parse(functions[i], "/lib/a", &place));
    assert_false(parse("+0x10", "", &place));
    for (size_t i = 0; i < sizeof odd_files / sizeof *odd_files; i++) { /* paths like any other */
        assert_true(parse("+0x10", odd_files[i], &place));
        assert_int_equal(place.path_length, strlen(odd_files[i]));
        assert_int_equal(place.build_id_bytes, 0);
    }
}

int main(void)
{
    return run_tests_of_file(NULL, NULL);
}

/* Hostile modules of a process: an address becomes a frame, and the frame says
 * the address again. */
#include "fuzz.h"
#include "modules.h"

static void check_frame(struct mt_modules *modules, uint64_t address)
{
    struct mt_native_frame frame;
    struct mt_native_position place;

    mt_modules_frame(modules, address, &frame);
    FUZZ_CHECK(mt_native_frame_parse(&frame, &place));
    FUZZ_CHECK(frame.file_length || place.address == address - 1);
    FUZZ_CHECK(place.path_length <= frame.file_length);
    FUZZ_CHECK(place.build_id_bytes <= MT_MAX_BUILD_ID_BYTES);
}

/* A definition whose lengths agree unless the input says otherwise. */
static void add_module(struct mt_modules *modules, struct fuzz_input *input, uint64_t *address)
{
    struct mt_module_definition definition = {0};
    unsigned shape = (unsigned)fuzz_number(input, 1);
    size_t room = fuzz_number(input, 1), got;

    definition.begin = fuzz_number(input, shape & 1 ? 8 : 2);
    definition.end = definition.begin + fuzz_number(input, shape & 2 ? 8 : 2);
    definition.bias = fuzz_number(input, shape & 4 ? 8 : 1);
    *address = definition.begin + 1;
    uint8_t *texts = fuzz_copy(input, room, &got);
    definition.build_id_bytes = (uint32_t)(shape >> 4) * 5;
    definition.path_bytes = (uint32_t)got - definition.build_id_bytes;
    if (shape & 8)
        definition.path_bytes += (uint32_t)fuzz_number(input, 4);
    uint8_t *payload = malloc(sizeof definition + got);
    FUZZ_CHECK(payload);
    memcpy(payload, &definition, sizeof definition);
    memcpy(payload + sizeof definition, texts, got);
    (void)!mt_modules_add(modules, payload, sizeof definition + got);
    free(payload);
    free(texts);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fuzz_input input = {data, size};
    struct mt_modules *modules = mt_modules_new();
    struct mt_native_frame any;
    struct mt_native_position place;
    uint64_t address = 1;

    FUZZ_CHECK(modules);
    while (input.left) {
        add_module(modules, &input, &address);
        check_frame(modules, address);
        check_frame(modules, address - 1);
    }
    any.file = (const char *)data;
    any.file_length = size / 2;
    any.function = (const char *)data + size / 2;
    any.function_length = size - size / 2;
    (void)mt_native_frame_parse(&any, &place);
    mt_modules_free(modules);
    return 0;
}

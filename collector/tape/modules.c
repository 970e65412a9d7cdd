#include "modules.h"

#include <stdlib.h>
#include <string.h>

#include "buf.h"
#include "grow.h"
#include "sorted.h"

enum { MAX_MODULES = 32768, MAX_PATH_BYTES = 16384 };

static const char build_id_begins[] = " (build id ";
static const char digits[] = "0123456789abcdef";

struct module {
    uint64_t begin, end, bias;
    char *file; /* as in struct mt_native_frame; owned */
    size_t file_length;
};

struct mt_modules {
    struct module *sorted; /* by address, without overlaps */
    size_t count, capacity;
    char function[sizeof "+0x" + 16];
};

struct mt_modules *mt_modules_new(void)
{
    return calloc(1, sizeof(struct mt_modules));
}

void mt_modules_free(struct mt_modules *modules)
{
    if (!modules)
        return;
    for (size_t i = 0; i < modules->count; i++)
        free(modules->sorted[i].file);
    free(modules->sorted);
    free(modules);
}

static enum mt_status make_file_text(const struct mt_module_definition *definition,
                                     const uint8_t *texts, struct module *module)
{
    struct mt_buf text = {0};

    mt_buf_add(&text, texts + definition->build_id_bytes, definition->path_bytes);
    if (definition->build_id_bytes) {
        mt_buf_add_text(&text, build_id_begins);
        for (uint32_t i = 0; i < definition->build_id_bytes; i++) {
            mt_buf_add_char(&text, digits[texts[i] >> 4]);
            mt_buf_add_char(&text, digits[texts[i] & 15]);
        }
        mt_buf_add_char(&text, ')');
    }
    module->file = text.data;
    module->file_length = text.length;
    if (!text.failed && text.data)
        return MT_OK;
    mt_buf_release(&text);
    return MT_ERR_MEMORY;
}

static enum mt_status read_definition(const uint8_t *payload, size_t payload_bytes,
                                      struct module *module)
{
    struct mt_module_definition definition;

    if (payload_bytes < sizeof definition)
        return MT_ERR_FORMAT;
    memcpy(&definition, payload, sizeof definition);
    payload_bytes -= sizeof definition;
    if (definition.begin >= definition.end || definition.build_id_bytes > MT_MAX_BUILD_ID_BYTES ||
        definition.path_bytes == 0 || definition.path_bytes > MAX_PATH_BYTES ||
        payload_bytes != (size_t)definition.build_id_bytes + definition.path_bytes)
        return MT_ERR_FORMAT;
    *module = (struct module){definition.begin, definition.end, definition.bias, NULL, 0};
    return make_file_text(&definition, payload + sizeof definition, module);
}

/* Index of the first module that ends after `address`. */
static size_t first_behind(const struct mt_modules *modules, uint64_t address)
{
    size_t low = 0;

    MT_BISECT(low, modules->count, middle, modules->sorted[middle].end <= address);
    return low;
}

enum mt_status mt_modules_add(struct mt_modules *modules, const void *payload, size_t payload_bytes)
{
    struct module module;
    enum mt_status status = read_definition(payload, payload_bytes, &module);

    if (status != MT_OK)
        return status;
    status =
        mt_grow(&modules->sorted, &modules->capacity, modules->count + 1, sizeof *modules->sorted);
    if (status == MT_OK && modules->count == MAX_MODULES)
        status = MT_ERR_UNSUPPORTED;
    if (status != MT_OK) {
        free(module.file);
        return status;
    }
    size_t first = first_behind(modules, module.begin), last = first;
    while (last < modules->count && modules->sorted[last].begin < module.end)
        free(modules->sorted[last++].file);
    memmove(modules->sorted + first + 1, modules->sorted + last,
            (modules->count - last) * sizeof *modules->sorted);
    modules->count = modules->count - (last - first) + 1;
    modules->sorted[first] = module;
    return MT_OK;
}

static size_t write_address(char *out, const char *prefix, uint64_t address)
{
    size_t length = strlen(prefix);
    unsigned shift = 60;

    memcpy(out, prefix, length);
    while (shift > 0 && !(address >> shift))
        shift -= 4;
    for (;; shift -= 4) {
        out[length++] = digits[address >> shift & 15];
        if (shift == 0)
            break;
    }
    out[length] = '\0';
    return length;
}

void mt_modules_frame(struct mt_modules *modules, uint64_t return_address,
                      struct mt_native_frame *frame)
{
    uint64_t address = return_address - 1;
    size_t i = first_behind(modules, address);
    const struct module *module = i < modules->count ? &modules->sorted[i] : NULL;

    if (module && module->begin > address)
        module = NULL;
    frame->file = module ? module->file : "";
    frame->file_length = module ? module->file_length : 0;
    frame->function = modules->function;
    frame->function_length = write_address(modules->function, module ? "+0x" : "0x",
                                           module ? address - module->bias : address);
}

static int digit_value(char c)
{
    const char *at = c ? strchr(digits, c) : NULL;

    return at ? (int)(at - digits) : -1;
}

static bool parse_address(const char *text, size_t length, uint64_t *address)
{
    *address = 0;
    if (length == 0 || length > 16)
        return false;
    for (; length; length--) {
        int value = digit_value(*text++);
        if (value < 0)
            return false;
        *address = *address << 4 | (unsigned)value;
    }
    return true;
}

/* "PATH" or "PATH (build id HEX)" */
static void parse_file(const char *file, size_t length, struct mt_native_position *place)
{
    size_t begins = sizeof build_id_begins - 1, at = length;

    place->path_length = length;
    place->build_id_bytes = 0;
    if (length == 0 || file[--at] != ')')
        return;
    while (at > 0 && digit_value(file[at - 1]) >= 0)
        at--;
    size_t id = length - 1 - at;
    if (id == 0 || id % 2 || id / 2 > MT_MAX_BUILD_ID_BYTES || at < begins ||
        memcmp(file + at - begins, build_id_begins, begins) != 0)
        return;
    place->path_length = at - begins;
    for (; place->build_id_bytes < id / 2; at += 2)
        place->build_id[place->build_id_bytes++] =
            (uint8_t)(digit_value(file[at]) << 4 | digit_value(file[at + 1]));
}

bool mt_native_frame_parse(const struct mt_native_frame *frame, struct mt_native_position *place)
{
    bool in_module = frame->file_length > 0;
    const char *prefix = in_module ? "+0x" : "0x";
    size_t length = strlen(prefix);

    if (frame->function_length < length || memcmp(frame->function, prefix, length) != 0 ||
        !parse_address(frame->function + length, frame->function_length - length, &place->address))
        return false;
    parse_file(frame->file, frame->file_length, place);
    return true;
}

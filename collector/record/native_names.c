#include "native_names.h"

#include <stdlib.h>

#include "arena.h"
#include "ascii.h"
#include "demangle.h"
#include "grow.h"
#include "map.h"
#include "util.h"

struct module {
    const char *path;
    const char *label; /* "[libcuda.so.1]": replaces the file of frames without one */
    enum mt_native_role role;
    enum mt_code_file_state state;
    struct mt_code_file *file;
};

struct mt_native_names {
    int64_t recorded_unix_s;
    struct mt_demangler demangler;
    struct mt_strings files; /* file texts of frames; their ids are indexes of modules */
    struct module *modules;
    size_t count, capacity;
    struct mt_arena arena;
};

struct mt_native_names *mt_native_names_new(int64_t recorded_unix_s)
{
    struct mt_native_names *names = calloc(1, sizeof *names);

    if (names)
        names->recorded_unix_s = recorded_unix_s;
    return names;
}

void mt_native_names_free(struct mt_native_names *names)
{
    if (!names)
        return;
    for (size_t i = 0; i < names->count; i++)
        mt_code_file_close(names->modules[i].file);
    free(names->modules);
    mt_demangler_release(&names->demangler);
    mt_strings_release(&names->files);
    mt_arena_release(&names->arena);
    free(names);
}

static enum mt_native_role role_of_module(const char *path)
{
    static const struct {
        const char *prefix;
        enum mt_native_role role;
    } known[] = {
        {"libmemtrace-inject.so", MT_NATIVE_COLLECTOR},
        {"libcupti", MT_NATIVE_COLLECTOR},
        {"libcuda.so", MT_NATIVE_DRIVER},
        {"libmemtrace-cuda.so", MT_NATIVE_DRIVER}, /* it replaces entry points of the driver */
    };
    const char *name = mt_base_name(path);

    for (size_t i = 0; i < MT_ARRAY_LEN(known); i++)
        if (mt_begins_with(name, known[i].prefix))
            return known[i].role;
    return MT_NATIVE_PLAIN;
}

static enum mt_status open_module(struct mt_native_names *names, const char *file,
                                  const struct mt_native_position *place, struct module *module)
{
    struct mt_code_file_id id = {.build_id = place->build_id,
                                 .build_id_bytes = place->build_id_bytes,
                                 .not_after_unix_s = names->recorded_unix_s};

    id.path = module->path = mt_arena_text(&names->arena, file, place->path_length);
    if (!module->path)
        return MT_ERR_MEMORY;
    module->label = mt_arena_printf(&names->arena, "[%s]", mt_base_name(module->path));
    module->role = role_of_module(module->path);
    if (!module->label)
        return MT_ERR_MEMORY;
    return mt_code_file_open(&id, &names->demangler, &module->file, &module->state);
}

static enum mt_status find_module(struct mt_native_names *names,
                                  const struct mt_native_frame *frame,
                                  const struct mt_native_position *place, struct module **module)
{
    uint32_t id;
    enum mt_status status = mt_strings_intern(&names->files, frame->file, frame->file_length, &id);

    if (status == MT_OK && id == names->count) {
        struct module opened = {.path = NULL};
        status =
            mt_grow(&names->modules, &names->capacity, names->count + 1, sizeof *names->modules);
        if (status == MT_OK)
            status = open_module(names, names->files.texts[id], place, &opened);
        if (status == MT_OK)
            names->modules[names->count++] = opened;
    }
    *module = status == MT_OK ? &names->modules[id] : NULL;
    return status;
}

static bool is_interpreter(const char *function)
{
    static const char *const loops[] = {"_PyEval_EvalFrame", "_PyEval_Vector", "PyEval_EvalFrameEx",
                                        "_TAIL_CALL_"};

    for (size_t i = 0; i < MT_ARRAY_LEN(loops); i++)
        if (mt_begins_with(function, loops[i]))
            return true;
    return false;
}

enum mt_status mt_native_names_get(struct mt_native_names *names,
                                   const struct mt_native_frame *frame, struct mt_native_name *name)
{
    struct mt_native_position place;
    struct module *module;

    name->count = 0;
    name->role = MT_NATIVE_PLAIN;
    if (!mt_native_frame_parse(frame, &place) || !place.path_length)
        return MT_OK;
    enum mt_status status = find_module(names, frame, &place, &module);
    if (status != MT_OK)
        return status;
    name->role = module->role;
    if (module->file)
        name->count = mt_code_file_positions(module->file, place.address, name->places);
    for (size_t i = 0; i < name->count; i++) {
        if (!name->places[i].file)
            name->places[i].file = module->label;
        if (is_interpreter(name->places[i].function))
            name->role = MT_NATIVE_INTERPRETER;
    }
    return MT_OK;
}

void mt_native_names_count(const struct mt_native_names *names, struct mt_native_counts *counts)
{
    *counts = (struct mt_native_counts){.modules = (uint32_t)names->count};
    for (size_t i = 0; i < names->count; i++) {
        enum mt_code_file_state state = names->modules[i].state;
        counts->changed += state == MT_CODE_CHANGED;
        counts->missing += state == MT_CODE_MISSING;
        if (state != MT_CODE_FOUND && !counts->example)
            counts->example = names->modules[i].path;
    }
}

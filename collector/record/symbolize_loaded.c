/* Replaces symbolize.c in the program: the same functions, from libmemtrace-names.so. */
#include <stdlib.h>
#include <string.h>

#include "module.h"
#include "symbolize.h"

static const struct mt_module module = {
    "libmemtrace-names.so", "this memtrace was built without libdw", "elfutils (Debian: libdw1)"};

/* The module's file, and the functions for it: they are called for every address. */
struct mt_code_file {
    struct mt_code_file *of_module;
    __typeof__(&mt_code_file_close) close;
    __typeof__(&mt_code_file_positions) places;
};

bool mt_symbolize_available(struct mt_error *error)
{
    void *available = mt_module_function(&module, "mt_symbolize_available", error);
    __typeof__(&mt_symbolize_available) available_in_module;

    if (!available)
        return false;
    memcpy(&available_in_module, &available, sizeof available);
    return available_in_module(error);
}

enum mt_status mt_code_file_open(const struct mt_code_file_id *id, struct mt_demangler *demangler,
                                 struct mt_code_file **out, enum mt_code_file_state *state)
{
    void *open = mt_module_function(&module, "mt_code_file_open", NULL);
    void *close = mt_module_function(&module, "mt_code_file_close", NULL);
    void *places = mt_module_function(&module, "mt_code_file_positions", NULL);
    __typeof__(&mt_code_file_open) open_of_module;
    struct mt_code_file *file = NULL;
    enum mt_status status = MT_OK;

    *out = NULL;
    *state = MT_CODE_MISSING;
    if (!open || !close || !places)
        return MT_OK;
    file = calloc(1, sizeof *file);
    if (!file)
        return MT_ERR_MEMORY;
    mt_module_share_memory_rules(&module);
    memcpy(&open_of_module, &open, sizeof open);
    memcpy(&file->close, &close, sizeof close);
    memcpy(&file->places, &places, sizeof places);
    status = open_of_module(id, demangler, &file->of_module, state);
    if (file->of_module)
        *out = file;
    else
        free(file);
    return status;
}

void mt_code_file_close(struct mt_code_file *file)
{
    if (!file)
        return;
    file->close(file->of_module);
    free(file);
}

size_t mt_code_file_positions(struct mt_code_file *file, uint64_t address,
                              struct mt_code_position places[MT_MAX_CODE_POSITIONS])
{
    return file->places(file->of_module, address, places);
}

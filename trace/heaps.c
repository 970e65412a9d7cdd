#include "heaps.h"

#include <string.h>

#include "symbols.h"
#include "util.h"

static const struct {
    const char *name;
    struct mt_heap_class is;
} known[] = {
    {"driver", {MT_HEAP_DRIVER, true, "linear device memory"}},
    {"pytorch", {MT_HEAP_FRAMEWORK, false, "PyTorch's caching allocator"}},
    {"driver:managed", {MT_HEAP_DRIVER, true, "managed memory"}},
    {"driver:array", {MT_HEAP_DRIVER, true, "arrays"}},
    {"driver:async", {MT_HEAP_DRIVER, true, "stream-ordered allocations"}},
    {"driver:virtual", {MT_HEAP_DRIVER, true, "physical memory for mapping"}},
    {"driver:graph", {MT_HEAP_DRIVER, true, "memory nodes of graphs"}},
    {"driver:static", {MT_HEAP_DRIVER, true, "variables of modules"}},
    {"driver:pageable", {MT_HEAP_DRIVER, false, "pageable host memory"}},
    {"driver:unknown", {MT_HEAP_DRIVER, false, "memory of an unknown kind"}},
    {"driver:host", {MT_HEAP_DRIVER, false, "pinned host memory"}},
    {"driver:reserved", {MT_HEAP_DRIVER, false, "address ranges without memory"}},
    {"driver:mapped", {MT_HEAP_DRIVER, false, "where physical memory is mapped"}},
    {"driver:imported", {MT_HEAP_DRIVER, false, "memory of another process"}},
    {"user", {MT_HEAP_USER, false, "parts of other allocations"}},
    {"user:pinned", {MT_HEAP_USER, false, "pinned host memory that tensors use"}},
};

/* "driver" or "driver:anything" */
static bool is_kind_of(const char *name, const char *level)
{
    size_t length = strlen(level);

    return strncmp(name, level, length) == 0 && (name[length] == '\0' || name[length] == ':');
}

struct mt_heap_class mt_heap_class_of(const char *name)
{
    struct mt_heap_class unknown = {MT_HEAP_FRAMEWORK, false, ""};

    for (size_t i = 0; name && i < MT_ARRAY_LEN(known); i++)
        if (strcmp(known[i].name, name) == 0)
            return known[i].is;
    if (name && is_kind_of(name, "driver"))
        unknown.level = MT_HEAP_DRIVER;
    else if (name && is_kind_of(name, "user"))
        unknown.level = MT_HEAP_USER;
    return unknown;
}

static bool is_named(const struct mt_symbols *symbols, uint16_t heap)
{
    return heap < symbols->heap_count && symbols->heaps[heap].name != MT_NO_ID;
}

struct mt_heap_class mt_heap_class_at(const struct mt_symbols *symbols, uint16_t heap)
{
    return mt_heap_class_of(
        is_named(symbols, heap) ? mt_symbols_text(symbols, symbols->heaps[heap].name) : NULL);
}

const char *mt_heap_name(const struct mt_symbols *symbols, uint16_t heap)
{
    return is_named(symbols, heap) ? mt_symbols_text(symbols, symbols->heaps[heap].name) : "?";
}

const char *mt_heap_meaning(const struct mt_symbols *symbols, uint16_t heap)
{
    const char *what = mt_heap_class_at(symbols, heap).what;

    return *what ? what : mt_heap_name(symbols, heap);
}

const char *mt_heap_level_name(enum mt_heap_level level)
{
    static const char *const names[] = {"driver", "framework", "user"};

    return names[level];
}

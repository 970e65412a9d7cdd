#include "module_names.h"

#include <string.h>

/* Deeper chains keep their inner part. */
#define MAX_NAMED 8

static uint32_t frame_of(const struct mt_module_namer *namer, uint32_t node)
{
    return namer->symbols->stacks[node].frame;
}

/* A nested function is a wrapper of something else. */
static bool speaks(const struct mt_module_namer *namer, uint32_t node)
{
    uint32_t frame = frame_of(namer, node);
    const char *function = mt_symbols_text(namer->symbols, namer->symbols->frames[frame].function);

    return mt_site_table_rank(namer->sites, frame) == MT_RANK_CODE && !strstr(function, "<locals>");
}

/* Length of the class: "LlamaMLP.forward" is LlamaMLP. */
static size_t class_length(const char *function)
{
    static const char *const methods[] = {".forward", ".__call__", ".__init__"};
    size_t length = strlen(function);

    for (size_t i = 0; i < sizeof methods / sizeof *methods; i++) {
        size_t method = strlen(methods[i]);

        if (length > method && !strcmp(function + length - method, methods[i]))
            return length - method;
    }
    return length;
}

static const char *element(const struct mt_module_namer *namer, uint32_t node, bool with_line)
{
    struct mt_arena *arena = namer->arena;
    uint32_t frame = frame_of(namer, node);
    const char *function = mt_frame_function(arena, namer->symbols, frame);
    const char *place = mt_frame_place(arena, namer->symbols, frame);
    size_t length;

    if (!place)
        return NULL;
    length = class_length(function);
    if (strchr(function, '.') && !with_line)
        return mt_arena_text(arena, function, length);
    if (strchr(function, '.'))
        return mt_arena_printf(arena, "%.*s:%u", (int)length, function,
                               namer->symbols->frames[frame].line);
    if (!strcmp(function, "forward") && *place)
        return place;
    return *place ? mt_arena_printf(arena, "%s %s", function, place) : function;
}

/* An outer method of the class adds nothing: "Net/Net.features/Block" is "Net/Block". */
static const char *join(struct mt_arena *arena, const char *outer, const char *path)
{
    size_t length = strlen(outer);
    const char *inner = strchr(path, '/');

    if (!strncmp(path, outer, length) && path[length] == '.')
        path = inner ? inner + 1 : "";
    return *path ? mt_arena_printf(arena, "%s/%s", outer, path) : outer;
}

const char *mt_module_path(const struct mt_module_namer *namer, uint32_t call, uint32_t node,
                           bool with_lines, bool names_last)
{
    const char *path = "";
    uint32_t named = 0;

    for (uint32_t at = node; at != MT_NO_ID && at != call && named < MAX_NAMED;
         at = namer->tree->nodes[at].parent) {
        const char *name;

        if (!speaks(namer, at) && !(names_last && at == node))
            continue;
        name = element(namer, at, with_lines && at != node);
        if (!name)
            return NULL;
        path = *path ? join(namer->arena, name, path) : name;
        if (!path)
            return NULL;
        named++;
    }
    return path;
}

uint32_t mt_module_of_body(const struct mt_module_namer *namer, uint32_t body, uint32_t node)
{
    uint32_t outside = namer->tree->nodes[body].parent, own = MT_NO_ID;

    for (uint32_t at = node; at != MT_NO_ID && at != outside; at = namer->tree->nodes[at].parent)
        if (speaks(namer, at))
            own = at;
    return own;
}

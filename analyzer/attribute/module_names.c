/* The names of modules, and which ranges are those of modules. */
#include <ctype.h>
#include <string.h>

#include "forward_logs.h"
#include "module_names.h"
#include "phases.h"
#include "site.h"

/* Deeper ranges are those of operators. */
#define MAX_RANGES 16
/* Larger numbers are not layers. */
#define MAX_LAYER 9999u

static bool parts(char c)
{
    return c && strchr("._-[(#:/ ", c);
}

static bool is_digit(char c)
{
    return isdigit((unsigned char)c) != 0;
}

const char *mt_layer_number(const char *name, uint32_t *layer, size_t *length)
{
    for (const char *at = name; *at; at++) {
        const char *end = at;
        uint32_t number = 0;

        if (!is_digit(*at) || at == name || !parts(at[-1]))
            continue;
        while (is_digit(*end) && number <= MAX_LAYER)
            number = number * 10 + (uint32_t)(*end++ - '0');
        if (number > MAX_LAYER || isalnum((unsigned char)*end))
            continue;
        *layer = number;
        *length = (size_t)(at - name);
        while (*length && parts(name[*length - 1]))
            --*length;
        return *length ? at : NULL;
    }
    return NULL;
}

/* Whether it begins before the call and ends after it. */
static bool is_around(const struct mt_phase *phase, const struct mt_forward_log *log)
{
    return phase->begin_event < log->first_event && phase->end_event > log->last_event;
}

/* Names within the call, innermost first. */
static size_t find_names(const struct mt_phases *phases, const struct mt_forward_log *log,
                         int32_t phase, const char *names[MAX_RANGES])
{
    size_t count = 0;

    for (; phase != MT_NO_PHASE && count < MAX_RANGES; phase = phases->phases[phase].parent) {
        const struct mt_phase *range = &phases->phases[phase];

        if (range->is_step || is_around(range, log))
            break;
        if (range->source == MT_PHASE_ANNOTATED && !range->is_plumbing)
            names[count++] = range->name;
    }
    return count;
}

/* Hooks use full names of modules: "model.layers" is in "model.layers.3". */
static const char *add_name(struct mt_arena *arena, const char *path, const char *name,
                            size_t length)
{
    size_t outer = strlen(path);

    if (!outer || (!strncmp(name, path, outer) && name[outer] == '.'))
        return mt_arena_text(arena, name, length);
    return mt_arena_printf(arena, "%s/%.*s", path, (int)length, name);
}

struct mt_module_range mt_module_range_of(struct mt_arena *arena, const struct mt_phases *phases,
                                          const struct mt_forward_log *log, int32_t phase)
{
    const char *names[MAX_RANGES];
    size_t count = find_names(phases, log, phase, names);
    struct mt_module_range range = {"", MT_NO_ID};

    while (count-- > 0 && range.path && range.layer == MT_NO_ID) {
        size_t length = strlen(names[count]);

        (void)mt_layer_number(names[count], &range.layer, &length);
        range.path = add_name(arena, range.path, names[count], length);
    }
    return range;
}

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
    const char *place = mt_frame_position(arena, namer->symbols, frame);
    size_t length;

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

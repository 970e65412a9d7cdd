#include "module_ranges.h"

#include <ctype.h>
#include <string.h>

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

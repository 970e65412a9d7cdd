#include "holding.h"
#include "phase.h"
#include "question.h"
#include "report.h"
#include "role.h"

const char *mt_role_name(enum mt_role role)
{
    static const char *const names[] = {"parameters",  "optimizer state", "gradients",
                                        "activations", "temporaries",     "workspace",
                                        "inputs",      "KV cache",        "other"};
    _Static_assert(sizeof names / sizeof *names == MT_ROLE_COUNT, "one entry for each");

    return (unsigned)role < MT_ROLE_COUNT ? names[role] : "other";
}

const char *mt_device_part_name(enum mt_device_part part)
{
    static const char *const names[] = {"weights",
                                        "KV cache",
                                        "activations and temporaries",
                                        "CUDA graphs and other private pools",
                                        "workspaces",
                                        "other blocks of the framework",
                                        "segments of the framework, unused",
                                        "libraries",
                                        "context and modules",
                                        "free, or not seen"};
    _Static_assert(sizeof names / sizeof *names == MT_DEVICE_PART_COUNT, "one entry for each");

    return names[part];
}

const char *mt_phase_source_name(enum mt_phase_source source)
{
    static const char *const names[] = {"annotation", "scopes", "stacks", "threads", "period"};
    _Static_assert(sizeof names / sizeof *names == MT_PHASE_SOURCE_COUNT, "one entry for each");

    return (unsigned)source < MT_PHASE_SOURCE_COUNT ? names[source] : names[0];
}

const char *mt_tie_name(enum mt_tie tie)
{
    static const char *const names[] = {"nothing", "parameter", "forward_site",
                                        "library", "phase",     "before"};
    _Static_assert(sizeof names / sizeof *names == MT_TIE_COUNT, "one entry for each");

    return (unsigned)tie < MT_TIE_COUNT ? names[tie] : names[0];
}

const char *mt_group_by_name(enum mt_group_by by)
{
    static const char *const names[] = {"site", "stack", "role", "phase", "size", "module"};
    _Static_assert(sizeof names / sizeof *names == MT_GROUP_BY_COUNT, "one entry for each");

    return names[by];
}

const char *mt_population_name(enum mt_population_of of)
{
    static const char *const names[] = {"allocated-total", "grew", "kept"};
    _Static_assert(sizeof names / sizeof *names == MT_POPULATION_KINDS, "one entry for each");

    return names[of];
}

const char *mt_layer_by_name(enum mt_layer_by by)
{
    static const char *const names[] = {"role", "phase", "site", "stream"};
    _Static_assert(sizeof names / sizeof *names == MT_LAYER_BY_COUNT, "one entry for each");

    return names[by];
}

const char *mt_covered_name(unsigned i)
{
    static const char *const names[] = {"requested", "allocated", "active", "reserved"};
    _Static_assert(sizeof names / sizeof *names == MT_COVERED_COUNTERS, "one entry for each");

    return names[i];
}

void mt_add_covered(struct mt_buf *out, uint8_t covered)
{
    for (unsigned i = 0, added = 0; i < MT_COVERED_COUNTERS; i++) {
        bool is_last = covered >> i == 1;

        if (!(covered >> i & 1))
            continue;
        mt_buf_printf(out, "%s%s", !added ? "" : is_last ? " and " : ", ", mt_covered_name(i));
        added++;
    }
}

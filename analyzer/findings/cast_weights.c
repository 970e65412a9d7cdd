/* Copies of the weights in half precision, as autocast makes and keeps them: at the peak, besides
 * the parameters, blocks of phases of half their size, one for one. Results of forward may have
 * such sizes by chance, even for all layers at once; but not those of both weights and biases. So
 * several sizes of both are required. */
#include "finding.h"

#include <stdlib.h>

#include "process_memory.h"
#include "site.h"
#include "units.h"
#include "util.h"

enum {
    MIN_SHARE = 10,       /* of the peak */
    PARAMETERS_SHARE = 2, /* share of the parameters with copies */
    MIN_SIZES = 2         /* of large and of small parameters, each */
};

#define SMALL_BYTES (64u << 10) /* a bias */

/* Parameters of a size, and blocks of half of it. */
struct size {
    uint64_t bytes; /* requested */
    uint64_t parameters, copies;
    const struct mt_holding *copy; /* the first of them */
};

struct look {
    const struct mt_instant *peak;
    struct size *sizes; /* ascending */
    uint32_t count;
    uint64_t blocks, bytes, parameter_bytes; /* paired */
    uint32_t large_sizes, small_sizes;
    const struct mt_holding *largest;
};

static uint64_t each_of(const struct mt_holding *holding)
{
    return holding->requested_bytes / holding->blocks;
}

static int by_bytes(const void *a, const void *b)
{
    const struct size *x = a, *y = b;

    return (x->bytes > y->bytes) - (x->bytes < y->bytes);
}

static void gather_parameters(struct look *look)
{
    uint32_t i, kept = 0;

    for (i = 0; i < look->peak->holding_count; i++) {
        const struct mt_holding *holding = &look->peak->holdings[i];
        if (holding->role == MT_ROLE_PARAMETERS)
            look->sizes[look->count++] =
                (struct size){.bytes = each_of(holding), .parameters = holding->blocks};
    }
    if (look->count)
        qsort(look->sizes, look->count, sizeof *look->sizes, by_bytes);
    for (i = 0; i < look->count; i++) {
        if (kept && look->sizes[kept - 1].bytes == look->sizes[i].bytes)
            look->sizes[kept - 1].parameters += look->sizes[i].parameters;
        else
            look->sizes[kept++] = look->sizes[i];
    }
    look->count = kept;
}

/* Made in a phase, and kept for later use. */
static bool may_be_copy(const struct mt_holding *holding)
{
    return holding->phase != MT_NO_PHASE &&
           (holding->role == MT_ROLE_ACTIVATIONS || holding->role == MT_ROLE_TEMPORARIES);
}

static void gather_copies(struct look *look)
{
    uint32_t i;

    for (i = 0; look->count && i < look->peak->holding_count; i++) {
        const struct mt_holding *holding = &look->peak->holdings[i];
        const struct size key = {.bytes = 2 * each_of(holding)};
        struct size *size;
        if (!may_be_copy(holding))
            continue;
        size = bsearch(&key, look->sizes, look->count, sizeof key, by_bytes);
        if (!size)
            continue;
        size->copies += holding->blocks;
        if (!size->copy)
            size->copy = holding;
    }
}

static void add_up(struct look *look)
{
    uint32_t i;

    for (i = 0; i < look->count; i++) {
        const struct size *size = &look->sizes[i];
        uint64_t pairs = mt_min_u64(size->copies, size->parameters);
        if (!pairs)
            continue;
        look->blocks += pairs;
        look->bytes += pairs * (size->bytes / 2);
        look->parameter_bytes += pairs * size->bytes;
        look->large_sizes += size->bytes >= SMALL_BYTES;
        look->small_sizes += size->bytes < SMALL_BYTES;
        look->largest = size->copy;
    }
}

static bool are_copies(const struct look *look, const struct mt_device_report *device)
{
    const uint64_t peak = device->allocated_peak.bytes;

    return look->large_sizes >= MIN_SIZES && look->small_sizes >= MIN_SIZES &&
           look->parameter_bytes >=
               device->peak_role_bytes[MT_ROLE_PARAMETERS] / PARAMETERS_SHARE &&
           mt_finding_matters(look->bytes, peak) && look->bytes >= peak / MIN_SHARE;
}

static void say(struct mt_finding_search *search, const struct look *look)
{
    struct mt_arena *arena = &search->analysis->report->arena;
    const uint64_t peak = search->device->allocated_peak.bytes;
    const char *evidence[2], *label = mt_site_label(arena, &search->analysis->source->symbols,
                                                    look->largest->stack, false);
    char n[2][MT_UNITS_TEXT];
    struct mt_finding finding = {
        .id = "cast-weights",
        .severity = "info",
        .bytes = look->bytes,
        .evidence = evidence,
        .evidence_count = 2,
        .advice = "convert the weights once (model.to(torch.bfloat16)) if nothing needs them in "
                  "full precision, as in inference; or torch.autocast(cache_enabled=False), which "
                  "casts them at each use"};

    finding.title =
        mt_arena_printf(arena, "%s (%s) of the peak: half-precision copies of the weights",
                        mt_format_bytes(n[0], look->bytes),
                        mt_format_percent(n[1], (double)look->bytes / (double)peak));
    evidence[0] = mt_arena_printf(
        arena, "%s blocks match parameters of %s one to one, at half their size",
        mt_format_count(n[0], look->blocks), mt_format_bytes(n[1], look->parameter_bytes));
    evidence[1] = mt_arena_printf(arena, "most bytes come from %s", label);
    mt_finding_publish(search, &finding);
}

static enum mt_status find(struct mt_finding_search *search)
{
    const struct mt_device_report *device = search->device;
    struct look look = {.peak = device->instants};

    if (!device->instant_count || search->analysis->report->is_driver_level)
        return MT_OK;
    look.sizes = mt_memory_zeroed((size_t)look.peak->holding_count + 1, sizeof *look.sizes);
    gather_parameters(&look);
    gather_copies(&look);
    add_up(&look);
    if (are_copies(&look, device))
        say(search, &look);
    free(look.sizes);
    return MT_OK;
}

const struct mt_finding_ops mt_finding_cast_weights = {.find = find};

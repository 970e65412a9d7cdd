/* The difference between two runs; how their sites are matched. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "diff.h"
#include "process_memory.h"
#include "report.h"
#include "report_query.h"
#include "site.h"
#include "sorted.h"

/* Two runs as wholes: how they differ, and the pairs of devices that are compared. */

static void add_run(struct mt_diff *diff, const char *what, const char *a, const char *b)
{
    const char *of_a = a && *a ? a : "none", *of_b = b && *b ? b : "none";

    if (strcmp(of_a, of_b) != 0 && diff->run_count < MT_RUN_DIFFERENCES)
        diff->runs[diff->run_count++] = (struct mt_run_difference){what, of_a, of_b};
}

static void add_counted(struct mt_arena *arena, struct mt_diff *diff, const char *what, int64_t a,
                        int64_t b)
{
    add_run(diff, what, mt_arena_printf(arena, "%lld", (long long)a),
            mt_arena_printf(arena, "%lld", (long long)b));
}

static const char *device_name(const struct mt_report *report)
{
    return report->device_count ? report->devices[0].name : NULL;
}

static const char *level(const struct mt_report *report)
{
    return report->is_driver_level ? "the driver's" : "the framework's";
}

static const char *start(const struct mt_report *report)
{
    return report->starts_in_middle ? "in the middle of the run" : "at its beginning";
}

/* Everything that may explain a difference of memory, or makes the comparison unreliable. */
static void compare_runs(struct mt_arena *arena, struct mt_diff *diff)
{
    const struct mt_report *a = diff->a, *b = diff->b;

    add_counted(arena, diff, "the number of steps", a->step_count, b->step_count);
    add_counted(arena, diff, "the number of devices", a->device_count, b->device_count);
    add_run(diff, "the kind of device", device_name(a), device_name(b));
    add_run(diff, "the framework's version", a->framework, b->framework);
    add_run(diff, "allocator options", a->options, b->options);
    add_run(diff, "the analyzed level", level(a), level(b));
    add_run(diff, "where the trace begins", start(a), start(b));
}

/* Devices of the same number; those of two runs with one device each, whatever their numbers. */
static const struct mt_device_report *partner(const struct mt_diff *diff,
                                              const struct mt_device_report *device)
{
    if (diff->a->device_count == 1 && diff->b->device_count == 1)
        return &diff->b->devices[0];
    return mt_report_device(diff->b, device->device);
}

static void compare_devices(struct mt_arena *arena, struct mt_diff *diff)
{
    diff->devices = mt_arena_array(arena, (size_t)diff->a->device_count + 1, sizeof *diff->devices);
    for (uint32_t i = 0; i < diff->a->device_count; i++) {
        const struct mt_device_report *a = &diff->a->devices[i], *b = partner(diff, a);

        if (!b || a->answer->missing || b->answer->missing ||
            (diff->only != MT_EVERY_DEVICE && diff->only != a->device))
            continue;
        diff->devices[diff->device_count] = (struct mt_device_diff){.a = a, .b = b};
        mt_diff_devices(arena, diff->a, diff->b, &diff->devices[diff->device_count++]);
    }
}

void mt_diff_reports(struct mt_arena *arena, const struct mt_report *a, const struct mt_report *b,
                     uint64_t only, struct mt_diff *diff)
{
    *diff = (struct mt_diff){.a = a, .b = b, .only = only};
    compare_runs(arena, diff);
    compare_devices(arena, diff);
}

/* Above this product only equal lines are paired. */
#define MAX_CELLS ((size_t)1 << 22)

static int by_lines(const struct mt_diff_place *a, const struct mt_diff_place *b)
{
    for (int i = 0; i < 2; i++)
        if (a->lines[i] != b->lines[i])
            return a->lines[i] < b->lines[i] ? -1 : 1;
    return 0;
}

/* Order of items: by key, then lines. */
static int place_item_order(const struct mt_diff_place *a, const struct mt_diff_place *b)
{
    int order = strcmp(a->key, b->key);

    return order ? order : by_lines(a, b);
}

/* Items of one key. */
struct group {
    struct mt_diff_place *a, *b;
    size_t a_first, b_first; /* offsets of `partner` */
    size_t a_count, b_count;
};

static void pair(const struct group *group, size_t i, size_t j)
{
    group->a[i].partner = group->b_first + j;
    group->b[j].partner = group->a_first + i;
}

static void pair_equal_lines(const struct group *group)
{
    size_t i = 0, j = 0;

    while (i < group->a_count && j < group->b_count) {
        int order = by_lines(&group->a[i], &group->b[j]);

        if (order == 0)
            pair(group, i, j);
        i += order <= 0;
        j += order >= 0;
    }
}

static uint32_t likeness(const struct mt_diff_place *a, const struct mt_diff_place *b)
{
    uint32_t equal = by_lines(a, b) == 0;

    equal += a->bytes == b->bytes;
    equal += a->blocks == b->blocks;
    return 1 + 2 * equal;
}

/* best[i][j]: for the items since i and j. */
static void fill(const struct group *group, uint32_t *best)
{
    size_t width = group->b_count + 1;

    for (size_t i = group->a_count; i-- > 0;)
        for (size_t j = group->b_count; j-- > 0;) {
            uint32_t both = best[(i + 1) * width + j + 1] + likeness(&group->a[i], &group->b[j]);
            uint32_t without_a = best[(i + 1) * width + j], without_b = best[i * width + j + 1];
            uint32_t without = without_a > without_b ? without_a : without_b;

            best[i * width + j] = both > without ? both : without;
        }
}

static void align(const struct group *group)
{
    size_t width = group->b_count + 1, i = 0, j = 0;
    uint32_t *best;

    if (group->a_count >= MAX_CELLS / width) {
        pair_equal_lines(group);
        return;
    }
    best = mt_memory_zeroed((group->a_count + 1) * width, sizeof *best);
    fill(group, best);
    while (i < group->a_count && j < group->b_count) {
        uint32_t here = best[i * width + j];

        if (here == best[(i + 1) * width + j + 1] + likeness(&group->a[i], &group->b[j]))
            pair(group, i++, j++);
        else if (here == best[(i + 1) * width + j])
            i++;
        else
            j++;
    }
    free(best);
}

static size_t end_of(const struct mt_diff_place *items, size_t count, size_t first)
{
    size_t end = first + 1;

    while (end < count && !strcmp(items[end].key, items[first].key))
        end++;
    return end;
}

void mt_diff_match_places(struct mt_diff_place *a, size_t a_count, struct mt_diff_place *b,
                          size_t b_count)
{
    size_t i = 0, j = 0;

    for (size_t k = 0; k < a_count; k++)
        a[k].partner = MT_NO_PARTNER;
    for (size_t k = 0; k < b_count; k++)
        b[k].partner = MT_NO_PARTNER;
    while (i < a_count && j < b_count) {
        int order = strcmp(a[i].key, b[j].key);
        size_t a_end = order <= 0 ? end_of(a, a_count, i) : i;
        size_t b_end = order >= 0 ? end_of(b, b_count, j) : j;

        if (order == 0)
            align(&(struct group){a + i, b + j, i, j, a_end - i, b_end - j});
        i = a_end;
        j = b_end;
    }
}

/* A place, and the row of the answer with most of its bytes. */
struct item {
    struct mt_diff_place place;
    const struct mt_live_row *row;
    uint64_t largest;
    bool several_roles;
    const char *file;  /* the user's, or the site's */
    const char *loose; /* like the key of the place, without that file */
};

struct side {
    struct mt_arena *arena;
    const struct mt_symbols *symbols;
    struct item *items;
    size_t count;
};

/* Suffix after the last occurrence of a character: "cuda" of "Module.cuda". Recorders differ in the
 * rest, machines in folders. */
static const char *last_part(const char *text, char separator)
{
    const char *last = strrchr(text, separator);

    return last && last[1] ? last + 1 : text;
}

static const char *function_of(const struct mt_symbols *symbols, uint32_t frame)
{
    return frame < symbols->frame_count
               ? last_part(mt_symbols_text(symbols, symbols->frames[frame].function), '.')
               : "";
}

static const char *file_of(const struct mt_symbols *symbols, uint32_t frame)
{
    return frame < symbols->frame_count
               ? last_part(mt_symbols_text(symbols, symbols->frames[frame].file), '/')
               : "";
}

static uint32_t line_of(const struct mt_symbols *symbols, uint32_t frame)
{
    return frame < symbols->frame_count ? symbols->frames[frame].line : 0;
}

static void fill_item(const struct side *side, const struct mt_live_row *row, struct item *item)
{
    const struct mt_symbols *symbols = side->symbols;
    uint32_t stack = mt_stack_of_site(row->tie, row->tied, row->stack);
    struct mt_site site = mt_stack_site(symbols, stack);
    uint32_t users = site.own == MT_NO_ID ? site.frame : site.own;

    *item = (struct item){.row = row, .largest = row->bytes, .several_roles = row->several_roles};
    item->place.bytes = row->bytes;
    item->place.blocks = row->blocks;
    item->place.lines[0] = line_of(symbols, site.own);
    item->place.lines[1] = line_of(symbols, site.frame);
    item->place.key =
        mt_arena_printf(side->arena, "%d\n%s\n%s\n%s\n%s\n%s\n%s", (int)row->tie, row->phase,
                        function_of(symbols, site.own), file_of(symbols, site.own),
                        function_of(symbols, site.frame), file_of(symbols, site.frame),
                        stack == MT_NO_ID ? row->label : "");
    item->file = file_of(symbols, users);
    item->loose = mt_arena_printf(side->arena, "%d\n%s\n%s\n%s\n%s", (int)row->tie, row->phase,
                                  function_of(symbols, site.own), function_of(symbols, site.frame),
                                  users == site.frame ? "" : file_of(symbols, site.frame));
}

static int by_place(const void *a, const void *b)
{
    const struct item *x = a, *y = b;
    int order = place_item_order(&x->place, &y->place);

    return order ? order : (int)x->row->role - (int)y->row->role;
}

static void absorb(struct item *item, const struct item *other)
{
    item->place.bytes += other->place.bytes;
    item->place.blocks += other->place.blocks;
    item->several_roles |= other->several_roles || other->row->role != item->row->role;
    if (other->largest > item->largest) {
        item->largest = other->largest;
        item->row = other->row;
    }
}

/* Converts the rows of an answer to places; merges the roles of one place. */
static void make_side(struct side *side, const struct mt_answer *answer)
{
    size_t kept = 0;

    side->items = mt_memory_zeroed((size_t)answer->row_count + 1, sizeof *side->items);
    for (uint32_t i = 0; i < answer->row_count; i++)
        fill_item(side, &answer->rows[i], &side->items[i]);
    qsort(side->items, answer->row_count, sizeof *side->items, by_place);
    for (uint32_t i = 0; i < answer->row_count; i++)
        if (kept && !place_item_order(&side->items[kept - 1].place, &side->items[i].place))
            absorb(&side->items[kept - 1], &side->items[i]);
        else
            side->items[kept++] = side->items[i];
    side->count = kept;
}

static struct mt_diff_row row_of(const struct item *a, const struct item *b)
{
    const struct item *told = b ? b : a;
    struct mt_diff_row row = {.label = told->row->label,
                              .phase = told->row->phase,
                              .role = told->row->role,
                              .several_roles = told->several_roles};

    if (a) {
        row.a_bytes = a->place.bytes;
        row.a_blocks = a->place.blocks;
        if (b) /* freed memory may have had another role than the remaining memory */
            row.several_roles |= a->several_roles || a->row->role != b->row->role;
        if (b && strcmp(a->row->label, row.label) != 0)
            row.label_a = a->row->label;
        row.moved = b && memcmp(a->place.lines, b->place.lines, sizeof a->place.lines) != 0;
    }
    if (b) {
        row.b_bytes = b->place.bytes;
        row.b_blocks = b->place.blocks;
    }
    return row;
}

/* Both sides are sorted, so partner values index `items` directly. */
static struct mt_diff_place *places_of(const struct side *side)
{
    struct mt_diff_place *places = mt_memory_zeroed(side->count + 1, sizeof *places);

    for (size_t i = 0; i < side->count; i++)
        places[i] = side->items[i].place;
    return places;
}

/* Items without a partner, by their looser key. */
struct rest {
    struct mt_diff_place *places;
    size_t *indices; /* parallel: indices of the side's items */
    size_t count;
};

static bool has_file(const struct side *side, const char *file)
{
    for (size_t i = 0; i < side->count; i++)
        if (strcmp(side->items[i].file, file) == 0)
            return true;
    return false;
}

/* Place and index, to be sorted together. */
struct loose {
    struct mt_diff_place place;
    size_t index;
};

static int by_loose(const void *a, const void *b)
{
    const struct loose *x = a, *y = b;
    int order = place_item_order(&x->place, &y->place);

    return order ? order : (x->index > y->index) - (x->index < y->index);
}

/* Items whose file is unknown to the other side, where it may have another name. The first among
 * equals. */
static void find_rest(const struct side *side, const struct mt_diff_place *places,
                      const struct side *other, struct rest *rest)
{
    struct loose *found = mt_memory_zeroed(side->count + 1, sizeof *found);
    size_t count = 0;

    rest->places = mt_memory_zeroed(side->count + 1, sizeof *rest->places);
    rest->indices = mt_memory_zeroed(side->count + 1, sizeof *rest->indices);
    for (size_t i = 0; i < side->count; i++) {
        if (places[i].partner != MT_NO_PARTNER || !*side->items[i].file ||
            has_file(other, side->items[i].file))
            continue;
        found[count] = (struct loose){places[i], i};
        found[count++].place.key = side->items[i].loose;
    }
    qsort(found, count, sizeof *found, by_loose);
    for (size_t i = 0; i < count; i++) {
        if (i && place_item_order(&found[i - 1].place, &found[i].place) == 0)
            continue;
        rest->places[rest->count] = found[i].place;
        rest->indices[rest->count++] = found[i].index;
    }
    free(found);
}

static void release_rest(struct rest *rest)
{
    free(rest->places);
    free(rest->indices);
}

/* A file that is gone and a new one with the same functions are one file. */
static void match_renamed(const struct side *a, struct mt_diff_place *of_a, const struct side *b,
                          struct mt_diff_place *of_b)
{
    struct rest rest_a = {0}, rest_b = {0};

    find_rest(a, of_a, b, &rest_a);
    find_rest(b, of_b, a, &rest_b);
    mt_diff_match_places(rest_a.places, rest_a.count, rest_b.places, rest_b.count);
    for (size_t i = 0; i < rest_a.count; i++) {
        size_t partner = rest_a.places[i].partner;

        if (partner == MT_NO_PARTNER)
            continue;
        of_a[rest_a.indices[i]].partner = rest_b.indices[partner];
        of_b[rest_b.indices[partner]].partner = rest_a.indices[i];
    }
    release_rest(&rest_a);
    release_rest(&rest_b);
}

static void match(const struct side *a, const struct side *b, struct mt_diff_rows *out)
{
    struct mt_diff_place *of_a = places_of(a), *of_b = places_of(b);

    mt_diff_match_places(of_a, a->count, of_b, b->count);
    match_renamed(a, of_a, b, of_b);
    for (size_t i = 0; i < a->count; i++) {
        size_t partner = of_a[i].partner;

        out->rows[out->count++] =
            row_of(&a->items[i], partner == MT_NO_PARTNER ? NULL : &b->items[partner]);
    }
    for (size_t i = 0; i < b->count; i++)
        if (of_b[i].partner == MT_NO_PARTNER)
            out->rows[out->count++] = row_of(NULL, &b->items[i]);
    free(of_a);
    free(of_b);
}

MT_DEFINE_ORDER(by_label, struct mt_diff_row, MT_BY_TEXT(label))

static void add_rows(const struct mt_answer *answer, bool is_a, bool by_role,
                     struct mt_diff_rows *out)
{
    for (uint32_t i = 0; i < answer->row_count; i++) {
        const struct mt_live_row *row = &answer->rows[i];

        out->rows[out->count++] =
            (struct mt_diff_row){.label = by_role ? mt_role_name(row->role) : row->phase,
                                 .phase = by_role ? "" : row->phase,
                                 .role = row->role,
                                 .several_roles = !by_role,
                                 .a_bytes = is_a ? row->bytes : 0,
                                 .a_blocks = is_a ? row->blocks : 0,
                                 .b_bytes = is_a ? 0 : row->bytes,
                                 .b_blocks = is_a ? 0 : row->blocks};
    }
}

static void add_free_uses(const struct mt_answer *answer, bool is_a, struct mt_diff_rows *out)
{
    for (uint32_t i = 0; i < answer->free_use_count; i++) {
        const struct mt_free_use *use = &answer->free_uses[i];

        out->rows[out->count++] = (struct mt_diff_row){.label = use->label,
                                                       .phase = "",
                                                       .a_bytes = is_a ? use->bytes : 0,
                                                       .a_blocks = is_a ? use->segments : 0,
                                                       .b_bytes = is_a ? 0 : use->bytes,
                                                       .b_blocks = is_a ? 0 : use->segments};
    }
}

/* Makes rows of one label one row. */
static void sum_up(struct mt_diff_rows *out)
{
    uint32_t kept = 0;

    qsort(out->rows, out->count, sizeof *out->rows, by_label);
    for (uint32_t i = 0; i < out->count; i++) {
        struct mt_diff_row *row = kept ? &out->rows[kept - 1] : NULL;

        if (!row || strcmp(row->label, out->rows[i].label) != 0) {
            out->rows[kept++] = out->rows[i];
            continue;
        }
        row->a_bytes += out->rows[i].a_bytes;
        row->a_blocks += out->rows[i].a_blocks;
        row->b_bytes += out->rows[i].b_bytes;
        row->b_blocks += out->rows[i].b_blocks;
    }
    out->count = kept;
}

static uint64_t size_of(const struct mt_diff_row *row)
{
    return row->b_bytes > row->a_bytes ? row->b_bytes - row->a_bytes : row->a_bytes - row->b_bytes;
}

static int by_change(const void *a, const void *b)
{
    const struct mt_diff_row *x = a, *y = b;

    if (size_of(x) != size_of(y))
        return size_of(x) > size_of(y) ? -1 : 1;
    if (x->b_bytes != y->b_bytes)
        return x->b_bytes > y->b_bytes ? -1 : 1;
    int order = strcmp(x->label, y->label);
    if (!order)
        order = strcmp(x->phase, y->phase);
    if (!order)
        order = (x->a_blocks > y->a_blocks) - (x->a_blocks < y->a_blocks);
    return order ? order : (x->b_blocks > y->b_blocks) - (x->b_blocks < y->b_blocks);
}

static void make_room(struct mt_arena *arena, size_t count, struct mt_diff_rows *rows)
{
    *rows = (struct mt_diff_rows){.rows = mt_arena_array(arena, count + 1, sizeof *rows->rows)};
}

static void sort(struct mt_diff_rows *rows)
{
    qsort(rows->rows, rows->count, sizeof *rows->rows, by_change);
}

void mt_diff_devices(struct mt_arena *arena, const struct mt_report *a, const struct mt_report *b,
                     struct mt_device_diff *diff)
{
    struct side of_a = {.arena = arena, .symbols = a->symbols};
    struct side of_b = {.arena = arena, .symbols = b->symbols};
    size_t most = (size_t)diff->a->answer->row_count + diff->b->answer->row_count;

    make_room(arena, most, &diff->sites);
    make_room(arena, most, &diff->roles);
    make_room(arena, most, &diff->phases);
    make_room(arena, (size_t)diff->a->answer->free_use_count + diff->b->answer->free_use_count,
              &diff->free_uses);
    make_side(&of_a, diff->a->answer);
    make_side(&of_b, diff->b->answer);
    match(&of_a, &of_b, &diff->sites);
    for (int is_a = 1; is_a >= 0; is_a--) {
        const struct mt_answer *answer = is_a ? diff->a->answer : diff->b->answer;

        add_rows(answer, is_a, true, &diff->roles);
        add_rows(answer, is_a, false, &diff->phases);
        add_free_uses(answer, is_a, &diff->free_uses);
    }
    sum_up(&diff->roles);
    sum_up(&diff->phases);
    sum_up(&diff->free_uses);
    sort(&diff->roles);
    sort(&diff->phases);
    sort(&diff->free_uses);
    sort(&diff->sites);
    free(of_a.items);
    free(of_b.items);
}

#include "site.h"

#include "ascii.h"
#include "frame_judge.h"
#include "grow.h"

#include <stdlib.h>
#include <string.h>

/* For one stack. judge_stack has the same rule, for tables of all stacks. */
struct mt_site mt_stack_site(const struct mt_symbols *symbols, uint32_t stack)
{
    struct mt_site site = {MT_NO_ID, MT_NO_ID};
    enum mt_frame_rank best = MT_RANK_NATIVE_PLUMBING;

    for (; stack < symbols->stack_count; stack = symbols->stacks[stack].parent) {
        uint32_t frame = symbols->stacks[stack].frame;
        struct mt_judged judged = mt_judge_frame(symbols, frame);

        if (site.frame == MT_NO_ID || judged.rank > best) {
            site.frame = frame;
            best = judged.rank;
        }
        if (judged.origin == MT_ORIGIN_USER) {
            site.own = frame == site.frame ? MT_NO_ID : frame;
            break;
        }
    }
    return site;
}

/* Longest piece of foreign text in a label, cut between characters. */
#define MAX_NAME_BYTES 96

static const char *cut_text(struct mt_arena *arena, const char *text)
{
    size_t length = strlen(text);

    if (length <= MAX_NAME_BYTES)
        return mt_arena_text(arena, text, length);
    length = MAX_NAME_BYTES - 1;
    while (length > 0 && ((unsigned char)text[length] & 0xC0) == 0x80)
        length--;
    return mt_arena_printf(arena, "%.*s…", (int)length, text);
}

static const char *native_function(struct mt_arena *arena, const char *symbol)
{
    char name[MT_CXX_NAME_SIZE];
    size_t length;

    mt_cxx_name(symbol, name);
    const char *part = mt_code_short_name(name, &length);
    if (!part)
        return cut_text(arena, mt_cxx_last_components(name));
    part = mt_arena_text(arena, part, length);
    return cut_text(arena, part);
}

static const struct mt_frame *frame_at(const struct mt_symbols *symbols, uint32_t frame)
{
    return frame < symbols->frame_count ? &symbols->frames[frame] : NULL;
}

/* Names that torch.compile gives to code objects: "torch_dynamo_resume_in_forward_at_66" is a part
 * of forward, "__compiled_fn_3_0c8b1d2e" the third compiled function. */
static const char *python_function(struct mt_arena *arena, const char *function)
{
    static const char resumed[] = "torch_dynamo_resume_in_", compiled[] = "__compiled_fn_";
    const char *at = strstr(function, resumed);

    if (at) {
        at += sizeof resumed - 1;
        const char *end = strstr(at, "_at_");
        if (end && end > at)
            return cut_text(arena, mt_arena_text(arena, at, (size_t)(end - at)));
    }
    if (!strncmp(function, compiled, sizeof compiled - 1)) {
        size_t digits = strspn(function + sizeof compiled - 1, "0123456789");
        if (digits && digits < 20)
            return mt_arena_printf(arena, "compiled function %.*s", (int)digits,
                                   function + sizeof compiled - 1);
    }
    return cut_text(arena, function);
}

const char *mt_frame_function(struct mt_arena *arena, const struct mt_symbols *symbols, uint32_t id)
{
    const struct mt_frame *frame = frame_at(symbols, id);

    if (!frame)
        return mt_arena_text(arena, "?", 1);
    const char *function = mt_symbols_text(symbols, frame->function);
    const char *file = mt_symbols_text(symbols, frame->file);
    return mt_code_is_native(function, file) ? native_function(arena, function)
                                             : python_function(arena, function);
}

/* The digits that distinguish a notebook's cells, and their number: a count in
 * "<ipython-input-5-0c8b1d>", a hash in "/tmp/ipykernel_123/3105878423.py". */
static const char *cell_number(const char *path, size_t *length)
{
    const char *base = mt_code_base_name(path);
    const char *digits = base, *kernel = strstr(path, "ipykernel_");

    if (!strncmp(base, "<ipython-input-", 15))
        digits = base + 15;
    else if (!strncmp(base, "ipython-input-", 14))
        digits = base + 14;
    else if (!kernel || mt_code_base_name(kernel) != base)
        return NULL;
    for (*length = 0; mt_is_digit(digits[*length]);)
        ++*length;
    return *length && *length < 20 ? digits : NULL;
}

/* The common base name of a file. */
static const char *file_words(struct mt_arena *arena, const struct mt_frame *frame,
                              const char *path)
{
    const char *base = mt_code_base_name(path), *build_id = strstr(base, " (build id ");
    size_t length;
    const char *cell = cell_number(path, &length);

    if (cell)
        return mt_arena_printf(arena, "cell[%.*s]", (int)length, cell);
    if (mt_code_is_compiled(path))
        return mt_arena_text(arena, "compiled code", 13);
    if (!strncmp(base, "<eval_with_key>", 15))
        return mt_arena_text(arena, "traced graph", 12);
    if (build_id && frame->line == 0)
        base = mt_arena_text(arena, base, (size_t)(build_id - base));
    return cut_text(arena, base);
}

const char *mt_frame_position(struct mt_arena *arena, const struct mt_symbols *symbols, uint32_t id)
{
    const struct mt_frame *frame = frame_at(symbols, id);
    const char *path = frame ? mt_symbols_text(symbols, frame->file) : "";

    if (!*mt_code_base_name(path) || !strcmp(path, "??"))
        return mt_arena_text(arena, "", 0);
    const char *file = file_words(arena, frame, path);
    return frame->line ? mt_arena_printf(arena, "%s:%u", file, frame->line) : file;
}

const char *mt_frame_label(struct mt_arena *arena, const struct mt_symbols *symbols, uint32_t frame)
{
    const char *function = mt_frame_function(arena, symbols, frame);
    const char *place = mt_frame_position(arena, symbols, frame);

    return *place ? mt_arena_printf(arena, "%s %s", function, place) : function;
}

#define BESIDE " < "

const char *mt_site_text(struct mt_arena *arena, const struct mt_symbols *symbols,
                         struct mt_site site)
{
    if (site.frame == MT_NO_ID)
        return "";
    const char *label = mt_frame_label(arena, symbols, site.frame);
    if (site.own == MT_NO_ID)
        return label;
    const char *own = mt_frame_position(arena, symbols, site.own);
    return mt_arena_printf(arena, "%s" BESIDE "%s", label, own);
}

const char *mt_site_label(struct mt_arena *arena, const struct mt_symbols *symbols, uint32_t stack,
                          bool phase_is_backward)
{
    struct mt_site site = mt_stack_site(symbols, stack);

    if (site.frame != MT_NO_ID)
        return mt_site_text(arena, symbols, site);
    return phase_is_backward ? "autograd engine (no Python stack)" : "no stack recorded";
}

size_t mt_site_label_head(const char *label)
{
    const char *end = strstr(label, BESIDE);

    return end ? (size_t)(end - label) : strlen(label);
}

const char *mt_site_label_own(const char *label)
{
    const char *end = strstr(label, BESIDE);

    return end ? end + strlen(BESIDE) : NULL;
}

static void make_room(struct mt_site_table *table, const struct mt_symbols *symbols)
{
    mt_grow_to(&table->frames, &table->frame_capacity, symbols->frame_count, sizeof *table->frames);
    mt_grow_to(&table->sites, &table->stack_capacity, symbols->stack_count, sizeof *table->sites);
}

static struct mt_judged judged_at(const struct mt_site_table *table, uint32_t frame)
{
    if (frame >= table->frame_count)
        return (struct mt_judged){MT_ORIGIN_NATIVE, MT_RANK_NATIVE_PLUMBING};
    return (struct mt_judged){(enum mt_origin)table->frames[frame].origin,
                              (enum mt_frame_rank)table->frames[frame].rank};
}

/* The rule of mt_stack_site, from the parent's result: parents come first. */
static void judge_stack(struct mt_site_table *table, const struct mt_stack *stack, uint32_t id)
{
    struct mt_judged judged = judged_at(table, stack->frame), outer;
    struct mt_site site = {stack->frame, MT_NO_ID};

    if (stack->parent < id) {
        struct mt_site above = table->sites[stack->parent];

        outer = judged_at(table, above.frame);
        if (outer.rank > judged.rank)
            site = above;
        else if (judged.origin != MT_ORIGIN_USER)
            site.own = outer.origin == MT_ORIGIN_USER ? above.frame : above.own;
    }
    table->sites[id] = site;
    table->has_python |= mt_rank_is_python(judged_at(table, site.frame).rank);
}

void mt_site_table_update(struct mt_site_table *table, const struct mt_symbols *symbols)
{
    make_room(table, symbols);
    for (; table->frame_count < symbols->frame_count; table->frame_count++) {
        struct mt_judged judged = mt_judge_frame(symbols, table->frame_count);

        table->frames[table->frame_count] =
            (struct mt_judged_bits){(uint8_t)judged.origin, (uint8_t)judged.rank};
    }
    for (; table->stack_count < symbols->stack_count; table->stack_count++)
        judge_stack(table, &symbols->stacks[table->stack_count], table->stack_count);
}

void mt_site_table_release(struct mt_site_table *table)
{
    if (!table)
        return;
    free(table->frames);
    free(table->sites);
    memset(table, 0, sizeof *table);
}

enum mt_origin mt_site_table_origin(const struct mt_site_table *table, uint32_t frame)
{
    return judged_at(table, frame).origin;
}

bool mt_site_table_is_plumbing(const struct mt_site_table *table, uint32_t frame)
{
    return mt_rank_is_plumbing(judged_at(table, frame).rank);
}

enum mt_frame_rank mt_site_table_rank(const struct mt_site_table *table, uint32_t frame)
{
    return judged_at(table, frame).rank;
}

struct mt_site mt_site_table_at(const struct mt_site_table *table, uint32_t stack)
{
    return stack < table->stack_count ? table->sites[stack] : (struct mt_site){MT_NO_ID, MT_NO_ID};
}

uint32_t mt_site_table_site(const struct mt_site_table *table, uint32_t stack)
{
    return mt_site_table_at(table, stack).frame;
}

bool mt_site_table_has_python(const struct mt_site_table *table, uint32_t stack)
{
    return mt_rank_is_python(judged_at(table, mt_site_table_site(table, stack)).rank);
}

uint32_t mt_site_table_operation(const struct mt_site_table *table,
                                 const struct mt_symbols *symbols, uint32_t stack)
{
    uint32_t first = MT_NO_ID;

    for (; stack < symbols->stack_count; stack = symbols->stacks[stack].parent) {
        uint32_t frame = symbols->stacks[stack].frame;

        if (!mt_site_table_is_plumbing(table, frame))
            return frame;
        if (first == MT_NO_ID)
            first = frame;
    }
    return first;
}

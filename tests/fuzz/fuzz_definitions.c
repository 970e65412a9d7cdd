/* Any bytes as the definitions of a block: the symbols that they make are written
 * and read as the same symbols. */
#include "codec.h"
#include "fuzz.h"

struct reading {
    struct mt_symbols symbols;
    struct mt_ids ids;
};

static enum mt_status read_definitions(struct reading *reading, const uint8_t *data, size_t size)
{
    struct mt_cursor definitions = {data, data + size, false};
    const char *reason;

    memset(reading, 0, sizeof *reading);
    FUZZ_CHECK(mt_symbols_init(&reading->symbols) == MT_OK);
    mt_ids_init(&reading->ids, size);
    return mt_ids_define(&reading->ids, &reading->symbols, definitions, &reason);
}

static void end_reading(struct reading *reading)
{
    mt_ids_release(&reading->ids);
    mt_symbols_release(&reading->symbols);
}

static bool is_string(const struct mt_symbols *symbols, uint32_t id)
{
    return id == MT_NO_ID || id < symbols->strings.count;
}

/* Every id is one that exists, and parents come before their children. */
static void check_symbols(const struct mt_symbols *symbols)
{
    for (uint32_t i = 0; i < symbols->frame_count; i++) {
        FUZZ_CHECK(is_string(symbols, symbols->frames[i].function));
        FUZZ_CHECK(is_string(symbols, symbols->frames[i].file));
    }
    for (uint32_t i = 0; i < symbols->stack_count; i++) {
        const struct mt_stack *stack = &symbols->stacks[i];
        FUZZ_CHECK(stack->frame < symbols->frame_count);
        FUZZ_CHECK(stack->parent == MT_NO_ID || stack->parent < i);
        FUZZ_CHECK(stack->depth ==
                   (stack->parent == MT_NO_ID ? 1 : symbols->stacks[stack->parent].depth + 1));
    }
    for (uint32_t i = 0; i < symbols->end_count; i++)
        FUZZ_CHECK(symbols->ends[i].heap < symbols->heap_count);
}

static void check_same_ends(const struct mt_symbols *a, const struct mt_symbols *b)
{
    FUZZ_CHECK(a->end_count == b->end_count);
    for (uint32_t i = 0; i < a->end_count; i++) {
        const struct mt_segment_end *x = &a->ends[i], *y = &b->ends[i];

        FUZZ_CHECK(x->addr == y->addr && x->size_bytes == y->size_bytes);
        FUZZ_CHECK(x->allocated_bytes == y->allocated_bytes && x->active_bytes == y->active_bytes);
        FUZZ_CHECK(x->requested_bytes == y->requested_bytes);
        FUZZ_CHECK(x->device == y->device && x->heap == y->heap);
    }
}

static void check_same(const struct mt_symbols *a, const struct mt_symbols *b)
{
    FUZZ_CHECK(a->strings.count == b->strings.count && a->frame_count == b->frame_count);
    FUZZ_CHECK(a->stack_count == b->stack_count && a->stream_count == b->stream_count);
    FUZZ_CHECK(a->pool_count == b->pool_count && a->heap_count == b->heap_count);
    FUZZ_CHECK(a->device_count == b->device_count && a->thread_count == b->thread_count);
    check_same_ends(a, b);
    for (uint32_t i = 0; i < a->strings.count; i++)
        FUZZ_CHECK(strcmp(mt_symbols_text(a, i), mt_symbols_text(b, i)) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct mt_definitions_written written = {0};
    struct reading first, second;
    struct mt_buf out = {0};

    if (read_definitions(&first, data, size) == MT_OK) {
        FUZZ_CHECK(mt_definitions_write(&first.symbols, &written, SIZE_MAX, &out));
        FUZZ_CHECK(read_definitions(&second, (const uint8_t *)out.data, out.length) == MT_OK);
        check_same(&first.symbols, &second.symbols);
        end_reading(&second);
        mt_buf_release(&out);
    }
    check_symbols(&first.symbols);
    end_reading(&first);
    return 0;
}

/* A row of cells becomes an event of a trace. A row that cannot be read is left out and counted.
 * What the rows contradict (a free of an address that is not live, a second allocation at a live
 * one) stays as it is, because a replay handles it. */
#include <stdlib.h>
#include <string.h>

#include "codec.h"
#include "grow.h"
#include "rows_events.h"
#include "util.h"

#define NS_A_DAY   (UINT64_C(86400) * 1000000000)
#define NS_AN_HOUR (NS_A_DAY / 24)

/* A replay serves requests up to this size. Sums of allowed numbers do not overflow. */
#define MAX_SIZE_BYTES (UINT64_C(1) << 48)
#define MAX_TIME_NS    (UINT64_C(1) << 61)

enum { MAX_DEVICES = 1024 };

/* ---- cells */

/* The functions that read a cell return NULL, or a constant reason why the row cannot be read. */
static const char OUT_OF_MEMORY[] = "out of memory";
static const char OTHER_PROCESS[] = "another process";
static const char TOO_MANY[] = "a trace cannot have more threads or streams";
static const char MANY_HEAPS[] = "a trace cannot have more than 8,192 heaps";
static const char MANY_POOLS[] = "a trace cannot have more than 8,192 pools";
_Static_assert(MT_MAX_POOLS == 8192, "the number is in the texts");

static const char *why_of(enum mt_status status)
{
    return status == MT_OK ? NULL : status == MT_ERR_MEMORY ? OUT_OF_MEMORY : TOO_MANY;
}

/* Sets *id to that of the label, and *is_new if it has none yet: then set it. */
static const char *find_label(struct mt_row_labels *labels, char kind, struct mt_row_cell cell,
                              uint32_t **id, bool *is_new)
{
    uint32_t number, before = labels->texts.count;

    mt_buf_reset(&labels->key);
    mt_buf_add_char(&labels->key, kind);
    mt_buf_add(&labels->key, cell.text, cell.length);
    if (labels->key.failed ||
        mt_strings_intern(&labels->texts, labels->key.data, labels->key.length, &number) ||
        mt_grow(&labels->ids, &labels->capacity, labels->texts.count, sizeof *labels->ids))
        return OUT_OF_MEMORY;
    *is_new = number == before;
    if (*is_new)
        labels->ids[number] = MT_NO_ID;
    *id = &labels->ids[number];
    return NULL;
}

static const char *read_heap(struct mt_rows *rows, struct mt_row_cell cell, struct mt_event *event)
{
    struct mt_symbols *symbols = &rows->made.symbols;
    uint32_t *id, name;
    bool is_new;
    const char *why = find_label(&rows->labels, 'h', cell, &id, &is_new);
    enum mt_status status = MT_OK;

    if (!why && is_new) {
        if (symbols->heap_count == MT_MAX_POOLS)
            return MANY_HEAPS;
        status = mt_symbols_string(symbols, cell.text, cell.length, &name);
        if (status == MT_OK)
            status = mt_symbols_heap(symbols, name, id);
        why = why_of(status);
    }
    if (why || *id == MT_NO_ID || *id >= MT_MAX_POOLS)
        return why ? why : MANY_HEAPS;
    event->heap = (uint16_t)*id;
    return NULL;
}

/* Small numbers of the rows of `memtrace dump` stay what they are. Others are the operating
 * system's: such a thread gets the next number. */
static const char *add_thread(struct mt_rows *rows, uint64_t number, uint32_t name, uint32_t *id)
{
    struct mt_symbols *symbols = &rows->made.symbols;
    enum mt_status status = MT_OK;

    if (rows->dialect == &mt_row_dialect_own && rows->has[MT_ROW_SEQ] &&
        number < MT_ROW_FEW_THREADS && !rows->thread_is_used[number]) {
        while (status == MT_OK && symbols->thread_count < number)
            status = mt_symbols_thread(symbols, MT_NO_ID, 0, id);
        *id = (uint32_t)number;
        if (status == MT_OK && number < symbols->thread_count)
            symbols->threads[number].name = name;
        else if (status == MT_OK)
            status = mt_symbols_thread(symbols, name, 0, id);
    } else {
        status = mt_symbols_thread(symbols, name, number == UINT64_MAX ? 0 : number, id);
    }
    if (status != MT_OK)
        *id = MT_NO_ID;
    else if (*id < MT_ROW_FEW_THREADS)
        rows->thread_is_used[*id] = true;
    return why_of(status);
}

/* A number, or a name. */
static const char *read_thread(struct mt_rows *rows, const struct mt_row *row,
                               struct mt_event *event)
{
    const struct mt_row_cell cell = row->cells[MT_ROW_THREAD];
    struct mt_row_cell name = row->cells[MT_ROW_THREAD_NAME];
    uint32_t *id, name_id = MT_NO_ID;
    uint64_t number;
    bool is_new;
    const char *why = find_label(&rows->labels, 't', cell, &id, &is_new);

    if (!why && is_new) {
        if (!mt_row_number(cell, &number)) {
            number = UINT64_MAX;
            name = cell;
        }
        if (name.length && mt_symbols_string(&rows->made.symbols, name.text, name.length, &name_id))
            return OUT_OF_MEMORY;
        why = add_thread(rows, number, name_id, id);
    }
    if (why || *id == MT_NO_ID)
        return why ? why : TOO_MANY;
    event->thread = (uint16_t)*id;
    return NULL;
}

/* "5" is (0, 5), the number that a program gives a pool; "3:0" is a pair. */
static const char *read_pool(struct mt_rows *rows, struct mt_row_cell cell, struct mt_event *event)
{
    const char *colon = memchr(cell.text, ':', cell.length);
    struct mt_row_cell second = cell, first = {"0", 1, false};
    uint64_t numbers[2];
    uint32_t *id;
    bool is_new;

    if (colon) {
        first.text = cell.text;
        first.length = (size_t)(colon - cell.text);
        second.text = colon + 1;
        second.length = cell.length - first.length - 1;
    }
    if (!mt_row_number(first, &numbers[0]) || !mt_row_number(second, &numbers[1]))
        return "the pool is not a number, or two with a colon";
    cell = (struct mt_row_cell){(const char *)numbers, sizeof numbers, false};
    const char *why = find_label(&rows->labels, 'p', cell, &id, &is_new);
    if (!why && is_new && rows->made.symbols.pool_count == MT_MAX_POOLS)
        why = MANY_POOLS;
    if (!why && is_new)
        why = why_of(mt_symbols_pool(&rows->made.symbols, numbers[0], numbers[1], id));
    if (why || *id == MT_NO_ID || *id >= MT_MAX_POOLS)
        return why ? why : MANY_POOLS;
    event->pool = (uint16_t)*id;
    return NULL;
}

static const char *read_stack(struct mt_rows *rows, const struct mt_row *row,
                              struct mt_event *event)
{
    static const struct {
        enum mt_row_column column;
        enum mt_row_stack_form form;
        char label;
    } forms[] = {{MT_ROW_STACK, MT_ROW_STACK_TEXT, 's'},
                 {MT_ROW_FRAMES, MT_ROW_STACK_INNERMOST, 'i'},
                 {MT_ROW_OUTERMOST, MT_ROW_STACK_OUTERMOST, 'o'}};
    uint32_t *id;
    bool is_new;
    const char *why = NULL;

    for (size_t i = 0; i < MT_ARRAY_LEN(forms) && !why; i++) {
        const struct mt_row_cell cell = row->cells[forms[i].column];

        if (!cell.length)
            continue;
        why = find_label(&rows->labels, forms[i].label, cell, &id, &is_new);
        if (!why && is_new)
            why = why_of(mt_row_stack(&rows->made.symbols, cell, forms[i].form, id));
        if (!why)
            event->stack = *id;
        rows->made.header.has_stacks = true;
    }
    return why;
}

static const char *read_flags(struct mt_row_cell cell, struct mt_event *event)
{
    static const char *const names[] = {"initial", "expandable", "size_derived", "at_address",
                                        "gap"};
    const char *at = cell.text, *end = at + cell.length;

    while (at < end) {
        const char *bar = memchr(at, '|', (size_t)(end - at));
        const struct mt_row_cell flag = {at, (size_t)((bar ? bar : end) - at), false};
        size_t i = 0;

        while (i < MT_ARRAY_LEN(names) && !mt_row_cell_is(flag, names[i]))
            i++;
        if (i == MT_ARRAY_LEN(names))
            return "a flag is unknown";
        event->flags |= (uint8_t)(1u << i);
        at = bar ? bar + 1 : end;
    }
    return NULL;
}

static const char *read_op(struct mt_row_cell cell, struct mt_event *event)
{
    if (mt_row_cell_is(cell, "free")) {
        event->kind = MT_EVENT_FREE_REQUESTED;
        return NULL;
    }
    for (unsigned kind = MT_EVENT_ALLOC; kind < MT_EVENT_KIND_COUNT; kind++)
        if (mt_row_cell_is(cell, mt_event_kind_name(kind))) {
            event->kind = (uint8_t)kind;
            return NULL;
        }
    return "the op is unknown";
}

static const char *read_clock(struct mt_rows *rows, struct mt_row_cell cell, uint64_t *t_ns)
{
    bool is_time_of_day;

    if (!mt_row_clock(cell, &is_time_of_day, t_ns))
        return "the time is not a time";
    if (!is_time_of_day)
        return NULL;
    rows->has_time_of_day = true;
    if (rows->days_ns && rows->last_clock_ns<NS_AN_HOUR && * t_ns> NS_A_DAY - NS_AN_HOUR) {
        *t_ns += rows->days_ns - NS_A_DAY; /* a thread logged it late, after another's midnight */
        return NULL;
    }
    if (rows->last_clock_ns > *t_ns && rows->last_clock_ns - *t_ns > NS_A_DAY / 2)
        rows->days_ns += NS_A_DAY; /* midnight */
    rows->last_clock_ns = *t_ns;
    *t_ns += rows->days_ns;
    return NULL;
}

static const char *read_time(struct mt_rows *rows, const struct mt_row *row, uint64_t *t_ns)
{
    static const char no_time[] = "the time is not a number";
    const struct mt_row_cell *cells = row->cells;
    bool is_right = true;
    const char *why = NULL;

    if (cells[MT_ROW_T_NS].length)
        is_right =
            mt_row_number(cells[MT_ROW_T_NS], t_ns) || mt_row_decimal(cells[MT_ROW_T_NS], 0, t_ns);
    else if (cells[MT_ROW_T_US].length)
        is_right = mt_row_decimal(cells[MT_ROW_T_US], 3, t_ns);
    else if (cells[MT_ROW_T_S].length)
        is_right = mt_row_decimal(cells[MT_ROW_T_S], 9, t_ns);
    else if (cells[MT_ROW_CLOCK].length)
        why = read_clock(rows, cells[MT_ROW_CLOCK], t_ns);
    else if (mt_rows_have_times(rows))
        why = "there is no time";
    else
        *t_ns = rows->rows_read;
    return why ? why : is_right && *t_ns < MAX_TIME_NS ? NULL : no_time;
}

/* An empty cell is 0. */
static bool number_of(const struct mt_row *row, enum mt_row_column column, uint64_t *value)
{
    *value = 0;
    return !row->cells[column].length || mt_row_number(row->cells[column], value);
}

static bool takes_memory(const struct mt_event *event)
{
    return mt_event_is_segment(event) || event->kind == MT_EVENT_ALLOC;
}

static const char *read_numbers(struct mt_rows *rows, const struct mt_row *row,
                                struct mt_event *event)
{
    struct mt_symbols *symbols = &rows->made.symbols;
    uint64_t device, stream;

    if (!number_of(row, MT_ROW_ADDR, &event->addr))
        return "the address is not a number";
    if (takes_memory(event) && !row->cells[MT_ROW_BYTES].length)
        return "there is no size";
    if (!number_of(row, MT_ROW_BYTES, &event->size_bytes) ||
        !number_of(row, MT_ROW_BLOCK_BYTES, &event->aux_bytes))
        return "the size is not a number";
    if (event->kind == MT_EVENT_ALLOC && event->aux_bytes && event->aux_bytes < event->size_bytes)
        return "the block is smaller than the request";
    if (takes_memory(event) &&
        (event->size_bytes > MAX_SIZE_BYTES || event->aux_bytes > MAX_SIZE_BYTES ||
         event->addr > UINT64_MAX - 2 * MAX_SIZE_BYTES))
        return "the size or the address is too large";
    if (!number_of(row, MT_ROW_STREAM, &stream))
        return "the stream is not a number";
    if (!number_of(row, MT_ROW_DEVICE, &device) || device >= MAX_DEVICES)
        return "the device is not a number below 1024";
    event->device = (uint16_t)device;
    if (device >= symbols->device_count &&
        mt_symbols_device(symbols, (uint32_t)device, MT_NO_ID, 0))
        return OUT_OF_MEMORY;
    return why_of(mt_symbols_stream(symbols, stream, &event->stream));
}

static const char *take_usual_heap(struct mt_rows *rows, struct mt_event *event)
{
    const char *heap = rows->dialect->heap;

    if (rows->heap == MT_NO_ID) {
        const char *why = read_heap(rows, (struct mt_row_cell){heap, strlen(heap), false}, event);
        if (why)
            return why;
        rows->heap = event->heap;
    }
    event->heap = (uint16_t)rows->heap;
    return NULL;
}

static const char *read_names(struct mt_rows *rows, const struct mt_row *row,
                              struct mt_event *event)
{
    const struct mt_row_cell *cells = row->cells;
    const char *why = NULL;

    if (cells[MT_ROW_HEAP].length)
        why = read_heap(rows, cells[MT_ROW_HEAP], event);
    else if (mt_event_kind_has_heap(event->kind))
        why = take_usual_heap(rows, event);
    if (!why && cells[MT_ROW_THREAD].length)
        why = read_thread(rows, row, event);
    if (!why && cells[MT_ROW_POOL].length)
        why = read_pool(rows, cells[MT_ROW_POOL], event);
    if (!why)
        why = read_stack(rows, row, event);
    if (!why && cells[MT_ROW_FLAGS].length)
        why = read_flags(cells[MT_ROW_FLAGS], event);
    if (!why && cells[MT_ROW_NAME].length)
        why = why_of(mt_symbols_string(&rows->made.symbols, cells[MT_ROW_NAME].text,
                                       cells[MT_ROW_NAME].length, &event->name));
    return why;
}

static bool has_name(uint8_t kind)
{
    return kind == MT_EVENT_PHASE_PUSH || kind == MT_EVENT_PHASE_POP || kind == MT_EVENT_MARK;
}

/* The key of a block in the table of live ones. Keys of two blocks are equal by chance only
 * (2^-64). */
static uint64_t key_of(const struct mt_event *event)
{
    return event->addr ^ mt_hash_u64((uint64_t)event->device << 16 | event->heap);
}

/* What an event of this kind cannot be. */
static const char *check_event(const struct mt_rows *rows, const struct mt_event *event)
{
    if (takes_memory(event) && !event->addr && event->size_bytes)
        return "there is no address";
    if (has_name(event->kind) && event->name == MT_NO_ID)
        return "there is no name";
    if ((event->flags & MT_EVENT_INITIAL) && rows->past_initial)
        return "an initial event follows others";
    if ((event->flags & MT_EVENT_INITIAL) && event->kind == MT_EVENT_ALLOC &&
        mt_map_get(&rows->live, key_of(event)) != MT_MAP_NONE)
        return "an initial block is at the address of another one";
    return NULL;
}

/* The free of a block that may be on any device or in any heap. */
static const char *check_place(struct mt_rows *rows, const struct mt_row *row,
                               const struct mt_event *event)
{
    const bool has_device = row->cells[MT_ROW_DEVICE].length,
               has_heap = row->cells[MT_ROW_HEAP].length,
               is_free =
                   event->kind == MT_EVENT_FREE_REQUESTED || event->kind == MT_EVENT_FREE_COMPLETED;

    if (is_free && rows->names_devices && !has_device)
        return "there is no device";
    if (is_free && rows->names_heaps && !has_heap)
        return "there is no heap";
    rows->names_devices |= event->kind == MT_EVENT_ALLOC && event->device;
    rows->names_heaps |= event->kind == MT_EVENT_ALLOC && has_heap;
    return NULL;
}

static const char *read_event(struct mt_rows *rows, const struct mt_row *row,
                              struct mt_event *event)
{
    for (int i = 0; i <= MT_ROW_LAST_TEXT; i++)
        if (row->cells[i].length && memchr(row->cells[i].text, 0, row->cells[i].length))
            return "there is a zero byte";
    *event = (struct mt_event){.stack = MT_NO_ID, .name = MT_NO_ID};
    const char *why = read_op(row->cells[MT_ROW_OP], event);
    if (!why)
        why = read_time(rows, row, &event->t_ns);
    if (!why)
        why = read_numbers(rows, row, event);
    if (!why)
        why = read_names(rows, row, event);
    if (!why)
        why = check_event(rows, event);
    return why ? why : check_place(rows, row, event);
}

/* An out-of-memory error is explained with what the device had free. Without that, the event only
 * reports that a request was refused. */
static void fit_kind(const struct mt_row *row, struct mt_event *event)
{
    if (event->kind == MT_EVENT_OOM && !row->cells[MT_ROW_BLOCK_BYTES].length)
        event->kind = MT_EVENT_ALLOC_FAILED;
}

/* ---- events */

/* A request for no bytes has no block, and its free is none. */
static bool is_nothing(const struct mt_event *event)
{
    return !event->addr &&
           ((event->kind == MT_EVENT_ALLOC && !event->size_bytes) ||
            event->kind == MT_EVENT_FREE_REQUESTED || event->kind == MT_EVENT_FREE_COMPLETED);
}

static enum mt_status add_missing_free(struct mt_rows *rows, const struct mt_event *event,
                                       struct mt_error *error)
{
    static const char why[] = "the free of a block whose address is allocated again";
    struct mt_event dropped = {.kind = MT_EVENT_DROPPED,
                               .t_ns = event->t_ns,
                               .device = event->device,
                               .stack = MT_NO_ID,
                               .size_bytes = 1};

    if (mt_symbols_string(&rows->made.symbols, why, sizeof why - 1, &dropped.name))
        return mt_fail_memory(error);
    return mt_made_trace_add(&rows->made, &dropped, error);
}

/* A block is live up to its first free. A later completion of the same free finds nothing. */
static enum mt_status follow_block(struct mt_rows *rows, const struct mt_event *event,
                                   struct mt_error *error)
{
    const uint64_t key = key_of(event);
    const bool completes = event->kind == MT_EVENT_FREE_COMPLETED;

    if (event->kind == MT_EVENT_ALLOC) {
        if (mt_map_find(&rows->live, key) != MT_MAP_NONE)
            return add_missing_free(rows, event, error);
        return mt_map_set(&rows->live, key, 0) ? mt_fail_memory(error) : MT_OK;
    }
    if (event->kind != MT_EVENT_FREE_REQUESTED && !completes)
        return MT_OK;
    if (mt_map_take(&rows->live, key) == MT_MAP_NONE &&
        !(completes && rows->made.header.has_free_requested))
        rows->frees_unknown++;
    return MT_OK;
}

static enum mt_status add_event(struct mt_rows *rows, struct mt_event *event,
                                struct mt_error *error)
{
    struct mt_trace_header *header = &rows->made.header;

    if (is_nothing(event) || event->kind == MT_EVENT_END)
        return MT_OK;
    rows->untimed += !mt_rows_have_times(rows);
    rows->times_back += event->t_ns < rows->last_t_ns;
    rows->last_t_ns = mt_max_u64(rows->last_t_ns, event->t_ns);
    rows->past_initial |= !(event->flags & MT_EVENT_INITIAL);
    header->starts_in_middle |= (event->flags & MT_EVENT_INITIAL) != 0;
    header->has_segments |= mt_event_is_segment(event);
    header->has_free_requested |= event->kind == MT_EVENT_FREE_REQUESTED;
    header->has_free_completed |= event->kind == MT_EVENT_FREE_COMPLETED;
    rows->refusals += event->kind == MT_EVENT_ALLOC_FAILED;
    enum mt_status status = follow_block(rows, event, error);
    return status == MT_OK ? mt_made_trace_add(&rows->made, event, error) : status;
}

void mt_rows_skip(struct mt_rows *rows, const struct mt_row *row, const char *why)
{
    char text[sizeof((struct mt_error *)0)->text];
    struct mt_buf line = {.data = text, .capacity = sizeof text, .is_fixed = true};

    mt_buf_printf(&line, "line %llu: %s", (unsigned long long)row->line, why);
    mt_made_trace_skip(&rows->made, row->offset, text);
}

/* One address may be live in several processes, so that only the first process is read. */
static const char *check_process(struct mt_rows *rows, const struct mt_row *row)
{
    const struct mt_row_cell cell = row->cells[MT_ROW_PROCESS];
    uint64_t process;

    if (!cell.length)
        return NULL;
    if (!mt_row_number(cell, &process))
        return "the process is not a number";
    if (!rows->has_process)
        rows->process = process;
    rows->has_process = true;
    if (process == rows->process)
        return NULL;
    rows->other_processes++;
    return OTHER_PROCESS;
}

enum mt_status mt_rows_take(struct mt_rows *rows, struct mt_row *row, struct mt_error *error)
{
    struct mt_event event;
    const char *why = rows->dialect->translate ? rows->dialect->translate(row) : NULL;

    rows->rows_read++;
    if (why == MT_ROW_LEFT_OUT) {
        rows->left_out++;
        return MT_OK;
    }
    if (!why)
        why = check_process(rows, row);
    if (why == OTHER_PROCESS)
        return MT_OK;
    if (!why)
        why = read_event(rows, row, &event);
    if (why == OUT_OF_MEMORY)
        return mt_fail_memory(error);
    if (!why) {
        fit_kind(row, &event);
        return add_event(rows, &event, error);
    }
    if (row->may_be_cut)
        mt_rows_cut(rows, row->offset);
    else
        mt_rows_skip(rows, row, why);
    return MT_OK;
}

void mt_rows_cut(struct mt_rows *rows, uint64_t offset)
{
    rows->made.integrity.cut = true;
    rows->made.integrity.cut_offset = offset;
}

bool mt_rows_have_times(const struct mt_rows *rows)
{
    return rows->has[MT_ROW_T_NS] || rows->has[MT_ROW_T_US] || rows->has[MT_ROW_T_S] ||
           rows->has[MT_ROW_CLOCK];
}

void mt_rows_release(struct mt_rows *rows)
{
    mt_made_trace_release(&rows->made);
    mt_strings_release(&rows->labels.texts);
    mt_buf_release(&rows->labels.key);
    free(rows->labels.ids);
    mt_map_release(&rows->live);
    mt_buf_release(&rows->unused);
}

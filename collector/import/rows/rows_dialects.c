/* Rows that other programs write, as rows of memtrace. */
#include <string.h>

#include "rows_dialects.h"
#include "source.h"
#include "util.h"

const char MT_ROW_LEFT_OUT[] = "left out";

static struct mt_row_cell cell_of(const char *text)
{
    return (struct mt_row_cell){text, strlen(text), false};
}

/* ---- memtrace's own rows, and the names of `memtrace dump --json` */

static const struct mt_row_name own_names[] = {
    {"op", MT_ROW_OP},
    {"addr", MT_ROW_ADDR},
    {"bytes", MT_ROW_BYTES},
    {"block_bytes", MT_ROW_BLOCK_BYTES},
    {"t_ns", MT_ROW_T_NS},
    {"t_us", MT_ROW_T_US},
    {"t_s", MT_ROW_T_S},
    {"stream", MT_ROW_STREAM},
    {"device", MT_ROW_DEVICE},
    {"pool", MT_ROW_POOL},
    {"heap", MT_ROW_HEAP},
    {"thread", MT_ROW_THREAD},
    {"thread_name", MT_ROW_THREAD_NAME},
    {"name", MT_ROW_NAME},
    {"stack", MT_ROW_STACK},
    {"flags", MT_ROW_FLAGS},
    {"kind", MT_ROW_OP},
    {"size", MT_ROW_BYTES},
    {"aux", MT_ROW_BLOCK_BYTES},
    {"seq", MT_ROW_SEQ},
};

const struct mt_row_dialect mt_row_dialect_own = {.heap = "allocator",
                                                  .source = MT_SOURCES_ROWS,
                                                  .names = own_names,
                                                  .name_count = MT_ARRAY_LEN(own_names)};

/* ---- RMM
 *
 * cpp/src/mr/detail/logging_resource_adaptor_impl.cpp of rapidsai/rmm. A free is logged before the
 * memory is given back and an allocation after it was made, so the rows of all threads are in an
 * order in which no address is allocated twice. */

static const struct mt_row_name rmm_names[] = {
    {"Thread", MT_ROW_THREAD}, {"Time", MT_ROW_CLOCK}, {"Action", MT_ROW_OP},
    {"Pointer", MT_ROW_ADDR},  {"Size", MT_ROW_BYTES}, {"Stream", MT_ROW_STREAM},
};

static const char *read_rmm(struct mt_row *row)
{
    static const struct {
        const char *action, *op;
    } actions[] = {{"allocate", "alloc"}, {"free", "free"}, {"allocate failure", "oom"}};
    struct mt_row_cell *op = &row->cells[MT_ROW_OP];

    if (mt_row_cell_is(row->cells[MT_ROW_ADDR], "(nil)"))
        row->cells[MT_ROW_ADDR] = cell_of("0");
    for (size_t i = 0; i < MT_ARRAY_LEN(actions); i++)
        if (mt_row_cell_is(*op, actions[i].action)) {
            *op = cell_of(actions[i].op);
            return NULL;
        }
    return "the action is not allocate, free or allocate failure";
}

static const struct mt_row_dialect rmm = {
    .framework = "RMM",
    .heap = "rmm",
    .source = MT_SOURCES_RMM,
    .names = rmm_names,
    .name_count = MT_ARRAY_LEN(rmm_names),
    .required_count = MT_ARRAY_LEN(rmm_names),
    .translate = read_rmm,
    .missing = "device: the log does not name it; it is device 0 here\n"
               "segments: the log has requests only, not what RMM took from the driver\n"};

/* ---- msMemScope
 *
 * docs/en/output_file_spec.md of Ascend/msmemscope. The driver (HAL), the allocators above it and
 * the host each have their own events, and one address may be in several of them. */

static const struct mt_row_name ascend_names[] = {
    {"Event", MT_ROW_OP},         {"Event Type", MT_ROW_HEAP},    {"Timestamp(ns)", MT_ROW_T_NS},
    {"Thread Id", MT_ROW_THREAD}, {"Device Id", MT_ROW_DEVICE},   {"Ptr", MT_ROW_ADDR},
    {"Attr", MT_ROW_ATTRIBUTES},  {"Process Id", MT_ROW_PROCESS},
};

/* The value of a key in {key:value,key:value}; empty if it is missing. */
static struct mt_row_cell attribute(struct mt_row_cell attributes, const char *key)
{
    const char *at = attributes.text, *end = at + attributes.length;
    const size_t length = strlen(key);

    while (at < end) {
        const char *comma = memchr(at, ',', (size_t)(end - at));
        const char *stop = comma ? comma : end;

        at += *at == '{';
        if ((size_t)(stop - at) > length && memcmp(at, key, length) == 0 && at[length] == ':') {
            at += length + 1;
            stop -= stop > at && stop[-1] == '}';
            return (struct mt_row_cell){at, (size_t)(stop - at), false};
        }
        at = comma ? comma + 1 : end;
    }
    return cell_of("");
}

static const char *read_ascend(struct mt_row *row)
{
    struct mt_row_cell *cells = row->cells, attributes = cells[MT_ROW_ATTRIBUTES];
    const bool is_malloc = mt_row_cell_is(cells[MT_ROW_OP], "MALLOC");

    if ((!is_malloc && !mt_row_cell_is(cells[MT_ROW_OP], "FREE")) ||
        mt_row_cell_is(cells[MT_ROW_HEAP], "HOST"))
        return MT_ROW_LEFT_OUT;
    cells[MT_ROW_OP] = cell_of(is_malloc ? "alloc" : "free");
    if (mt_row_cell_is(cells[MT_ROW_HEAP], "HAL"))
        cells[MT_ROW_HEAP] = cell_of("driver");
    if (mt_row_cell_is(cells[MT_ROW_HEAP], "HOST_PINNED"))
        cells[MT_ROW_HEAP] = cell_of("driver:host");
    if (mt_row_cell_is(cells[MT_ROW_DEVICE], "host") || mt_row_cell_is(cells[MT_ROW_DEVICE], "cpu"))
        cells[MT_ROW_DEVICE] = cell_of("0");
    cells[MT_ROW_BYTES] = attribute(attributes, "size");
    if (is_malloc)
        cells[MT_ROW_NAME] = attribute(attributes, "owner");
    return NULL;
}

static const struct mt_row_dialect ascend = {
    .framework = "Ascend",
    .heap = "driver",
    .source = MT_SOURCES_ASCEND,
    .names = ascend_names,
    .name_count = MT_ARRAY_LEN(ascend_names),
    .required_count = MT_ARRAY_LEN(ascend_names) - 1,
    .translate = read_ascend,
    .missing =
        "streams: msMemScope does not record them\n"
        "frees: those with shadow:true are not the program's; msMemScope adds them for blocks "
        "that were freed while it did not record, or at the exit\n",
    .left_out = "other than MALLOC or FREE of a device or of pinned memory"};

const struct mt_row_dialect *mt_row_dialect_find(const struct mt_row_cell *names, size_t count)
{
    static const struct mt_row_dialect *const dialects[] = {&rmm, &ascend};

    for (size_t i = 0; i < MT_ARRAY_LEN(dialects); i++) {
        size_t found = 0;

        for (size_t j = 0; j < dialects[i]->required_count; j++)
            for (size_t k = 0; k < count; k++)
                if (mt_row_cell_is(names[k], dialects[i]->names[j].name)) {
                    found++;
                    break;
                }
        if (found == dialects[i]->required_count)
            return dialects[i];
    }
    return NULL;
}

int mt_row_column_find(const struct mt_row_dialect *dialect, struct mt_row_cell name)
{
    for (size_t i = 0; i < dialect->name_count; i++)
        if (mt_row_cell_is(name, dialect->names[i].name))
            return (int)dialect->names[i].column;
    return -1;
}

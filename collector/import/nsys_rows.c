#include <string.h>

#include "monotonic_clock.h"
#include "nsys_parts.h"
#include "util.h"

static bool take_row(void *context, const struct mt_value *values, unsigned count)
{
    struct mt_nsys *nsys = context;

    (void)count;
    nsys->status = nsys->on_row(nsys, values);
    return nsys->status == MT_OK;
}

enum mt_status mt_nsys_ask(struct mt_nsys *nsys, const struct mt_buf *sql, mt_nsys_row on_row,
                           struct mt_error *error)
{
    const uint64_t now = mt_now_ns();
    bool is_late = false;
    const struct mt_database_question question = {
        .path = nsys->path,
        .sql = sql->data,
        .time_limit_ns = nsys->until_ns > now ? nsys->until_ns - now : 1,
        .is_late = &is_late,
        .context = nsys,
        .on_row = take_row};
    struct mt_error why = {.status = MT_OK}, of_row = {.status = MT_OK};

    if (sql->failed)
        return mt_fail_memory(error);
    nsys->on_row = on_row;
    nsys->status = MT_OK;
    nsys->error = &of_row;
    enum mt_status status = nsys->library->ask(&question, &why);
    if (nsys->status)
        return mt_fail(error, nsys->status, MT_NO_OFFSET, "%s",
                       of_row.status ? of_row.text : mt_status_text(nsys->status));
    if (!status)
        return MT_OK;
    if (is_late)
        return mt_fail(error, MT_ERR_UNSUPPORTED, MT_NO_OFFSET,
                       "reading the database took more than %d s", MT_NSYS_SECONDS);
    return mt_fail(error, status == MT_ERR_USAGE ? MT_ERR_UNSUPPORTED : status, MT_NO_OFFSET,
                   "the database cannot be read: %s", why.text);
}

bool mt_nsys_has(const struct mt_nsys *nsys, const char *column)
{
    return mt_strings_find(&nsys->columns, column, strlen(column)) != MT_MAP_NONE;
}

void mt_nsys_add_column(struct mt_buf *sql, const struct mt_nsys *nsys, const char *alias,
                        const char *column)
{
    const char *name = strchr(column, '.') + 1;

    if (mt_nsys_has(nsys, column))
        mt_buf_printf(sql, ", %s.\"%s\"", alias, name);
    else
        mt_buf_add_text(sql, ", NULL");
}

/* The low 24 bits of a globalTid are the thread. */
void mt_nsys_add_process(struct mt_buf *sql, const struct mt_nsys *nsys, const char *column)
{
    if (nsys->has_process)
        mt_buf_printf(sql, "(%s & -16777216) = %lld", column, (long long)nsys->process);
    else
        mt_buf_add_text(sql, "1");
}

int64_t mt_nsys_integer(const struct mt_value *value, int64_t otherwise)
{
    return value->kind == MT_VALUE_INTEGER ? value->integer : otherwise;
}

const char *mt_nsys_range_text(const struct mt_nsys *nsys)
{
    return mt_nsys_has(nsys, "NVTX_EVENTS.textId") ? "coalesce(n.text, n.textId)" : "n.text";
}

enum mt_status mt_nsys_text(struct mt_nsys *nsys, const struct mt_value *value, uint32_t *id)
{
    const char *text = value->text;
    size_t length = value->length;

    *id = MT_NO_ID;
    if (value->kind == MT_VALUE_INTEGER) {
        uint32_t index = mt_map_get(&nsys->string_ids, (uint64_t)value->integer);
        if (index == MT_MAP_NONE)
            return MT_OK;
        text = nsys->strings.texts[index];
        length = nsys->strings.lengths[index];
    } else if (value->kind != MT_VALUE_TEXT) {
        return MT_OK;
    }
    if (!length)
        return MT_OK;
    return mt_symbols_string(&nsys->made.symbols, text, mt_min_u64(length, MT_NSYS_TEXT_BYTES), id);
}

enum mt_status mt_nsys_add_text(struct mt_nsys *nsys, uint32_t *id)
{
    if (nsys->text.failed)
        return MT_ERR_MEMORY;
    return mt_symbols_string(&nsys->made.symbols, nsys->text.data,
                             mt_min_u64(nsys->text.length, MT_NSYS_TEXT_BYTES), id);
}

#include <string.h>
#include <time.h>

#include "nsys_parts.h"
#include "util.h"

enum { MAX_TEXT_BYTES = 4096 };

static uint64_t now_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static void ignore_columns(void *context, const char *const *names, unsigned count)
{
    (void)context;
    (void)names;
    (void)count;
}

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
    const uint64_t now = now_ns();
    const struct mt_database_question question = {
        .path = nsys->path,
        .sql = sql->data,
        .time_limit_ns = nsys->until_ns > now ? nsys->until_ns - now : 1,
        .context = nsys,
        .on_columns = ignore_columns,
        .on_row = take_row};
    struct mt_error why = {.status = MT_OK}, of_row = {.status = MT_OK};
    enum mt_status status;

    if (sql->failed)
        return mt_fail(error, MT_ERR_MEMORY, MT_NO_OFFSET, "out of memory");
    nsys->on_row = on_row;
    nsys->status = MT_OK;
    nsys->error = &of_row;
    status = nsys->library->ask(&question, &why);
    if (nsys->status)
        return mt_fail(error, nsys->status, MT_NO_OFFSET, "%s",
                       of_row.status ? of_row.text : mt_status_text(nsys->status));
    if (!status)
        return MT_OK;
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

enum mt_status mt_nsys_text(struct mt_nsys *nsys, const struct mt_value *value, uint32_t *id)
{
    size_t length = mt_min_u64(value->length, MAX_TEXT_BYTES);

    *id = MT_NO_ID;
    if (value->kind != MT_VALUE_TEXT || !length)
        return MT_OK;
    return mt_symbols_string(&nsys->made.symbols, value->text, length, id);
}

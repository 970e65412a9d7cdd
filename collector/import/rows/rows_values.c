/* Texts of cells as numbers, times and stacks. */
#include <stdlib.h>
#include <string.h>

#include "ascii.h"
#include "grow.h"
#include "rows_values.h"
#include "util.h"

#define NS_A_SECOND UINT64_C(1000000000)

struct mt_row_cell mt_row_cell_trim(struct mt_row_cell cell)
{
    while (cell.length && *cell.text == ' ') {
        cell.text++;
        cell.length--;
    }
    while (cell.length && cell.text[cell.length - 1] == ' ')
        cell.length--;
    return cell;
}

bool mt_row_cell_is(struct mt_row_cell cell, const char *text)
{
    return strlen(text) == cell.length && memcmp(text, cell.text, cell.length) == 0;
}

static bool read_hex(const char *at, const char *end, uint64_t *value)
{
    *value = 0;
    if (at == end)
        return false;
    for (; at < end; at++) {
        int digit = mt_hex_digit(*at);

        if (digit < 0 || *value >> 60)
            return false;
        *value = *value << 4 | (uint64_t)digit;
    }
    return true;
}

bool mt_row_number(struct mt_row_cell cell, uint64_t *value)
{
    const char *at = cell.text, *end = at + cell.length;

    if (cell.length > 2 && at[0] == '0' && (at[1] | 0x20) == 'x')
        return read_hex(at + 2, end, value);
    if (!mt_decimal_take(&at, end, value))
        return false;
    if (at < end && *at == '.') /* a whole number that went through a column of floats */
        for (at++; at < end && *at == '0';)
            at++;
    return at == end;
}

/* Digits without leading zeros; those after the nineteenth only move the point. */
struct digits {
    uint64_t value;
    int count, scale;
};

static void take_digits(const char **at, const char *end, struct digits *digits, bool is_fraction)
{
    for (; *at < end && **at >= '0' && **at <= '9'; (*at)++) {
        bool fits = digits->count < 19;

        if (fits)
            digits->value = digits->value * 10 + (uint64_t)(**at - '0');
        digits->count += digits->value && fits;
        digits->scale += (int)!fits - (int)(is_fraction);
    }
}

static bool take_exponent(const char **at, const char *end, int *scale)
{
    uint64_t exponent;

    if (*at == end || (**at | 0x20) != 'e')
        return true;
    (*at)++;
    bool is_negative = *at < end && **at == '-';
    *at += *at < end && (**at == '-' || **at == '+');
    if (!mt_decimal_take(at, end, &exponent) || exponent > 1000)
        return false;
    *scale += is_negative ? -(int)exponent : (int)exponent;
    return true;
}

bool mt_row_decimal(struct mt_row_cell cell, int scale, uint64_t *value)
{
    const char *at = cell.text, *end = at + cell.length, *start = at;
    struct digits digits = {0, 0, 0};

    if (cell.length > 1000)
        return false;
    take_digits(&at, end, &digits, false);
    if (at == start)
        return false;
    if (at < end && *at == '.') {
        at++;
        take_digits(&at, end, &digits, true);
    }
    if (!take_exponent(&at, end, &digits.scale) || at != end)
        return false;
    digits.scale += scale;
    for (; digits.scale < 0 && digits.value; digits.scale++)
        digits.value /= 10;
    for (; digits.scale > 0 && digits.value; digits.scale--)
        if (!mt_mul_ok(digits.value, 10, &digits.value))
            return false;
    *value = digits.value;
    return true;
}

bool mt_row_clock(struct mt_row_cell cell, bool *is_time_of_day, uint64_t *t_ns)
{
    const char *at = cell.text, *end = at + cell.length;
    uint64_t hours, minutes;

    *is_time_of_day = memchr(cell.text, ':', cell.length) != NULL;
    if (!*is_time_of_day)
        return mt_row_decimal(cell, 9, t_ns);
    if (!mt_decimal_take(&at, end, &hours) || at == end || *at++ != ':' ||
        !mt_decimal_take(&at, end, &minutes) || at == end || *at++ != ':')
        return false;
    struct mt_row_cell seconds = {at, (size_t)(end - at), false};
    if (hours > 23 || minutes > 59 || !mt_row_decimal(seconds, 9, t_ns) ||
        *t_ns >= 61 * NS_A_SECOND)
        return false;
    *t_ns += (hours * 60 + minutes) * 60 * NS_A_SECOND;
    return true;
}

/* ---- stacks */

/* The frames of a cell, in its order. */
struct frames {
    struct mt_symbols *symbols;
    uint32_t *ids;
    size_t count, capacity;
    struct mt_buf text; /* without backslashes */
};

/* Where the file begins in "function (file:line)", and the line's digits; 0: nowhere. `from` is
 * behind the last parenthesis that is not plain. */
static size_t find_colon(const char *text, size_t length, size_t from, uint64_t *line)
{
    size_t colon = length - 1;

    if (!from || text[length - 1] != ')')
        return 0;
    while (colon > from && text[colon] != ':')
        colon--;
    const char *at = text + colon + 1;
    if (colon <= from || !mt_decimal_take(&at, text + length - 1, line) ||
        at != text + length - 1 || *line > UINT32_MAX)
        return 0;
    return colon;
}

/* Adds the frame that is in `text`. A file begins at `from`, behind " (", or 0. */
static enum mt_status add_frame(struct frames *frames, size_t from)
{
    const char *text = frames->text.data ? frames->text.data : "";
    size_t length = frames->text.length;
    uint32_t function, file = MT_NO_ID, id;
    uint64_t line = 0;
    size_t colon = length ? find_colon(text, length, from, &line) : 0;
    enum mt_status status = MT_OK;

    if (colon)
        status = mt_symbols_string(frames->symbols, text + from, colon - from, &file);
    if (status == MT_OK)
        status = mt_symbols_string(frames->symbols, text, colon ? from - 2 : length, &function);
    if (status == MT_OK)
        status = mt_symbols_frame(frames->symbols, function, file, (uint32_t)line, &id);
    if (status == MT_OK)
        status = mt_grow(&frames->ids, &frames->capacity, frames->count + 1, sizeof *frames->ids);
    if (status != MT_OK)
        return status;
    frames->ids[frames->count++] = id;
    mt_buf_reset(&frames->text);
    return MT_OK;
}

static enum mt_status split(struct frames *frames, struct mt_row_cell cell, bool is_plain)
{
    const char separator = is_plain ? '\0' : ';';
    enum mt_status status = MT_OK;
    size_t from = 0;

    for (size_t i = 0; i < cell.length && status == MT_OK; i++) {
        char c = cell.text[i];

        if (c == separator) {
            status = add_frame(frames, from);
            from = 0;
            continue;
        }
        if (c == '\\' && !is_plain && i + 1 < cell.length)
            c = cell.text[++i];
        else if (c == '(' && frames->text.length &&
                 frames->text.data[frames->text.length - 1] == ' ')
            from = frames->text.length + 1;
        mt_buf_add_char(&frames->text, c);
    }
    if (status == MT_OK)
        status = add_frame(frames, from);
    return frames->text.failed ? MT_ERR_MEMORY : status;
}

enum mt_status mt_row_stack(struct mt_symbols *symbols, struct mt_row_cell cell,
                            enum mt_row_stack_form form, uint32_t *stack)
{
    struct frames parts = {.symbols = symbols};
    enum mt_status status = split(&parts, cell, form != MT_ROW_STACK_TEXT);

    *stack = MT_NO_ID;
    for (size_t i = 0; i < parts.count && status == MT_OK; i++) {
        const size_t at = form == MT_ROW_STACK_INNERMOST ? parts.count - 1 - i : i;

        status = mt_symbols_stack(symbols, *stack, parts.ids[at], stack);
    }
    free(parts.ids);
    mt_buf_release(&parts.text);
    return status;
}

#include "units.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "ascii.h"
#include "util.h"

#define MINUS      "\xE2\x88\x92"
#define PLUS_MINUS "\xC2\xB1"
#define MICRO      "\xC2\xB5"

/* Appends decimal digits of value at `at`, returns the new end. */
static char *put_digits(char *at, uint64_t value)
{
    char digits[20];
    size_t n = 0;

    do
        digits[n++] = (char)('0' + value % 10);
    while (value /= 10);
    while (n)
        *at++ = digits[--n];
    *at = '\0';
    return at;
}

static char *put_text(char *at, const char *text)
{
    size_t length = strlen(text);

    memcpy(at, text, length + 1);
    return at + length;
}

/* The number of decimals that gives three significant digits: "6.45", "66.6", "774". */
static unsigned decimals_of(double value)
{
    return value < 9.995 ? 2 : value < 99.95 ? 1 : 0;
}

static char *put_decimals(char *at, double value, unsigned decimals)
{
    uint64_t scale = decimals == 2 ? 100 : decimals == 1 ? 10 : 1;
    uint64_t scaled = (uint64_t)(value * (double)scale + 0.5);

    if (!scaled && value > 0) {
        *at++ = '<';
        scaled = 1;
    }
    at = put_digits(at, scaled / scale);
    if (!decimals)
        return at;
    scaled %= scale;
    *at++ = '.';
    if (decimals == 2)
        *at++ = (char)('0' + scaled / 10);
    *at++ = (char)('0' + scaled % 10);
    *at = '\0';
    return at;
}

static char *put_three_digits(char *at, double value)
{
    return put_decimals(at, value, decimals_of(value));
}

static const char *const byte_units[] = {" B", " KiB", " MiB", " GiB", " TiB", " PiB", " EiB"};

/* `bytes` in the unit of `like_bytes`. */
static char *put_bytes_like(char *at, uint64_t bytes, uint64_t like_bytes)
{
    double value = (double)bytes, like = (double)like_bytes;
    size_t unit = 0;

    if (like_bytes < 1000 || value > like * 100) /* no common unit suits both */
        like = value;
    if (bytes < 1000 && like < 1000)
        return put_text(put_digits(at, bytes), byte_units[0]);
    while (like >= 999.5 && unit + 1 < MT_ARRAY_LEN(byte_units)) {
        value /= 1024;
        like /= 1024;
        unit++;
    }
    if (value >= 999.5) {
        mt_format_count(at, (uint64_t)(value + 0.5));
        return put_text(at + strlen(at), byte_units[unit]);
    }
    return put_text(put_decimals(at, value, decimals_of(like)), byte_units[unit]);
}

static char *put_bytes(char *at, uint64_t bytes)
{
    return put_bytes_like(at, bytes, bytes);
}

char *mt_format_bytes(char text[MT_UNITS_TEXT], uint64_t bytes)
{
    put_bytes(text, bytes);
    return text;
}

char *mt_format_bytes_like(char text[MT_UNITS_TEXT], uint64_t bytes, uint64_t like_bytes)
{
    put_bytes_like(text, bytes, like_bytes);
    return text;
}

char *mt_format_change(char text[MT_UNITS_TEXT], int64_t bytes)
{
    if (bytes == 0)
        put_text(text, PLUS_MINUS "0");
    else if (bytes > 0)
        put_bytes(put_text(text, "+"), (uint64_t)bytes);
    else
        put_bytes(put_text(text, MINUS), 0 - (uint64_t)bytes);
    return text;
}

char *mt_format_count(char text[MT_UNITS_TEXT], uint64_t value)
{
    char digits[24], *at = text;
    size_t n = (size_t)(put_digits(digits, value) - digits);

    for (size_t i = 0; i < n; i++) {
        if (i && (n - i) % 3 == 0)
            *at++ = ',';
        *at++ = digits[i];
    }
    *at = '\0';
    return text;
}

char *mt_format_counted(char text[MT_UNITS_TEXT], uint64_t value, const char *noun)
{
    const size_t length = strlen(mt_format_count(text, value));

    snprintf(text + length, MT_UNITS_TEXT - length, " %s%s", noun, mt_plural_s(value));
    return text;
}

static void put_exact(char text[MT_UNITS_TEXT], uint64_t bytes)
{
    mt_format_count(text, bytes);
    put_text(text + strlen(text), byte_units[0]);
}

void mt_format_bytes_distinct(char one[MT_UNITS_TEXT], uint64_t one_bytes,
                              char other[MT_UNITS_TEXT], uint64_t other_bytes)
{
    mt_format_bytes(one, one_bytes);
    mt_format_bytes(other, other_bytes);
    if (one_bytes == other_bytes || strcmp(one, other) != 0)
        return;
    put_exact(one, one_bytes);
    put_exact(other, other_bytes);
}

char *mt_format_mib(char text[MT_UNITS_TEXT], uint64_t bytes)
{
    const uint64_t mib = UINT64_C(1) << 20;
    const uint64_t whole = bytes / mib + (bytes % mib != 0);
    const uint64_t tenths = bytes / mib * 10 + (bytes % mib * 10 + mib - 1) / mib;
    char *end;

    if (tenths >= 1000) {
        end = strchr(mt_format_count(text, whole), '\0');
    } else {
        end = put_text(put_digits(text, tenths / 10), ".");
        end = put_digits(end, tenths % 10);
    }
    put_text(end, " MiB");
    return text;
}

char *mt_format_percent(char text[MT_UNITS_TEXT], double share)
{
    double percent = share * 100;
    char *at = text;

    if (percent < 0) {
        at = put_text(at, MINUS);
        percent = -percent;
    }
    if (!(percent < 1e12))
        put_text(at, "?%");
    else if (percent == 0)
        put_text(text, "0%");
    else if (percent < 0.05)
        put_text(text, "<0.1%");
    else {
        uint64_t tenths = (uint64_t)(percent * 10 + 0.5);
        at = put_digits(at, tenths / 10);
        if (tenths < 1000 || tenths % 10) {
            *at++ = '.';
            *at++ = (char)('0' + tenths % 10);
        }
        put_text(at, "%");
    }
    return text;
}

static const struct {
    double ns;
    const char *name;
} time_units[] = {{1e9, " s"}, {1e6, " ms"}, {1e3, " " MICRO "s"}, {1, " ns"}};

char *mt_format_duration(char text[MT_UNITS_TEXT], uint64_t ns)
{
    size_t unit = 0;

    if (ns == 0) {
        put_text(text, "0 s");
        return text;
    }
    while (unit + 1 < MT_ARRAY_LEN(time_units) && (double)ns < 0.9995 * time_units[unit].ns)
        unit++;
    if (unit + 1 == MT_ARRAY_LEN(time_units))
        put_text(put_digits(text, ns), time_units[unit].name);
    else
        put_text(put_three_digits(text, (double)ns / time_units[unit].ns), time_units[unit].name);
    return text;
}

static bool is_word(const char *word, size_t length, const char *unit)
{
    return length == strlen(unit) && memcmp(word, unit, length) == 0;
}

bool mt_units_is_unit(const char *word, size_t length)
{
    for (size_t i = 0; i < MT_ARRAY_LEN(byte_units); i++)
        if (is_word(word, length, byte_units[i] + 1))
            return true;
    for (size_t i = 0; i < MT_ARRAY_LEN(time_units); i++)
        if (is_word(word, length, time_units[i].name + 1))
            return true;
    return false;
}

static bool is_of_unit(char c)
{
    return mt_is_alnum(c) || c == '_' || c == '\xC2' || c == '\xB5'; /* the micro sign */
}

size_t mt_unit_length(const char *text)
{
    size_t length = 0;

    while (is_of_unit(text[length]))
        length++;
    return mt_units_is_unit(text, length) ? length : 0;
}

static bool unit_factor(const char *unit, double *factor)
{
    static const struct {
        const char *name;
        double factor;
    } units[] = {{"", 1},
                 {"b", 1},
                 {"k", 1024.0},
                 {"kib", 1024.0},
                 {"kb", 1e3},
                 {"m", 1048576.0},
                 {"mib", 1048576.0},
                 {"mb", 1e6},
                 {"g", 1073741824.0},
                 {"gib", 1073741824.0},
                 {"gb", 1e9},
                 {"t", 1099511627776.0},
                 {"tib", 1099511627776.0},
                 {"tb", 1e12}};
    size_t j;

    for (size_t i = 0; i < MT_ARRAY_LEN(units); i++) {
        for (j = 0; unit[j]; j++) {
            char lower = unit[j] >= 'A' && unit[j] <= 'Z' ? (char)(unit[j] + 32) : unit[j];
            if (lower != units[i].name[j])
                break;
        }
        if (!unit[j] && !units[i].name[j]) {
            *factor = units[i].factor;
            return true;
        }
    }
    return false;
}

const char *mt_parse_count(const char *text, uint64_t *count)
{
    size_t first = strspn(text, "0123456789"), digits = first;
    const char *at = text;

    if (!first)
        return NULL;
    for (*count = 0;; at++, digits = strspn(at, "0123456789")) {
        for (const char *end = at + digits; at < end; at++)
            if (!mt_mul_ok(*count, 10, count) || !mt_add_ok(*count, (uint64_t)(*at - '0'), count))
                return NULL;
        if (*at != ',' || first > 3 || strspn(at + 1, "0123456789") != 3)
            return at;
    }
}

enum mt_status mt_parse_bytes(const char *text, uint64_t *bytes)
{
    uint64_t whole;
    double fraction = 0, scale = 1, factor;
    const char *at = mt_parse_count(text + strspn(text, " "), &whole);

    if (!at)
        return MT_ERR_USAGE;
    if (*at == '.') {
        for (at++; *at >= '0' && *at <= '9'; at++) {
            scale /= 10;
            fraction += (double)(*at - '0') * scale;
        }
    }
    while (*at == ' ')
        at++;
    if (!unit_factor(at, &factor))
        return MT_ERR_USAGE;
    if (fraction == 0)
        return mt_mul_ok(whole, (uint64_t)factor, bytes) ? MT_OK : MT_ERR_USAGE;
    double value = ((double)whole + fraction) * factor;
    if (value >= 9e18)
        return MT_ERR_USAGE;
    *bytes = (uint64_t)(value + 0.5);
    return MT_OK;
}

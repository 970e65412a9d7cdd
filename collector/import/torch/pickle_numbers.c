#include "pickle_numbers.h"

#include <string.h>

#include "ascii.h"

/* Reads digits into *magnitude. Sets *big if they exceed 64 bits. */
static bool parse_digits(const unsigned char *text, size_t length, uint64_t *magnitude, bool *big)
{
    *magnitude = 0;
    *big = false;
    for (size_t i = 0; i < length; i++) {
        uint64_t digit = (uint64_t)text[i] - '0';
        if (digit > 9)
            return false;
        *big |= __builtin_mul_overflow(*magnitude, 10, magnitude) ||
                __builtin_add_overflow(*magnitude, digit, magnitude);
    }
    return length > 0;
}

static struct mt_pickle_value signed_value(uint64_t magnitude, bool negative, bool big)
{
    struct mt_pickle_value value = {negative ? 0 - magnitude : magnitude, MT_PICKLE_INT, 0};

    if (big || (negative && magnitude > (uint64_t)INT64_MAX + 1))
        value = (struct mt_pickle_value){0, MT_PICKLE_BIG, 0};
    else if (!negative && magnitude > INT64_MAX)
        value.kind = MT_PICKLE_UINT;
    return value;
}

bool mt_pickle_parse_int(const unsigned char *text, size_t length, bool true_false,
                         struct mt_pickle_value *value)
{
    bool big;
    uint64_t magnitude;

    if (true_false && length == 2 && text[0] == '0' && (text[1] == '0' || text[1] == '1')) {
        *value = (struct mt_pickle_value){text[1] == '1', MT_PICKLE_BOOL, 0};
        return true;
    }
    if (length && text[length - 1] == 'L')
        length--;
    bool negative = length && text[0] == '-';
    if (!parse_digits(text + negative, length - negative, &magnitude, &big))
        return false;
    *value = signed_value(magnitude, negative, big);
    return true;
}

static double scale(double value, int64_t exponent)
{
    double factor = exponent < 0 ? 0.1 : 10.0;
    int64_t steps = exponent < 0 ? -exponent : exponent;

    /* after 400 steps every double is 0 or infinite */
    for (steps = steps > 800 ? 800 : steps; steps; steps--)
        value = factor > 1 ? value * 10.0 : value / 10.0;
    return value;
}

static bool parse_special(const unsigned char *text, size_t length, double *value)
{
    bool nan = length == 3 && memcmp(text, "nan", 3) == 0;

    *value = nan ? __builtin_nan("") : __builtin_inf();
    return nan || (length == 3 && memcmp(text, "inf", 3) == 0);
}

/* digits [. digits] [e exponent] */
static bool parse_decimal(const unsigned char *text, size_t length, double *value)
{
    int64_t exponent = 0, written = 0;
    size_t i, digits = 0;
    bool point = false;

    *value = 0;
    for (i = 0; i < length && text[i] != 'e' && text[i] != 'E'; i++) {
        if (text[i] == '.' && !point) {
            point = true;
            continue;
        }
        if (text[i] < '0' || text[i] > '9')
            return false;
        digits++;
        if (*value < 1e17)
            *value = *value * 10 + (text[i] - '0');
        else
            exponent++;
        exponent -= point;
    }
    if (!digits)
        return false;
    if (i < length) {
        bool negative = i + 1 < length && text[i + 1] == '-';
        size_t start = i + 1 + (i + 1 < length && (text[i + 1] == '-' || text[i + 1] == '+'));
        uint64_t magnitude;
        bool big;
        if (!parse_digits(text + start, length - start, &magnitude, &big))
            return false;
        written = big || magnitude > 100000 ? 100000 : (int64_t)magnitude;
        written = negative ? -written : written;
    }
    *value = scale(*value, exponent + written);
    return true;
}

bool mt_pickle_parse_float(const unsigned char *text, size_t length, struct mt_pickle_value *value)
{
    bool negative = length && text[0] == '-';
    double number;

    if (!parse_special(text + negative, length - negative, &number) &&
        !parse_decimal(text + negative, length - negative, &number))
        return false;
    number = negative ? -number : number;
    *value = (struct mt_pickle_value){0, MT_PICKLE_FLOAT, 0};
    memcpy(&value->bits, &number, sizeof value->bits);
    return true;
}

struct mt_pickle_value mt_pickle_long(const unsigned char *bytes, size_t length)
{
    bool negative = length && bytes[length - 1] >= 0x80;
    unsigned char filler = negative ? 0xff : 0;
    struct mt_pickle_value value = {negative ? UINT64_MAX : 0, MT_PICKLE_INT, 0};

    while (length > 8 && bytes[length - 1] == filler)
        length--;
    if (length > 8)
        return (struct mt_pickle_value){0, MT_PICKLE_BIG, 0};
    for (size_t i = 0; i < length; i++)
        value.bits = (value.bits & ~((uint64_t)0xff << 8 * i)) | (uint64_t)bytes[i] << 8 * i;
    if (!negative && value.bits > INT64_MAX)
        value.kind = MT_PICKLE_UINT;
    else if (negative && value.bits <= INT64_MAX)
        value = (struct mt_pickle_value){0, MT_PICKLE_BIG, 0};
    return value;
}

static bool parse_hex(const unsigned char *text, size_t length, size_t digits, uint32_t *code)
{
    *code = 0;
    if (length < digits)
        return false;
    for (size_t i = 0; i < digits; i++) {
        int digit = mt_hex_digit((char)text[i]);
        if (digit < 0)
            return false;
        *code = *code << 4 | (uint32_t)digit;
    }
    return true;
}

/* Decodes one escape after a backslash. Returns the bytes of text that it used, 0 if it is not an
 * escape. */
static size_t unquote_escape(const unsigned char *text, size_t length, struct mt_buf *out)
{
    static const char from[] = "\\'\"nrtabfv", to[] = "\\'\"\n\r\t\a\b\f\v";
    uint32_t code = 0;
    size_t i;

    if (!length)
        return 0;
    const char *simple = text[0] ? strchr(from, text[0]) : NULL;
    if (simple) {
        mt_buf_add_char(out, to[simple - from]);
        return 1;
    }
    if (text[0] == 'x' && parse_hex(text + 1, length - 1, 2, &code)) {
        mt_buf_add_char(out, (char)code);
        return 3;
    }
    for (i = 0; i < 3 && i < length && text[i] >= '0' && text[i] <= '7'; i++)
        code = code * 8 + (uint32_t)(text[i] - '0');
    if (i)
        mt_buf_add_char(out, (char)(unsigned char)code);
    return i;
}

bool mt_pickle_unquote(const unsigned char *text, size_t length, struct mt_buf *out)
{
    if (length < 2 || text[0] != text[length - 1] || (text[0] != '\'' && text[0] != '"'))
        return false;
    for (size_t i = 1; i < length - 1; i++) {
        size_t taken = 0;
        if (text[i] == '\\')
            taken = unquote_escape(text + i + 1, length - 2 - i, out);
        if (!taken) /* Python keeps a backslash that does not begin an escape */
            mt_buf_add_char(out, (char)text[i]);
        i += taken;
    }
    return true;
}

static void add_utf8(struct mt_buf *out, uint32_t code)
{
    if (code < 0x80) {
        mt_buf_add_char(out, (char)code);
    } else if (code < 0x800) {
        mt_buf_add_char(out, (char)(0xC0 | code >> 6));
        mt_buf_add_char(out, (char)(0x80 | (code & 0x3f)));
    } else if (code < 0x10000) {
        mt_buf_add_char(out, (char)(0xE0 | code >> 12));
        mt_buf_add_char(out, (char)(0x80 | (code >> 6 & 0x3f)));
        mt_buf_add_char(out, (char)(0x80 | (code & 0x3f)));
    } else {
        mt_buf_add_char(out, (char)(0xF0 | code >> 18));
        mt_buf_add_char(out, (char)(0x80 | (code >> 12 & 0x3f)));
        mt_buf_add_char(out, (char)(0x80 | (code >> 6 & 0x3f)));
        mt_buf_add_char(out, (char)(0x80 | (code & 0x3f)));
    }
}

bool mt_pickle_unescape(const unsigned char *text, size_t length, struct mt_buf *out)
{
    size_t i = 0;

    while (i < length) {
        uint32_t code = text[i++];
        if (code == '\\' && i < length && (text[i] == 'u' || text[i] == 'U')) {
            size_t digits = text[i] == 'u' ? 4 : 8;
            if (!parse_hex(text + i + 1, length - i - 1, digits, &code) || code > 0x10ffff)
                return false;
            i += 1 + digits;
        }
        add_utf8(out, code);
    }
    return true;
}

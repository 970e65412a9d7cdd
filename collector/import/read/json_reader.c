/* The texts of tokens stay in the buffer where they were read. A closing quote becomes a NUL, and
 * escapes are decoded in place, which makes a text shorter. If the buffer ends within a token, the
 * token moves to its beginning. A NUL after the last byte stops every loop. */
#include "json_reader.h"

#include <stdlib.h>
#include <string.h>

#include "util.h"

enum { BUFFER_BYTES = 256 * 1024 };

/* What may come next. */
enum { AT_VALUE, AT_FIRST_VALUE, AT_KEY, AT_FIRST_KEY, AT_COLON, AT_REST };

/* Classes of bytes. */
enum { SPACE = 1, PLAIN = 2, OF_NUMBER = 4, DIGIT = 8 };

#define P4(class)  class, class, class, class
#define P16(class) P4(class), P4(class), P4(class), P4(class)
static const uint8_t classes[256] = {
    P4(0), P4(0), 0, SPACE, SPACE, 0, 0, SPACE, 0, 0, P16(0),
    /* 0x20 */
    SPACE | PLAIN, PLAIN, 0, PLAIN, P4(PLAIN), PLAIN, PLAIN, PLAIN, PLAIN | OF_NUMBER, PLAIN,
    PLAIN | OF_NUMBER, PLAIN | OF_NUMBER, PLAIN,
    /* 0x30 */
    P4(PLAIN | OF_NUMBER | DIGIT), P4(PLAIN | OF_NUMBER | DIGIT), PLAIN | OF_NUMBER | DIGIT,
    PLAIN | OF_NUMBER | DIGIT, PLAIN, PLAIN, P4(PLAIN),
    /* 0x40 */
    P4(PLAIN), PLAIN, PLAIN | OF_NUMBER, PLAIN, PLAIN, P4(PLAIN), P4(PLAIN),
    /* 0x50 */
    P4(PLAIN), P4(PLAIN), P4(PLAIN), 0, PLAIN, PLAIN, PLAIN,
    /* 0x60 */
    P4(PLAIN), PLAIN, PLAIN | OF_NUMBER, PLAIN, PLAIN, P4(PLAIN), P4(PLAIN),
    /* 0x70 */
    P16(PLAIN), P16(PLAIN), P16(PLAIN), P16(PLAIN), P16(PLAIN), P16(PLAIN), P16(PLAIN), P16(PLAIN),
    P16(PLAIN)};
#undef P4
#undef P16

static inline bool is_class(char c, uint8_t class)
{
    return classes[(unsigned char)c] & class;
}

/* Returns the first byte that is not in the class. */
static inline const char *after_class(const char *at, uint8_t class)
{
    while (is_class(*at, class))
        at++;
    return at;
}

enum mt_status mt_json_reader_init(struct mt_json_reader *json, struct mt_feed *feed,
                                   struct mt_error *error)
{
    *json = (struct mt_json_reader){.feed = feed, .buffer = malloc(BUFFER_BYTES + 1)};
    if (!json->buffer)
        return mt_fail_memory(error);
    json->buffer[0] = 0;
    return MT_OK;
}

void mt_json_reader_release(struct mt_json_reader *json)
{
    free(json->buffer);
    *json = (struct mt_json_reader){0};
}

static enum mt_status damaged(const struct mt_json_reader *json, const char *why,
                              struct mt_error *error)
{
    return mt_fail(error, MT_ERR_FORMAT, json->base + json->at, "the JSON is damaged: %s", why);
}

static enum mt_status is_cut(struct mt_json_reader *json, struct mt_error *error)
{
    json->cut = true;
    return mt_fail(error, MT_ERR_FORMAT, json->base + json->end, "the JSON is cut");
}

/* Reads more bytes. Keeps those since *from, which moves. */
static enum mt_status refill(struct mt_json_reader *json, size_t *from, struct mt_error *error)
{
    const size_t start = *from, kept = json->end - start;
    size_t got = 0;

    memmove(json->buffer, json->buffer + start, kept);
    json->base += start;
    json->at -= start;
    json->end = kept;
    *from = 0;
    enum mt_status status =
        mt_feed_read(json->feed, json->buffer + kept, BUFFER_BYTES - kept, &got, error);
    json->end += got;
    json->buffer[json->end] = 0;
    json->ended = !got;
    return status;
}

static enum mt_status skip_many_spaces(struct mt_json_reader *json, struct mt_error *error)
{
    const char last = json->lines && json->depth ? '\n' : 0;

    for (;;) {
        const char *at = json->buffer + json->at;

        while (is_class(*at, SPACE) && *at != last)
            at++;
        json->at = (size_t)(at - json->buffer);
        if (json->at < json->end || json->ended)
            return MT_OK;
        size_t from = json->at;
        enum mt_status status = refill(json, &from, error);
        if (status != MT_OK)
            return status;
    }
}

/* Moves to the next byte that is no white space; at == end: there is none. */
static inline enum mt_status skip_space(struct mt_json_reader *json, struct mt_error *error)
{
    const char c = json->buffer[json->at];

    return c && !is_class(c, SPACE) ? MT_OK : skip_many_spaces(json, error);
}

/* Returns the digit's value, or 16. */
static uint32_t hexadecimal(char c)
{
    if (c >= '0' && c <= '9')
        return (uint32_t)(c - '0');
    if (c >= 'a' && c <= 'f')
        return (uint32_t)(c - 'a') + 10;
    return c >= 'A' && c <= 'F' ? (uint32_t)(c - 'A') + 10 : 16;
}

/* Reads the 4 digits of \uXXXX at `at`. */
static bool read_unit(const char *at, const char *end, uint32_t *unit)
{
    *unit = 0;
    if (end - at < 4)
        return false;
    for (int i = 0; i < 4; i++) {
        uint32_t digit = hexadecimal(at[i]);

        if (digit > 15)
            return false;
        *unit = *unit << 4 | digit;
    }
    return true;
}

static char *put_utf8(char *out, uint32_t c)
{
    if (c < 0x80) {
        *out++ = (char)c;
        return out;
    }
    if (c >= 0x10000) {
        *out++ = (char)(0xf0 | c >> 18);
        *out++ = (char)(0x80 | (c >> 12 & 0x3f));
    } else if (c >= 0x800) {
        *out++ = (char)(0xe0 | c >> 12);
    } else {
        *out++ = (char)(0xc0 | c >> 6);
        *out++ = (char)(0x80 | (c & 0x3f));
        return out;
    }
    *out++ = (char)(0x80 | (c >> 6 & 0x3f));
    *out++ = (char)(0x80 | (c & 0x3f));
    return out;
}

/* Decodes \uXXXX, of which *at is the first digit, and the second half of a pair of surrogates. A
 * surrogate without the other one is U+FFFD. */
static bool take_unicode(const char **at, const char *end, char **out)
{
    uint32_t first, second;

    if (!read_unit(*at, end, &first))
        return false;
    *at += 4;
    if (first >= 0xd800 && first < 0xdc00 && end - *at >= 6 && (*at)[0] == '\\' &&
        (*at)[1] == 'u' && read_unit(*at + 2, end, &second) && second >= 0xdc00 &&
        second < 0xe000) {
        *at += 6;
        first = 0x10000 + ((first - 0xd800) << 10) + (second - 0xdc00);
    }
    *out = put_utf8(*out, first >= 0xd800 && first < 0xe000 ? 0xfffd : first);
    return true;
}

/* Decodes the escapes of a text in place. Returns its new length; *bad: the first escape that is
 * none, or NULL. */
static size_t decode(char *text, size_t length, const char **bad)
{
    static const char letters[] = "\"\\/bfnrt", meanings[] = "\"\\/\b\f\n\r\t";
    const char *at = text, *end = text + length;
    char *out = text;

    *bad = NULL;
    while (at < end) {
        if (*at != '\\') {
            *out++ = *at++;
            continue;
        }
        const char *letter = end - at >= 2 && at[1] ? strchr(letters, at[1]) : NULL;
        if (letter) {
            *out++ = meanings[letter - letters];
            at += 2;
            continue;
        }
        *bad = at;
        if (end - at < 2 || at[1] != 'u')
            break;
        at += 2;
        if (!take_unicode(&at, end, &out))
            break;
        *bad = NULL;
    }
    return (size_t)(out - text);
}

/* Length of a text without the incomplete character at its end. */
static size_t whole_characters(const char *text, size_t length)
{
    size_t start = length;

    while (start && length - start < 3 && ((unsigned char)text[start - 1] & 0xc0) == 0x80)
        start--;
    return start && (unsigned char)text[start - 1] >= 0xc0 ? start - 1 : length;
}

/* Keeps the beginning of a long text in the buffer, and drops what was read of the rest, except the
 * first byte of an escape at its end. */
static void drop_rest(struct mt_json_reader *json, size_t from)
{
    const size_t kept_end = from + MT_JSON_TEXT_BYTES, left = json->end - json->at;

    json->text_is_cut = true;
    memmove(json->buffer + kept_end, json->buffer + json->at, left);
    json->base += json->at - kept_end;
    json->at = kept_end;
    json->end = kept_end + left;
}

/* Moves to the closing quote of the text that begins at *from. */
static enum mt_status find_quote(struct mt_json_reader *json, size_t *from, bool *has_escapes,
                                 struct mt_error *error)
{
    for (;;) {
        json->at = (size_t)(after_class(json->buffer + json->at, PLAIN) - json->buffer);
        char c = json->buffer[json->at];
        if (c == '"')
            return MT_OK;
        if (c == '\\' && json->at + 1 < json->end) {
            *has_escapes = true;
            json->at += 2;
            continue;
        }
        if (json->at < json->end && c != '\\')
            return damaged(json, "a text has a control character", error);
        if (json->ended)
            return is_cut(json, error);
        if (json->at - *from > MT_JSON_TEXT_BYTES)
            drop_rest(json, *from);
        enum mt_status status = refill(json, from, error);
        if (status != MT_OK)
            return status;
    }
}

static enum mt_status read_text(struct mt_json_reader *json, struct mt_error *error)
{
    size_t from = ++json->at;
    bool has_escapes = false;
    const char *bad = NULL;

    json->text_is_cut = false;
    enum mt_status status = find_quote(json, &from, &has_escapes, error);
    if (status != MT_OK)
        return status;
    size_t length = json->at - from;
    if (length > MT_JSON_TEXT_BYTES) {
        json->text_is_cut = true;
        length = MT_JSON_TEXT_BYTES;
    }
    json->text = json->buffer + from;
    json->at++;
    if (has_escapes)
        length = decode(json->buffer + from, length, &bad);
    if (bad && !json->text_is_cut)
        return damaged(json, "a text has an unknown escape", error);
    if (json->text_is_cut)
        length = whole_characters(json->text, length);
    json->buffer[from + length] = 0;
    json->length = length;
    return MT_OK;
}

/* Sets the integer of a text that is one, of 1 to 19 digits. Returns false if it does not fit. */
static bool read_integer(struct mt_json_reader *json)
{
    const bool is_negative = *json->text == '-';
    const uint64_t most = (uint64_t)INT64_MAX + is_negative;
    uint64_t value = 0;

    if (json->length - is_negative > 19)
        return false;
    for (size_t i = is_negative; i < json->length; i++)
        value = value * 10 + (uint64_t)(json->text[i] - '0');
    if (value > most)
        return false;
    json->integer = (int64_t)(is_negative ? 0 - value : value);
    return true;
}

/* Sets the token if json->text is a number up to its end. */
static bool is_number(struct mt_json_reader *json)
{
    const char *at = json->text, *end = at + json->length;
    bool is_whole = true;

    at += *at == '-';
    const char *digits = at;
    at = after_class(at, DIGIT);
    if (at == digits || (*digits == '0' && at - digits > 1))
        return false;
    if (at < end && *at == '.') {
        is_whole = false;
        digits = at + 1;
        at = after_class(digits, DIGIT);
        if (at == digits)
            return false;
    }
    if (at < end && (*at == 'e' || *at == 'E')) {
        is_whole = false;
        at += at[1] == '+' || at[1] == '-' ? 2 : 1;
        digits = at;
        at = after_class(digits, DIGIT);
        if (at == digits)
            return false;
    }
    json->token = is_whole && read_integer(json) ? MT_JSON_INTEGER : MT_JSON_NUMBER;
    return at == end;
}

/* Most numbers: at most 18 digits, which another byte follows. */
static bool read_short_integer(struct mt_json_reader *json)
{
    const char *text = json->buffer + json->at, *at = text;
    int64_t value = 0;

    for (; is_class(*at, DIGIT); at++)
        value = (int64_t)((uint64_t)value * 10 + (uint64_t)(*at - '0'));
    if (!*at || is_class(*at, OF_NUMBER) || at - text > 18 || (*text == '0' && at - text > 1))
        return false;
    json->token = MT_JSON_INTEGER;
    json->text = text;
    json->length = (size_t)(at - text);
    json->integer = value;
    json->at += json->length;
    return true;
}

static enum mt_status read_number(struct mt_json_reader *json, struct mt_error *error)
{
    size_t from = json->at;

    for (;;) {
        json->at = (size_t)(after_class(json->buffer + json->at, OF_NUMBER) - json->buffer);
        if (json->at - from > MT_JSON_NUMBER_BYTES)
            return damaged(json, "a number is too long", error);
        if (json->at < json->end || json->ended)
            break;
        enum mt_status status = refill(json, &from, error);
        if (status != MT_OK)
            return status;
    }
    json->text = json->buffer + from;
    json->length = json->at - from;
    if (json->at == json->end && json->depth) /* the rest of its digits may be missing */
        return is_cut(json, error);
    return is_number(json) ? MT_OK : damaged(json, "a number has another form", error);
}

/* Reads true, false, null, and the numbers that Python writes. */
static enum mt_status read_word(struct mt_json_reader *json, struct mt_error *error)
{
    static const struct {
        const char *word;
        enum mt_json_token token;
    } words[] = {{"true", MT_JSON_TRUE},       {"false", MT_JSON_FALSE},
                 {"null", MT_JSON_NULL},       {"NaN", MT_JSON_NUMBER},
                 {"Infinity", MT_JSON_NUMBER}, {"-Infinity", MT_JSON_NUMBER}};
    enum { LONGEST = 9 };

    while (json->end - json->at < LONGEST && !json->ended) {
        size_t from = json->at;
        enum mt_status status = refill(json, &from, error);

        if (status != MT_OK)
            return status;
    }
    size_t left = json->end - json->at;
    for (size_t i = 0; i < MT_ARRAY_LEN(words); i++) {
        const size_t length = strlen(words[i].word);
        const char *at = json->buffer + json->at;

        if (memcmp(at, words[i].word, mt_min_u64(length, left)) != 0)
            continue;
        if (left < length)
            return is_cut(json, error);
        json->token = words[i].token;
        json->text = at;
        json->length = length;
        json->at += length;
        return MT_OK;
    }
    return damaged(json, "a value is missing", error);
}

static bool is_in_object(const struct mt_json_reader *json)
{
    const size_t top = json->depth - 1;

    return json->is_object[top / 8] >> top % 8 & 1;
}

static enum mt_status open_value(struct mt_json_reader *json, bool is_object,
                                 struct mt_error *error)
{
    const size_t top = json->depth;

    if (top == MT_JSON_DEPTH)
        return damaged(json, "values are nested too deeply", error);
    json->at++;
    json->is_object[top / 8] &= (uint8_t) ~(1u << top % 8);
    json->is_object[top / 8] |= (uint8_t)((unsigned)is_object << top % 8);
    json->depth++;
    json->state = is_object ? AT_FIRST_KEY : AT_FIRST_VALUE;
    json->token = is_object ? MT_JSON_OBJECT : MT_JSON_ARRAY;
    return MT_OK;
}

static enum mt_status close_value(struct mt_json_reader *json)
{
    json->token = is_in_object(json) ? MT_JSON_OBJECT_END : MT_JSON_ARRAY_END;
    json->at++;
    json->depth--;
    json->state = AT_REST;
    return MT_OK;
}

static enum mt_status read_value(struct mt_json_reader *json, struct mt_error *error)
{
    const char c = json->buffer[json->at];

    if (c == '{' || c == '[')
        return open_value(json, c == '{', error);
    json->state = AT_REST;
    if (c == '"') {
        json->token = MT_JSON_TEXT;
        return read_text(json, error);
    }
    if (is_class(c, DIGIT))
        return read_short_integer(json) ? MT_OK : read_number(json, error);
    if (c == '-') {
        size_t from = json->at;

        if (json->at + 1 == json->end && !json->ended) {
            enum mt_status status = refill(json, &from, error);

            if (status != MT_OK)
                return status;
        }
        if (json->buffer[json->at + 1] != 'I')
            return read_number(json, error);
    }
    return read_word(json, error);
}

static enum mt_status read_key(struct mt_json_reader *json, struct mt_error *error)
{
    if (json->buffer[json->at] != '"')
        return damaged(json, "a key is missing", error);
    json->token = MT_JSON_KEY;
    json->state = AT_COLON;
    return read_text(json, error);
}

/* Moves past the byte before the next token, and the white space around it. */
static enum mt_status pass(struct mt_json_reader *json, uint8_t state, struct mt_error *error)
{
    json->at++;
    json->state = state;
    enum mt_status status = skip_space(json, error);
    if (status == MT_OK && json->at == json->end)
        return is_cut(json, error);
    return status;
}

/* At the end of a value within another one, or between two values. */
static enum mt_status read_rest(struct mt_json_reader *json, struct mt_error *error)
{
    const bool in_object = is_in_object(json);

    if (json->buffer[json->at] == (in_object ? '}' : ']'))
        return close_value(json);
    if (json->buffer[json->at] != ',')
        return damaged(json, "a comma or the end of a value is missing", error);
    enum mt_status status = pass(json, in_object ? AT_KEY : AT_VALUE, error);
    json->offset = json->base + json->at;
    if (status != MT_OK)
        return status;
    return in_object ? read_key(json, error) : read_value(json, error);
}

static enum mt_status read_after_colon(struct mt_json_reader *json, struct mt_error *error)
{
    if (json->buffer[json->at] != ':')
        return damaged(json, "a colon is missing", error);
    enum mt_status status = pass(json, AT_VALUE, error);
    json->offset = json->base + json->at;
    return status == MT_OK ? read_value(json, error) : status;
}

enum mt_status mt_json_reader_next(struct mt_json_reader *json, struct mt_error *error)
{
    enum mt_status status = skip_space(json, error);
    const char c = json->buffer[json->at];

    if (status != MT_OK)
        return status;
    json->offset = json->base + json->at;
    if (json->at == json->end)
        return json->state == AT_REST && !json->depth ? MT_END : is_cut(json, error);
    switch (json->state) {
    case AT_FIRST_VALUE: return c == ']' ? close_value(json) : read_value(json, error);
    case AT_FIRST_KEY: return c == '}' ? close_value(json) : read_key(json, error);
    case AT_KEY: return read_key(json, error);
    case AT_COLON: return read_after_colon(json, error);
    case AT_REST:
        if (json->depth)
            return read_rest(json, error);
        if (!json->lines)
            return damaged(json, "more follows after its end", error);
        break;
    default: break;
    }
    return read_value(json, error);
}

enum mt_status mt_json_reader_skip(struct mt_json_reader *json, struct mt_error *error)
{
    size_t depth = json->depth;
    enum mt_status status = MT_OK;

    if (json->token == MT_JSON_KEY)
        status = mt_json_reader_next(json, error);
    else if (json->token == MT_JSON_OBJECT || json->token == MT_JSON_ARRAY)
        depth--;
    while (status == MT_OK && json->depth > depth)
        status = mt_json_reader_next(json, error);
    return status;
}

enum mt_status mt_json_reader_next_line(struct mt_json_reader *json, struct mt_error *error)
{
    json->depth = 0;
    json->state = AT_REST;
    json->cut = false;
    for (;;) {
        const char *found = memchr(json->buffer + json->at, '\n', json->end - json->at);

        json->at = found ? (size_t)(found - json->buffer) + 1 : json->end;
        if (found || json->ended)
            return MT_OK;
        enum mt_status status = refill(json, &json->at, error);
        if (status != MT_OK)
            return status;
    }
}

bool mt_json_reader_is(const struct mt_json_reader *json, const char *text)
{
    const size_t length = strlen(text);

    return json->length == length && memcmp(json->text, text, length) == 0;
}

/* The exponent of a number; far out of range if it is large. `at` is after the digits. */
static int64_t exponent_of(const char *at, const char *end)
{
    int64_t value = 0;

    if (at == end)
        return 0;
    bool is_negative = *++at == '-';
    at += *at == '-' || *at == '+';
    for (; at < end && value < 100000; at++)
        value = value * 10 + (*at - '0');
    return is_negative ? -value : value;
}

/* The digits of a number without its point. */
struct digits {
    const char *at;
    int64_t count, before_point;
};

static struct digits digits_of(const char *at)
{
    const char *point = after_class(at, DIGIT),
               *end = *point == '.' ? after_class(point + 1, DIGIT) : point;

    return (struct digits){at, end - at - (end > point), point - at};
}

/* Those after the last one are zeros. */
static int digit_at(const struct digits *digits, int64_t i)
{
    return i < 0 || i >= digits->count ? 0 : digits->at[i + (i >= digits->before_point)] - '0';
}

bool mt_json_reader_scaled(const struct mt_json_reader *json, int digits, int64_t *value)
{
    const char *at = json->text, *end = at + json->length;
    const bool is_number = json->token == MT_JSON_INTEGER || json->token == MT_JSON_NUMBER;
    const bool is_negative = is_number && *at == '-';
    int64_t whole, sum = 0; /* the negative value, which has the larger range */

    if (!is_number || !is_class(at[is_negative], DIGIT))
        return false;
    struct digits all = digits_of(at + is_negative);
    whole = all.before_point + digits +
            exponent_of(all.at + all.count + (all.count > all.before_point), end);
    for (int64_t i = 0; i < whole && (sum || i < all.count); i++)
        if (__builtin_mul_overflow(sum, 10, &sum) ||
            __builtin_sub_overflow(sum, digit_at(&all, i), &sum))
            return false;
    if (digit_at(&all, whole) >= 5 && __builtin_sub_overflow(sum, 1, &sum))
        return false;
    if (!is_negative && sum == INT64_MIN)
        return false;
    *value = is_negative ? sum : -sum;
    return true;
}

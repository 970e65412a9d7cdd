/* Reads JSON from a feed, token by token, in bounded memory: 256 KiB for any file.
 *
 *     struct mt_json_reader json;
 *     status = mt_json_reader_init(&json, feed, error);
 *     while (status == MT_OK && (status = mt_json_reader_next(&json, error)) == MT_OK)
 *         if (json.token == MT_JSON_KEY && mt_json_reader_is(&json, "args"))
 *             ...
 *     MT_END: the whole input was read
 *     mt_json_reader_release(&json);
 *
 * Accepts what Python's json.loads accepts up to a depth of 256 values, so also NaN, Infinity and
 * -Infinity, and does not check UTF-8. Reports a key as often as it occurs in an object. About 400
 * MB/s. */
#ifndef MT_COLLECTOR_JSON_READER_H
#define MT_COLLECTOR_JSON_READER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "feed.h"
#include "status.h"

enum mt_json_token {
    MT_JSON_OBJECT,
    MT_JSON_OBJECT_END,
    MT_JSON_ARRAY,
    MT_JSON_ARRAY_END,
    MT_JSON_KEY,     /* text; its value follows */
    MT_JSON_TEXT,    /* text */
    MT_JSON_INTEGER, /* integer; its digits are the text */
    MT_JSON_NUMBER,  /* any other number: its digits are the text */
    MT_JSON_TRUE,
    MT_JSON_FALSE,
    MT_JSON_NULL
};

/* Longer texts are cut, deeper values and longer numbers are damage. */
enum { MT_JSON_TEXT_BYTES = 64 * 1024, MT_JSON_DEPTH = 256, MT_JSON_NUMBER_BYTES = 1024 };

struct mt_json_reader {
    enum mt_json_token token;
    /* Valid until the next call. Those of keys and texts have a NUL after them, and may contain
     * NULs and invalid UTF-8. */
    const char *text;
    size_t length;
    bool text_is_cut;
    int64_t integer;
    uint64_t offset; /* of the token in the decoded input */
    size_t depth;    /* values that are open, including the one that the token opens */
    bool cut;        /* MT_ERR_FORMAT: the input ends within a value */

    /* May be set after mt_json_reader_init. Values follow each other, one a line (JSON Lines): a
     * line that ends within a value is damage, and mt_json_reader_next_line continues after it. */
    bool lines;

    /* PRIVATE */
    struct mt_feed *feed; /* borrowed */
    char *buffer;
    size_t at, end;
    uint64_t base; /* offset of the buffer in the decoded input */
    bool ended;
    uint8_t state;
    uint8_t is_object[MT_JSON_DEPTH / 8];
};

enum mt_status mt_json_reader_init(struct mt_json_reader *json, struct mt_feed *feed,
                                   struct mt_error *error) MT_MUST_USE;
void mt_json_reader_release(struct mt_json_reader *json); /* accepts zeroed memory */

/* Reads the next token. Returns MT_END after the last one, MT_ERR_FORMAT if the input is cut or
 * damaged (the error has the offset), or the status of the feed. */
enum mt_status mt_json_reader_next(struct mt_json_reader *json, struct mt_error *error) MT_MUST_USE;

/* Skips the rest of the value that the last token began, or the value of the last key. */
enum mt_status mt_json_reader_skip(struct mt_json_reader *json, struct mt_error *error) MT_MUST_USE;

/* Continues after MT_ERR_FORMAT at the next line. For `lines`. */
enum mt_status mt_json_reader_next_line(struct mt_json_reader *json,
                                        struct mt_error *error) MT_MUST_USE;

/* Whether the text of the last token is this one. */
bool mt_json_reader_is(const struct mt_json_reader *json, const char *text);

/* Sets *value to the last INTEGER or NUMBER times 10^digits (0 to 18), exactly, rounded half away
 * from zero. Returns false for other tokens, NaN, and numbers out of range. */
bool mt_json_reader_scaled(const struct mt_json_reader *json, int digits, int64_t *value);

#endif

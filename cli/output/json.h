/* Writes JSON into a buffer, with commas and escapes. Integers have all their digits. Strings are
 * UTF-8, with U+FFFD instead of invalid bytes. Characters that foreign_text.h hides are escaped, as
 * in \u202e, so that a terminal that shows the document does not interpret them. Text of more than
 * MT_JSON_TEXT_BYTES is cut and ends with "…" unless `all` is set. For long lists, see
 * json_list.h. */
#ifndef MT_CLI_JSON_H
#define MT_CLI_JSON_H

#include "buf.h"

enum { MT_JSON_TEXT_BYTES = 4096 };

struct mt_json {
    struct mt_buf *out;
    size_t begin; /* beginning of the document in `out` */
    unsigned depth, sharers;
    bool needs_comma, pretty;
    bool all; /* set it after mt_json_init: no limits on lists, stacks and texts */
};

void mt_json_init(struct mt_json *json, struct mt_buf *out, bool pretty);
void mt_json_object_begin(struct mt_json *json, const char *key); /* NULL in arrays, at the top */
void mt_json_object_end(struct mt_json *json);
void mt_json_array_begin(struct mt_json *json, const char *key);
void mt_json_array_end(struct mt_json *json);
void mt_json_text(struct mt_json *json, const char *key, const char *value); /* NULL -> null */
void mt_json_u64(struct mt_json *json, const char *key, uint64_t value);
void mt_json_u64_or_null(struct mt_json *json, const char *key, bool is_known, uint64_t value);
void mt_json_i64(struct mt_json *json, const char *key, int64_t value);
void mt_json_bool(struct mt_json *json, const char *key, bool value);
void mt_json_null(struct mt_json *json, const char *key);
void mt_json_share(struct mt_json *json, const char *key, double value); /* 6 decimals */

#endif

/* Writes JSON into a buffer, with commas and escapes. Integers have all their digits. Strings are
 * UTF-8, with U+FFFD instead of invalid bytes. Characters that foreign_text.h hides are escaped, as
 * in \u202e, so that a terminal that shows the document does not interpret them. Text of more than
 * MT_JSON_TEXT_BYTES is cut and ends with "…" unless `all` is set. */
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
/* Begins an indented document: an object whose first member is its schema. The caller ends it. */
void mt_json_document(struct mt_json *json, struct mt_buf *out, const char *schema, bool all);
void mt_json_object_begin(struct mt_json *json, const char *key); /* NULL in arrays, at the top */
void mt_json_object_end(struct mt_json *json);
void mt_json_array_begin(struct mt_json *json, const char *key);
void mt_json_array_end(struct mt_json *json);
void mt_json_text(struct mt_json *json, const char *key, const char *value); /* NULL -> null */
/* The same for `length` bytes, which may contain NUL. */
void mt_json_raw_text(struct mt_json *json, const char *key, const char *bytes, size_t length);
/* Adds a number that is written already. */
void mt_json_number(struct mt_json *json, const char *key, const char *digits);
void mt_json_u64(struct mt_json *json, const char *key, uint64_t value);
void mt_json_u64_or_null(struct mt_json *json, const char *key, bool is_known, uint64_t value);
void mt_json_i64(struct mt_json *json, const char *key, int64_t value);
void mt_json_bool(struct mt_json *json, const char *key, bool value);
void mt_json_null(struct mt_json *json, const char *key);
void mt_json_share(struct mt_json *json, const char *key, double value); /* 6 decimals */

/* Lists in a JSON document whose lengths depend on a file. A small trace can have 100,000 phases,
 * and a stack of hundreds of frames for each call site. Without limits, the document would be a
 * thousand times as large as the trace. A list has its first rows. If rows are omitted, their
 * number is in a member "<key>_omitted" next to the list.
 *
 * Lists inside a list of objects (devices) divide the limits of one list among the objects. All
 * limits together keep a document below 1 MB. `all` of struct mt_json lifts every limit. */

enum {
    MT_JSON_ROWS = 1000,             /* maximum number of rows of a list */
    MT_JSON_LIST_BYTES = 512 * 1024, /* a list of this size gets no more rows */
    MT_JSON_OBJECTS = 64,      /* maximum number of rows of a list of objects that contain lists */
    MT_JSON_BYTES = 800 * 1024 /* in a document of this size, no list gets more rows */
};

struct mt_json_list {
    struct mt_json *json;
    const char *key; /* borrowed until the end of the list */
    size_t begin, most_bytes;
    uint64_t most_rows, rows, omitted;
    bool has_lists, has_lines, is_pretty;
    uint32_t i, count; /* mt_json_next: the current row, and the number of all rows */
};

/* Lists of objects. mt_json_next begins the next object and returns true, or ends the list:
 *
 *     for (struct mt_json_list row = mt_json_rows(json, "sites", count); mt_json_next(&row);)
 *         mt_json_u64(json, "bytes", sites[row.i].bytes);
 *
 * In an indented document, each object of mt_json_lines is on one line. Objects of mt_json_objects
 * contain lists; such a list must not be inside another one. */
struct mt_json_list mt_json_rows(struct mt_json *json, const char *key, size_t count);
struct mt_json_list mt_json_lines(struct mt_json *json, const char *key, size_t count);
struct mt_json_list mt_json_objects(struct mt_json *json, const char *key, size_t count);
bool mt_json_next(struct mt_json_list *list);

/* Other lists. mt_json_objects_begin begins a list of at most `count` objects that contain lists.
 */
void mt_json_list_begin(struct mt_json_list *list, struct mt_json *json, const char *key);
void mt_json_objects_begin(struct mt_json_list *list, struct mt_json *json, const char *key,
                           uint64_t count);

/* Returns true if the next row has room in the list. Call it before each row. Once it has returned
 * false, it always returns false. */
bool mt_json_list_takes(struct mt_json_list *list);
void mt_json_list_end(struct mt_json_list *list);

/* Adds "<key>_omitted": count. Adds nothing if `count` is 0. */
void mt_json_omitted(struct mt_json *json, const char *key, uint64_t count);

#endif

/* Lists of a JSON document whose length a file decides. A small trace can hold a hundred thousand
 * phases, and a stack of hundreds of frames for each call site. Without limits, its document would
 * be a thousand times as large as the trace. A list has the first rows of its order and, if rows
 * are left out, their number as "<key>_omitted" next to it.
 *
 * A list inside a list of objects (devices) shares these limits with the same list of the other
 * objects. Together they keep a document below 1 MB. `all` of the writer lifts every limit. */
#ifndef MT_CLI_JSON_LIST_H
#define MT_CLI_JSON_LIST_H

#include "json.h"

enum {
    MT_JSON_ROWS = 1000,             /* of a list */
    MT_JSON_LIST_BYTES = 512 * 1024, /* a list with more bytes gets no further row */
    MT_JSON_OBJECTS = 64,            /* of a list of objects that have lists: devices */
    MT_JSON_BYTES = 800 * 1024       /* in a document with more bytes, no list gets a further row */
};

struct mt_json_list {
    struct mt_json *json;
    const char *key; /* borrowed until the end of the list */
    size_t begin, most_bytes;
    uint64_t most_rows, rows, omitted;
    bool has_lists;
};

void mt_json_list_begin(struct mt_json_list *list, struct mt_json *json, const char *key);

/* A list of at most `count` objects that contain lists. Must not be inside another such list. */
void mt_json_objects_begin(struct mt_json_list *list, struct mt_json *json, const char *key,
                           uint64_t count);

/* Returns true if the document includes the next row. Call it before each row is written. After
 * false, it always returns false. */
bool mt_json_list_takes(struct mt_json_list *list);
void mt_json_list_end(struct mt_json_list *list);

/* Adds "<key>_omitted": count; nothing if it is 0. */
void mt_json_omitted(struct mt_json *json, const char *key, uint64_t count);

#endif

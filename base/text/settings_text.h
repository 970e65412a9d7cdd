/* Small documents of settings: those that people write are a strict subset of TOML (tables, dotted
 * keys, strings, whole numbers, true and false, comments), those that memtrace writes are JSON. The
 * result is flat: one entry per value, named by its path. */
#ifndef MT_BASE_SETTINGS_TEXT_H
#define MT_BASE_SETTINGS_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "arena.h"
#include "map.h"
#include "status.h"

enum mt_setting_kind {
    MT_SETTING_TEXT,
    MT_SETTING_NUMBER,
    MT_SETTING_BOOL,
    MT_SETTING_JSON /* null, an array or an object; only of mt_settings_parse_members */
};

struct mt_setting {
    const char *path; /* "max-peak.reserved.limit"; members of arrays: "devices.0.name" */
    enum mt_setting_kind kind;
    const char *text; /* as written, unless it is a TEXT */
    uint64_t number;  /* of NUMBER if it is whole; of BOOL, 0 or 1 */
    bool is_whole;
    unsigned line; /* 1-based */
};

struct mt_settings {
    struct mt_arena arena;
    struct mt_strings paths;    /* ids are indices of `entries` */
    struct mt_setting *entries; /* in the order of the document */
    size_t count, capacity;
};

/* Larger or more deeply nested documents, more entries and longer paths are refused. */
#define MT_SETTINGS_BYTES      1048576
#define MT_SETTINGS_DEPTH      8
#define MT_MAX_SETTINGS        16384
#define MT_SETTINGS_PATH_BYTES 4096

/* MT_ERR_FORMAT names the line. A duplicate key is an error; null is treated as a missing key.
 * Release *settings even after an error. */
enum mt_status mt_settings_parse_toml(const char *text, size_t length, struct mt_settings *settings,
                                      struct mt_error *error) MT_MUST_USE;
enum mt_status mt_settings_parse_json(const char *text, size_t length, struct mt_settings *settings,
                                      struct mt_error *error) MT_MUST_USE;
/* The same, but null, and each array and object inside, also has an entry: its JSON. */
enum mt_status mt_settings_parse_members(const char *text, size_t length,
                                         struct mt_settings *settings,
                                         struct mt_error *error) MT_MUST_USE;
void mt_settings_release(struct mt_settings *settings);

/* Returns NULL if there is no such entry. O(length of the path). */
const struct mt_setting *mt_settings_find(const struct mt_settings *settings, const char *path);

/* Checks that "schema" is `schema`. MT_ERR_FORMAT: there is none, so this is not `what` ("a
 * baseline"); MT_ERR_UNSUPPORTED: it is another one. */
enum mt_status mt_settings_check_schema(const struct mt_settings *settings, const char *what,
                                        const char *schema, struct mt_error *error) MT_MUST_USE;

/* Return the value at a path, which is formatted as by printf: a whole number, or a borrowed text.
 * 0 and NULL: there is none of this kind. */
uint64_t mt_settings_number(const struct mt_settings *settings, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
const char *mt_settings_text(const struct mt_settings *settings, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

#endif

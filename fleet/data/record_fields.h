/* The fields of a record as tables. All code that compares, copies, writes or reads records
 * iterates over these tables, so no code can omit a field. A new field is one line in
 * record_fields.c and changes the format (docs/internals/rank-summary.md, "Versions"). */
#ifndef MT_FLEET_RECORD_FIELDS_H
#define MT_FLEET_RECORD_FIELDS_H

#include <stddef.h>

#include "rank_record.h"

enum mt_field_kind {
    MT_FIELD_U64,
    MT_FIELD_I64,
    MT_FIELD_U32,
    MT_FIELD_I32,
    MT_FIELD_U16,
    MT_FIELD_BOOL,
    MT_FIELD_TEXT, /* const char *, never NULL */
    MT_FIELD_PATH, /* uint32_t: an index into the paths of the set, or MT_NO_PATH */
    MT_FIELD_ENUM  /* below `limit` */
};

struct mt_record_field {
    const char *name;
    size_t offset; /* in the structure that holds it */
    enum mt_field_kind kind;
    uint32_t limit; /* MT_FIELD_ENUM: the number of its values */
};

/* An array that a record points to. */
struct mt_record_list {
    const char *name;
    size_t array_offset, count_offset, element_bytes; /* in the record; count is a uint32_t */
    const struct mt_record_field *fields;             /* of an element */
    uint32_t field_count;
    uint32_t most; /* elements that a list may have */
};

/* Fields and lists of struct mt_rank_record, in the order in which records are compared. */
extern const struct mt_record_field mt_record_fields[];
extern const uint32_t mt_record_field_count;
extern const struct mt_record_list mt_record_lists[];
extern const uint32_t mt_record_list_count;

/* Returns the number in a field of `object`. Negative numbers are sign-extended. Not for texts. */
uint64_t mt_field_get(const void *object, const struct mt_record_field *field);
const char *mt_field_text(const void *object, const struct mt_record_field *field);

/* Sets a field. Returns false and changes nothing if the field cannot hold the number. Does not
 * check that a path exists. Not for texts. */
bool mt_field_set(void *object, const struct mt_record_field *field, uint64_t value) MT_MUST_USE;
void mt_field_set_text(void *object, const struct mt_record_field *field, const char *text);

/* Get and set the array and length of a list of `record`. */
void *mt_list_array(const struct mt_rank_record *record, const struct mt_record_list *list);
uint32_t mt_list_count(const struct mt_rank_record *record, const struct mt_record_list *list);
void mt_list_set(struct mt_rank_record *record, const struct mt_record_list *list, void *array,
                 uint32_t count);

#endif

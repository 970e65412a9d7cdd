/* Parses numbers and texts of pickle protocol 0 (decimal, quoted, escaped) and the little-endian
 * integers of the other protocols. Pure functions. A number that does not fit in 64 bits becomes
 * MT_PICKLE_BIG. Functions return false if the text is not a number. */
#ifndef MT_COLLECTOR_PICKLE_NUMBERS_H
#define MT_COLLECTOR_PICKLE_NUMBERS_H

#include "buf.h"
#include "feed.h"
#include "pickle_value.h"

/* Parses "-12" or "12L". If `true_false` is set, "00" and "01" are booleans. */
bool mt_pickle_parse_int(const unsigned char *text, size_t length, bool true_false,
                         struct mt_pickle_value *value);

/* Parses "-1.5e3", "inf" or "nan". The result is exact to a few units in the last place. */
bool mt_pickle_parse_float(const unsigned char *text, size_t length, struct mt_pickle_value *value);

/* Reads a two's complement number of any length. */
struct mt_pickle_value mt_pickle_long(const unsigned char *bytes, size_t length);

/* Appends to `out` the bytes of Python's repr of a byte string, which includes its quotes. */
bool mt_pickle_unquote(const unsigned char *text, size_t length, struct mt_buf *out);

/* Appends to `out` the UTF-8 of a text in raw-unicode-escape: Latin-1 with \uXXXX and
 * \UXXXXXXXX. */
bool mt_pickle_unescape(const unsigned char *text, size_t length, struct mt_buf *out);

#endif

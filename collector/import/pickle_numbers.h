/* Parses numbers and texts of pickle protocol 0 (decimal, quoted, escaped) and the little-endian
 * integers of the other protocols. Pure functions. A number that does not fit in 64 bits becomes
 * MT_PICKLE_BIG. Functions return false if the text is not a number. */
#ifndef MT_COLLECTOR_PICKLE_NUMBERS_H
#define MT_COLLECTOR_PICKLE_NUMBERS_H

#include "buf.h"
#include "feed.h"
#include "pickle_value.h"

/* "-12", "12L"; `true_false` also accepts "00" and "01" as booleans. */
bool mt_pickle_parse_int(const unsigned char *text, size_t length, bool true_false,
                         struct mt_pickle_value *value);

/* "-1.5e3", "inf", "nan"; exact to a few units in the last place. */
bool mt_pickle_parse_float(const unsigned char *text, size_t length, struct mt_pickle_value *value);

/* Two's complement, any length. */
struct mt_pickle_value mt_pickle_long(const unsigned char *bytes, size_t length);

/* Python's repr of a byte string, quotes included -> its bytes. */
bool mt_pickle_unquote(const unsigned char *text, size_t length, struct mt_buf *out);

/* raw-unicode-escape: Latin-1 with \uXXXX and \UXXXXXXXX -> UTF-8. */
bool mt_pickle_unescape(const unsigned char *text, size_t length, struct mt_buf *out);

#endif

#include "ascii_text.h"

#include <string.h>

#include "util.h"

/* The first match is used. */
static const struct {
    const char *from, *to; /* of equal width in columns */
} characters[] = {
    {"−", "-"}, {"±", "+"}, {"µ", "u"}, {"×", "x"}, {"…", "~"}, {" → ", " ->"}, {"→", ">"},
};

/* Returns the bytes of the character at `text` that has a replacement, or 0 if there is none. */
static size_t match(const char *text, size_t length, const char **to)
{
    for (size_t i = 0; i < MT_ARRAY_LEN(characters); i++) {
        const size_t bytes = strlen(characters[i].from);

        *to = characters[i].to;
        if (bytes <= length && memcmp(text, characters[i].from, bytes) == 0)
            return bytes;
    }
    return 0;
}

void mt_add_ascii_text(struct mt_buf *out, const char *text, size_t length)
{
    size_t kept = 0; /* start of the text that is not appended yet */

    for (size_t at = 0; at < length;) {
        const char *to;
        const size_t bytes = match(text + at, length - at, &to);

        if (!bytes) {
            at++;
            continue;
        }
        mt_buf_add(out, text + kept, at - kept);
        mt_buf_add_text(out, to);
        kept = at += bytes;
    }
    mt_buf_add(out, text + kept, length - kept);
}

/* Text from a file or another program, made safe to show. Every writer (terminal, JSON, XML, HTML,
 * Markdown, pictures) uses this one rule about which characters are shown unchanged. An escape
 * replaces
 *   - control and format characters (Unicode categories Cc, Cf, Zl, Zp): terminals interpret
 *     them, they end lines, reverse the order of text, or are invisible;
 *   - other characters that are not visible by default, and noncharacters;
 *   - bytes that are not UTF-8;
 *   - the second '#' of "##[" and "##word[", and the first ':' of a "::" that begins the text or
 *     follows another character than visible ASCII: CI systems execute such lines of a job's log.
 * Variation selectors 1 to 16 stay: emoji need them. */
#ifndef MT_BASE_FOREIGN_TEXT_H
#define MT_BASE_FOREIGN_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "arena.h"
#include "buf.h"

#define MT_NOT_UTF8 UINT32_MAX

/* A position in a text. The text is borrowed. */
struct mt_foreign_text {
    const char *at, *end;
    char before; /* the byte before `at`; 0 at the beginning */
};

struct mt_foreign_char {
    const char *bytes;
    size_t length;
    uint32_t code; /* MT_NOT_UTF8: one byte that is not part of a character */
    bool is_shown; /* false: write its escape */
};

struct mt_foreign_text mt_foreign_text(const char *text, size_t length);

/* Reads the next character; returns false at the end. O(1), except for a '#', which requires
 * looking ahead to the end of the word. */
bool mt_foreign_next(struct mt_foreign_text *text, struct mt_foreign_char *character);

/* Skips bytes that every writer copies unchanged, and returns their number. */
size_t mt_foreign_skip_plain(struct mt_foreign_text *text);

/* "\x1b" for ASCII and for bytes that are not UTF-8, else "\u202e" or "\U000e0001".
 * Printable ASCII without quotes. Returns the length. */
#define MT_FOREIGN_ESCAPE 12
size_t mt_foreign_escape(const struct mt_foreign_char *character, char escape[MT_FOREIGN_ESCAPE]);

/* Appends the whole text with escapes by the rule above. Also escapes line ends. */
void mt_buf_add_printable(struct mt_buf *out, const char *text, size_t length);

/* The same for a NUL-terminated text. If `text` is NULL, because its allocation failed, sets
 * out->failed. */
void mt_buf_add_printable_text(struct mt_buf *out, const char *text);

/* Appends the text for a file, where all characters stay as they are: only NUL and bytes that are
 * not UTF-8 are escaped. */
void mt_buf_add_valid_utf8(struct mt_buf *out, const char *text, size_t length);

/* Returns the length of the UTF-8 sequence at `at` (at most `left` > 0 bytes) and sets its code.
 * Returns 0 for an invalid one: overlong and truncated sequences, surrogates, codes above 0x10ffff.
 * Does not read past the first byte that does not fit. */
size_t mt_utf8_read(const char *at, size_t left, uint32_t *code);

/* Returns true if every character of the text is shown as it is. */
bool mt_foreign_is_shown(const char *text);

/* Words of command lines that a person copies from the output into a shell. Every command that
 * memtrace proposes gets its paths and values from here, because they can come from a trace. */

/* Appends a text as exactly one word of a shell: as it is, 'in quotes', or as $'a\012b' if it has
 * characters that a terminal does not show unchanged. bash, zsh, ksh and busybox read the last
 * form. The result has only characters that mt_buf_add_printable copies. */
void mt_buf_add_shell_value(struct mt_buf *out, const char *text);

/* Appends the words of a command, up to NULL, with spaces between them. */
void mt_buf_add_shell_words(struct mt_buf *out, const char *const *words);

/* The same for a path: "./-x" for "-x", which a program would read as an option. "-" stays,
 * because it is standard input. */
void mt_buf_add_shell_path(struct mt_buf *out, const char *path);

/* The same as a text in the arena; NULL if memory ran out. */
const char *mt_shell_value(struct mt_arena *arena, const char *text);
const char *mt_shell_path(struct mt_arena *arena, const char *path);

#endif

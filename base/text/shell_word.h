/* Words of command lines that a person copies from the output into a shell. Every command that
 * memtrace proposes gets its paths and values from here, because they can come from a trace. */
#ifndef MT_BASE_SHELL_WORD_H
#define MT_BASE_SHELL_WORD_H

#include "arena.h"
#include "buf.h"

/* Appends a text as exactly one word of a shell: as it is, 'in quotes', or as $'a\012b' if it has
 * characters that a terminal does not show unchanged. bash, zsh, ksh and busybox read the last
 * form. The result has only characters that mt_buf_add_printable copies. */
void mt_buf_add_shell_value(struct mt_buf *out, const char *text);

/* The same for a path: "./-x" for "-x", which a program would read as an option. "-" stays,
 * because it is standard input. */
void mt_buf_add_shell_path(struct mt_buf *out, const char *path);

/* The same as a text in the arena; NULL if memory ran out. */
const char *mt_shell_value(struct mt_arena *arena, const char *text);
const char *mt_shell_path(struct mt_arena *arena, const char *path);

#endif

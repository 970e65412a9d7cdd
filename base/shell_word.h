/* A path in a command line that a person may copy. */
#ifndef MT_BASE_SHELL_WORD_H
#define MT_BASE_SHELL_WORD_H

#include "arena.h"

/* A path as one word of a shell's line, which is never read as an option. NULL if
 * quotes are not enough, if a character of it is not shown as it is (foreign_text.h),
 * so that the line could not be copied, or without memory. */
const char *mt_shell_word(struct mt_arena *arena, const char *text);

#endif

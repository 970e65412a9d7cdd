/* What a shell may complete: commands, options, and their values. The scripts for bash, zsh and
 * fish call `memtrace COMMAND --completion-helper WORD...` with the words so far; the last one,
 * possibly empty, is the word at the cursor. */
#ifndef MT_CLI_COMPLETION_H
#define MT_CLI_COMPLETION_H

#include "cli.h"

#define MT_COMPLETION_WORD "--completion-helper"

/* Prints the candidates that begin with the last word, one a line: options after a dash, otherwise
 * values of the option or the argument there. Without words prints all options. Values that come
 * from a trace are read from the first word that is a file of at most 16 MiB. Errors print nothing,
 * because the user is typing. Returns the exit code of mt_print. */
int mt_print_candidates(const struct mt_command *command, const struct mt_option *options,
                        char *const *words, int count);

#endif

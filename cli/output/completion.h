/* Completion in shells: commands, options, and their values. The scripts for bash, zsh and fish
 * call `memtrace COMMAND --completion-helper WORD...` with the words up to the cursor. The last
 * word is at the cursor and may be empty. */
#ifndef MT_CLI_COMPLETION_H
#define MT_CLI_COMPLETION_H

#include "cli.h"

#define MT_COMPLETION_WORD "--completion-helper"

/* Prints the candidates that begin with the last word, one per line. After a dash these are
 * options, otherwise values of the option or the argument at the cursor. Without words, prints all
 * options. Values from a trace, such as phases, are read from the first word that is a file of at
 * most 16 MiB. If that takes longer than 2 seconds, the process exits without them. Omits values
 * with characters that a terminal does not show unchanged. Prints nothing after the word "--", and
 * no errors, because the user is typing. Returns the exit code of mt_print. */
int mt_print_candidates(const struct mt_command *command, const struct mt_option *options,
                        char *const *words, int count);

#endif

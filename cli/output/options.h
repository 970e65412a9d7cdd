/* Completion in shells: commands, options, and their values. The scripts for bash, zsh and fish
 * call `memtrace COMMAND --completion-helper WORD...` with the words up to the cursor. The last
 * word is at the cursor and may be empty. */
#ifndef MT_CLI_OPTIONS_H
#define MT_CLI_OPTIONS_H

/* {name, text, name, text, ..., NULL}: the files of cli/database/questions. */
extern const char *const mt_database_questions[];

#define MT_COMPLETION_WORD "--completion-helper"

#endif

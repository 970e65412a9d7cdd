/* Handles several inputs, or a folder, for commands that read one trace: prints a line for each
 * input, and then which commands read several, on standard error. */
#ifndef MT_CLI_SEVERAL_INPUTS_H
#define MT_CLI_SEVERAL_INPUTS_H

/* A folder in place of a trace. */
void mt_say_folder(const char *path);

/* Arguments in place of one trace. Nothing for those that are no files. */
void mt_say_several(char *const *paths, int count);

#endif

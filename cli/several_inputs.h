/* Handles several inputs, or a folder, for commands that read one trace: prints a line for each
 * input, and then which commands read several, on standard error. */
#ifndef MT_CLI_SEVERAL_INPUTS_H
#define MT_CLI_SEVERAL_INPUTS_H

/* For a folder instead of a trace. */
void mt_say_folder(const char *path);

/* For several arguments instead of one trace. Prints no line for an argument that is not a file. */
void mt_say_several(char *const *paths, int count);

#endif

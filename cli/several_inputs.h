/* Commands that read one trace, when they are given several or a folder of them: a line says what
 * each is, and the last one which commands read several. All on standard error. */
#ifndef MT_CLI_SEVERAL_INPUTS_H
#define MT_CLI_SEVERAL_INPUTS_H

/* A folder in place of a trace. */
void mt_say_folder(const char *path);

/* Arguments in place of one trace. Nothing for those that are no files. */
void mt_say_several(char *const *paths, int count);

#endif

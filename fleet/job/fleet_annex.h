/* Messages for a command that reads one trace but got several inputs or a folder. Standard error
 * shows a line for each input, and then which commands read several inputs. */
#ifndef MT_CLI_SEVERAL_INPUTS_H
#define MT_CLI_SEVERAL_INPUTS_H

/* Prints the message for a folder. */
void mt_say_folder(const char *path);

/* Prints the message for several arguments. Prints no line for an argument that is not a file. */
void mt_say_several(char *const *paths, int count);

#endif

/* A folder of our own below $TMPDIR that holds files and no folders. */
#ifndef MT_CLI_TEMPORARY_FOLDER_H
#define MT_CLI_TEMPORARY_FOLDER_H

/* Makes "$TMPDIR/NAME-XXXXXX", readable by its owner alone. NULL: no memory, or it cannot be made;
 * errno says why. */
char *mt_temporary_folder_new(const char *name);

/* Removes it with all files in it, and frees the path; NULL is fine. */
void mt_temporary_folder_remove(char *folder);

#endif

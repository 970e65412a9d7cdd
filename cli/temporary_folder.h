/* A private folder below $TMPDIR that holds files and no folders. */
#ifndef MT_CLI_TEMPORARY_FOLDER_H
#define MT_CLI_TEMPORARY_FOLDER_H

/* Creates "$TMPDIR/NAME-XXXXXX", readable by its owner only. Returns NULL if memory runs out or
 * it cannot be created; errno has the reason. */
char *mt_temporary_folder_new(const char *name);

/* Removes it with all files in it, and frees the path; NULL is fine. */
void mt_temporary_folder_remove(char *folder);

#endif

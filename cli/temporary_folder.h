/* A private folder below $TMPDIR. It contains only files, no folders. */
#ifndef MT_CLI_TEMPORARY_FOLDER_H
#define MT_CLI_TEMPORARY_FOLDER_H

/* Creates "$TMPDIR/NAME-XXXXXX", which only its owner can read, and returns its path. On failure,
 * returns NULL and sets errno. */
char *mt_temporary_folder_new(const char *name);

/* Removes the folder and its files, and frees the path. Accepts NULL. */
void mt_temporary_folder_remove(char *folder);

#endif

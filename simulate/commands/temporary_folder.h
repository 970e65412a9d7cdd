/* A private folder below $TMPDIR. It contains only files, no folders. Also removed if the program
 * ends early, if it is the last one made. */
#ifndef MT_CLI_TEMPORARY_FOLDER_H
#define MT_CLI_TEMPORARY_FOLDER_H

#include <stdbool.h>

struct mt_temporary_folder {
    char *path; /* NULL: none */
    int fd;     /* identifies the folder, whatever gets its name later */
};

#define MT_TEMPORARY_FOLDER_NONE ((struct mt_temporary_folder){.fd = -1})

/* Creates "$TMPDIR/NAME-XXXXXX", which only its owner can read. On failure, returns false, and sets
 * errno and *folder to none. */
bool mt_temporary_folder_new(struct mt_temporary_folder *folder, const char *name);

/* The same for an empty folder that this process has just created. On failure, removes it. */
bool mt_temporary_folder_take(struct mt_temporary_folder *folder, const char *path);

/* Removes the files in the folder, and the folder if its name still leads to it. Frees the path.
 * Accepts none, and zeroed memory. */
void mt_temporary_folder_remove(struct mt_temporary_folder *folder);

#endif

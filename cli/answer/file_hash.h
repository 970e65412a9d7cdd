/* Computes the SHA-256 of a file on a separate thread during the analysis. */
#ifndef MT_CLI_FILE_HASH_H
#define MT_CLI_FILE_HASH_H

#include <pthread.h>
#include <stdbool.h>

#include "sha256.h"
#include "status.h"

struct mt_file_hash {
    const char *path;
    pthread_t thread;
    bool is_running;  /* false: there is no thread, and mt_file_hash_finish computes the hash */
    int error_number; /* 0 = none */
    char text[MT_SHA256_TEXT];
};

void mt_file_hash_start(struct mt_file_hash *hash, const char *path);
/* Waits for the thread and writes the hash to `text`, or "" if the path is not a regular file.
 * Returns MT_ERR_IO if the file could not be read to its end. Call it once after each
 * mt_file_hash_start. */
enum mt_status mt_file_hash_finish(struct mt_file_hash *hash, char text[MT_SHA256_TEXT],
                                   struct mt_error *error) MT_MUST_USE;

#endif

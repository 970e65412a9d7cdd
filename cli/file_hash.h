/* SHA-256 of a file on a thread of its own, while the file is being analysed. */
#ifndef MT_CLI_FILE_HASH_H
#define MT_CLI_FILE_HASH_H

#include <pthread.h>
#include <stdbool.h>

#include "sha256.h"

struct mt_file_hash {
    const char *path;
    pthread_t thread;
    bool running;
    char text[MT_SHA256_TEXT]; /* "" = not a file, or not readable */
};

void mt_file_hash_start(struct mt_file_hash *hash, const char *path);
/* Waits; the hash, "" if there is none. May be called twice. */
const char *mt_file_hash_finish(struct mt_file_hash *hash);

#endif

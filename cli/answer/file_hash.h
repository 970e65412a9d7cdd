/* The SHA-256 of a file. */
#ifndef MT_CLI_FILE_HASH_H
#define MT_CLI_FILE_HASH_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "sha256.h"
#include "status.h"

/* Writes the hash to `text`, or "" if `path` is "-" or not a regular file: a pipe can be read only
 * once. Reads the whole file. Returns MT_ERR_IO if it cannot be read to its end. */
enum mt_status mt_file_hash(const char *path, char text[MT_SHA256_TEXT],
                            struct mt_error *error) MT_MUST_USE;

/* The same on a thread of its own, or in mt_file_hash_end if no thread can be started. `path` is
 * borrowed. After mt_file_hash_begin, call one of the other two; the structure stays in place until
 * then. */
struct mt_file_hashing {
    const char *path;
    atomic_bool is_unwanted;
    pthread_t thread;
    bool has_thread;
    enum mt_status status;
    struct mt_error error;
    char text[MT_SHA256_TEXT];
};

void mt_file_hash_begin(struct mt_file_hashing *hashing, const char *path);
enum mt_status mt_file_hash_end(struct mt_file_hashing *hashing, char text[MT_SHA256_TEXT],
                                struct mt_error *error) MT_MUST_USE;
/* Ends the thread without a result. */
void mt_file_hash_cancel(struct mt_file_hashing *hashing);

#endif

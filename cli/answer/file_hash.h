/* The SHA-256 of a file. */
#ifndef MT_CLI_FILE_HASH_H
#define MT_CLI_FILE_HASH_H

#include "sha256.h"
#include "status.h"

/* Writes the hash to `text`, or "" if `path` is "-" or not a regular file: a pipe can be read only
 * once. Reads the whole file. Returns MT_ERR_IO if it cannot be read to its end. */
enum mt_status mt_file_hash(const char *path, char text[MT_SHA256_TEXT],
                            struct mt_error *error) MT_MUST_USE;

#endif

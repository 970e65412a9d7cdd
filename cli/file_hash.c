#include "file_hash.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "io.h"
#include "process_memory.h"

#define PIECE_BYTES ((size_t)1 << 16)

/* Returns 0 or errno. */
static int hash_descriptor(int fd, char text[MT_SHA256_TEXT])
{
    unsigned char *piece = mt_memory_new(PIECE_BYTES); /* the stack of a thread may be small */
    struct mt_sha256 sha;
    ssize_t length;
    int why = 0;

    mt_sha256_init(&sha);
    while ((length = mt_io_read(fd, piece, PIECE_BYTES)) > 0)
        mt_sha256_add(&sha, piece, (size_t)length);
    if (length < 0)
        why = errno;
    else
        mt_sha256_finish(&sha, text);
    free(piece);
    return why;
}

static void *run(void *context)
{
    struct mt_file_hash *hash = context;
    int fd = mt_io_open(hash->path, O_RDONLY | O_NONBLOCK, 0);
    struct stat facts;

    if (fd < 0 || fstat(fd, &facts) != 0)
        hash->error_number = errno;
    else if (S_ISREG(facts.st_mode)) /* a pipe can be read only once, by the command */
        hash->error_number = hash_descriptor(fd, hash->text);
    if (fd >= 0)
        close(fd);
    return NULL;
}

void mt_file_hash_start(struct mt_file_hash *hash, const char *path)
{
    memset(hash, 0, sizeof *hash);
    if (strcmp(path, "-") == 0)
        return;
    hash->path = path;
    hash->is_running = pthread_create(&hash->thread, NULL, run, hash) == 0;
}

enum mt_status mt_file_hash_finish(struct mt_file_hash *hash, char text[MT_SHA256_TEXT],
                                   struct mt_error *error)
{
    if (hash->is_running)
        pthread_join(hash->thread, NULL);
    else if (hash->path)
        run(hash);
    hash->is_running = false;
    hash->path = NULL;
    memcpy(text, hash->text, sizeof hash->text);
    return hash->error_number ? mt_fail(error, MT_ERR_IO, MT_NO_OFFSET, "no SHA-256: %s",
                                        strerror(hash->error_number))
                              : MT_OK;
}

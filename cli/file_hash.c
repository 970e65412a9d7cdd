#include "file_hash.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define PIECE_BYTES ((size_t)1 << 18)

static bool hash_descriptor(int fd, char text[MT_SHA256_TEXT])
{
    unsigned char *piece = malloc(PIECE_BYTES);
    struct mt_sha256 sha;
    ssize_t length = -1;

    mt_sha256_init(&sha);
    while (piece && ((length = read(fd, piece, PIECE_BYTES)) > 0 || (length < 0 && errno == EINTR)))
        mt_sha256_add(&sha, piece, length > 0 ? (size_t)length : 0);
    free(piece);
    if (length == 0)
        mt_sha256_finish(&sha, text);
    return length == 0;
}

static void *run(void *context)
{
    struct mt_file_hash *hash = context;
    int fd = open(hash->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    struct stat facts;

    /* a pipe can be read but once, and that is not ours to do */
    if (fd >= 0 && fstat(fd, &facts) == 0 && S_ISREG(facts.st_mode))
        if (!hash_descriptor(fd, hash->text))
            hash->text[0] = '\0';
    if (fd >= 0)
        close(fd);
    return NULL;
}

void mt_file_hash_start(struct mt_file_hash *hash, const char *path)
{
    memset(hash, 0, sizeof *hash);
    hash->path = path;
    if (strcmp(path, "-") != 0)
        hash->running = pthread_create(&hash->thread, NULL, run, hash) == 0;
}

const char *mt_file_hash_finish(struct mt_file_hash *hash)
{
    if (hash->running)
        pthread_join(hash->thread, NULL);
    hash->running = false;
    return hash->text;
}

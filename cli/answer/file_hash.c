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
    unsigned char *piece = mt_memory_new(PIECE_BYTES);
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

enum mt_status mt_file_hash(const char *path, char text[MT_SHA256_TEXT], struct mt_error *error)
{
    int fd = -1, why = 0;
    struct stat facts;

    text[0] = '\0';
    if (strcmp(path, "-") == 0)
        return MT_OK;
    fd = mt_io_open(path, O_RDONLY | O_NONBLOCK, 0);
    if (fd < 0 || fstat(fd, &facts) != 0)
        why = errno;
    else if (S_ISREG(facts.st_mode))
        why = hash_descriptor(fd, text);
    if (fd >= 0)
        close(fd);
    return why ? mt_fail(error, MT_ERR_IO, MT_NO_OFFSET, "no SHA-256: %s", strerror(why)) : MT_OK;
}

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
static int hash_descriptor(int fd, struct mt_file_hashing *hashing)
{
    unsigned char *piece = mt_memory_new(PIECE_BYTES);
    struct mt_sha256 sha;
    ssize_t length;
    int why = 0;

    mt_sha256_init(&sha);
    while ((length = mt_io_read(fd, piece, PIECE_BYTES)) > 0 && !hashing->is_unwanted)
        mt_sha256_add(&sha, piece, (size_t)length);
    if (length < 0)
        why = errno;
    else
        mt_sha256_finish(&sha, hashing->text);
    free(piece);
    return why;
}

/* Returns 0 or errno. Does not open a pipe: its writer would end when it is closed again. */
static int hash_file(struct mt_file_hashing *hashing)
{
    struct stat facts;

    if (stat(hashing->path, &facts) != 0)
        return errno;
    if (!S_ISREG(facts.st_mode))
        return 0;
    int fd = mt_io_open(hashing->path, O_RDONLY | O_NONBLOCK, 0);
    if (fd < 0)
        return errno;
    int why = hash_descriptor(fd, hashing);
    close(fd);
    return why;
}

static void *hash_path(void *context)
{
    struct mt_file_hashing *hashing = context;
    int why = strcmp(hashing->path, "-") ? hash_file(hashing) : 0;

    if (why)
        hashing->status =
            mt_fail(&hashing->error, MT_ERR_IO, MT_NO_OFFSET, "no SHA-256: %s", strerror(why));
    return NULL;
}

enum mt_status mt_file_hash(const char *path, char text[MT_SHA256_TEXT], struct mt_error *error)
{
    struct mt_file_hashing hashing = {.path = path};

    return mt_file_hash_end(&hashing, text, error);
}

void mt_file_hash_begin(struct mt_file_hashing *hashing, const char *path)
{
    *hashing = (struct mt_file_hashing){.path = path};
    hashing->has_thread = !pthread_create(&hashing->thread, NULL, hash_path, hashing);
}

enum mt_status mt_file_hash_end(struct mt_file_hashing *hashing, char text[MT_SHA256_TEXT],
                                struct mt_error *error)
{
    if (hashing->has_thread)
        pthread_join(hashing->thread, NULL);
    else
        hash_path(hashing);
    memcpy(text, hashing->text, MT_SHA256_TEXT);
    if (hashing->status && error)
        *error = hashing->error;
    return hashing->status;
}

void mt_file_hash_cancel(struct mt_file_hashing *hashing)
{
    hashing->is_unwanted = true;
    if (hashing->has_thread)
        pthread_join(hashing->thread, NULL);
}

/* See manifest_file.h. */
#include "manifest_file.h"

#include <string.h>

#include "io.h"
#include "own_file.h"
#include "temporary_file.h"

enum { RANDOM_LETTERS = 6 };

bool mt_is_manifest_name(const char *name)
{
    size_t length = strlen(MT_MANIFEST_PREFIX);

    return strncmp(name, MT_MANIFEST_PREFIX, length) == 0 &&
           strlen(name) == length + RANDOM_LETTERS;
}

bool mt_manifest_probe(const char *bytes, size_t length)
{
    size_t wanted = strlen(MT_MANIFEST_FIRST_LINE);

    return length >= wanted && !memcmp(bytes, MT_MANIFEST_FIRST_LINE, wanted);
}

bool mt_manifest_is_mine(int fd, const char *name)
{
    char bytes[sizeof MT_MANIFEST_FIRST_LINE];
    struct stat facts;
    ssize_t count;

    if (!mt_is_manifest_name(name + mt_folder_length(name)) || fstat(fd, &facts) ||
        !mt_own_file_is_mine(&facts))
        return false;
    count = mt_io_pread_full(fd, bytes, sizeof bytes, 0);
    return count > 0 && mt_manifest_probe(bytes, (size_t)count);
}

void mt_manifest_remove(int fd, int folder, const char *name)
{
    if (mt_manifest_is_mine(fd, name))
        mt_own_file_unlink(fd, folder, name);
}

#include "database_file.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "buf.h"
#include "database.h"
#include "io.h"
#include "util.h"

/* Offsets in the header (sqlite.org/fileformat.html). Numbers are big-endian. */
enum {
    HEADER_BYTES = 100,
    PAGE_SIZE_OFFSET = 16, /* of 16 bits; 1 means 65,536 */
    CHANGES_OFFSET = 24,
    PAGES_OFFSET = 28, /* valid if the numbers at CHANGES and VALID_FOR are equal */
    VERSION_OFFSET = 60,
    ID_OFFSET = 68,
    VALID_FOR_OFFSET = 92
};

static uint32_t number_at(const unsigned char *header, unsigned offset)
{
    uint32_t number = 0;

    for (unsigned i = 0; i < 4; i++)
        number = number << 8 | header[offset + i];
    return number;
}

/* Whole pages, and all that the header counts. */
static uint64_t size_by(const unsigned char *header, uint64_t size_bytes)
{
    uint32_t page_bytes = number_at(header, PAGE_SIZE_OFFSET) >> 16;

    page_bytes = page_bytes == 1 ? 65536 : page_bytes;
    if (!page_bytes)
        return size_bytes;
    uint64_t pages = (size_bytes + page_bytes - 1) / page_bytes;
    if (number_at(header, CHANGES_OFFSET) == number_at(header, VALID_FOR_OFFSET))
        pages = mt_max_u64(pages, number_at(header, PAGES_OFFSET));
    return pages * page_bytes;
}

static bool is_being_changed(const char *path)
{
    static const char *const suffixes[] = {"-wal", "-journal"};
    bool is_found = false;

    for (size_t i = 0; i < MT_ARRAY_LEN(suffixes); i++) {
        struct mt_buf name = {0};
        struct stat facts;

        mt_buf_printf(&name, "%s%s", path, suffixes[i]);
        is_found |= !name.failed && stat(name.data, &facts) == 0 && facts.st_size > 0;
        mt_buf_release(&name);
    }
    return is_found;
}

struct mt_database_file mt_database_file_of(const char *path)
{
    struct mt_database_file file = {.is_sqlite = false};
    unsigned char header[HEADER_BYTES];
    struct stat facts;

    if (strcmp(path, "-") == 0 || stat(path, &facts) != 0 || !S_ISREG(facts.st_mode))
        return file;
    int fd = mt_io_open(path, O_RDONLY, 0);
    if (fd < 0)
        return file;
    file.is_sqlite = mt_io_read_full(fd, header, sizeof header) == sizeof header &&
                     memcmp(header, "SQLite format 3", 16) == 0;
    (void)mt_io_close(fd);
    if (!file.is_sqlite)
        return file;
    file.is_own = number_at(header, ID_OFFSET) == MT_DATABASE_ID;
    file.version = number_at(header, VERSION_OFFSET);
    file.is_being_changed = is_being_changed(path);
    file.bytes = (uint64_t)facts.st_size;
    file.all_bytes = size_by(header, file.bytes);
    return file;
}

/* Somebody else's tape, see tape_file.h. It is read, not mapped: a file that
 * shrinks meanwhile is an error, not a signal, and what was checked cannot change
 * afterwards. A tape is mostly holes, so only what is used is read. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tape_file.h"

enum { SLOT_HEADER_BYTES = 64 };

_Static_assert(offsetof(struct mt_slot, events) == SLOT_HEADER_BYTES, "a slot's header");

static enum mt_status fail_errno(struct mt_error *error, const char *what)
{
    return mt_fail(error, MT_ERR_IO, MT_NO_OFFSET, "%s: %s", what, strerror(errno));
}

/* `bytes` from `offset` on; fewer are an error. */
static enum mt_status read_at(int fd, void *into, size_t bytes, uint64_t offset,
                              struct mt_error *error)
{
    char *at = into;

    while (bytes) {
        ssize_t got = pread(fd, at, bytes, (off_t)offset);
        if (got == 0)
            return mt_fail(error, MT_ERR_FORMAT, offset, "became shorter while it was read");
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return fail_errno(error, "cannot be read");
        at += got;
        offset += (uint64_t)got;
        bytes -= (size_t)got;
    }
    return MT_OK;
}

/* ---- the header ------------------------------------------------------- */

static bool is_locked(int fd)
{
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};

    return fcntl(fd, F_GETLK, &lock) == 0 && lock.l_type != F_UNLCK;
}

/* Some network disks know no locks; there, a process of that number counts. */
static bool is_in_use(const struct mt_tape *tape, int fd)
{
    if (tape->locked)
        return is_locked(fd);
    return tape->process_id && tape->process_id <= INT32_MAX &&
           (!kill((pid_t)tape->process_id, 0) || errno == EPERM);
}

static bool is_sound(const struct mt_tape *tape, uint64_t file_bytes)
{
    uint64_t slots_end;

    if (tape->slots_offset != MT_TAPE_PAGE_BYTES || tape->slot_count < MT_TAPE_MIN_SLOTS ||
        tape->slot_count > MT_TAPE_MAX_SLOTS || tape->file_bytes != file_bytes ||
        !tape->recording_id)
        return false;
    slots_end = MT_TAPE_PAGE_BYTES + (uint64_t)tape->slot_count * MT_SLOT_BYTES;
    return tape->definitions_offset == slots_end && file_bytes > slots_end &&
           file_bytes - slots_end <= MT_TAPE_DEFINITION_BYTES &&
           tape->definitions_capacity == file_bytes - slots_end &&
           atomic_load(&tape->definitions_bytes) <= tape->definitions_capacity;
}

static enum mt_status read_header(int fd, struct mt_tape *tape, struct mt_error *error)
{
    struct stat facts;
    enum mt_status status;

    if (fstat(fd, &facts))
        return fail_errno(error, "cannot be read");
    if (!S_ISREG(facts.st_mode) || facts.st_size <= MT_TAPE_PAGE_BYTES)
        return mt_fail(error, MT_ERR_FORMAT, MT_NO_OFFSET, "is no tape");
    status = read_at(fd, tape, sizeof *tape, 0, error);
    if (status != MT_OK)
        return status;
    if (tape->magic != MT_TAPE_MAGIC)
        return mt_fail(error, MT_ERR_FORMAT, 0, "is no tape");
    if (tape->version != MT_TAPE_VERSION)
        return mt_fail(error, MT_ERR_UNSUPPORTED, MT_NO_OFFSET, "of another version of memtrace");
    if (!is_sound(tape, (uint64_t)facts.st_size))
        return mt_fail(error, MT_ERR_FORMAT, 0, "damaged");
    return MT_OK;
}

static int open_file(const char *path)
{
    return open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
}

bool mt_tape_is_in_use(const char *path)
{
    struct mt_tape header;
    int fd = open_file(path);
    bool in_use;

    if (fd < 0)
        return false;
    in_use = read_header(fd, &header, NULL) == MT_OK && is_in_use(&header, fd);
    close(fd);
    return in_use;
}

/* ---- what it holds ---------------------------------------------------- */

/* Empty slots stay untouched: they cost no memory. */
static enum mt_status read_slot(int fd, struct mt_tape *tape, uint32_t index,
                                struct mt_error *error)
{
    struct mt_slot *slot = mt_tape_slot(tape, index);
    uint64_t offset = tape->slots_offset + (uint64_t)index * MT_SLOT_BYTES;
    uint32_t header[SLOT_HEADER_BYTES / sizeof(uint32_t)], count;
    enum mt_status status = read_at(fd, header, sizeof header, offset, error);

    if (status != MT_OK)
        return status;
    count = header[offsetof(struct mt_slot, committed) / sizeof(uint32_t)];
    if (!count || count > MT_SLOT_EVENTS)
        return MT_OK;
    memcpy(slot, header, sizeof header);
    return read_at(fd, slot->events, count * sizeof *slot->events, offset + SLOT_HEADER_BYTES,
                   error);
}

static enum mt_status read_contents(int fd, struct mt_tape *tape, struct mt_error *error)
{
    enum mt_status status = MT_OK;
    uint32_t i;

    for (i = 0; i < tape->slot_count && status == MT_OK; i++)
        status = read_slot(fd, tape, i, error);
    if (status == MT_OK)
        status =
            read_at(fd, (char *)tape + tape->definitions_offset,
                    (size_t)atomic_load(&tape->definitions_bytes), tape->definitions_offset, error);
    return status;
}

static enum mt_status read_tape(int fd, struct mt_tape **tape, struct mt_error *error)
{
    struct mt_tape header;
    enum mt_status status = read_header(fd, &header, error);
    void *memory;

    if (status != MT_OK)
        return status;
    if (is_in_use(&header, fd))
        return mt_fail(error, MT_ERR_USAGE, MT_NO_OFFSET, "its process is still running");
    memory = mmap(NULL, header.file_bytes, PROT_READ | PROT_WRITE,
                  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED)
        return mt_fail(error, MT_ERR_MEMORY, MT_NO_OFFSET, "out of memory");
    memcpy(memory, &header, sizeof header);
    status = read_contents(fd, memory, error);
    if (status == MT_OK)
        *tape = memory;
    else
        (void)munmap(memory, header.file_bytes);
    return status;
}

enum mt_status mt_tape_open(const char *path, struct mt_tape **tape, struct mt_error *error)
{
    int fd = open_file(path);
    enum mt_status status;

    if (fd < 0)
        return errno == ELOOP ? mt_fail(error, MT_ERR_FORMAT, MT_NO_OFFSET, "is a symbolic link")
                              : fail_errno(error, "cannot be opened");
    status = read_tape(fd, tape, error);
    close(fd);
    return status;
}

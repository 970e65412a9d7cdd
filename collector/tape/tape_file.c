/* See tape_file.h: the tape of this process. The lock belongs to the open file description
 * (F_OFD_SETLK), which the mapping holds: it lasts until the process dies, execs or unmaps the
 * tape. A record lock of the process (F_SETLK) would be lost as soon as the program closes any
 * descriptor of the file. A child of a fork shares the description: the collector's fork handler
 * releases it, and a child that runs no handlers (a bare clone) keeps the tape locked until it ends
 * or execs. */
#include "tape_file.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "io.h"
#include "process_memory.h"
#include "random.h"

static bool lock_all(int fd)
{
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};

    return fcntl(fd, F_OFD_SETLK, &lock) == 0;
}

/* 0 means none. */
static uint64_t recording_id(const void *place)
{
    uint64_t id = mt_random_number(place);

    return id ? id : 1;
}

static void describe(struct mt_tape *tape, uint32_t slot_count)
{
    tape->version = MT_TAPE_VERSION;
    tape->slot_count = slot_count;
    tape->slots_offset = MT_TAPE_PAGE_BYTES;
    tape->definitions_offset = MT_TAPE_PAGE_BYTES + (uint64_t)slot_count * MT_SLOT_BYTES;
    tape->definitions_capacity = MT_TAPE_DEFINITION_BYTES;
    tape->file_bytes = tape->definitions_offset + tape->definitions_capacity;
    tape->process_id = (uint64_t)getpid();
    tape->recording_id = recording_id(tape);
    tape->magic = MT_TAPE_MAGIC;
}

/* Gives the file its size, and disk space for everything except the definitions. */
static bool make_room(struct mt_own_file *file, uint64_t used_bytes, uint64_t total_bytes)
{
    int fd = mt_own_file_fd(file, 0);

    return fd >= 0 && !ftruncate(fd, (off_t)total_bytes) &&
           mt_own_file_reserve(file, 0, used_bytes);
}

/* Checks the mapped file again: nothing may be written into another file. */
static void *map_own(struct mt_own_file *file, uint64_t total_bytes)
{
    int fd = mt_own_file_fd(file, total_bytes);
    void *memory = MAP_FAILED;

    if (fd >= 0)
        memory = mmap(NULL, total_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (memory != MAP_FAILED && mt_own_file_fd(file, total_bytes) != fd) {
        (void)munmap(memory, total_bytes);
        errno = ESTALE; /* munmap would set another reason */
        return MAP_FAILED;
    }
    return memory;
}

static enum mt_status map_new(struct mt_own_file *file, uint32_t slot_count, struct mt_tape **tape,
                              struct mt_error *error)
{
    uint64_t used = MT_TAPE_PAGE_BYTES + (uint64_t)slot_count * MT_SLOT_BYTES;
    uint64_t total = used + MT_TAPE_DEFINITION_BYTES;
    void *memory;

    if (!make_room(file, used, total))
        return mt_io_fail(error, MT_ERR_OUTPUT, "no room on the disk");
    memory = map_own(file, total);
    if (memory == MAP_FAILED)
        return mt_io_fail(error, MT_ERR_OUTPUT, "cannot map the file");
    *tape = memory;
    describe(*tape, slot_count);
    return MT_OK;
}

enum mt_status mt_tape_create(const char *path, uint32_t slot_count, struct mt_tape **tape,
                              struct mt_own_file *file, struct mt_error *error)
{
    enum mt_status status;
    bool locked;
    int fd;

    *file = MT_OWN_FILE_NONE;
    if (slot_count < MT_TAPE_MIN_SLOTS || slot_count > MT_TAPE_MAX_SLOTS)
        return mt_fail(error, MT_ERR_USAGE, MT_NO_OFFSET, "a tape of %u slots", slot_count);
    if (!mt_own_file_create(file, path))
        return mt_io_fail(error, MT_ERR_OUTPUT, "cannot be created");
    fd = mt_own_file_fd(file, 0);
    locked = fd >= 0 && lock_all(fd);
    status = map_new(file, slot_count, tape, error);
    if (status == MT_OK)
        (*tape)->locked = locked;
    if (status != MT_OK)
        mt_own_file_remove(file);
    return status;
}

bool mt_tape_reserve_definitions(struct mt_own_file *file, const struct mt_tape *tape,
                                 uint64_t bytes)
{
    int saved = errno;
    bool done = bytes <= tape->definitions_capacity &&
                mt_own_file_reserve(file, tape->definitions_offset, bytes);

    errno = saved;
    return done;
}

void mt_tape_set_trace(struct mt_tape *tape, const struct mt_own_file *trace)
{
    tape->trace_device = (uint64_t)trace->device;
    tape->trace_inode = (uint64_t)trace->inode;
}

void mt_tape_unmap(struct mt_tape *tape)
{
    if (!tape)
        return;
    mt_memory_given_back(tape->charged_bytes);
    (void)munmap(tape, tape->file_bytes);
}

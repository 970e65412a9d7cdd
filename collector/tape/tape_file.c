/* See tape_file.h. The lock is a POSIX record lock: the kernel drops it when the
 * process dies or execs, and a forked child does not inherit it. */
#include "tape_file.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "util.h"

enum { PAGE = 4096, MIN_SLOTS = 16, MAX_SLOTS = 65536 };

static enum mt_status fail_errno(struct mt_error *error, enum mt_status status, const char *what)
{
    return mt_fail(error, status, MT_NO_OFFSET, "%s: %s", what, strerror(errno));
}

static bool lock_all(int fd)
{
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};

    return fcntl(fd, F_SETLK, &lock) == 0;
}

static bool is_locked(int fd)
{
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};

    return fcntl(fd, F_GETLK, &lock) == 0 && lock.l_type != F_UNLCK;
}

/* posix_fallocate writes zeros where the file system has no such call; it
 * returns the error. */
static bool reserve_disk(int fd, uint64_t offset, uint64_t bytes)
{
    int code;

    do
        code = posix_fallocate(fd, (off_t)offset, (off_t)bytes);
    while (code == EINTR);
    errno = code;
    return code == 0;
}

static void describe(struct mt_tape *tape, uint32_t slot_count)
{
    tape->version = MT_TAPE_VERSION;
    tape->slot_count = slot_count;
    tape->slots_offset = PAGE;
    tape->definitions_offset = PAGE + (uint64_t)slot_count * MT_SLOT_BYTES;
    tape->definitions_capacity = MT_TAPE_DEFINITION_BYTES;
    tape->file_bytes = tape->definitions_offset + tape->definitions_capacity;
    tape->process_id = (uint64_t)getpid();
    tape->magic = MT_TAPE_MAGIC;
}

static enum mt_status map_new(int fd, uint32_t slot_count, struct mt_tape **tape,
                              struct mt_error *error)
{
    uint64_t used = PAGE + (uint64_t)slot_count * MT_SLOT_BYTES;
    uint64_t total = used + MT_TAPE_DEFINITION_BYTES;
    void *memory;

    if (ftruncate(fd, (off_t)total) || !reserve_disk(fd, 0, used))
        return fail_errno(error, MT_ERR_OUTPUT, "no room on the disk");
    memory = mmap(NULL, total, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (memory == MAP_FAILED)
        return fail_errno(error, MT_ERR_OUTPUT, "cannot map the file");
    *tape = memory;
    describe(*tape, slot_count);
    return MT_OK;
}

enum mt_status mt_tape_create(const char *path, uint32_t slot_count, struct mt_tape **tape, int *fd,
                              struct mt_error *error)
{
    enum mt_status status;
    bool locked;

    if (slot_count < MIN_SLOTS || slot_count > MAX_SLOTS)
        return mt_fail(error, MT_ERR_USAGE, MT_NO_OFFSET, "a tape of %u slots", slot_count);
    *fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (*fd < 0)
        return fail_errno(error, MT_ERR_OUTPUT, "cannot be made");
    locked = lock_all(*fd);
    status = map_new(*fd, slot_count, tape, error);
    if (status == MT_OK)
        (*tape)->locked = locked;
    if (status != MT_OK) {
        (void)unlink(path);
        close(*fd);
        *fd = -1;
    }
    return status;
}

bool mt_tape_reserve_definitions(int fd, struct mt_tape *tape, uint64_t bytes)
{
    int saved = errno;
    bool done =
        bytes <= tape->definitions_capacity && reserve_disk(fd, tape->definitions_offset, bytes);

    errno = saved;
    return done;
}

static bool is_sound(const struct mt_tape *tape, uint64_t file_bytes)
{
    uint64_t slots_end;

    if (tape->magic != MT_TAPE_MAGIC || tape->slots_offset != PAGE ||
        tape->slot_count < MIN_SLOTS || tape->slot_count > MAX_SLOTS ||
        tape->file_bytes != file_bytes)
        return false;
    slots_end = PAGE + (uint64_t)tape->slot_count * MT_SLOT_BYTES;
    return tape->definitions_offset == slots_end && file_bytes > slots_end &&
           tape->definitions_capacity == file_bytes - slots_end &&
           atomic_load(&tape->definitions_bytes) <= tape->definitions_capacity;
}

/* Some network disks know no locks; there, a process of that number counts. */
static bool is_in_use(const struct mt_tape *tape, int fd)
{
    if (tape->locked)
        return is_locked(fd);
    return tape->process_id && tape->process_id <= INT32_MAX &&
           (!kill((pid_t)tape->process_id, 0) || errno == EPERM);
}

static enum mt_status check(const struct mt_tape *tape, int fd, uint64_t file_bytes,
                            struct mt_error *error)
{
    if (tape->magic == MT_TAPE_MAGIC && tape->version != MT_TAPE_VERSION)
        return mt_fail(error, MT_ERR_UNSUPPORTED, MT_NO_OFFSET, "of another version of memtrace");
    if (!is_sound(tape, file_bytes))
        return mt_fail(error, MT_ERR_FORMAT, 0, "damaged");
    if (is_in_use(tape, fd))
        return mt_fail(error, MT_ERR_USAGE, MT_NO_OFFSET, "its process is still running");
    return MT_OK;
}

static enum mt_status map_old(int fd, struct mt_tape **tape, struct mt_error *error)
{
    struct stat facts;
    enum mt_status status;
    void *memory;

    if (fstat(fd, &facts))
        return fail_errno(error, MT_ERR_IO, "cannot be read");
    if (!S_ISREG(facts.st_mode) || facts.st_size <= PAGE)
        return mt_fail(error, MT_ERR_FORMAT, MT_NO_OFFSET, "is no tape");
    memory = mmap(NULL, (size_t)facts.st_size, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
    if (memory == MAP_FAILED)
        return fail_errno(error, MT_ERR_IO, "cannot be mapped");
    status = check(memory, fd, (uint64_t)facts.st_size, error);
    if (status == MT_OK)
        *tape = memory;
    else
        (void)munmap(memory, (size_t)facts.st_size);
    return status;
}

enum mt_status mt_tape_open(const char *path, struct mt_tape **tape, struct mt_error *error)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    enum mt_status status;

    if (fd < 0)
        return fail_errno(error, MT_ERR_IO, "cannot be opened");
    status = map_old(fd, tape, error);
    close(fd);
    return status;
}

void mt_tape_unmap(struct mt_tape *tape)
{
    if (tape)
        (void)munmap(tape, tape->file_bytes);
}

/* Tapes as files: a traced process creates its own, and other processes read it after that process
 * has ended.
 *
 * The lock on the tape of this process belongs to the open file description (F_OFD_SETLK), which
 * the mapping holds: it lasts until the process dies, execs or unmaps the tape. A record lock of
 * the process (F_SETLK) would be lost as soon as the program closes any descriptor of the file. A
 * child of a fork shares the description: the collector's fork handler releases it, and a child
 * that runs no handlers (a bare clone) keeps the tape locked until it ends or execs. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "io.h"
#include "own_file.h"
#include "process_memory.h"
#include "random.h"
#include "status.h"
#include "tape.h"
#include "tape_file.h"
#include "util.h"

/* The tape of another process, see tape_file.h. It is read, not mapped: a file that shrinks
 * meanwhile is an error, not a signal, and checked contents cannot change later. A tape consists
 * mostly of holes, so only the used parts are read. */

enum { SLOT_HEADER_BYTES = 64, MAX_PEEKS = 16 };

_Static_assert(offsetof(struct mt_slot, events) == SLOT_HEADER_BYTES, "a slot's header");

/* Reads `bytes` at `offset`. Fewer are an error. */
static enum mt_status read_at(int fd, void *into, size_t bytes, uint64_t offset,
                              struct mt_error *error)
{
    ssize_t got = mt_io_pread_full(fd, into, bytes, offset);

    if (got < 0)
        return mt_io_fail(error, MT_ERR_IO, "cannot be read");
    if ((size_t)got < bytes)
        return mt_fail(error, MT_ERR_FORMAT, offset + (uint64_t)got,
                       "became shorter while it was read");
    return MT_OK;
}

static enum mt_status running(struct mt_error *error)
{
    return mt_fail(error, MT_ERR_USAGE, MT_NO_OFFSET, "its process is still running");
}

/* If the system cannot report what holds the lock, the tape stays: taking it from a process that
 * still writes would lose events. */
static enum mt_status check_lock(int fd, struct mt_error *error)
{
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};

    if (fcntl(fd, F_GETLK, &lock))
        return mt_io_fail(error, MT_ERR_IO,
                          "cannot determine whether its process is still running");
    return lock.l_type == F_UNLCK ? MT_OK : running(error);
}

/* Some network file systems have no locks. There, the tape is in use if a process with its number
 * exists. */
static enum mt_status check_unused(const struct mt_tape *tape, int fd, struct mt_error *error)
{
    if (tape->locked)
        return check_lock(fd, error);
    return tape->process_id && tape->process_id <= INT32_MAX &&
                   (!kill((pid_t)tape->process_id, 0) || errno == EPERM)
               ? running(error)
               : MT_OK;
}

/* Checks the valid commit; the other one may be half-written. A trace of zero bytes has no
 * events. */
static bool commit_is_sound(const struct mt_tape *tape)
{
    const struct mt_tape_commit *commit = &tape->commits[atomic_load(&tape->current_commit) & 1u];

    return commit->events_written <= MT_MAX_SEQ &&
           commit->next_raw <= atomic_load(&tape->next_seq) &&
           commit->dropped_written <= MT_MAX_SEQ &&
           (commit->trace_bytes ||
            !(commit->events_written | commit->next_raw | commit->dropped_written | commit->part));
}

/* No process counts this far. With larger numbers, sums of missing events could overflow. */
static bool counts_are_sound(const struct mt_tape *tape)
{
    return atomic_load(&tape->next_seq) <= MT_MAX_SEQ &&
           atomic_load(&tape->dropped_events) <= MT_MAX_SEQ;
}

static bool is_sound(const struct mt_tape *tape, uint64_t file_bytes)
{
    if (tape->slots_offset != MT_TAPE_PAGE_BYTES || tape->slot_count < MT_TAPE_MIN_SLOTS ||
        tape->slot_count > MT_TAPE_MAX_SLOTS || tape->file_bytes != file_bytes ||
        !tape->recording_id || !counts_are_sound(tape) || !commit_is_sound(tape))
        return false;
    uint64_t slots_end = MT_TAPE_PAGE_BYTES + (uint64_t)tape->slot_count * MT_SLOT_BYTES;
    return tape->definitions_offset == slots_end && file_bytes > slots_end &&
           file_bytes - slots_end <= MT_TAPE_DEFINITION_BYTES &&
           tape->definitions_capacity == file_bytes - slots_end &&
           atomic_load(&tape->definitions_bytes) <= tape->definitions_capacity;
}

static enum mt_status read_header(int fd, struct mt_tape *tape, struct mt_error *error)
{
    struct stat facts;

    if (fstat(fd, &facts))
        return mt_io_fail(error, MT_ERR_IO, "cannot be read");
    if (!S_ISREG(facts.st_mode) || facts.st_size <= MT_TAPE_PAGE_BYTES)
        return mt_fail(error, MT_ERR_FORMAT, MT_NO_OFFSET, "is no tape");
    enum mt_status status = read_at(fd, tape, sizeof *tape, 0, error);
    if (status != MT_OK)
        return status;
    if (tape->magic != MT_TAPE_MAGIC)
        return mt_fail(error, MT_ERR_FORMAT, 0, "is no tape");
    if (tape->version != MT_TAPE_VERSION)
        return mt_fail(error, MT_ERR_UNSUPPORTED, MT_NO_OFFSET,
                       "another version of memtrace made it: recover it with the memtrace that "
                       "recorded it");
    if (!is_sound(tape, (uint64_t)facts.st_size))
        return mt_fail(error, MT_ERR_FORMAT, 0, "damaged");
    return MT_OK;
}

static int open_file(const char *path)
{
    return mt_io_open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK, 0);
}

bool mt_tape_is_in_use(const char *path)
{
    struct mt_tape header;
    int fd = open_file(path);

    if (fd < 0)
        return false;
    bool in_use =
        read_header(fd, &header, NULL) == MT_OK && check_unused(&header, fd, NULL) != MT_OK;
    close(fd);
    return in_use;
}

/* Also true for a tape that is damaged or of another version, and for a file that is empty or
 * begins with zeros: its process died before it wrote the magic, which is written last. */
static bool is_abandoned(int fd)
{
    struct mt_tape header = {0};
    ssize_t count = mt_io_pread_full(fd, &header, sizeof header, 0);

    if (count < 0 || (header.magic && header.magic != MT_TAPE_MAGIC))
        return false;
    if ((size_t)count == sizeof header && header.magic && header.version == MT_TAPE_VERSION)
        return check_unused(&header, fd, NULL) == MT_OK;
    return check_lock(fd, NULL) == MT_OK;
}

bool mt_tape_make_way(const char *path)
{
    struct stat facts;
    int fd = open_file(path);

    if (fd >= 0) {
        if (is_abandoned(fd))
            mt_own_file_unlink(fd, AT_FDCWD, path);
        close(fd);
    }
    return lstat(path, &facts) && errno == ENOENT;
}

/* Counts memory that is about to be used, in pages of 4096 bytes. Where pages are larger, parts
 * that follow each other share them. */
static enum mt_status charge(struct mt_tape *tape, uint64_t bytes, struct mt_error *error)
{
    uint64_t pages = mt_round_up(bytes, MT_TAPE_PAGE_BYTES);

    if (!mt_memory_allows(pages))
        return mt_fail_memory(error);
    mt_memory_taken(pages);
    tape->charged_bytes += pages;
    return MT_OK;
}

/* Empty slots are not read, so they take no memory. */
static enum mt_status read_slot(int fd, struct mt_tape *tape, uint32_t index,
                                struct mt_error *error)
{
    struct mt_slot *slot = mt_tape_slot(tape, index);
    uint64_t offset = tape->slots_offset + (uint64_t)index * MT_SLOT_BYTES;
    uint32_t header[SLOT_HEADER_BYTES / sizeof(uint32_t)];
    enum mt_status status = read_at(fd, header, sizeof header, offset, error);

    if (status != MT_OK)
        return status;
    uint32_t count = header[offsetof(struct mt_slot, committed) / sizeof(uint32_t)];
    if (!count || count > MT_SLOT_EVENTS)
        return MT_OK;
    status = charge(tape, SLOT_HEADER_BYTES + count * sizeof *slot->events, error);
    if (status != MT_OK)
        return status;
    memcpy(slot, header, sizeof header);
    return read_at(fd, slot->events, count * sizeof *slot->events, offset + SLOT_HEADER_BYTES,
                   error);
}

static enum mt_status read_contents(int fd, struct mt_tape *tape, struct mt_error *error)
{
    size_t definitions = (size_t)atomic_load(&tape->definitions_bytes);
    enum mt_status status = charge(tape, MT_TAPE_PAGE_BYTES + definitions, error);

    for (uint32_t i = 0; i < tape->slot_count && status == MT_OK; i++)
        status = read_slot(fd, tape, i, error);
    if (status == MT_OK)
        status = read_at(fd, (char *)tape + tape->definitions_offset, definitions,
                         tape->definitions_offset, error);
    return status;
}

static enum mt_status read_tape(int fd, struct mt_tape **tape, struct mt_error *error)
{
    struct mt_tape header;
    enum mt_status status = read_header(fd, &header, error);

    if (status == MT_OK)
        status = check_unused(&header, fd, error);
    if (status == MT_OK) /* its process may have continued until just now, when it ended */
        status = read_header(fd, &header, error);
    if (status != MT_OK)
        return status;
    header.charged_bytes = 0;
    void *memory = mmap(NULL, header.file_bytes, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED)
        return mt_fail_memory(error);
    memcpy(memory, &header, sizeof header);
    status = read_contents(fd, memory, error);
    if (status == MT_OK)
        *tape = memory;
    else
        mt_tape_unmap(memory);
    return status;
}

/* A commit is written where the last but one was, so a reading is whole if the same commit was the
 * last one before and after it. */
static enum mt_status peek(int fd, struct mt_tape *header, struct mt_error *error)
{
    struct mt_tape again;
    enum mt_status status = read_at(fd, header, sizeof *header, 0, error);

    for (int tries = 0; status == MT_OK && tries < MAX_PEEKS; tries++) {
        status = read_at(fd, &again, sizeof again, 0, error);
        if (status != MT_OK || !memcmp(mt_tape_last_commit(header), mt_tape_last_commit(&again),
                                       sizeof(struct mt_tape_commit)))
            break;
        *header = again;
    }
    if (status == MT_OK && (header->magic != MT_TAPE_MAGIC || header->version != MT_TAPE_VERSION))
        return mt_fail(error, MT_ERR_FORMAT, MT_NO_OFFSET, "not a tape of this version");
    return status;
}

static int open_tape_of(const char *trace, int access)
{
    char path[PATH_MAX];
    int length = snprintf(path, sizeof path, "%s%s", trace, MT_TAPE_SUFFIX);

    errno = ENAMETOOLONG;
    return length > 0 && (size_t)length < sizeof path
               ? mt_io_open(path, access | O_NOFOLLOW | O_NONBLOCK, 0)
               : -1;
}

bool mt_tape_ask(const char *trace, enum mt_tape_ask what)
{
    int fd = open_tape_of(trace, O_RDWR);
    const uint64_t asked = what;
    struct mt_tape header;
    struct stat facts;

    if (fd < 0)
        return false;
    errno = EPERM;
    bool done = !fstat(fd, &facts) && mt_own_file_is_mine(&facts) &&
                peek(fd, &header, NULL) == MT_OK &&
                pwrite(fd, &asked, sizeof asked, offsetof(struct mt_tape, asked)) == sizeof asked;
    (void)mt_io_close(fd);
    return done;
}

enum mt_status mt_tape_peek(const char *trace, struct mt_tape *header, struct mt_error *error)
{
    int fd = open_tape_of(trace, O_RDONLY);

    if (fd < 0)
        return mt_io_fail(error, MT_ERR_IO, "its tape cannot be opened");
    enum mt_status status = peek(fd, header, error);
    (void)mt_io_close(fd);
    return status;
}

bool mt_tape_is_running(const char *trace, struct mt_tape *header)
{
    struct mt_error ignored;
    char path[PATH_MAX];
    int length = snprintf(path, sizeof path, "%s%s", trace, MT_TAPE_SUFFIX);

    return length > 0 && (size_t)length < sizeof path &&
           mt_tape_peek(trace, header, &ignored) == MT_OK && mt_tape_is_in_use(path);
}

/* Not atomic: the kernel has no call that removes a name only if it refers to a certain file. */
bool mt_tape_remove(const char *path, const struct stat *file)
{
    struct stat named;

    if (lstat(path, &named))
        return false;
    if (named.st_dev == file->st_dev && named.st_ino == file->st_ino)
        return unlink(path) == 0;
    errno = ESTALE;
    return false;
}

enum mt_status mt_tape_open(const char *path, struct mt_tape **tape, struct stat *file,
                            struct mt_error *error)
{
    int fd = open_file(path);
    enum mt_status status;

    if (fd < 0)
        return errno == ELOOP ? mt_fail(error, MT_ERR_FORMAT, MT_NO_OFFSET, "is a symbolic link")
                              : mt_io_fail(error, MT_ERR_IO, "cannot be opened");
    if (file && fstat(fd, file))
        status = mt_io_fail(error, MT_ERR_IO, "cannot be read");
    else
        status = read_tape(fd, tape, error);
    close(fd);
    return status;
}

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

    if (!make_room(file, used, total))
        return mt_io_fail(error, MT_ERR_OUTPUT, "no room on the disk");
    void *memory = map_own(file, total);
    if (memory == MAP_FAILED)
        return mt_io_fail(error, MT_ERR_OUTPUT, "cannot map the file");
    *tape = memory;
    describe(*tape, slot_count);
    return MT_OK;
}

enum mt_status mt_tape_create(const char *path, uint32_t slot_count, struct mt_tape **tape,
                              struct mt_own_file *file, struct mt_error *error)
{
    *file = MT_OWN_FILE_NONE;
    if (slot_count < MT_TAPE_MIN_SLOTS || slot_count > MT_TAPE_MAX_SLOTS)
        return mt_fail(error, MT_ERR_USAGE, MT_NO_OFFSET, "a tape of %u slots", slot_count);
    if (!mt_own_file_create(file, path))
        return mt_io_fail(error, MT_ERR_OUTPUT, "cannot be created");
    int fd = mt_own_file_fd(file, 0);
    bool locked = fd >= 0 && lock_all(fd);
    enum mt_status status = map_new(file, slot_count, tape, error);
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

/* The name of a trace: the claim of one process on it, and names that are derived from it. */
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "io.h"
#include "own_file.h"
#include "stable_hash.h"
#include "status.h"
#include "temporary_file.h"
#include "trace_claim.h"

size_t mt_trace_stem_length(const char *path)
{
    static const char usual[] = ".trace.zst";
    const char *name = strrchr(path, '/'), *dot;
    size_t length = strlen(path);

    if (length > sizeof usual - 1 && !strcmp(path + length - (sizeof usual - 1), usual))
        return length - (sizeof usual - 1);
    dot = strrchr(name ? name : path, '.');
    return dot ? (size_t)(dot - path) : length;
}

enum { MAX_TRIES = 100 };

enum outcome { OURS, THEIRS, AGAIN, IMPOSSIBLE };

/* A file that exists but cannot be opened belongs to another user, who may be recording. */
static int open_claim(const char *file, bool *is_new, enum outcome *otherwise)
{
    struct stat facts;
    int fd = mt_io_open(file, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW, 0600), why = errno;

    *is_new = fd >= 0;
    *otherwise = IMPOSSIBLE;
    if (fd < 0 && lstat(file, &facts) == 0) {
        fd = mt_io_open(file, O_RDWR | O_NOFOLLOW | O_NONBLOCK, 0);
        *otherwise = errno == ENOENT ? AGAIN : THEIRS;
    } else if (why == EEXIST) {
        *otherwise = AGAIN; /* removed in the meantime */
    }
    errno = why;
    return fd;
}

static bool has_name(int fd, const char *file, struct stat *opened)
{
    struct stat named;

    return !fstat(fd, opened) && !lstat(file, &named) && opened->st_dev == named.st_dev &&
           opened->st_ino == named.st_ino;
}

/* Another process may have removed the file between open and flock. Then the lock is worth
 * nothing. A new file may have another owner than this process: NFS maps root to nobody. */
static enum outcome judge(const char *file, int fd, bool is_new)
{
    struct stat opened;

    if (!mt_io_lock(fd, LOCK_EX | LOCK_NB))
        return is_new && errno != EWOULDBLOCK ? OURS : THEIRS; /* no locks here: see the header */
    if (!has_name(fd, file, &opened))
        return AGAIN;
    return is_new || mt_own_file_is_mine(&opened) ? OURS : THEIRS;
}

static enum outcome try_once(struct mt_trace_claim *claim)
{
    enum outcome outcome;
    bool is_new;

    claim->fd = open_claim(claim->file, &is_new, &outcome);
    if (claim->fd < 0)
        return outcome;
    outcome = judge(claim->file, claim->fd, is_new);
    if (outcome != OURS)
        (void)mt_io_close(claim->fd);
    return outcome;
}

enum mt_status mt_trace_claim_take(struct mt_trace_claim *claim, const char *path,
                                   struct mt_unfinished *list, bool *is_ours,
                                   struct mt_error *error)
{
    const char *name = path + mt_folder_length(path);
    enum outcome outcome = AGAIN;

    *is_ours = false;
    *claim = (struct mt_trace_claim){
        .file = mt_temporary_path(path, mt_stable_hash_text(MT_STABLE_HASH_START, name)),
        .list = list};
    if (!claim->file)
        return mt_fail(error, MT_ERR_MEMORY, MT_NO_OFFSET, "out of memory");
    for (int i = 0; i < MAX_TRIES && outcome == AGAIN; i++)
        outcome = try_once(claim);
    if (outcome == OURS) {
        *is_ours = true;
        if (list)
            mt_unfinished_add(list, claim->file);
        return MT_OK;
    }
    if (outcome == IMPOSSIBLE)
        (void)mt_fail(error, MT_ERR_OUTPUT, MT_NO_OFFSET, "%s", strerror(errno));
    free(claim->file);
    *claim = (struct mt_trace_claim){0};
    return outcome == IMPOSSIBLE ? MT_ERR_OUTPUT : MT_OK;
}

/* The file is removed while it is locked, so it cannot be the claim of another process. For the
 * same reason, a handler that owns the path and is about to end the process keeps the lock. */
void mt_trace_claim_release(struct mt_trace_claim *claim)
{
    struct stat opened;

    if (!claim->file)
        return;
    if (!claim->list || mt_unfinished_take(claim->list, claim->file)) {
        if (has_name(claim->fd, claim->file, &opened))
            (void)unlink(claim->file);
        free(claim->file);
        (void)mt_io_close(claim->fd);
    }
    *claim = (struct mt_trace_claim){0};
}

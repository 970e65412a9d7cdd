#include "python_probe.h"

#include "io.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { MAX_OUTPUT_BYTES = 64 << 10, PART_BYTES = 4096 };

extern char **environ;

static int64_t now_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* 0, or an errno. The process leads a group of its own. */
static int start(const char *python, const char *script, const int ends[2], pid_t *child)
{
    char *const arguments[] = {(char *)(uintptr_t)python, (char *)(uintptr_t) "-B",
                               (char *)(uintptr_t) "-c", (char *)(uintptr_t)script, NULL};
    posix_spawn_file_actions_t files;
    posix_spawnattr_t attributes;
    int failure = posix_spawn_file_actions_init(&files);

    if (failure)
        return failure;
    failure = posix_spawnattr_init(&attributes);
    if (!failure) {
        posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
        failure = posix_spawn_file_actions_addopen(&files, 0, "/dev/null", O_RDONLY, 0);
        if (!failure)
            failure = posix_spawn_file_actions_adddup2(&files, ends[1], 1);
        if (!failure)
            failure = posix_spawn_file_actions_addopen(&files, 2, "/dev/null", O_WRONLY, 0);
        if (!failure)
            failure = posix_spawn(child, python, &files, &attributes, arguments, environ);
        posix_spawnattr_destroy(&attributes);
    }
    posix_spawn_file_actions_destroy(&files);
    return failure;
}

/* Until the other end is closed; false: the time is up. */
static bool read_all(int fd, int64_t until_ms, struct mt_buf *output)
{
    char part[PART_BYTES];
    struct pollfd wait = {.fd = fd, .events = POLLIN};

    for (;;) {
        int64_t left_ms = until_ms - now_ms();
        int ready = left_ms <= 0 ? 0 : poll(&wait, 1, (int)left_ms);
        if (ready < 0 && errno == EINTR)
            continue;
        if (ready <= 0)
            return false;
        ssize_t got = mt_io_read(fd, part, sizeof part);
        if (got <= 0)
            return got == 0;
        if (output->length + (size_t)got <= MAX_OUTPUT_BYTES)
            mt_buf_add(output, part, (size_t)got);
    }
}

enum mt_status mt_python_probe(const char *python, const char *script, int timeout_s,
                               struct mt_buf *output, struct mt_error *error)
{
    int ends[2];
    pid_t child = 0;

    if (pipe2(ends, O_CLOEXEC) < 0)
        return mt_io_fail(error, MT_ERR_IO, "no pipe for Python");
    int failure = start(python, script, ends, &child);
    (void)mt_io_close(ends[1]);
    bool in_time = !failure && read_all(ends[0], now_ms() + (int64_t)timeout_s * 1000, output);
    (void)mt_io_close(ends[0]);
    if (failure)
        return mt_fail(error, MT_ERR_IO, MT_NO_OFFSET, "cannot run %.150s: %s", python,
                       strerror(failure));
    if (!in_time)
        (void)kill(-child, SIGKILL);
    while (waitpid(child, NULL, 0) < 0 && errno == EINTR)
        continue;
    if (!in_time)
        return mt_fail(error, MT_ERR_IO, MT_NO_OFFSET,
                       "%.120s does not say within %d s where its packages are", python, timeout_s);
    return output->failed ? mt_fail(error, MT_ERR_MEMORY, MT_NO_OFFSET, "no memory") : MT_OK;
}

#include "python_probe.h"

#include "io.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
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

/* Writes the script as one line, because conda run refuses more than one. */
static void add_one_line(struct mt_buf *line, const char *script)
{
    mt_buf_add_text(line, "exec(\"");
    for (; *script; script++) {
        if (*script == '"' || *script == '\\')
            mt_buf_add(line, "\\", 1);
        mt_buf_add(line, *script == '\n' ? "\\n" : script, *script == '\n' ? 2 : 1);
    }
    mt_buf_add(line, "\")", sizeof "\")");
}

/* Returns the words to run, or NULL if memory runs out. Release them with free. */
static char **new_arguments(const struct mt_python_choice *python, const char *line)
{
    char **words = malloc((python->runner_words + 5) * sizeof *words);
    size_t count = python->runner_words;

    if (!words)
        return NULL;
    for (size_t i = 0; i < count; i++)
        words[i] = python->runner[i];
    words[count++] = (char *)(uintptr_t)(python->runner ? python->runner_python : python->path);
    words[count++] = (char *)(uintptr_t) "-B";
    words[count++] = (char *)(uintptr_t) "-c";
    words[count++] = (char *)(uintptr_t)line;
    words[count] = NULL;
    return words;
}

/* Returns 0 or an errno. The process is the leader of a new process group. */
static int spawn(const struct mt_python_choice *python, char *const *arguments, const int ends[2],
                 pid_t *child)
{
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
        if (!failure && !python->runner)
            failure = posix_spawn_file_actions_addopen(&files, 2, "/dev/null", O_WRONLY, 0);
        if (!failure)
            failure = posix_spawn(child, python->path, &files, &attributes, arguments, environ);
        posix_spawnattr_destroy(&attributes);
    }
    posix_spawn_file_actions_destroy(&files);
    return failure;
}

/* 0, or an errno. */
static int start(const struct mt_python_choice *python, const char *script, const int ends[2],
                 pid_t *child)
{
    struct mt_buf line = {0};

    add_one_line(&line, script);
    char **arguments = line.failed ? NULL : new_arguments(python, line.data);
    int failure = arguments ? spawn(python, arguments, ends, child) : ENOMEM;
    free(arguments);
    mt_buf_release(&line);
    return failure;
}

/* Reads until the other end is closed. Returns false if the time is over. */
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

enum mt_status mt_python_probe(const struct mt_python_choice *python, const char *script,
                               int timeout_s, struct mt_buf *output, struct mt_error *error)
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
        return mt_fail(error, MT_ERR_IO, MT_NO_OFFSET, "cannot run %.150s: %s", python->path,
                       strerror(failure));
    if (!in_time)
        (void)kill(-child, SIGKILL);
    while (waitpid(child, NULL, 0) < 0 && errno == EINTR)
        continue;
    if (!in_time)
        return mt_fail(error, MT_ERR_IO, MT_NO_OFFSET,
                       "%.120s did not report the folder of its packages within %d s", python->path,
                       timeout_s);
    return output->failed ? mt_fail(error, MT_ERR_MEMORY, MT_NO_OFFSET, "no memory") : MT_OK;
}

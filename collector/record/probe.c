/* See probe.h. */
#include "probe.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

const struct mt_probe mt_probes[] = {
    {"collector", "the library that goes into programs", mt_probe_library, 10},
    {"driver", "GPUs and their driver", mt_probe_driver, 60},
    {"cupti", "calls of the driver", mt_probe_cupti, 60},
    {"nvtx", "ranges that programs name", mt_probe_nvtx, 10},
    {"nvml", "what the whole device has in use", mt_probe_nvml, 30},
    {"pytorch", "blocks of its allocator", mt_probe_pytorch, 120},
    {"python", "Python call stacks", mt_probe_python, 20},
    {"native", "native call stacks", mt_probe_native, 10},
    {"symbols", "names for native frames", mt_probe_symbols, 10},
    {"tape", "memory that survives a killed process", mt_probe_tape, 30},
    {"clock", "time stamps", mt_probe_clock, 10},
    {NULL, NULL, NULL, 0},
};

void mt_probe_set(struct mt_probe_result *result, enum mt_probe_state state, const char *mend,
                  const char *format, ...)
{
    va_list args;

    result->state = state;
    snprintf(result->mend, sizeof result->mend, "%s", mend);
    va_start(args, format);
    vsnprintf(result->text, sizeof result->text, format, args);
    va_end(args);
}

/* What checks print is nobody's business, and their children die with them. */
static void check_in_child(const struct mt_probe *probe, int output)
{
    struct mt_probe_result result = {.state = MT_PROBE_OK};
    int nothing = open("/dev/null", O_RDWR | O_CLOEXEC), fd;

    setpgid(0, 0);
    for (fd = STDIN_FILENO; fd <= STDERR_FILENO && nothing >= 0; fd++)
        dup2(nothing, fd);
    probe->check(&result);
    (void)!write(output, &result, sizeof result);
    _exit(0);
}

static int64_t now_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

enum answer { WHOLE, NONE, LATE };

static enum answer read_result(int fd, unsigned limit_s, struct mt_probe_result *result)
{
    int64_t end_ms = now_ms() + (int64_t)limit_s * 1000, left_ms;
    char *at = (char *)result;
    size_t length = 0;

    while (length < sizeof *result && (left_ms = end_ms - now_ms()) > 0) {
        struct pollfd wait = {.fd = fd, .events = POLLIN};
        ssize_t count;
        if (poll(&wait, 1, (int)left_ms) <= 0)
            continue;
        count = read(fd, at + length, sizeof *result - length);
        if (count <= 0)
            return NONE;
        length += (size_t)count;
    }
    return length == sizeof *result ? WHOLE : LATE;
}

/* The process is gone after this, with what it may have started. */
static int bury(pid_t child, enum answer answer)
{
    int status = 0;

    if (answer != NONE) /* else it is about to end by itself, and says how */
        kill(-child, SIGKILL);
    while (waitpid(child, &status, 0) < 0 && errno == EINTR)
        continue;
    kill(-child, SIGKILL);
    return status;
}

void mt_probe_run(const struct mt_probe *probe, struct mt_probe_result *result)
{
    int ends[2];
    pid_t child;
    enum answer answer;
    int status;

    memset(result, 0, sizeof *result);
    if (pipe(ends) < 0 || (child = fork()) < 0) {
        mt_probe_set(result, MT_PROBE_MISSING, "", "no process can be made: %s", strerror(errno));
        return;
    }
    if (child == 0) {
        close(ends[0]);
        fcntl(ends[1], F_SETFD, FD_CLOEXEC);
        check_in_child(probe, ends[1]);
    }
    close(ends[1]);
    answer = read_result(ends[0], probe->limit_s, result);
    close(ends[0]);
    status = bury(child, answer);
    result->text[sizeof result->text - 1] = result->mend[sizeof result->mend - 1] = '\0';
    if (answer == LATE)
        mt_probe_set(result, MT_PROBE_MISSING, "", "the check did not end within %u s",
                     probe->limit_s);
    else if (answer == NONE && WIFSIGNALED(status))
        mt_probe_set(result, MT_PROBE_MISSING, "", "the check was killed by signal %d (%s)",
                     WTERMSIG(status), strsignal(WTERMSIG(status)));
    else if (answer == NONE)
        mt_probe_set(result, MT_PROBE_MISSING, "", "the check ended without an answer");
}

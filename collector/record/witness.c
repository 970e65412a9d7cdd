/* See witness.h. The witness blocks all signals. The kernel lists those that it received as
 * pending, so it does not matter when the witness runs. */
#include "witness.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "io.h"

enum { TIMEOUT_NS = 20000000, FIELD_ARG_START = 48 };

/* Blanks the command line that `ps` and `pkill -f` show. */
static void forget_command_line(void)
{
    char text[2048], *at;
    int fd = mt_io_open("/proc/self/stat", O_RDONLY, 0), field;
    ssize_t count = fd < 0 ? -1 : mt_io_read_full(fd, text, sizeof text - 1);
    unsigned long long begin, end;

    if (fd >= 0)
        close(fd);
    text[count > 0 ? count : 0] = '\0';
    at = strrchr(text, ')'); /* after the name, which may contain anything: field 3 */
    for (field = 2; at && field < FIELD_ARG_START; field++)
        at = strchr(at + 1, ' ');
    if (!at)
        return;
    begin = strtoull(at, &at, 10);
    end = strtoull(at, &at, 10);
    if (begin && end > begin)
        memset((void *)(uintptr_t)begin, 0, (size_t)(end - begin));
}

static void forget_pending(void)
{
    static const struct timespec at_once = {0, 0};
    sigset_t all;

    sigfillset(&all);
    while (sigtimedwait(&all, NULL, &at_once) > 0)
        continue;
}

static void be_witness(int ask, int answer, pid_t parent)
{
    sigset_t all;
    char byte;
    int fd;

    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, NULL);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    prctl(PR_SET_NAME, "signal-witness");
    forget_command_line();
    for (fd = 0; fd < 256; fd++)
        if (fd != ask && fd != answer)
            close(fd);
    (void)!chdir("/");
    while (getppid() == parent && mt_io_read(ask, &byte, 1) == 1) {
        forget_pending();
        if (!mt_io_write(answer, &byte, 1))
            break;
    }
    _exit(0);
}

static bool make_pipe(int ends[2])
{
    if (pipe(ends) < 0)
        return false;
    fcntl(ends[0], F_SETFD, FD_CLOEXEC);
    fcntl(ends[1], F_SETFD, FD_CLOEXEC);
    return true;
}

void mt_witness_start(struct mt_witness *witness)
{
    pid_t parent = getpid();
    int ask[2], answer[2];

    witness->pid = 0;
    if (!make_pipe(ask))
        return;
    if (!make_pipe(answer)) {
        close(ask[0]);
        close(ask[1]);
        return;
    }
    witness->pid = fork();
    if (witness->pid == 0)
        be_witness(ask[0], answer[1], parent);
    close(ask[0]);
    close(answer[1]);
    witness->ask = ask[1];
    witness->answer = answer[0];
    if (witness->pid > 0)
        return;
    close(witness->ask);
    close(witness->answer);
    witness->pid = 0;
}

void mt_witness_stop(struct mt_witness *witness)
{
    if (!witness->pid)
        return;
    kill(witness->pid, SIGKILL);
    while (waitpid(witness->pid, NULL, 0) < 0 && errno == EINTR)
        continue;
    close(witness->ask);
    close(witness->answer);
    witness->pid = 0;
}

/* Signals pending for the whole process, from /proc: bit n - 1 is signal n. */
static uint64_t pending_of(pid_t pid)
{
    char path[64], line[256];
    uint64_t pending = 0;
    FILE *file;

    snprintf(path, sizeof path, "/proc/%d/status", (int)pid);
    file = fopen(path, "re");
    while (file && fgets(line, sizeof line, file))
        if (strncmp(line, "ShdPnd:", 7) == 0)
            pending = strtoull(line + 7, NULL, 16);
    if (file)
        fclose(file);
    return pending;
}

bool mt_witness_saw(const struct mt_witness *witness, int number)
{
    static const struct timespec patience = {0, TIMEOUT_NS};
    uint64_t pending;
    char byte = 0;

    if (!witness->pid)
        return false;
    nanosleep(&patience, NULL);
    pending = pending_of(witness->pid);
    if (pending && mt_io_write(witness->ask, &byte, 1))
        (void)!mt_io_read(witness->answer, &byte, 1);
    return number > 0 && number <= 64 && (pending >> (number - 1) & 1);
}

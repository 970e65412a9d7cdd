/* memtrace-ask-cudnn LIBRARY DEVICE PROCESS: answers the questions of the simulated cuDNN with a
 * real one. It is a separate process, because the real library has the same names as the simulated
 * one, and its failures must not harm the program. Standard input is the socket to the program. The
 * process ends when PROCESS (the program) ends, and if a question takes too long. */
#include <dirent.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "cudnn_heuristics.h"

enum { LOOK_FOR_PROGRAM_MS = 1000, LOAD_S = 60, QUESTION_S = 20, USAGE = 2 };

/* Closes files that were inherited from the program. */
static void close_others(void)
{
    DIR *folder = opendir("/proc/self/fd");
    const struct dirent *entry;

    while (folder != NULL && (entry = readdir(folder)) != NULL) {
        int fd = atoi(entry->d_name);
        if (fd > STDERR_FILENO && fd != dirfd(folder)) {
            (void)close(fd);
        }
    }
    if (folder != NULL) {
        closedir(folder);
    }
}

/* The program blocked all signals while it started this process. Signals of its terminal are not
 * meant for this process. */
static void set_signals(void)
{
    sigset_t none;

    sigemptyset(&none);
    (void)signal(SIGALRM, SIG_DFL);
    (void)signal(SIGINT, SIG_IGN);
    (void)signal(SIGQUIT, SIG_IGN);
    (void)signal(SIGHUP, SIG_IGN);
    (void)sigprocmask(SIG_SETMASK, &none, NULL);
}

static bool is_alive(pid_t process)
{
    return kill(process, 0) == 0 || errno == EPERM;
}

/* A child of the program may keep the other end open. */
static bool wait_for_question(pid_t program)
{
    struct pollfd wait = {.fd = CUDNN_ASKER_SOCKET, .events = POLLIN};

    while (is_alive(program)) {
        if (poll(&wait, 1, LOOK_FOR_PROGRAM_MS) > 0) {
            return true;
        }
    }
    return false;
}

static bool is_sound(const struct cudnn_question *question)
{
    const struct convolution *c = &question->convolution;
    const struct convolution_tensor *tensors[] = {&c->x, &c->w, &c->y};

    for (size_t i = 0; i < sizeof tensors / sizeof tensors[0]; i++) {
        if (tensors[i]->dimensions < 3 || tensors[i]->dimensions > MAX_CONVOLUTION_DIMENSIONS) {
            return false;
        }
    }
    return question->mark == CUDNN_QUESTION_MARK && (unsigned)c->kind <= CONVOLUTION_FILTER;
}

static bool serve(struct cudnn_heuristics *heuristics)
{
    struct cudnn_question question;
    struct cudnn_answer answer = {.mark = CUDNN_ANSWER_MARK};

    if (recv(CUDNN_ASKER_SOCKET, &question, sizeof question, 0) != (ssize_t)sizeof question) {
        return false;
    }
    (void)alarm(QUESTION_S);
    answer.number = question.number;
    answer.state = heuristics != NULL ? CUDNN_ANSWERED : CUDNN_CANNOT_PLAN;
    if (heuristics != NULL && is_sound(&question)) {
        answer.count =
            cudnn_heuristics_ask(heuristics, &question.convolution, answer.configurations);
    }
    (void)alarm(0);
    return send(CUDNN_ASKER_SOCKET, &answer, sizeof answer, MSG_NOSIGNAL) == (ssize_t)sizeof answer;
}

int main(int count, char **arguments)
{
    pid_t program = count == 4 ? (pid_t)atol(arguments[3]) : 0;

    if (program <= 0) {
        return USAGE;
    }
    close_others();
    set_signals();
    (void)!chdir("/");
    (void)alarm(LOAD_S);
    struct cudnn_heuristics *heuristics = cudnn_heuristics_open(arguments[1], arguments[2]);
    (void)alarm(0);
    while (wait_for_question(program) && serve(heuristics)) {
        continue;
    }
    return 0;
}

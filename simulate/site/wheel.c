/* The PyTorch that a Python would import, and the cuDNN that this PyTorch would load. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "buf.h"
#include "io.h"
#include "monotonic_clock.h"
#include "python_of_command.h"
#include "status.h"
#include "util.h"
#include "wheel.h"

enum { MAX_OUTPUT_BYTES = 64 << 10, PART_BYTES = 4096, GRACE_MS = 5000, CANNOT_RUN = 127 };

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

/* The signals that end this process. They are blocked while the Python runs, and received from a
 * descriptor. */
struct signals {
    sigset_t waited, before;
    struct sigaction child_before;
    int fd, caught; /* caught: a number; 0: none */
};

/* Signals that are ignored (nohup) stay ignored. */
static bool hold_signals(struct signals *signals)
{
    static const int ending[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};
    struct sigaction usual = {.sa_handler = SIG_DFL}, found;

    signals->caught = 0;
    sigemptyset(&signals->waited);
    sigaddset(&signals->waited, SIGCHLD);
    for (size_t i = 0; i < MT_ARRAY_LEN(ending); i++)
        if (sigaction(ending[i], NULL, &found) == 0 && found.sa_handler != SIG_IGN)
            sigaddset(&signals->waited, ending[i]);
    sigaction(SIGCHLD, &usual, &signals->child_before); /* if ignored, it is not sent */
    sigprocmask(SIG_BLOCK, &signals->waited, &signals->before);
    signals->fd = signalfd(-1, &signals->waited, SFD_CLOEXEC | SFD_NONBLOCK);
    return signals->fd >= 0;
}

/* The signal that was caught takes effect here. */
static void release_signals(struct signals *signals)
{
    if (signals->fd >= 0)
        (void)mt_io_close(signals->fd);
    if (signals->caught)
        (void)raise(signals->caught);
    sigaction(SIGCHLD, &signals->child_before, NULL);
    sigprocmask(SIG_SETMASK, &signals->before, NULL);
}

struct child {
    pid_t pid;
    int output, failed; /* ends of pipes: for reading, or in the new process for writing */
};

/* Runs in the new process, which becomes the leader of a process group. Sends errno through
 * `failed`, which exec closes. */
static void become(const struct mt_python_choice *python, char *const *arguments,
                   const struct signals *signals, const struct child *self)
{
    int nothing = open("/dev/null", O_RDWR | O_CLOEXEC);

    (void)setpgid(0, 0);
    sigaction(SIGCHLD, &signals->child_before, NULL);
    sigprocmask(SIG_SETMASK, &signals->before, NULL);
    if (nothing >= 0 && dup2(nothing, STDIN_FILENO) >= 0 &&
        dup2(self->output, STDOUT_FILENO) >= 0 &&
        (python->runner || dup2(nothing, STDERR_FILENO) >= 0))
        execv(python->path, arguments);
    int why = errno;
    (void)!write(self->failed, &why, sizeof why);
    _exit(CANNOT_RUN);
}

/* Returns 0, or the errno of exec. */
static int wait_for_exec(const struct child *child)
{
    int why = 0;
    ssize_t got = mt_io_read(child->failed, &why, sizeof why);

    if (got != sizeof why)
        return 0;
    while (waitpid(child->pid, NULL, 0) < 0 && errno == EINTR)
        continue;
    return why;
}

/* Returns 0, or an errno. */
static int fork_on(const struct mt_python_choice *python, char *const *arguments,
                   const struct signals *signals, const int pipes[4], struct child *child)
{
    const struct child self = {0, pipes[1], pipes[3]};
    pid_t parent = getpid();

    *child = (struct child){fork(), pipes[0], pipes[2]};
    if (child->pid == 0) {
        (void)prctl(PR_SET_PDEATHSIG, (unsigned long)SIGTERM, 0UL, 0UL, 0UL);
        if (getppid() == parent) /* otherwise it has died before */
            become(python, arguments, signals, &self);
        _exit(CANNOT_RUN);
    }
    return child->pid < 0 ? errno : 0;
}

static void close_if_open(int *fd)
{
    if (*fd >= 0)
        (void)mt_io_close(*fd);
    *fd = -1;
}

/* Returns 0, or an errno. On success, the caller closes child->output. */
static int spawn(const struct mt_python_choice *python, char *const *arguments,
                 const struct signals *signals, struct child *child)
{
    int pipes[4] = {-1, -1, -1, -1};
    int failure = pipe2(pipes, O_CLOEXEC) < 0 || pipe2(pipes + 2, O_CLOEXEC) < 0 ||
                          fcntl(pipes[0], F_SETFL, O_NONBLOCK) < 0
                      ? errno
                      : 0;

    if (!failure)
        failure = fork_on(python, arguments, signals, pipes, child);
    close_if_open(&pipes[1]);
    close_if_open(&pipes[3]);
    if (!failure)
        failure = wait_for_exec(child);
    close_if_open(&pipes[2]);
    if (failure)
        close_if_open(&pipes[0]);
    return failure;
}

/* Returns 0, or an errno. */
static int start(const struct mt_python_choice *python, const char *script,
                 const struct signals *signals, struct child *child)
{
    struct mt_buf line = {0};

    add_one_line(&line, script);
    char **arguments = line.failed ? NULL : new_arguments(python, line.data);
    int failure = arguments ? spawn(python, arguments, signals, child) : ENOMEM;
    free(arguments);
    mt_buf_release(&line);
    return failure;
}

/* Reads what is there. Sets child->output to -1 at the end. Returns false if it is too much. */
static bool read_part(struct child *child, struct mt_buf *output)
{
    char part[PART_BYTES];
    ssize_t got = 1;

    while (child->output >= 0 && output->length <= MAX_OUTPUT_BYTES) {
        got = mt_io_read(child->output, part, sizeof part);
        if (got > 0)
            mt_buf_add(output, part, (size_t)got);
        else if (got < 0 && errno == EAGAIN)
            return true;
        else
            close_if_open(&child->output);
    }
    return output->length <= MAX_OUTPUT_BYTES;
}

/* Does not take its status, so that its number still identifies the process group. */
static bool has_ended(const struct child *child)
{
    siginfo_t info = {.si_pid = 0};

    return waitid(P_PID, (id_t)child->pid, &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
           info.si_pid == child->pid;
}

/* Sends a signal to the group, and gives it some time. The second signal takes effect at once. */
static void take_signals(struct signals *signals, const struct child *child, int64_t *until_ms)
{
    struct signalfd_siginfo info;

    while (mt_io_read(signals->fd, &info, sizeof info) == (ssize_t)sizeof info) {
        if (info.ssi_signo == SIGCHLD)
            continue;
        int64_t now = (int64_t)mt_now_ms(), later = signals->caught ? now : now + GRACE_MS;
        *until_ms = later < *until_ms ? later : *until_ms;
        signals->caught = (int)info.ssi_signo;
        (void)kill(-child->pid, signals->caught);
    }
}

enum outcome { ENDED, TOO_LATE, TOO_LONG };

/* A process that outlives the Python may keep the pipe open. */
static enum outcome read_answer(struct child *child, struct signals *signals, int64_t until_ms,
                                struct mt_buf *output)
{
    for (;;) {
        struct pollfd waits[] = {{.fd = signals->fd, .events = POLLIN},
                                 {.fd = child->output, .events = POLLIN}};
        bool is_over = has_ended(child); /* before the last read */

        if (!read_part(child, output))
            return TOO_LONG;
        if (is_over)
            return ENDED;
        int64_t left_ms = until_ms - (int64_t)mt_now_ms();
        if (left_ms <= 0)
            return TOO_LATE;
        if (child->output < 0)
            waits[1].fd = -1;
        if (poll(waits, MT_ARRAY_LEN(waits), (int)left_ms) > 0 && waits[0].revents)
            take_signals(signals, child, &until_ms);
    }
}

static enum mt_status run(const struct mt_python_choice *python, const char *script, int timeout_s,
                          struct signals *signals, struct mt_buf *output, struct mt_error *error)
{
    struct child child = {.output = -1};
    int failure = start(python, script, signals, &child);

    if (failure)
        return mt_fail(error, MT_ERR_IO, MT_NO_OFFSET, "cannot run %.150s: %s", python->path,
                       strerror(failure));
    enum outcome outcome =
        read_answer(&child, signals, (int64_t)mt_now_ms() + (int64_t)timeout_s * 1000, output);
    if (outcome != ENDED || signals->caught)
        (void)kill(-child.pid, SIGKILL);
    close_if_open(&child.output);
    while (waitpid(child.pid, NULL, 0) < 0 && errno == EINTR)
        continue;
    if (outcome == TOO_LONG)
        return mt_fail(error, MT_ERR_IO, MT_NO_OFFSET,
                       "%.120s printed more than %d KiB; it may not be a working Python",
                       python->path, MAX_OUTPUT_BYTES >> 10);
    if (outcome == TOO_LATE)
        return mt_fail(error, MT_ERR_IO, MT_NO_OFFSET,
                       "%.120s did not report the folder of its packages within %d s", python->path,
                       timeout_s);
    return output->failed ? mt_fail(error, MT_ERR_MEMORY, MT_NO_OFFSET, "no memory") : MT_OK;
}

enum mt_status mt_python_probe(const struct mt_python_choice *python, const char *script,
                               int timeout_s, struct mt_buf *output, struct mt_error *error)
{
    struct signals signals;
    enum mt_status status = hold_signals(&signals)
                                ? run(python, script, timeout_s, &signals, output, error)
                                : mt_io_fail(error, MT_ERR_IO, "no descriptor for signals");

    release_signals(&signals);
    return status;
}

#define GRAPHS "libcudnn_graph.so.9"

static bool is_there(char path[PATH_MAX], const char *folder, int length, const char *below)
{
    int written = snprintf(path, PATH_MAX, "%.*s/%s/" GRAPHS, length, folder, below);

    return written > 0 && written < PATH_MAX && !strpbrk(path, ":;") && access(path, R_OK) == 0;
}

void mt_wheel_cudnn(const struct mt_wheel *wheel, char path[PATH_MAX])
{
    for (const char *at = wheel->packages; *at; at += *at == ':') {
        int length = (int)strcspn(at, ":");
        if (is_there(path, at, length, "nvidia/cudnn/lib"))
            return;
        at += length;
    }
    if (!is_there(path, wheel->folder, (int)strlen(wheel->folder), "lib"))
        path[0] = '\0';
}

enum { TIMEOUT_S = 60, TIMEOUT_RUNNER_S = 1800, MIN_PYTHON_MINOR = 9 };

/* Prints its results as lines "memtrace-KEY=VALUE", because a Python may print other text when it
 * starts. `''` in sys.path is the working folder, which `python FILE` does not search. */
static const char wheel_script[] =
    "import sys\n"
    "def say(key, value):\n"
    "    sys.stdout.write('\\nmemtrace-%s=%s\\n' % (key, value))\n"
    "say('version', '%d.%d' % sys.version_info[:2])\n"
    "say('executable', sys.executable)\n"
    "sys.path[:] = [p for p in sys.path if p]\n"
    "import os, re, importlib.util\n"
    "def find(name):\n"
    "    try:\n"
    "        return importlib.util.find_spec(name)\n"
    "    except Exception:\n"
    "        return None\n"
    "spec = find('torch')\n"
    "if spec and spec.origin:\n"
    "    folder = os.path.dirname(os.path.abspath(spec.origin))\n"
    "    say('torch', folder)\n"
    "    own = {os.path.dirname(folder): 1}\n"
    "    import sysconfig\n"
    "    library = os.path.realpath(sysconfig.get_path('stdlib'))\n"
    "    for path in map(os.path.abspath, sys.path):\n"
    "        real = os.path.realpath(path)\n"
    "        if os.path.isdir(path) and real != library and 'lib-dynload' not in real:\n"
    "            own[path] = 1\n"
    "    text = ''\n"
    "    for path in own:\n"
    "        if ':' not in path and '\\n' not in path and len(text + path) < 8000:\n"
    "            text += (':' if text else '') + path\n"
    "    say('packages', text)\n"
    "    with open(os.path.join(folder, 'version.py'), encoding='utf-8') as f:\n"
    "        text = f.read()\n"
    "    for key in '__version__', 'cuda', 'hip', 'xpu':\n"
    "        found = re.search(r'^%s\\b[^=\\n]*=\\s*[\\'\"]([^\\'\"]*)' % key, text, re.M)\n"
    "        if found:\n"
    "            say('torch-' + key, found.group(1))\n"
    "    import importlib.metadata\n"
    "    try:\n"
    "        requires = importlib.metadata.distribution('torch').requires or []\n"
    "    except Exception:\n"
    "        requires = []\n"
    "    for line in requires:\n"
    "        found = re.match(r'nvidia-(cudnn|nccl)-cu\\d+\\W*==\\s*([\\d.]+)', line)\n"
    "        if found:\n"
    "            say(found.group(1), found.group(2))\n"
    "elif find('jax'):\n"
    "    say('jax', 'yes')\n";

/* Finds the text after "memtrace-KEY=". Returns false if it is missing or does not fit. */
static bool find_value(const struct mt_buf *output, const char *key, char *value, size_t capacity)
{
    char line[64];

    snprintf(line, sizeof line, "\nmemtrace-%s=", key);
    const char *at = output->data ? strstr(output->data, line) : NULL;
    size_t length = at ? strcspn(at + strlen(line), "\n") : 0;
    value[0] = '\0';
    if (!at || length >= capacity)
        return false;
    memcpy(value, at + strlen(line), length);
    value[length] = '\0';
    return true;
}

/* "9.19.0.56" as 91900, with `major` = 10000; CUDA's "13.0" as 13000 with 1000 and 10. */
static int version_number(const char *text, int major, int minor)
{
    long parts[3] = {0};

    for (size_t i = 0; i < 3 && *text; i++) {
        char *end;
        parts[i] = strtol(text, &end, 10);
        if (end == text || parts[i] < 0 || parts[i] > 1000)
            return 0;
        text = *end == '.' ? end + 1 : "";
    }
    return (int)(parts[0] * major + parts[1] * minor + (minor > 10 ? parts[2] : 0));
}

static enum mt_status check_python(const struct mt_buf *output, const char *path,
                                   struct mt_wheel *wheel, struct mt_error *error)
{
    char *end;

    if (!find_value(output, "version", wheel->python_version, sizeof wheel->python_version) ||
        !find_value(output, "executable", wheel->python, sizeof wheel->python))
        return mt_fail(
            error, MT_ERR_IO, MT_NO_OFFSET,
            "%.120s did not report the folder of its packages; it may not be a working Python",
            path);
    long major = strtol(wheel->python_version, &end, 10);
    long minor = *end == '.' ? strtol(end + 1, NULL, 10) : 0;
    if (major < 3 || (major == 3 && minor < MIN_PYTHON_MINOR))
        return mt_fail(error, MT_ERR_UNSUPPORTED, MT_NO_OFFSET,
                       "%.120s is Python %s; a dry run needs 3.%d or newer", path,
                       wheel->python_version, MIN_PYTHON_MINOR);
    return MT_OK;
}

static enum mt_status check_built(const struct mt_buf *output, const struct mt_wheel *wheel,
                                  struct mt_error *error)
{
    char other[32];

    if (find_value(output, "torch-hip", other, sizeof other) ||
        find_value(output, "torch-xpu", other, sizeof other))
        return mt_fail(
            error, MT_ERR_UNSUPPORTED, MT_NO_OFFSET,
            "PyTorch %s is built for GPUs of another vendor; install a build for CUDA (no "
            "GPU is needed)",
            wheel->torch_version);
    if (!*wheel->cuda_version)
        return mt_fail(
            error, MT_ERR_UNSUPPORTED, MT_NO_OFFSET,
            "PyTorch %s in %.100s is built without CUDA; install a build for CUDA (no GPU "
            "is needed): pip install --force-reinstall torch",
            wheel->torch_version, wheel->folder);
    if (version_number(wheel->torch_version, 100, 1) < 204)
        return mt_fail(error, MT_ERR_UNSUPPORTED, MT_NO_OFFSET,
                       "PyTorch %s is too old for a dry run; it needs 2.4 or newer: pip "
                       "install --upgrade torch",
                       wheel->torch_version);
    if (wheel->cuda < 12000)
        return mt_fail(
            error, MT_ERR_UNSUPPORTED, MT_NO_OFFSET,
            "PyTorch %s is built for CUDA %s; a dry run needs a build for CUDA 12 or newer",
            wheel->torch_version, wheel->cuda_version);
    return MT_OK;
}

static enum mt_status check_torch(const struct mt_buf *output, struct mt_wheel *wheel,
                                  struct mt_error *error)
{
    char text[64];

    if (!find_value(output, "torch", wheel->folder, sizeof wheel->folder)) {
        bool has_jax = find_value(output, "jax", text, sizeof text);
        return mt_fail(error, MT_ERR_USAGE, MT_NO_OFFSET,
                       "%.100s has %s; a dry run needs PyTorch: pip install torch", wheel->python,
                       has_jax ? "JAX and no PyTorch" : "no PyTorch");
    }
    if (wheel->folder[0] != '/')
        return mt_fail(error, MT_ERR_IO, MT_NO_OFFSET,
                       "%.100s reports a folder of PyTorch that is not an absolute path",
                       wheel->python);
    if (!find_value(output, "torch-__version__", wheel->torch_version, sizeof wheel->torch_version))
        return mt_fail(error, MT_ERR_UNSUPPORTED, MT_NO_OFFSET,
                       "%.150s/version.py has no version, so it is not an installed PyTorch",
                       wheel->folder);
    (void)find_value(output, "packages", wheel->packages, sizeof wheel->packages);
    (void)find_value(output, "torch-cuda", wheel->cuda_version, sizeof wheel->cuda_version);
    wheel->cuda = version_number(wheel->cuda_version, 1000, 10);
    if (find_value(output, "cudnn", text, sizeof text))
        wheel->cudnn = version_number(text, 10000, 100);
    if (find_value(output, "nccl", text, sizeof text))
        wheel->nccl = version_number(text, 10000, 100);
    return check_built(output, wheel, error);
}

enum mt_status mt_wheel_read(const struct mt_buf *output, const char *path, struct mt_wheel *wheel,
                             struct mt_error *error)
{
    *wheel = (struct mt_wheel){0};
    enum mt_status status = check_python(output, path, wheel, error);
    return status ? status : check_torch(output, wheel, error);
}

enum mt_status mt_wheel_find(const struct mt_python_choice *choice, struct mt_wheel *wheel,
                             struct mt_error *error)
{
    struct mt_buf output = {0};

    *wheel = (struct mt_wheel){0};
    enum mt_status status = mt_python_probe(
        choice, wheel_script, choice->runner ? TIMEOUT_RUNNER_S : TIMEOUT_S, &output, error);
    if (!status)
        status = mt_wheel_read(&output, choice->path, wheel, error);
    mt_buf_release(&output);
    return status;
}

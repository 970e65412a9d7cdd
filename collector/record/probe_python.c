/* Checks of PyTorch and Python; see probes.h. They record a short run of the python3 in PATH. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "environment.h"
#include "io.h"
#include "probes.h"
#include "torch_parts.h"
#include "trace.h"

extern char **environ;

/* Stores what `python3 -c script` prints to `stream`, without the last newline. Returns false if
 * there is no such program or it fails. */
static bool ask_python(const char *script, char **environment, int stream, char *text,
                       size_t capacity)
{
    size_t length = 0;
    ssize_t count;
    int ends[2], status = -1;
    pid_t child;

    if (pipe(ends) < 0 || (child = fork()) < 0)
        return false;
    if (child == 0) {
        dup2(ends[1], stream);
        close(ends[0]);
        close(ends[1]);
        environ = environment;
        execlp("python3", "python3", "-c", script, (char *)NULL);
        _exit(127);
    }
    close(ends[1]);
    while (length + 1 < capacity &&
           (count = mt_io_read(ends[0], text + length, capacity - 1 - length)) > 0)
        length += (size_t)count;
    text[length] = '\0';
    text[strcspn(text, "\n")] = '\0';
    close(ends[0]);
    while (waitpid(child, &status, 0) < 0 && errno == EINTR)
        continue;
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

/* "VERSION|CUDA|GPU?|functions of libc10 that the collector replaces" */
static const char torch_script[] =
    "import torch, ctypes, glob, os\n"
    "folder = os.path.join(os.path.dirname(torch.__file__), 'lib')\n"
    "c10 = ctypes.CDLL(os.path.join(folder, 'libc10.so'))\n"
    "name = '_ZN3c1027reportMemoryUsageToProfilerEPv%sNS_6DeviceE'\n"
    "known = any(hasattr(c10, name % kinds) for kinds in ('l', 'lll', 'lmm'))\n"
    "print(torch.__version__, torch.version.cuda or '', int(torch.cuda.is_available()),\n"
    "      int(known), sep='|')\n";

struct torch_facts {
    char version[64], cuda[32];
    int usable, known;
};

static bool read_facts(char *text, struct torch_facts *facts)
{
    char *at = strchr(text, '|');

    memset(facts, 0, sizeof *facts);
    if (!at)
        return false;
    *at++ = '\0';
    char *cuda_end = strchr(at, '|');
    if (!cuda_end)
        return false;
    *cuda_end++ = '\0';
    snprintf(facts->version, sizeof facts->version, "%.60s", text);
    snprintf(facts->cuda, sizeof facts->cuda, "%.30s", at);
    return sscanf(cuda_end, "%d|%d", &facts->usable, &facts->known) == 2;
}

void mt_probe_pytorch(struct mt_probe_result *result)
{
    struct torch_facts facts;
    char text[256];

    if (!ask_python(torch_script, environ, STDOUT_FILENO, text, sizeof text) ||
        !read_facts(text, &facts))
        mt_probe_set(result, MT_PROBE_DEGRADED, "if you use PyTorch, activate its environment",
                     "python3 cannot import PyTorch");
    else if (!*facts.cuda)
        mt_probe_set(result, MT_PROBE_DEGRADED, "install a build of PyTorch for CUDA",
                     "PyTorch %s is built without CUDA", facts.version);
    else if (!facts.known)
        mt_probe_set(result, MT_PROBE_DEGRADED, "",
                     "PyTorch %s reports its memory in an unknown way: traces lack its blocks",
                     facts.version);
    else if (!facts.usable)
        mt_probe_set(result, MT_PROBE_DEGRADED, "see 'driver' above",
                     "PyTorch %s for CUDA %s finds no GPU", facts.version, facts.cuda);
    else if (!mt_torch_version_find(facts.version))
        mt_probe_set(result, MT_PROBE_DEGRADED, "",
                     "PyTorch %s, CUDA %s: memtrace does not know this release; if its allocator "
                     "differs from known ones, traces have rounded sizes and no segments",
                     facts.version, facts.cuda);
    else
        mt_probe_set(result, MT_PROBE_OK, "", "PyTorch %s, CUDA %s: its allocator is supported",
                     facts.version, facts.cuda);
}

/* Script: reports an allocation like PyTorch, from within memtrace_doctor(). */
static const char stack_script[] =
    "import ctypes, platform\n"
    "def memtrace_doctor():\n"
    "    f = ctypes.CDLL(None)._ZN3c1027reportMemoryUsageToProfilerEPvlmmNS_6DeviceE\n"
    "    f.argtypes = [ctypes.c_void_p, ctypes.c_long, ctypes.c_size_t, ctypes.c_size_t,\n"
    "                  ctypes.c_uint16]\n"
    "    f.restype = None\n"
    "    for _ in range(3):\n"
    "        f(4096, 1024, 1024, 1024, 1)\n"
    "        f(4096, -1024, 0, 1024, 1)\n"
    "memtrace_doctor()\n";

/* Returns true if an allocation in the trace comes from that function. */
static bool has_stack(const char *path)
{
    struct mt_source *source = NULL;
    struct mt_event_batch batch;
    struct mt_error error;
    bool found = false;

    if (mt_trace_open(path, &source, &error) != MT_OK)
        return false;
    while (!found && mt_source_next(source, &batch, &error) == MT_OK)
        for (size_t i = 0; i < batch.count && !found; i++) {
            const struct mt_symbols *symbols = &source->symbols;
            uint32_t stack = batch.events[i].stack;
            if (batch.events[i].kind != MT_EVENT_ALLOC || stack >= symbols->stack_count)
                continue;
            uint32_t frame = symbols->stacks[stack].frame;
            found = frame < symbols->frame_count &&
                    !strcmp(mt_symbols_text(symbols, symbols->frames[frame].function),
                            "memtrace_doctor");
        }
    mt_source_close(source);
    return found;
}

/* Makes a folder among the temporary files. Returns its descriptor, because another folder may get
 * its name if other users may write to $TMPDIR. Returns -1 and sets errno on failure. */
static int make_folder(char folder[PATH_MAX])
{
    const char *parent = getenv("TMPDIR");
    int length = snprintf(folder, PATH_MAX, "%s/memtrace-doctor-XXXXXX",
                          parent && *parent ? parent : "/tmp");

    errno = ENAMETOOLONG;
    if (length >= PATH_MAX || !mkdtemp(folder))
        return -1;
    int fd = mt_io_open(folder, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
    int why = errno;
    if (fd < 0)
        (void)rmdir(folder);
    errno = why;
    return fd;
}

/* Records a short run of python3 in a temporary folder. If the stack is missing, returns false and
 * sets `said` to memtrace's messages. */
static bool record_python(const char *library, char *said, size_t capacity)
{
    struct mt_record_settings settings = {.library = library,
                                          .manifest = "",
                                          .python_stacks = true,
                                          .phases = "none",
                                          .follow = true};
    char folder[PATH_MAX], path[PATH_MAX + 32];
    struct mt_arena arena = {0};
    int opened = make_folder(folder);

    if (opened < 0) {
        snprintf(said, capacity, "cannot create a temporary folder: %s", strerror(errno));
        return false;
    }
    snprintf(path, sizeof path, "%s/python.trace.zst", folder);
    settings.output = path;
    char **environment = mt_record_environment(environ, &settings, &arena);
    if (environment)
        (void)ask_python(stack_script, environment, STDERR_FILENO, said, capacity);
    bool found = has_stack(path);
    (void)unlinkat(opened, "python.trace.zst", 0);
    (void)mt_io_close(opened);
    (void)rmdir(folder);
    mt_arena_release(&arena);
    return found;
}

void mt_probe_python(struct mt_probe_result *result)
{
    char version[64], said[240] = "", library[PATH_MAX];
    struct mt_error error = {.offset = MT_NO_OFFSET};

    if (!ask_python("import platform; print(platform.python_implementation(), "
                    "platform.python_version())",
                    environ, STDOUT_FILENO, version, sizeof version))
        mt_probe_set(result, MT_PROBE_DEGRADED, "", "python3 is not in PATH");
    else if (mt_collector_library(MT_COLLECTOR_NAME, library, &error) != MT_OK)
        mt_probe_set(result, MT_PROBE_MISSING, "see 'collector' above", "%s", error.text);
    else if (record_python(library, said, sizeof said))
        mt_probe_set(result, MT_PROBE_OK, "", "%s: tested, its frames can be read", version);
    else
        mt_probe_set(result, MT_PROBE_DEGRADED, "use CPython 3.9 to 3.15, or --stacks native",
                     "%s: its frames cannot be read%s%s", version, *said ? ": " : "", said);
}

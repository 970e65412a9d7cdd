/* Checks of PyTorch and Python; see probe.h. They ask the python3 in PATH. */
#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "probe.h"

enum { FIRST_MINOR = 9, LAST_MINOR = 14 };

/* What `python3 -c script` prints, without the last newline; false if there is
 * no such program or it fails. */
static bool ask_python(const char *script, char *text, size_t capacity)
{
    size_t length = 0;
    ssize_t count;
    int ends[2], status = -1;
    pid_t child;

    if (pipe(ends) < 0 || (child = fork()) < 0)
        return false;
    if (child == 0) {
        dup2(ends[1], STDOUT_FILENO);
        close(ends[0]);
        close(ends[1]);
        execlp("python3", "python3", "-c", script, (char *)NULL);
        _exit(127);
    }
    close(ends[1]);
    while (length + 1 < capacity &&
           (count = read(ends[0], text + length, capacity - 1 - length)) > 0)
        length += (size_t)count;
    text[length] = '\0';
    text[strcspn(text, "\n")] = '\0';
    close(ends[0]);
    while (waitpid(child, &status, 0) < 0 && errno == EINTR)
        continue;
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

/* "VERSION|CUDA|GPU?|functions of libc10 that the collector stands before" */
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
    char *at = strchr(text, '|'), *cuda_end;

    memset(facts, 0, sizeof *facts);
    if (!at)
        return false;
    *at++ = '\0';
    cuda_end = strchr(at, '|');
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

    if (!ask_python(torch_script, text, sizeof text) || !read_facts(text, &facts))
        mt_probe_set(result, MT_PROBE_DEGRADED,
                     "activate the environment that has it, if you use it",
                     "python3 has no PyTorch that can be imported");
    else if (!*facts.cuda)
        mt_probe_set(result, MT_PROBE_DEGRADED, "install a build for CUDA",
                     "PyTorch %s is built without CUDA", facts.version);
    else if (!facts.known)
        mt_probe_set(result, MT_PROBE_DEGRADED, "",
                     "PyTorch %s reports its memory in a way that is not known: blocks are missing",
                     facts.version);
    else if (!facts.usable)
        mt_probe_set(result, MT_PROBE_DEGRADED, "see 'driver' above",
                     "PyTorch %s for CUDA %s finds no GPU", facts.version, facts.cuda);
    else
        mt_probe_set(result, MT_PROBE_OK, "", "PyTorch %s, CUDA %s", facts.version, facts.cuda);
}

void mt_probe_python(struct mt_probe_result *result)
{
    int major = 0, minor = 0;
    char text[256], name[64] = "";

    if (!ask_python("import sys; print(sys.version_info[0], sys.version_info[1], "
                    "sys.implementation.name)",
                    text, sizeof text) ||
        sscanf(text, "%d %d %63s", &major, &minor, name) != 3)
        mt_probe_set(result, MT_PROBE_DEGRADED, "", "there is no python3 in PATH");
    else if (strcmp(name, "cpython") != 0 || major != 3 || minor < FIRST_MINOR ||
             minor > LAST_MINOR)
        mt_probe_set(result, MT_PROBE_DEGRADED, "use CPython 3.9 to 3.14, or --stacks native",
                     "%s %d.%d: its frames are not known, stacks will lack Python", name, major,
                     minor);
    else
        mt_probe_set(result, MT_PROBE_OK, "", "CPython %d.%d", major, minor);
}

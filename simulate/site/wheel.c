/* The PyTorch that a Python would import, and the cuDNN that this PyTorch would load. */
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "buf.h"
#include "python_of_command.h"
#include "python_probe.h"
#include "status.h"
#include "wheel.h"

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
static const char script[] =
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
        choice, script, choice->runner ? TIMEOUT_RUNNER_S : TIMEOUT_S, &output, error);
    if (!status)
        status = mt_wheel_read(&output, choice->path, wheel, error);
    mt_buf_release(&output);
    return status;
}

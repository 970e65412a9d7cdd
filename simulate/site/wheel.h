/* The PyTorch that a Python would import. */
#ifndef MT_WHEEL_H
#define MT_WHEEL_H

#include <limits.h>

#include "buf.h"
#include "python_of_command.h"
#include "status.h"

struct mt_wheel {
    char python[PATH_MAX];       /* sys.executable */
    char python_version[16];     /* "3.12" */
    char folder[PATH_MAX];       /* of the package: .../torch */
    char torch_version[64];      /* "2.11.0+cu130" */
    char cuda_version[16];       /* "13.0" */
    char packages[4 * PATH_MAX]; /* folders of packages, that of PyTorch first, joined by colons */
    int cuda, cudnn, nccl;       /* as numbers (wheel_versions.h); 0: not known */
};

/* Runs a Python to find its PyTorch, and reads the versions that it was built for. Does not import
 * PyTorch. Takes as long as Python takes to start, at most 60 s. A runner may install packages
 * first, so its limit is 30 minutes. MT_ERR_USAGE: there is no PyTorch; MT_ERR_UNSUPPORTED: the
 * PyTorch is built only for CPUs or for another CUDA, or it or its Python is too old. MT_ERR_IO:
 * the Python cannot be run or does not answer. */
enum mt_status mt_wheel_find(const struct mt_python_choice *choice, struct mt_wheel *wheel,
                             struct mt_error *error) MT_MUST_USE;

/* Reads what the Python at `path` printed: mt_wheel_find without running it. */
enum mt_status mt_wheel_read(const struct mt_buf *output, const char *path, struct mt_wheel *wheel,
                             struct mt_error *error) MT_MUST_USE;

/* The real cuDNN that a PyTorch would load. */

/* Sets `path` to its graph library. Searches where PyTorch does: in the package nvidia-cudnn beside
 * PyTorch or in another folder of packages, otherwise among PyTorch's libraries. Empty if it is not
 * there, or if its path cannot be part of a search path. */
void mt_wheel_cudnn(const struct mt_wheel *wheel, char path[PATH_MAX]);

/* Runs a short script in a Python. */

/* Appends to `output` what `python -B -c script` prints on standard output, until it ends. Does not
 * wait for processes that outlive it. The standard input of the Python is empty. The standard error
 * of a Python is discarded; that of a runner is shown, because a runner may report that it installs
 * packages, or which environment is missing. The Python is killed with its process group after
 * `timeout_s` seconds, and if it prints more than 64 KiB. A signal that would end this process
 * (Ctrl-C) also goes to the group and ends it first. If this process is killed, the Python gets
 * SIGTERM. MT_ERR_IO: it could not be started, or was killed. Ignores its exit status. */
enum mt_status mt_python_probe(const struct mt_python_choice *python, const char *script,
                               int timeout_s, struct mt_buf *output,
                               struct mt_error *error) MT_MUST_USE;

#endif

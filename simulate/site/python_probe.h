/* Runs a short script in a Python. */
#ifndef MT_PYTHON_PROBE_H
#define MT_PYTHON_PROBE_H

#include "buf.h"
#include "python_of_command.h"
#include "status.h"

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

/* Runs a Python for a moment. */
#ifndef MT_PYTHON_PROBE_H
#define MT_PYTHON_PROBE_H

#include "buf.h"
#include "python_of_command.h"
#include "status.h"

/* Adds what `python -B -c script` prints on standard output to `output`, at most 64 KiB. Its
 * standard input is empty. Its errors are dropped; those of a runner are not, because it may say
 * there that it installs packages, or which environment it misses. After `timeout_s` it is killed,
 * with its children. MT_ERR_IO: it cannot be started, or was killed; its exit status does not
 * matter. */
enum mt_status mt_python_probe(const struct mt_python_choice *python, const char *script,
                               int timeout_s, struct mt_buf *output,
                               struct mt_error *error) MT_MUST_USE;

#endif

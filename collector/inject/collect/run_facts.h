/* The position of this process among the ranks of its job (identity.h). It is the argument of
 * memtrace_set_mesh, otherwise the value of MEMTRACE_MESH.
 *
 *     int memtrace_set_mesh(const char *mesh);
 *
 * This function is exported for programs that know their position only after their first CUDA call,
 * when the environment has already been read. In PyTorch, torch.cuda.set_device and
 * init_process_group come before init_device_mesh. The function is in the global scope of every
 * program that `memtrace record` started: dlsym finds it, or ctypes.CDLL(None) in Python, and
 * nothing has to be linked or installed. An NVTX mark with an agreed text would need a package in
 * the program and could not report an invalid text. Any thread may call the function, but signal
 * handlers must not. It copies `mesh` and does not start a recording. Each call replaces the
 * position set by earlier calls. Returns 0, or -1 with one line for the user if `mesh` is
 * malformed; the previous value then stays. */
#ifndef MT_INJECT_RUN_FACTS_H
#define MT_INJECT_RUN_FACTS_H

#include "inject_source.h"

/* Records later calls of memtrace_set_mesh. */
extern const struct mt_inject_source mt_mesh_source;

#endif

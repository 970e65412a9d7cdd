/* The position of this process among the ranks of its job (mesh.h): the argument of
 * memtrace_set_mesh, otherwise MEMTRACE_MESH.
 *
 *     int memtrace_set_mesh(const char *mesh);
 *
 * An exported function, for programs that learn their position only after the first CUDA call,
 * when the environment has been read: torch.cuda.set_device and init_process_group come before
 * init_device_mesh. It is in the global scope of a program that `memtrace record` started, so
 * dlsym, or ctypes.CDLL(None) in Python, finds it, and nothing has to be linked or installed. An
 * NVTX mark with an agreed text would need a package in the program and could not report an
 * invalid text. Any thread may call it, but no signal handler. It copies `mesh` and does not
 * start a recording. The last call replaces earlier ones. Returns 0, or -1 with one line for the
 * user if `mesh` is malformed; the previous value then stays. */
#ifndef MT_INJECT_RUN_MESH_H
#define MT_INJECT_RUN_MESH_H

#include "inject_source.h"

/* Records the fact `mesh` when the recording begins. */
void mt_run_mesh_tell(void);

/* Records later calls of memtrace_set_mesh. */
extern const struct mt_inject_source mt_mesh_source;

#endif

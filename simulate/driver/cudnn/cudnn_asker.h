/* The process that queries the program's own cuDNN (simulate/asker). It starts with the first
 * question and ends with the program. It is not a child of the program, so it does not affect the
 * program's wait() and SIGCHLD, unless the program adopts orphans (PR_SET_CHILD_SUBREAPER). A
 * forked child starts its own asker. */
#ifndef MT_CUDNN_ASKER_H
#define MT_CUDNN_ASKER_H

#include <stdbool.h>

#include "cudnn_question.h"

/* The environment variables with the path of the asker and the path of the graph library that it
 * loads. If one of them is not set, there is no asker. */
#define SIM_ASKER_PROGRAM "MEMTRACE_DRY_RUN_ASKER"
#define SIM_ASKER_LIBRARY "MEMTRACE_DRY_RUN_CUDNN"

/* Gets cuDNN's proposals for `convolution`. The first question takes 0.5 s, further ones 2 ms.
 * Returns false if there is no asker, or if no valid answer comes in time. After three failures the
 * asker is not used again. Any thread may call it; only one question is open at a time. */
bool sim_ask_cudnn(const struct convolution *convolution, struct cudnn_answer *answer);

#endif

/* The process that asks the program's own cuDNN (simulate/asker). It starts at the first question
 * and ends with the program. It is not the program's child: no wait and no SIGCHLD of the program
 * is about it, unless the program adopts orphans (PR_SET_CHILD_SUBREAPER). A child of fork starts
 * one of its own. */
#ifndef MT_CUDNN_ASKER_H
#define MT_CUDNN_ASKER_H

#include <stdbool.h>

#include "cudnn_question.h"

/* Which program asks, and the library of graphs that it loads. Without one of them nobody is
 * asked. */
#define SIM_ASKER_PROGRAM "MEMTRACE_DRY_RUN_ASKER"
#define SIM_ASKER_LIBRARY "MEMTRACE_DRY_RUN_CUDNN"

/* What cuDNN proposes for `convolution`. The first question takes 0.5 s, further ones 2 ms. False:
 * there is nobody to ask, or no sound answer in time; after three failures no more is asked. Safe
 * to call from several threads, one of which asks at a time. */
bool sim_ask_cudnn(const struct convolution *convolution, struct cudnn_answer *answer);

#endif

/* The heuristics of a real cuDNN, for a device that is described but not present. */
#ifndef MT_CUDNN_HEURISTICS_H
#define MT_CUDNN_HEURISTICS_H

#include <stdbool.h>

#include "cudnn_question.h"

struct cudnn_heuristics;

/* Loads the library of graphs, libcudnn_graph.so.9, which loads its other parts itself, and
 * describes the device to it in the JSON text of CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION. 0.2 to
 * 0.5 s and 70 to 170 MB, by its version. NULL: it cannot be loaded, does not have the functions,
 * or does not take descriptions of devices. One for each process; it stays until the process
 * ends. */
struct cudnn_heuristics *cudnn_heuristics_open(const char *library, const char *device_json);

/* The configurations that cuDNN would try for `convolution`, the best one first; configurations
 * without a known workspace are omitted. 1 ms, 0.4 s for the first one of a kind. 0: none, or cuDNN
 * refused the convolution. */
uint32_t cudnn_heuristics_ask(struct cudnn_heuristics *heuristics,
                              const struct convolution *convolution,
                              struct cudnn_configuration found[MAX_CUDNN_CONFIGURATIONS]);

#endif

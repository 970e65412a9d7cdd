/* Queries the heuristics of a real cuDNN for a device that is described but not present. */
#ifndef MT_CUDNN_HEURISTICS_H
#define MT_CUDNN_HEURISTICS_H

#include <stdbool.h>

#include "cudnn_question.h"

struct cudnn_heuristics;

/* Loads the library of graphs, libcudnn_graph.so.9, which loads its other parts itself, and
 * describes the device to it in the JSON text of CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION.
 * Takes 0.2 to 0.5 s and 70 to 170 MB, depending on the version. NULL: it cannot be loaded, does
 * not have the functions, or does not take descriptions of devices. A process may open it only
 * once, and it stays until the process ends. */
struct cudnn_heuristics *cudnn_heuristics_open(const char *library, const char *device_json);

/* Writes the configurations that cuDNN would try for `convolution` to `found`, the best one
 * first, without those whose workspace is unknown. Returns their number; 0: there are none, or
 * cuDNN refused the convolution. Takes 1 ms, or 0.4 s for the first convolution of a kind. */
uint32_t cudnn_heuristics_ask(struct cudnn_heuristics *heuristics,
                              const struct convolution *convolution,
                              struct cudnn_configuration found[MAX_CUDNN_CONFIGURATIONS]);

#endif

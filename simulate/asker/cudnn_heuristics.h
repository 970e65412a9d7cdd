/* Queries the heuristics of a real cuDNN for a device that is described but not present. */
#ifndef MT_CUDNN_HEURISTICS_H
#define MT_CUDNN_HEURISTICS_H

#include <stdbool.h>

#include "cudnn_question.h"

struct cudnn_heuristics;

/* Loads cuDNN's graph library (libcudnn_graph.so.9), which loads the other parts of cuDNN, and
 * passes it the description of the device, the JSON text of
 * CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION. Takes 0.2 to 0.5 s and 70 to 170 MB, depending on the
 * version. NULL: the library cannot be loaded, lacks functions, or does not accept descriptions of
 * devices. A process may open it only once, and it stays loaded until the process ends. */
struct cudnn_heuristics *cudnn_heuristics_open(const char *library, const char *device_json);

/* Writes the configurations that cuDNN would try for `convolution` to `found`, the best one first.
 * Omits those whose workspace is unknown. Returns their number; 0 if there are none, or if cuDNN
 * rejects the convolution. Takes 1 ms, or 0.4 s for the first convolution of a kind. */
uint32_t cudnn_heuristics_ask(struct cudnn_heuristics *heuristics,
                              const struct convolution *convolution,
                              struct cudnn_configuration found[MAX_CUDNN_CONFIGURATIONS]);

#endif

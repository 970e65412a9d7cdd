/* The real cuDNN that a PyTorch would load. */
#ifndef MT_WHEEL_CUDNN_H
#define MT_WHEEL_CUDNN_H

#include <limits.h>

#include "wheel.h"

/* The path of its library of graphs, as PyTorch's own search path has it: in the package
 * nvidia-cudnn beside PyTorch or in another folder of packages, else among PyTorch's libraries.
 * Empty: it is not there, or its path cannot be part of a search path. */
void mt_wheel_cudnn(const struct mt_wheel *wheel, char path[PATH_MAX]);

#endif

/* The real cuDNN that a PyTorch would load. */
#ifndef MT_WHEEL_CUDNN_H
#define MT_WHEEL_CUDNN_H

#include <limits.h>

#include "wheel.h"

/* Sets `path` to its graph library. Searches where PyTorch does: in the package nvidia-cudnn beside
 * PyTorch or in another folder of packages, otherwise among PyTorch's libraries. Empty if it is not
 * there, or if its path cannot be part of a search path. */
void mt_wheel_cudnn(const struct mt_wheel *wheel, char path[PATH_MAX]);

#endif

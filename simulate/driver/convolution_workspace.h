/* How large a workspace cuDNN wants for a convolution. */
#ifndef MT_CONVOLUTION_WORKSPACE_H
#define MT_CONVOLUTION_WORKSPACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "convolution.h"

enum workspace_source {
    WORKSPACE_MEASURED, /* in convolution_workspaces.def */
    WORKSPACE_ASKED,    /* of the program's own cuDNN, which planned for a described device */
    WORKSPACE_BY_RULE,
    WORKSPACE_GUESSED,
    WORKSPACE_SOURCES
};

struct convolution_workspace {
    int64_t bytes; /* never negative */
    enum workspace_source source;
};

/* What an H200 asked for where the shape is in convolution_workspaces.def, else by a rule: copies
 * of the operands with the channels last, which is what tensor cores read; nothing where they are
 * so already. Guessed and 0 for a shape that makes no sense or is too large to count. Never
 * asked. */
struct convolution_workspace sim_convolution_workspace(const struct convolution *convolution);

#endif

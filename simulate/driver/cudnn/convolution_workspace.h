/* The workspace size that cuDNN requests for a convolution. */
#ifndef MT_CONVOLUTION_WORKSPACE_H
#define MT_CONVOLUTION_WORKSPACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "convolution.h"

enum workspace_source {
    WORKSPACE_MEASURED, /* in convolution_workspaces.def */
    WORKSPACE_ASKED,    /* from the program's own cuDNN, which planned for a described device */
    WORKSPACE_BY_RULE,
    WORKSPACE_GUESSED,
    WORKSPACE_SOURCES
};

struct convolution_workspace {
    int64_t bytes; /* never negative */
    enum workspace_source source;
};

/* Returns the size that was measured on an H200 if the shape is in convolution_workspaces.def.
 * Otherwise a rule applies: the size is that of channels-last copies of the operands, which tensor
 * cores need, or 0 if the operands are already channels-last. For an invalid shape, or one whose
 * size overflows, the result is 0 bytes and WORKSPACE_GUESSED. Never WORKSPACE_ASKED. */
struct convolution_workspace sim_convolution_workspace(const struct convolution *convolution);

/* Returns the bytes of input, filters and result; 0 if the shape is invalid. A wrong workspace is
 * usually wrong by copies of these. */
int64_t sim_convolution_operand_bytes(const struct convolution *convolution);

#endif

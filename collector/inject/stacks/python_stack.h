/* Hooks of the Python stacks (python_stack.c) for the table of sources. */
#ifndef MT_INJECT_PYTHON_STACK_H
#define MT_INJECT_PYTHON_STACK_H

#include "inject_source.h"

extern const struct mt_inject_source mt_python_source;

#endif

/* Replaces native_stack.c on machines that it does not support. */
#include "stacks.h"

uint32_t mt_native_stack(unsigned skip)
{
    (void)skip;
    return 0;
}

void mt_native_stack_forget(void) {}

/* A live block of an instant, as the table of modules needs it. */
#ifndef MT_ANALYZER_MODULE_BLOCK_H
#define MT_ANALYZER_MODULE_BLOCK_H

#include "forward_logs.h"

/* Zero: there is none. */
struct mt_module_block {
    uint64_t birth_event, requested_bytes, block_bytes;
    struct mt_forward_position place; /* place of the call of forward, or that of its owner */
    uint32_t stack;                   /* of its site (mt_stack_of_site) */
    uint32_t parameter;               /* gradient: index of its parameter's block, MT_NO_ID */
    uint64_t parameter_birth;
    uint8_t role;
    bool is_live, is_initial;
    bool has_gradient;       /* parameter: its gradient is in the trace */
    uint64_t gradient_event; /* of its first gradient */
};

#endif

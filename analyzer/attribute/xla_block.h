/* A request of a program of XLA, as the rules of its roles see it (xla_roles.h). */
#ifndef MT_ANALYZER_XLA_BLOCK_H
#define MT_ANALYZER_XLA_BLOCK_H

#include "role.h"

#include <stdbool.h>
#include <stdint.h>

struct mt_xla_block {
    uint64_t size_bytes;
    uint32_t run;         /* of its module, MT_NO_ID = none */
    uint32_t born, ended; /* runs begun before its allocation and its end; ended: MT_NO_ID = live */
    uint32_t next;        /* allocation number + 1: of the thread's, or the size's, list */
    uint32_t stack;
    uint8_t role;     /* enum mt_role; MT_ROLE_OTHER = unknown */
    bool is_followed; /* a request of XLA */
};

#endif

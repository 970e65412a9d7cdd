/* How a recorded process ended, according to the launcher. */
#ifndef MT_RECORD_PROCESS_END_H
#define MT_RECORD_PROCESS_END_H

#include <stdint.h>

#include "header.h"

struct mt_process_end {
    uint64_t process_id;
    enum mt_ending ending;
    int32_t number; /* exit status or signal */
    uint64_t t_ns;  /* Unix time, 0 = not known */
};

#endif

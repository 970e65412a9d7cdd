/* Pools of stream-ordered memory: the device of each pool, and the current pool of each device. */
#ifndef MT_INJECT_CUPTI_POOLS_H
#define MT_INJECT_CUPTI_POOLS_H

void mt_cupti_pools_forget(void); /* in a forked child */

#endif

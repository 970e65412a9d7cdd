/* Pools of stream-ordered memory: the device of each, and the current one. */
#ifndef MT_INJECT_CUPTI_POOLS_H
#define MT_INJECT_CUPTI_POOLS_H

void mt_cupti_pools_forget(void); /* in a forked child */

#endif

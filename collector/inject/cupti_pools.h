/* Pools of stream-ordered memory: where each is, and which one is current. */
#ifndef MT_INJECT_CUPTI_POOLS_H
#define MT_INJECT_CUPTI_POOLS_H

void mt_cupti_pools_forget(void); /* in a forked child */

#endif

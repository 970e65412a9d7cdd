/* The same replay with addresses made up in other orders (address_space.h): where equal free blocks
 * lie decides which is used, and no trace tells how the driver will place segments that the run did
 * not have. */
#ifndef MT_ANALYZER_REPLAY_ORDERS_H
#define MT_ANALYZER_REPLAY_ORDERS_H

#include "replay.h"

/* Order `index` of those that answers are tried with, from 0. If the run's addresses are used as
 * long as they serve (`recorded`), the first is that, followed by the driver's rule; the others
 * make all addresses up: as the driver does, upwards, downwards, at random with the seeds
 * 1, 2, ... */
void mt_replay_use_order(struct mt_replay_options *options, uint32_t index, bool recorded);

/* `summary`: of a replay with these options. For devices with choices that addresses decided
 * (address_ties) fills order_count, the lowest and highest peak of reserved memory and the most
 * requests that failed over the first `orders` orders, 1 to MT_BASE_ORDERS. Replays the source from
 * its start once for each further order, if there is such a device. MT_ERR_MEMORY and what
 * mt_replay_run returns. */
enum mt_status mt_replay_orders(struct mt_source *source, const struct mt_replay_options *options,
                                uint32_t orders, struct mt_replay_summary *summary,
                                struct mt_error *error) MT_MUST_USE;

#endif

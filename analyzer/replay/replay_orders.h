/* Repeats a replay with invented addresses in other orders (address_space.h). The order of equal
 * free blocks decides which one is used, and no trace shows where the driver would place segments
 * that the run did not have. */
#ifndef MT_ANALYZER_REPLAY_ORDERS_H
#define MT_ANALYZER_REPLAY_ORDERS_H

#include "replay.h"

/* Sets options->order to entry `index` (from 0) of this list: the driver's order, upward, downward,
 * and random with the seeds 1, 2, ... All of these orders invent every address. If `recorded` is
 * set, the list has one more order, as entry 0: recorded addresses where possible, otherwise the
 * driver's order. The function also sets options->blind accordingly. */
void mt_replay_use_order(struct mt_replay_options *options, uint32_t index, bool recorded);

/* Completes `summary`, the result of a replay with these options. Fills order_count, the lowest and
 * highest peaks, and the largest number of failed requests of every device. If addresses decided
 * choices on a device (address_ties), these values cover the first `orders` orders (1 to
 * MT_BASE_ORDERS), and the source is replayed from its start once for each further order. Returns
 * the status of mt_replay_run. */
enum mt_status mt_replay_orders(struct mt_source *source, const struct mt_replay_options *options,
                                uint32_t orders, struct mt_replay_summary *summary,
                                struct mt_error *error) MT_MUST_USE;

#endif

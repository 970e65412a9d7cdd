/* Names of the allocator instances that the collector tells apart: how they
 * stand in a trace's table of heaps. */
#ifndef MT_COLLECTOR_RAW_HEAPS_H
#define MT_COLLECTOR_RAW_HEAPS_H

/* "driver", "pytorch", "driver:managed", ... by enum mt_raw_heap; NULL for other
 * numbers. */
const char *mt_raw_heap_name(unsigned heap);

#endif

/* JSON with one object a line as rows of cells. */
#ifndef MT_COLLECTOR_ROWS_JSON_H
#define MT_COLLECTOR_ROWS_JSON_H

#include "feed.h"
#include "rows_events.h"

/* Reads a file up to its end. */
enum mt_status mt_rows_read_json(struct mt_rows *rows, struct mt_feed *feed,
                                 struct mt_error *error) MT_MUST_USE;

#endif

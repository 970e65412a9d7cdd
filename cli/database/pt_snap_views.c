#include "pt_snap_views.h"

#include <string.h>

#include "buf.h"
#include "util.h"

/* Their blocks that are older than the recording have negative numbers and no event. */
static const char block_view[] =
    "CREATE VIEW block_%u AS SELECT"
    " CASE WHEN is_initial THEN -block ELSE birth_event END AS id,"
    " address, bytes AS size, requested_bytes AS requestedSize,"
    " CASE WHEN is_initial THEN 1 WHEN completed_event IS NOT NULL THEN -1"
    " WHEN free_event IS NOT NULL THEN 0 ELSE 1 END AS state,"
    " CASE WHEN is_initial THEN -1 ELSE birth_event END AS allocEventId,"
    " ifnull(completed_event, -1) AS freeEventId"
    " FROM block_rows JOIN origins USING(origin) WHERE device = %u;";

/* Segments that are older than the recording have negative numbers; blocks have no event. Frames
 * are lines, the outermost first. */
static const char trace_view[] =
    "CREATE VIEW trace_entry_%u AS SELECT"
    " CASE WHEN e.event < d.first_event THEN e.event - d.first_event ELSE e.event END AS id,"
    " CASE e.kind WHEN 'segment_map' THEN 0 WHEN 'segment_unmap' THEN 1"
    " WHEN 'segment_alloc' THEN 2 WHEN 'segment_free' THEN 3 WHEN 'alloc' THEN 4"
    " WHEN 'free_requested' THEN 5 ELSE 6 END AS action,"
    " e.address, e.bytes AS size, s.handle AS stream, e.allocated_bytes AS allocated,"
    " e.active_bytes AS active, e.reserved_bytes AS reserved,"
    " (WITH RECURSIVE path(parent, frame, depth) AS ("
    "SELECT parent, frame, 0 FROM stacks WHERE stack = e.stack"
    " UNION ALL SELECT t.parent, t.frame, path.depth + 1"
    " FROM path JOIN stacks t ON t.stack = path.parent)"
    " SELECT group_concat(line, '\n') FROM ("
    "SELECT f.file || ':' || ifnull(f.line, 0) || ' ' || f.function AS line"
    " FROM path JOIN frames f USING(frame) ORDER BY path.depth DESC)) AS callstack"
    " FROM events e JOIN devices d USING(device) JOIN streams s USING(stream)"
    " WHERE e.device = %u AND (e.kind LIKE 'segment%%'"
    " OR e.kind IN ('alloc', 'free_requested', 'free_completed') AND e.event >= d.first_event);"
    /* The tool finds its devices by the names of tables, not of views: an empty one is enough. */
    "CREATE TABLE trace_entry_of_%u(callstack TEXT);";

static const char *const words[][3] = {
    {"trace_entry", "action", "segment_map 0 segment_unmap 1 segment_alloc 2 segment_free 3"},
    {"trace_entry", "action", "alloc 4 free_requested 5 free_completed 6 workspace_snapshot 7"},
    {"block", "state", "inactive -1 active_pending_free 0 active_allocated 1 unknown 99"}};

/* The words are pairs: a name and its number. */
static void add_words(struct mt_buf *sql, const char *const row[3], uint16_t device)
{
    const char *at = row[2];

    while (*at) {
        int name = (int)strcspn(at, " "), number = (int)strcspn(at + name + 1, " ");

        mt_buf_printf(sql, "INSERT INTO dictionary VALUES ('%s_%u', '%s', '%.*s', '%.*s');", row[0],
                      (unsigned)device, row[1], name, at, number, at + name + 1);
        at += name + 1 + number;
        at += *at == ' ';
    }
}

void mt_pt_snap_views_add(struct mt_database_writer *writer, uint16_t device, bool with_events)
{
    unsigned n = device;
    struct mt_buf sql = {0};

    mt_buf_printf(&sql, block_view, n, n);
    if (with_events)
        mt_buf_printf(&sql, trace_view, n, n, n);
    for (size_t i = 0; i < MT_ARRAY_LEN(words); i++)
        add_words(&sql, words[i], device);
    mt_database_writer_execute(writer, sql.data);
    mt_buf_release(&sql);
}

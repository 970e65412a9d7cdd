-- Requests that ran out of memory, and the holders of memory then, by call site
-- :rows 40 of each request
-- `memtrace oom` reads the text of an error without a recording.
WITH held AS (
    SELECT o.device, o.event, b.site, b.role, sum(b.bytes) AS bytes, count(*) AS blocks
    FROM ooms o CROSS JOIN blocks b WHERE b.device = o.device AND b.birth_event <= o.event
        AND (b.free_event IS NULL OR b.free_event > o.event)
    GROUP BY o.device, o.event, b.site, b.role),
ranked AS (
    SELECT *, row_number() OVER (PARTITION BY device, event ORDER BY bytes DESC, site, role)
        AS number FROM held)
SELECT o.device, o.event, o.request_bytes, o.device_free_bytes, o.is_fatal, o.allocated_bytes,
    o.reserved_bytes, r.site, r.role, r.bytes, r.blocks
FROM ooms o LEFT JOIN ranked r ON r.device = o.device AND r.event = o.event AND r.number <= :rows
ORDER BY o.device, o.event, r.number;

-- Blocks that are live after an event, by call site and role; without an event at the peak
-- :event null
-- :rows 40
SELECT b.device, b.site, b.role, sum(b.bytes) AS bytes, sum(b.requested_bytes) AS requested_bytes,
    count(*) AS blocks
FROM peaks p CROSS JOIN blocks b
WHERE p.size = 'allocated' AND b.device = p.device AND b.birth_event <= coalesce(:event, p.event)
    AND (b.free_event IS NULL OR b.free_event > coalesce(:event, p.event))
GROUP BY b.device, b.site, b.role
ORDER BY bytes DESC, b.device, b.site, b.role LIMIT :rows;

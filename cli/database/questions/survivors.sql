-- Blocks that a step allocated and that are live after it, by call site
-- :step null a step; null is the one with the highest allocated peak
-- :rows 40
WITH chosen AS (
    SELECT device, step, begin_event, end_event FROM steps s
    WHERE step = coalesce(:step, (SELECT step FROM steps t WHERE t.device = s.device
        ORDER BY peak_allocated_bytes DESC, begin_event LIMIT 1)))
SELECT c.device, c.step, b.site, b.role, sum(b.bytes) AS bytes, count(*) AS blocks,
    min(b.free_event) AS first_free_event
FROM chosen c CROSS JOIN blocks b WHERE b.device = c.device
    AND b.birth_event BETWEEN c.begin_event AND c.end_event
    AND (b.free_event IS NULL OR b.free_event > c.end_event)
GROUP BY c.device, c.step, b.site, b.role
ORDER BY bytes DESC, c.device, c.step, b.site, b.role LIMIT :rows;

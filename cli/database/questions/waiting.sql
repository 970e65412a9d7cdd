-- Freed blocks that wait for another stream, at the active peak (record_stream)
-- :rows 40
SELECT b.device, b.site, b.role, st.handle AS stream_handle, sum(b.bytes) AS bytes,
    count(*) AS blocks, max(b.completed_event - b.free_event) AS longest_wait_events
FROM peaks p CROSS JOIN blocks b LEFT JOIN streams st USING(stream)
WHERE p.size = 'active' AND b.device = p.device
    AND b.birth_event <= p.event AND b.free_event <= p.event
    AND (b.completed_event IS NULL OR b.completed_event > p.event)
GROUP BY b.device, b.site, b.role, b.stream
ORDER BY bytes DESC, b.device, b.site, b.role LIMIT :rows;

-- The four sizes over time: at most 16,388 rows of each device, with all peaks
SELECT l.device, l.event, (l.t_ns - s.value) / 1e9 AS seconds, l.requested_bytes,
    l.allocated_bytes, l.active_bytes, l.reserved_max_bytes, l.allocated_min_bytes
FROM levels l JOIN settings s ON s.name = 'first_ns'
ORDER BY l.device, l.event;

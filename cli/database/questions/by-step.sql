-- Steps: their peaks, the change since the step before, and what remains at their end
SELECT device, step, loop, peak_allocated_bytes, peak_reserved_bytes,
    peak_allocated_bytes - lag(peak_allocated_bytes) OVER earlier AS peak_change_bytes,
    exit_allocated_bytes,
    exit_allocated_bytes - lag(exit_allocated_bytes) OVER earlier AS growth_bytes,
    peak_event
FROM steps
WINDOW earlier AS (PARTITION BY device, loop ORDER BY begin_event)
ORDER BY device, begin_event;

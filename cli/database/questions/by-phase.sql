-- Phases: their peak, what they left behind, and their part of the allocated peak
SELECT m.device, p.path AS phase, count(*) AS times,
    max(m.peak_allocated_bytes) AS peak_allocated_bytes,
    max(m.peak_reserved_bytes) AS peak_reserved_bytes,
    sum(m.exit_allocated_bytes - m.enter_allocated_bytes) AS left_bytes,
    sum(m.allocations) AS allocations,
    -- Blocks that were allocated in the phase itself, not in one that it contains.
    coalesce(sum(own.bytes), 0) AS bytes_at_peak
FROM phase_memory m JOIN phases p USING(phase)
LEFT JOIN (SELECT device, phase, sum(bytes) AS bytes FROM live
    WHERE kind = 'peak_allocated' GROUP BY device, phase) own
    ON own.device = m.device AND own.phase = m.phase
GROUP BY m.device, p.path
ORDER BY m.device, min(p.begin_event), p.path;

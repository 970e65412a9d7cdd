-- The four peaks of each device, when they were reached, and in which phase and step
SELECT p.device, p.size, p.bytes, p.event, (p.t_ns - s.value) / 1e9 AS seconds,
    phases.path AS phase, p.step,
    p.requested_bytes, p.allocated_bytes, p.active_bytes, p.reserved_bytes
FROM peaks p JOIN settings s ON s.name = 'first_ns' LEFT JOIN phases USING(phase)
ORDER BY p.device, p.rowid;

-- The largest blocks that are live at the allocated peak
-- :rows 20
SELECT device, block, bytes, requested_bytes, role, site, phase_path AS phase, step,
    birth_event, free_event
FROM live WHERE kind = 'peak_allocated'
ORDER BY bytes DESC, block LIMIT :rows;

-- Call sites at the allocated peak, with the role and the phase of allocation
-- :rows 40
SELECT device, site, role, phase_name AS phase, sum(bytes) AS bytes, count(*) AS blocks
FROM live WHERE kind = 'peak_allocated'
GROUP BY device, site, role, phase_name
ORDER BY bytes DESC, device, site, role LIMIT :rows;

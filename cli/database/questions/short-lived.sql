-- Blocks that were freed soon after their allocation (temporaries), by call site
-- :events 20 the longest life, in events of the recording
-- :rows 40
SELECT device, site, role, sum(bytes) AS bytes, count(*) AS blocks, max(bytes) AS largest_bytes
FROM blocks
WHERE free_event - birth_event <= :events AND NOT is_initial
GROUP BY device, site, role
ORDER BY bytes DESC, device, site, role LIMIT :rows;

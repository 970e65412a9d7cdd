-- Blocks that were allocated between two events, by call site, and how many of them remained
-- :from 0
-- :to 9223372036854775807
-- :rows 40
SELECT device, site, role, sum(bytes) AS bytes, sum(requested_bytes) AS requested_bytes,
    count(*) AS blocks,
    sum(CASE WHEN free_event IS NULL OR free_event > :to THEN bytes ELSE 0 END) AS remaining_bytes
FROM blocks
WHERE birth_event BETWEEN :from AND :to AND NOT is_initial
GROUP BY device, site, role
ORDER BY bytes DESC, device, site, role LIMIT :rows;

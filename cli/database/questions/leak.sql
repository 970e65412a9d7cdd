-- Blocks of a step that are still live when the run ends, by call site: what grows, per step
-- :steps 2 the least number of steps that left blocks behind
-- :rows 40
SELECT device, site, role, count(DISTINCT step) AS steps, sum(bytes) AS bytes,
    sum(bytes) / count(DISTINCT step) AS bytes_per_step, count(*) AS blocks,
    min(step) AS first_step, max(step) AS last_step
FROM blocks
WHERE free_event IS NULL AND step IS NOT NULL
GROUP BY device, site, role
HAVING steps >= :steps
ORDER BY bytes DESC, device, site, role LIMIT :rows;

-- Segments at the reserved peak with the most bytes that no block uses
-- :rows 40
-- Pieces of an expandable segment that are next to each other are one row: blocks cross them.
WITH alive AS (
    SELECT s.device, s.address, s.bytes, s.is_expandable, s.stream, s.pool
    FROM peaks p JOIN segments s ON s.device = p.device
        AND s.birth_event <= p.event AND (s.free_event IS NULL OR s.free_event > p.event)
    WHERE p.size = 'reserved'),
-- A segment begins a row unless it continues the one before it; its blocks follow it.
places AS (
    SELECT *, 0 AS active_bytes, 0 AS blocks,
        CASE WHEN is_expandable AND address = lag(address + bytes) OVER before
            AND lag(is_expandable) OVER before AND lag(stream) OVER before = stream
            AND lag(pool) OVER before = pool THEN 0 ELSE 1 END AS is_first
    FROM alive WINDOW before AS (PARTITION BY device ORDER BY address)
    UNION ALL
    SELECT b.device, b.address, 0, NULL, NULL, NULL, b.bytes, 1, 0
    FROM peaks p JOIN block_rows b ON b.device = p.device AND b.birth_event <= p.event
        AND (b.completed_event IS NULL OR b.completed_event > p.event)
    WHERE p.size = 'reserved' AND EXISTS (SELECT 1 FROM alive)),
numbered AS (
    SELECT *, sum(is_first) OVER (PARTITION BY device ORDER BY address, blocks
        ROWS UNBOUNDED PRECEDING) AS number
    FROM places)
SELECT n.device, printf('0x%x', min(n.address)) AS address, sum(n.bytes) AS bytes,
    sum(n.bytes) - sum(n.active_bytes) AS unused_bytes, sum(n.blocks) AS blocks,
    max(n.is_expandable) AS is_expandable, max(p.kind) AS pool, max(st.handle) AS stream_handle
FROM numbered n LEFT JOIN pools p ON p.pool = n.pool LEFT JOIN streams st ON st.stream = n.stream
GROUP BY n.device, n.number
ORDER BY unused_bytes DESC, n.device, min(n.address) LIMIT :rows;

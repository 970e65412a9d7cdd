-- Pools (CUDA graphs, MemPool) at the reserved peak: their segments and the blocks in them
WITH segment_bytes AS (
    SELECT s.device, s.pool, sum(s.bytes) AS reserved_bytes, count(*) AS segments
    FROM peaks i CROSS JOIN segments s WHERE i.size = 'reserved'
        AND s.device = i.device AND s.birth_event <= i.event
        AND (s.free_event IS NULL OR s.free_event > i.event)
    GROUP BY s.device, s.pool),
block_bytes AS (
    SELECT b.device, b.pool, sum(b.bytes) AS allocated_bytes, count(*) AS blocks
    FROM peaks i CROSS JOIN blocks b WHERE i.size = 'reserved'
        AND b.device = i.device AND b.birth_event <= i.event
        AND (b.free_event IS NULL OR b.free_event > i.event)
    GROUP BY b.device, b.pool)
SELECT d.device, p.kind AS pool, p.id_a, p.id_b, s.reserved_bytes, s.segments,
    b.allocated_bytes, b.blocks
FROM devices d JOIN pools p
LEFT JOIN segment_bytes s ON s.device = d.device AND s.pool = p.pool
LEFT JOIN block_bytes b ON b.device = d.device AND b.pool = p.pool
WHERE s.pool IS NOT NULL OR b.pool IS NOT NULL
ORDER BY d.device, s.reserved_bytes DESC, p.pool;

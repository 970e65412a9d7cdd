-- Call sites that allocate the most over the whole run, and how long their blocks live
-- :rows 40
SELECT device, site, role, sum(bytes) AS bytes, count(*) AS blocks, max(bytes) AS largest_bytes,
    CAST(avg(free_event - birth_event) AS INTEGER) AS average_life_events,
    CAST(avg(free_ns - birth_ns) AS INTEGER) AS average_life_ns
FROM blocks WHERE NOT is_initial
GROUP BY device, site, role
ORDER BY bytes DESC, device, site, role LIMIT :rows;

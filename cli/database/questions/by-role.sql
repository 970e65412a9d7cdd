-- Roles at the allocated peak, and how each is known
SELECT device, role, role_source, sum(bytes) AS bytes, count(*) AS blocks
FROM live WHERE kind = 'peak_allocated'
GROUP BY device, role, role_source
ORDER BY device, bytes DESC, role;

-- Suggested changes, and the bytes that each saves
SELECT device, finding, severity, bytes, bytes_per_step, saving, saves_bytes, title, advice
FROM findings
ORDER BY device, rowid;

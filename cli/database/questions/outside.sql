-- Memory outside of the framework at the allocated peak, by library (NCCL, cuBLAS, ...)
SELECT device, library, what, call, communicator, sum(bytes) AS bytes, sum(blocks) AS blocks, site
FROM driver
GROUP BY device, library, what, call, communicator, site
ORDER BY device, bytes DESC, library, what, call, site;

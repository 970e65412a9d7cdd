-- Layers and other modules at the allocated peak; the largest roles of each
SELECT device, module, kind, sum(bytes) AS bytes,
    sum(CASE WHEN role = 'parameters' THEN bytes ELSE 0 END) AS parameter_bytes,
    sum(CASE WHEN role = 'gradients' THEN bytes ELSE 0 END) AS gradient_bytes,
    sum(CASE WHEN role = 'optimizer state' THEN bytes ELSE 0 END) AS optimizer_state_bytes,
    sum(CASE WHEN role = 'activations' THEN bytes ELSE 0 END) AS activation_bytes
FROM modules
GROUP BY device, module, kind
ORDER BY device, bytes DESC, module;

try() { echo "$1" >estimate.json; memtrace diff captures/leak.pickle.zst --estimate estimate.json; echo $?; }
with() { try "{\"schema\": \"memtrace.estimate/1\", $1}"; }
try ''
try '{"roles": {"parameters": 1}}'
try '{"schema": "memtrace.diff/1"}'
with '"source": "nothing"'
with '"roles": {"optimzer state": 1}'
with '"roles": {"parameters + weights": 1}'
with '"roles": {"parameters": 1, "parameters": 2}'
with '"roles": {"parameters": 1, "gradients + parameters": 2}'
with '"roles": {"parameters": -1}'
with '"roles": {"parameters": 1.5}'
with '"roles": {"parameters": 99999999999999999999999999}'
with '"roles": {"parameters": 281474976710657}'
with '"roles": {"parameters": "1 GiB"}'
with '"roles": [1]'
with '"modules": {"layer": {"bytes": 1}}'
with '"modules": 1'
with '"role": {"parameters": 1}'
with '"total_bytes": 1, "compared_with": "device"'
with '"total_bytes": 1, "source": 2'
with '"total_bytes": 1, "roles": {"parameters": 2}'
with "\"roles\": $(printf '%0100000d' 0 | tr 0 '[')"
with "\"modules\": {\"$(printf '%01000000d' 0)\": 1}"
with "\"modules\": {\"$(printf '%01100000d' 0)\": 1}"
memtrace diff captures/leak.pickle.zst --estimate missing.json
memtrace diff captures/leak.pickle.zst captures/leak.pickle.zst --estimate estimate.json
memtrace diff captures/leak.pickle.zst --estimate estimate.json -o difference.svg

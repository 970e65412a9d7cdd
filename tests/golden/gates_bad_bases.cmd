memtrace analyze captures/leak.pickle.zst --base nowhere.json --max-regression 2%
echo "$?"
echo 'base = "nowhere.json"
max-regression = "2%"' >budget
memtrace analyze captures/leak.pickle.zst --budget budget
echo "$?"
try() {
    printf "$1" >base
    memtrace analyze captures/leak.pickle.zst --base base --max-regression 2% | sed '/^$/q'
    memtrace analyze captures/leak.pickle.zst --base base --max-regression 2% >/dev/null 2>&1
    echo "$?"
}
try 'nothing'
try '{}'
try '{"schema": "memtrace.baseline/2"}'
try '{"schema": "memtrace.baseline/1", "devices": [{"device": 0}]}'
try '{"schema": "memtrace.baseline/1", "devices": [{"device": -1}]}'
try '{"schema": "memtrace.baseline/1", "devices": [{"device": 0, "requested_peak_bytes": 1.5, "allocated_peak_bytes": 2}]}'
try '{"schema": "memtrace.baseline/1", "devices": [{"device": 0, "requested_peak_bytes": 1, "allocated_peak_bytes": 2, "sites": [{"bytes": 1}]}]}'
try '{"schema": "memtrace.baseline/1", "later": [1, {"x": null}], "devices": [{"device": 0, "requested_peak_bytes": 1, "allocated_peak_bytes": 200000000, "sites": []}]}'

memtrace analyze imports/timeline.raw.json.gz --max-peak reserved=1GiB --write-baseline base.json -q 2>&1 | sed '/^$/q'
grep -c 'reserved_peak_bytes' base.json
memtrace diff imports/profiler_late.json.gz imports/timeline.raw.json.gz -o diff | grep -i reserved
grep -c '; reserved peak' diff/diff.html
drawing_list trend imports/profiler_late.json.gz -q -o - --size 600x400 | grep -c 'curve:reserved' || true

memtrace replay captures/gpt_default.pickle.zst -p pytorch -p 'pytorch --pool site=~sparse\.py:' -p 'pytorch:expandable_segments:True --pool size<1MiB --pool phase=~loss,size>=1MiB'

for range in '--from 100 --to 50' '--from 2s --to 1.5s' '--from 3 --to 3 -q'; do
    memtrace dump captures/leak.pickle.zst $range | wc -l
    memtrace dump captures/leak.pickle.zst $range >/dev/null 2>&1
    echo "$?"
done

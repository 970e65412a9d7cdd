memtrace diff -q captures/leak.pickle.zst captures/keeps.pickle.zst -o change | tail -4
ls change
grep -o '<h1>.*' change/diff.html
grep '<p id="verdict"' change/diff.html
memtrace diff -q recorded/twogpu.trace.zst captures/twogpu.pickle.zst -o "two devices/" | tail -3
grep -o '<p class="small">This page.*' "two devices/diff.html"
grep -o '"moved":[^]]*]' "two devices/diff.html"
memtrace diff -q recorded/twogpu.trace.zst captures/twogpu.pickle.zst --device 1 -o one --json | head -2
grep -o '<p class="facts">.*device 1' one/diff.html

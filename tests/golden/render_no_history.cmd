for chart in timeline flamechart blocks trend; do memtrace render $chart no_history/snapshot.pickle -o $chart.svg; echo "$chart: $?"; done 2>&1
memtrace render timeline no_history/refused.pickle -o timeline.svg 2>&1; ls *.svg 2>/dev/null
memtrace analyze no_history/snapshot.pickle -q -o out > analysis.txt; cd out && ls | grep -v png

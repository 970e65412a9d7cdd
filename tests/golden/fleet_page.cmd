# All of the page except for its styles, scripts, charts and links.
memtrace fleet -q captures/ddp_leak_rank0.pickle.zst captures/ddp_leak_rank1.pickle.zst --max-imbalance 1% -o d >/dev/null; ls d | grep -v -e svg -e png
sed -e '1,/<body>/d' -e '/<nav/,/<\/nav>/d' -e '/<figure/,/<\/figure>/d' -e '/<\/script>/{s/<.script>.*//;q' -e '}' d/report.html

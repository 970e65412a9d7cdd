head -c 2000 captures/../traces/v1-every-kind.zst >cut; memtrace info --strict cut

for rule in '--max-peak 10GiB' '--max-peak resreved=1' '--max-peak reserved=10%' '--max-growth 1%' '--max-regression 2%,3%' '--max-regression x' '--max-regression 2' '--max-regression 2%,64' '--max-regression 64MiB,warn=1' '--fits much' '--max-peak reserved=1GiB,warn=1GiB' '--fits 1GiB,warn=x'; do
    memtrace analyze captures/leak.pickle.zst $rule
    echo "$?"
done

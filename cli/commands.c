/* All commands, in alphabetical order. A command is one file, cmd_<name>.c; its
 * line here says what --help prints. */
#include "cli.h"

const struct mt_command mt_commands[] = {
    {"analyze", "TRACE [-o DIR] [options]", "where the peak is, what holds it, and why",
     "Prints where the peak is and what holds it, why it rose, what each phase did, the largest\n"
     "sites, and how exact the replay is. With -o it writes report.json, summary.md and pictures.\n"
     "With --budget, --max-..., or --fits it says first whether the run keeps to the rules, by "
     "how\n"
     "much not, who it is and what would help; the exit status is 1 if it does not.\n"
     "\n"
     "  memtrace analyze run.pickle\n"
     "  memtrace analyze run.pickle -o report\n"
     "  memtrace analyze run.pickle --json | jq .devices[0].summary\n"
     "  memtrace analyze run.pickle --max-peak reserved=10GiB --max-growth 1MiB/step",
     mt_cmd_analyze},
    {"diff", "A B [--at INSTANT] [-o FILE] [options]", "what another run holds more, or less",
     "From what A holds at its peak to what B holds at its own: by role, by phase of birth, by\n"
     "site, and what the allocator holds unused. A and the changes sum to B, to the byte.\n"
     "INSTANT is as in live, and is looked up in each. Sites match if their functions and files\n"
     "do, even if lines moved.\n"
     "\n"
     "Examples:\n"
     "  memtrace diff before.pickle after.pickle\n"
     "  memtrace diff before.trace after.trace --at phase:step#2/backward --json",
     mt_cmd_diff},
    {"doctor", "[options]", "what can be recorded on this machine, and why not",
     "Tries each thing that a recording is made from, in a process of its own: ok, degraded (a\n"
     "trace will lack something) or missing, and how to mend it.",
     mt_cmd_doctor},
    {"dry-run", "[options] [--] COMMAND [ARGUMENT ...]",
     "run a command without a GPU and say what GPU memory it needs",
     "Runs COMMAND with its own PyTorch on a simulated device, records it as record does, and "
     "prints\n"
     "what analyze prints, with what a card must have and the common cards on which the run fits.\n"
     "Sizes are mostly those of a real run. Kernels compute nothing, so values and times mean\n"
     "nothing. No GPU of the machine is touched.\n"
     "\n"
     "Cards: RTX 3060, T4, V100 16 GB, L4, RTX 4090, RTX 3090, RTX 5090, V100 32 GB, A100 40 GB,\n"
     "L40S, H100, A100 80 GB, H200, B200.\n"
     "\n"
     "The exit status is the command's; 1 if it runs out of the memory of --limit, or if a peak "
     "is\n"
     "larger than --max-peak allows; 124 after --timeout.\n"
     "\n"
     "--sweep runs COMMAND once for each value, in place of {NAME}: a list 1,2,4, a range 1..8, "
     "or\n"
     "1..64*2, where each value is twice the one before. Several options make every combination, "
     "at\n"
     "most 64. -o DIR keeps traces, logs, the table and a picture. The exit status is that of the\n"
     "first run that would not have ended with 0.\n"
     "\n"
     "--ranks runs some ranks of a distributed run, each without the others. It reads torchrun's\n"
     "options; without torchrun, --world is the number of all ranks.\n"
     "\n"
     "Examples:\n"
     "  memtrace dry-run python train.py --epochs 1\n"
     "  memtrace dry-run --device 'RTX 4090' --timeout 10m -- python train.py\n"
     "  memtrace dry-run --max-peak reserved=24GiB -- python train.py\n"
     "  memtrace dry-run --sweep batch=1,2,4,8 -- python train.py --batch {batch}\n"
     "  memtrace dry-run --ranks 0,1,7 -- torchrun --nproc-per-node 8 train.py",
     mt_cmd_dry_run},
    {"dump", "TRACE [options]", "print the events of a trace, one a line",
     "With --json every line is one JSON object. Times of --from and --to count from the first\n"
     "event; both ends are included.\n\n"
     "  memtrace dump run.trace --from 1.5s --to 1.6s --stacks\n"
     "  memtrace dump run.trace --json | jq 'select(.kind == \"oom\")'",
     mt_cmd_dump},
    {"export", "FORMAT TRACE [--at INSTANT] [options]", "who holds memory, for other programs",
     "FORMAT is folded (call stacks and bytes, as flame graph programs read) or speedscope.\n"
     "INSTANT is as in live; --of takes what was allocated, what steps leave behind or what a "
     "step\n"
     "keeps instead; --metric counts requested bytes or blocks.\n"
     "\n"
     "Examples:\n"
     "  memtrace export folded run.pickle | flamegraph.pl --countname bytes --width 1200 "
     ">peak.svg\n"
     "  memtrace export folded run.pickle --at phase:step#2/backward --metric count\n"
     "  memtrace export speedscope run.trace --of allocated-total -o run.speedscope.json",
     mt_cmd_export},
    {"fit", "TRACE [--policy P ...] [options]", "the smallest limit that serves a trace",
     "Searches the smallest memory limit under which each policy serves every request that the "
     "run\n"
     "was granted, and names the request that fails first just below it. P is as in replay.\n"
     "--limit also tests one limit, and exits with 1 if the trace does not fit.\n"
     "\n"
     "Examples:\n"
     "  memtrace fit run.pickle\n"
     "  memtrace fit run.pickle -p pytorch -p pytorch:expandable_segments:True\n"
     "  memtrace fit run.pickle --limit 24GiB --json",
     mt_cmd_fit},
    {"fleet", "FILE|DIR ... [options]", "what all ranks of a job did with memory",
     "Reads the traces, snapshots and summaries (.mtsum) of a job, one or more for each rank, and\n"
     "says which ranks are missing, what a device must have, which rank ran out of memory first,\n"
     "what each axis of the job explains, and which ranks differ from their replicas, by which\n"
     "line. With -o DIR it also writes a page, charts, JSON and a summary for CI.\n"
     "With --tune it replays traces to find one allocator setting for all ranks.\n"
     "Several machines share the work with --shard; what they write is read like any other.\n"
     "'memtrace fleet diff JOB1 JOB2' says what another run of the job needs more, or less.\n"
     "\n"
     "Examples:\n"
     "  memtrace fleet traces/\n"
     "  memtrace fleet traces/ -o report\n"
     "  memtrace fleet traces/ --mesh pp:8,dp:32,tp:8 --max-imbalance 10%\n"
     "  memtrace fleet traces/ --tune\n"
     "  memtrace fleet traces/ --shard 3/64 -o part3.mtsum\n"
     "  memtrace fleet part*.mtsum --json\n"
     "  memtrace fleet diff monday/ tuesday/",
     mt_cmd_fleet},
    {"import", "FILE -o TRACE [options]", "write any format that can be read as a trace",
     "Reads PyTorch memory snapshots (torch.cuda.memory._dump_snapshot) and profiles of JAX and\n"
     "TensorFlow (*.xplane.pb), zstd-compressed or not.\n"
     "Every other command reads them too; a trace is smaller and can be sought.",
     mt_cmd_import},
    {"info", "TRACE [options]", "say what a trace holds, and whether it is whole",
     "Header, devices, events by kind, symbols, size, and what is damaged, cut or missing. Of an\n"
     "imported snapshot also the fields that nothing reads. TRACE is a memtrace trace, a PyTorch\n"
     "memory snapshot, or a profile of JAX or TensorFlow (*.xplane.pb), zstd-compressed or not.",
     mt_cmd_info},
    {"lines", "TRACE [options]", "what each line of the program did with memory",
     "For the functions that memory is for, the model's and your own: of each line, active and\n"
     "reserved memory after it, the peak within it, growth, and what it allocated, what the\n"
     "functions that it calls did included. What line profilers for PyTorch show, from a trace.\n"
     "\n"
     "  memtrace lines run.pickle\n"
     "  memtrace lines run.pickle --function train_step --source",
     mt_cmd_lines},
    {"live", "TRACE [--at INSTANT] [--by GROUP] [options]", "what is alive at an instant",
     "INSTANT is peak (of allocated bytes), reserved-peak, oom, end, a time since the first event\n"
     "(1.25s, 340ms), an event's number as dump prints it, or phase:PATH, the peak within a "
     "phase.\n"
     "GROUP is site, stack, role, phase (of birth) or size. Rows and totals close to the byte.\n"
     "\n"
     "Examples:\n"
     "  memtrace live run.pickle\n"
     "  memtrace live run.pickle --at phase:step#2/backward --by role\n"
     "  memtrace live run.trace --at 1.25s --by stack --json",
     mt_cmd_live},
    {"optimal", "TRACE|CSV [options]", "the least memory that a plan of addresses needs",
     "No allocator needs less than the largest sum of live bytes: the lower bound. A plan that\n"
     "knows all lifetimes beforehand gets there, or nearly; this searches for one, checks it, and\n"
     "says how far above the bound it is and whether it is proven that no plan is lower.\n"
     "CSV has the columns lower, upper (times) and size, as MiniMalloc's benchmarks have.\n"
     "\n"
     "  memtrace optimal run.pickle\n"
     "  memtrace optimal run.trace --time 60 -o plan.csv\n"
     "  memtrace optimal A.1048576.csv --capacity 1048576 --json",
     mt_cmd_optimal},
    {"record", "[options] [--] COMMAND [ARGUMENT ...]", "run a command and record its GPU memory",
     "Runs the command as it is, and writes what it and the processes that it starts do with the\n"
     "GPU: calls of the driver, blocks of PyTorch's allocator, ranges, call stacks. Input, output\n"
     "and exit status are the command's. Without -o the trace goes to the current folder, with\n"
     "the name and the process of the command: train-12345.trace.zst. -o DIR/ is for many\n"
     "processes: HOST-PID.trace.zst.\n"
     "\n"
     "  memtrace record python train.py --epochs 3\n"
     "  memtrace record -o run.trace.zst -- ./solver input.dat\n"
     "  memtrace record -o traces/ -- torchrun --nproc-per-node 8 train.py",
     mt_cmd_record},
    {"recover", "TRACE ... [options]", "complete the trace of a process that was killed",
     "record does this itself when the command has ended. Use recover if record was killed and\n"
     "left a tape (TRACE.tape) beside the trace.",
     mt_cmd_recover},
    {"render", "CHART TRACE -o FILE [options]", "draw one chart as SVG or PNG",
     "CHART is\n" /* cmd_render.c adds the charts here */
     "\n"
     "Examples:\n"
     "  memtrace render timeline run.pickle -o timeline.svg\n"
     "  memtrace render timeline run.pickle -o oom.png --x=events --theme dark\n"
     "  memtrace render flamechart run.trace -o flamechart.png --size 830x600",
     mt_cmd_render},
    {"replay", "TRACE --policy P ...", "what an allocator does with the requests of a trace",
     "Feeds the requests of TRACE to simulated allocators, one row each.\n"
     "\n"
     "P is 'pytorch' (with the options that the run had), 'recorded' (no simulation), or\n"
     "'pytorch:' and options as PYTORCH_CUDA_ALLOC_CONF spells them; 'pytorch:' alone means\n"
     "PyTorch's defaults; or another allocator, with its options: 'cupy:limit=8GiB'.\n"
     "--policies lists all. --verify exits with 1 if anything differs from the recording.\n"
     "\n"
     "A SELECTOR has conditions, joined by commas: 'site=~REGEX' (any frame: function or\n"
     "file:line), 'phase=~REGEX', 'size>=20MiB'. What it means comes from a torch.cuda.MemPool.\n"
     "\n"
     "Examples:\n"
     "  memtrace replay run.pickle --verify\n"
     "  memtrace replay run.pickle -p pytorch -p pytorch:expandable_segments:True\n"
     "  memtrace replay run.pickle -p pytorch:max_split_size_mb:64 --limit 16GiB --json\n"
     "  memtrace replay run.pickle -p pytorch -p 'pytorch --pool site=~embedding'\n"
     "  memtrace replay run.pickle --counters counters.csv",
     mt_cmd_replay},
    {"tune", "TRACE [options]", "the allocator options under which a run needs least",
     "Replays TRACE under a hundred settings of PyTorch's caching allocator, prints the one to "
     "use\n"
     "as a line to paste, what it saves, and the settings that no other beats. With --limit, of\n"
     "those that serve the run under it; exits with 1 if none does.\n"
     "\n"
     "Examples:\n"
     "  memtrace tune run.pickle\n"
     "  memtrace tune run.pickle --limit 16GiB\n"
     "  eval \"$(memtrace tune run.pickle | grep -E '^(export|unset) ')\"",
     mt_cmd_tune},
    {NULL, NULL, NULL, NULL, NULL},
};

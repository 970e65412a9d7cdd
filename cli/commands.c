/* All commands in alphabetical order. Each command is one file, cmd_<name>.c. --help prints its
 * texts here. The annexes have their rows with them. */
#include "cli.h"

#if MEMTRACE_DRY_RUN
#include "dry_run_annex.h"
#endif
#if MEMTRACE_FLEET
#include "fleet_annex.h"
#endif

const struct mt_command mt_commands[] = {
    {"analyze", "TRACE [-o DIR] [options]", "show the peak, what holds it, and why it rose",
     "Prints the peak and the blocks that hold it, why memory rose, what each phase\n"
     "did, the largest call sites, and how exact the replay is. With -o it also\n"
     "writes report.html, report.json, summary.md and pictures.\n"
     "\n"
     "Rules (--budget, --max-..., --fits) turn the run into a check. The verdict\n"
     "comes first. For each rule that fails, the output has the excess, the\n"
     "responsible call site, and a fix. The exit status is then 1.\n"
     "\n"
     "Examples:\n"
     "  memtrace analyze run.pickle\n"
     "  memtrace analyze run.pickle -o report\n"
     "  memtrace analyze run.pickle --json | jq .devices[0].summary\n"
     "  memtrace analyze run.pickle --max-peak reserved=10GiB --max-growth 1MiB/step",
     mt_cmd_analyze},
    {"diff", "A B|A --estimate FILE [--at INSTANT] [-o PATH] [options]",
     "compare the live memory of two runs, or a run with an estimate",
     "Compares the memory that A holds at its peak with the memory that B holds at\n"
     "its own peak: by role, by the phase in which the blocks were allocated, by call\n"
     "site, and by the unused memory that the allocator holds. The changes add up to\n"
     "the difference, to the byte.\n"
     "\n"
     "INSTANT is as in 'memtrace live'. It is looked up in each run. Call sites match\n"
     "if functions and files are the same, even if line numbers changed.\n"
     "\n"
     "-o FOLDER writes diff.html, a page with both timelines on one axis and the\n"
     "differences of any two instants or ranges, and diff.svg. The page shows one\n"
     "device: the one that reserved the most in B, or --device N.\n"
     "\n"
     "--estimate compares one run with the numbers of a formula or a program, such as\n"
     "Megatron-LM's report. FILE is JSON (memtrace.estimate/1): bytes by role, by\n"
     "module, or in total. The answer has each estimated and measured number, what is\n"
     "not in the estimate, and the memory beyond the allocated peak. FILE may be\n"
     "  {\"schema\": \"memtrace.estimate/1\", \"roles\":\n"
     "   {\"parameters\": 536870912, \"gradients + optimizer state\": 1610612736}}\n"
     "\n"
     "Examples:\n"
     "  memtrace diff before.pickle after.pickle\n"
     "  memtrace diff before.pickle after.pickle -o change\n"
     "  memtrace diff run.pickle --estimate estimate.json\n"
     "  memtrace diff before.trace after.trace --at phase:step#2/backward --json",
     mt_cmd_diff},
    {"doctor", "[options]", "check what can be recorded on this machine",
     "Tests each part of a recording in a separate process. A part is ok, degraded\n"
     "(the trace will lack something) or missing. For each problem it prints a fix.",
     mt_cmd_doctor},
#if MEMTRACE_DRY_RUN
#include "dry_run_command.def"
#endif
    {"dump", "TRACE [options]", "print the events of a trace, one per line",
     "With --json, it prints one JSON object per line, not one document. Times for\n"
     "--from and --to count from the first event. Both ends are included.\n"
     "\n"
     "Examples:\n"
     "  memtrace dump run.trace --from 1.5s --to 1.6s --stacks\n"
     "  memtrace dump run.trace --json | jq 'select(.kind == \"oom\")'",
     mt_cmd_dump},
    {"export", "FORMAT TRACE [--at INSTANT] [options]",
     "export call stacks with bytes, or everything as a database",
     "FORMAT is folded (call stacks and bytes, the input of flame graph programs),\n"
     "speedscope, pprof, perfetto (a trace for ui.perfetto.dev: memory over time,\n"
     "phases, flame graphs of peaks), or sqlite: a database of all blocks, phases,\n"
     "steps and findings (docs/sql.md). INSTANT is as in 'memtrace live'. --of\n"
     "selects all allocations, the growth of steps, or the blocks that a step keeps,\n"
     "instead of live blocks. --metric selects requested bytes or the number of\n"
     "blocks.\n"
     "\n"
     "Examples:\n"
     "  memtrace export folded run.pickle | flamegraph.pl --countname bytes >peak.svg\n"
     "  memtrace export folded run.pickle --at phase:step#2/backward --metric count\n"
     "  memtrace export speedscope run.trace --of allocated-total -o run.json\n"
     "  memtrace export pprof run.pickle -o run.pb && go tool pprof -top run.pb\n"
     "  memtrace export perfetto run.pickle -o run.pftrace\n"
     "  memtrace export sqlite run.pickle -o run.db && sqlite3 run.db",
     mt_cmd_export},
    {"fit", "TRACE [--policy P ...] [options]",
     "find the smallest memory limit under which a run fits",
     "Finds, for each policy, the smallest memory limit under which every request\n"
     "that succeeded in the run succeeds again. Also names the request that fails\n"
     "first just below this limit. P is as in 'memtrace replay'. --limit also tests\n"
     "one limit, and exits with 1 if the run does not fit.\n"
     "\n"
     "Examples:\n"
     "  memtrace fit run.pickle\n"
     "  memtrace fit run.pickle -p pytorch -p pytorch:expandable_segments:True\n"
     "  memtrace fit run.pickle --limit 24GiB --json",
     mt_cmd_fit},
#if MEMTRACE_FLEET
#include "fleet_command.def"
#endif
    {"import", "FILE -o TRACE [options]", "convert a supported file to a memtrace trace",
     "Reads files of other tools, plain or compressed with zstd or gzip: PyTorch\n"
     "memory snapshots (torch.cuda.memory._dump_snapshot), traces of torch.profiler\n"
     "with profile_memory=True, profiles of JAX and TensorFlow (*.xplane.pb), JAX's\n"
     "device memory, and exports of Nsight Systems (nsys export --type sqlite).\n"
     "docs/exchange.md lists what each of them lacks. Every other command also reads\n"
     "these files directly. A trace is smaller and can be read from any position.\n"
     "\n"
     "Events of any other allocator are rows of CSV, or JSON with one object a line.\n"
     "Columns: op (alloc, free, ... as in 'memtrace dump'), addr, bytes; optional:\n"
     "t_ns, t_us or t_s, block_bytes, stream, device, pool, heap, thread, name,\n"
     "flags, and stack ('main (a.py:1);f (b.py:2)', outermost frame first). Logs of\n"
     "RMM's logging_resource_adaptor and of msMemScope are also read.\n"
     "\n"
     "Examples:\n"
     "  memtrace import snapshot.pickle -o run.trace.zst\n"
     "  memtrace replay rmm.csv -p rmm-pool -p cuda-async --limit 80GiB",
     mt_cmd_import},
    {"info", "TRACE [options]", "show the contents of a trace and whether it is complete",
     "Prints the header, devices, events by kind, symbols and size, and what is\n"
     "damaged, cut or missing. For an imported file it also lists what memtrace does\n"
     "not read. TRACE is a memtrace trace, or a file that 'memtrace import' reads.",
     mt_cmd_info},
    {"lines", "TRACE [options]", "show the memory use of each source line",
     "Shows the functions of the model and of your own files. For each line: active\n"
     "and reserved memory after it ran, the peak while it ran, the growth, and the\n"
     "bytes that it allocated. A line includes the functions that it calls. This is\n"
     "the table that line profilers for PyTorch print, computed from a trace.\n"
     "\n"
     "Examples:\n"
     "  memtrace lines run.pickle\n"
     "  memtrace lines run.pickle --function train_step --source",
     mt_cmd_lines},
    {"live", "TRACE [--at INSTANT] [--by GROUP] [options]", "show the live blocks at an instant",
     "INSTANT is peak (of allocated bytes), reserved-peak, oom, end, a time since the\n"
     "first event (1.25s, 340ms), an event number as 'memtrace dump' prints it, or\n"
     "phase:PATH, the peak within a phase. GROUP is site, stack, role, phase (in\n"
     "which the block was allocated), size or module. The rows add up to the total,\n"
     "to the byte.\n"
     "\n"
     "Examples:\n"
     "  memtrace live run.pickle\n"
     "  memtrace live run.pickle --at phase:step#2/backward --by role\n"
     "  memtrace live run.trace --at 1.25s --by stack --json",
     mt_cmd_live},
    {"oom", "[FILE] [options]", "explain an error message about memory, without a trace",
     "Reads a log or a pasted message (FILE, or standard input) and explains the last\n"
     "error about memory in it: of PyTorch, JAX, TensorFlow, vLLM, SGLang, NCCL and\n"
     "other libraries of CUDA, the driver, Linux, containers and Slurm. Adds up the\n"
     "numbers. Prints what they prove, what they cannot tell, and a next command.\n"
     "\n"
     "Examples:\n"
     "  memtrace oom error.log\n"
     "  python train.py 2>&1 | tee error.log; memtrace oom error.log\n"
     "  kubectl logs POD | memtrace oom --json",
     mt_cmd_oom},
    {"optimal", "TRACE|CSV [options]", "find a plan of addresses that needs the least memory",
     "No allocator needs less memory than the largest sum of live bytes, the lower\n"
     "bound. A plan that knows all lifetimes in advance reaches the bound or comes\n"
     "close to it. This command searches for such a plan, verifies it, and prints how\n"
     "far it is above the bound and whether it is proven that no smaller plan exists.\n"
     "\n"
     "A CSV file has the columns lower and upper (times) and size, as in the\n"
     "benchmarks of MiniMalloc.\n"
     "\n"
     "Examples:\n"
     "  memtrace optimal run.pickle\n"
     "  memtrace optimal run.trace --time 60 -o plan.csv\n"
     "  memtrace optimal A.1048576.csv --capacity 1048576 --json",
     mt_cmd_optimal},
#if MEMTRACE_DRY_RUN
#include "plan_command.def"
#endif
    {"record", "[options] [--] COMMAND [ARGUMENT ...]", "run a command and record its GPU memory",
     "Runs COMMAND unchanged. Records what COMMAND and the processes that it starts\n"
     "do with GPU memory: calls of the driver, blocks of PyTorch's allocator, ranges,\n"
     "and call stacks. Input, output and exit status are those of COMMAND.\n"
     "\n"
     "Without -o, the trace goes to the current folder and is named after the command\n"
     "and the process: train-12345.trace.zst. For several processes use -o DIR/,\n"
     "which writes one trace per process: HOST-PID.trace.zst.\n"
     "\n"
     "Examples:\n"
     "  memtrace record python train.py --epochs 3\n"
     "  memtrace record -o run.trace.zst -- ./solver input.dat\n"
     "  memtrace record -o traces/ -- torchrun --nproc-per-node 8 train.py",
     mt_cmd_record},
    {"recover", "TRACE ... [options]", "complete the trace of a process that was killed",
     "'memtrace record' does this itself when the command ends. Use recover if record\n"
     "was killed and left a tape (TRACE.tape) beside the trace.",
     mt_cmd_recover},
    {"render", "CHART TRACE -o FILE [options]", "draw one chart as SVG or PNG",
     "CHART is\n" /* cmd_render.c inserts the charts here */
     "\n"
     "Examples:\n"
     "  memtrace render timeline run.pickle -o timeline.svg\n"
     "  memtrace render timeline run.pickle -o oom.png --x=events --theme dark\n"
     "  memtrace render flamechart run.trace -o flamechart.png --size 830x600",
     mt_cmd_render},
    {"replay", "TRACE --policy P ...", "replay the requests of a trace with other allocators",
     "Sends the requests of TRACE to simulated allocators and prints one row for\n"
     "each.\n"
     "\n"
     "P is one of these:\n"
     "  pytorch             PyTorch's allocator with the options of the run\n"
     "  pytorch:OPTIONS     with options in the syntax of PYTORCH_CUDA_ALLOC_CONF\n"
     "  pytorch:            with PyTorch's default options\n"
     "  recorded            the recorded addresses, without simulation\n"
     "  NAME:OPTIONS        another allocator, such as cupy:limit=8GiB\n"
     "--policies lists all allocators. --verify exits with 1 if anything differs from\n"
     "the recording.\n"
     "\n"
     "SELECTOR is one or more conditions, separated by commas: 'site=~REGEX' (matches\n"
     "any frame, as function or file:line), 'phase=~REGEX', 'size>=20MiB'. Requests\n"
     "that match get a separate pool, as from torch.cuda.MemPool.\n"
     "\n"
     "Examples:\n"
     "  memtrace replay run.pickle --verify\n"
     "  memtrace replay run.pickle -p pytorch -p pytorch:expandable_segments:True\n"
     "  memtrace replay run.pickle -p pytorch:max_split_size_mb:64 --limit 16GiB\n"
     "  memtrace replay run.pickle -p pytorch -p 'pytorch --pool site=~embedding'\n"
     "  memtrace replay run.pickle --counters counters.csv",
     mt_cmd_replay},
    {"sql", "FILE STATEMENT|--ask NAME [options]", "answer questions in SQL about a run",
     "FILE is a trace, a snapshot, or a database of 'memtrace export sqlite'. The\n"
     "tables and their columns are in docs/sql.md; peaks, blocks, live, phases and\n"
     "findings are some of them. STATEMENT only reads, and FILE is never changed.\n"
     "\n"
     "The first question about a trace writes its database beside it, as\n"
     "FILE.memtrace.db. Further questions use it until the trace changes.\n"
     "\n"
     "Examples:\n"
     "  memtrace sql run.pickle \"SELECT * FROM peaks\"\n"
     "  memtrace sql run.db \"SELECT role, sum(bytes) FROM live_at_peak GROUP BY 1\"\n"
     "  memtrace sql run.pickle \"SELECT * FROM steps\" --csv >steps.csv\n"
     "  memtrace sql --ask list\n"
     "  memtrace sql run.trace --ask largest --set rows=5 --json",
     mt_cmd_sql},
    {"tune", "TRACE [options]", "find allocator options with which a run needs the least memory",
     "Replays TRACE with about a hundred settings of PyTorch's caching allocator.\n"
     "Prints the best setting as a line to paste, the memory that it saves, and the\n"
     "settings that no other setting beats. With --limit, tune considers only\n"
     "settings with which the run fits. The exit status is 1 if there is none.\n"
     "\n"
     "Examples:\n"
     "  memtrace tune run.pickle\n"
     "  memtrace tune run.pickle --limit 16GiB\n"
     "  eval \"$(memtrace tune run.pickle | grep -E '^(export|unset) ')\"",
     mt_cmd_tune},
    {"view", "TRACE [options]", "browse memory over time in a terminal",
     "Shows allocated bytes by role over time, and below them the live blocks of the\n"
     "selected instant. Keys select an instant, zoom, group and search the blocks,\n"
     "and show their stacks; '?' lists the keys. The last line is the command\n"
     "'memtrace live ...' that prints these blocks. view prints it when it ends.\n"
     "\n"
     "Examples:\n"
     "  memtrace view run.pickle\n"
     "  NO_COLOR=1 memtrace view run.trace.zst",
     mt_cmd_view},
    {NULL, NULL, NULL, NULL, NULL},
};

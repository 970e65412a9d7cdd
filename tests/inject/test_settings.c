/* What the library reads from its environment: see settings.h. The constructor
 * runs before main, so every case runs this program again. */
#include "cmocka_all.h"

#include <stdio.h>
#include <string.h>

#include "settings.h"

static const char *self;

/* Runs this program with `environment` and returns what it says it read. */
static void expect(const char *environment, const char *wanted)
{
    char command[1024], line[512] = "";

    snprintf(command, sizeof command, "env -i %s '%s' --show", environment, self);
    FILE *pipe = popen(command, "r");
    assert_non_null(pipe);
    assert_non_null(fgets(line, sizeof line, pipe));
    assert_int_equal(pclose(pipe), 0);
    assert_string_equal(line, wanted);
}

static void show(void)
{
    printf("%d python=%d native=%d/%d nvtx=%d autograd=%d follow=%d hz=%u flush=%u\n",
           mt_recorder_settings->asked, mt_recorder_settings->python_stacks,
           mt_recorder_settings->native_stacks, mt_recorder_settings->native_without_python,
           mt_recorder_settings->phases_nvtx, mt_recorder_settings->phases_autograd,
           mt_recorder_settings->follow, mt_recorder_settings->sample_hz,
           mt_recorder_settings->flush_ms);
}

TEST(nobody_asked)
{
    expect("A=1", "0 python=0 native=0/0 nvtx=0 autograd=0 follow=0 hz=0 flush=0\n");
    expect("MEMTRACE_OUTPUT=relative",
           "0 python=0 native=0/0 nvtx=0 autograd=0 follow=0 hz=0 flush=0\n");
}

TEST(usual_settings)
{
    expect("MEMTRACE_OUTPUT=/x",
           "1 python=1 native=0/1 nvtx=1 autograd=0 follow=1 hz=10 flush=100\n");
}

TEST(words_and_numbers)
{
    expect("MEMTRACE_OUTPUT=/x MEMTRACE_STACKS=native MEMTRACE_PHASES=torch,autograd "
           "MEMTRACE_FOLLOW=none MEMTRACE_SAMPLE_HZ=0 MEMTRACE_FLUSH_MS=9999",
           "1 python=0 native=1/0 nvtx=0 autograd=1 follow=0 hz=0 flush=200\n");
    expect("MEMTRACE_OUTPUT=/x MEMTRACE_SAMPLE_HZ=-1 MEMTRACE_FLUSH_MS=5x",
           "1 python=1 native=0/1 nvtx=1 autograd=0 follow=1 hz=10 flush=100\n");
    expect("MEMTRACE_OUTPUT=/x MEMTRACE_STACKS=python",
           "1 python=1 native=0/0 nvtx=1 autograd=0 follow=1 hz=10 flush=100\n");
    expect("MEMTRACE_OUTPUT=/x MEMTRACE_STACKS=auto,frees",
           "1 python=1 native=0/1 nvtx=1 autograd=0 follow=1 hz=10 flush=100\n");
    expect("MEMTRACE_OUTPUT=/x MEMTRACE_STACKS= MEMTRACE_SAMPLE_HZ=2x MEMTRACE_FLUSH_MS=-1",
           "1 python=0 native=0/0 nvtx=1 autograd=0 follow=1 hz=10 flush=100\n");
}

int main(int argc, char **argv)
{
    self = argv[0];
    if (argc > 1 && !strcmp(argv[1], "--show"))
        return show(), 0;
    return run_tests_of_file(NULL, NULL);
}

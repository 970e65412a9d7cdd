/* python_of_command.h: which Python a command runs, through activated environments and runners, and
 * how that Python is asked. */
#include "imitated_site.h"

static void expect_python(char *const *command, const char *path, const char *from)
{
    struct mt_python_choice choice;
    struct mt_error error = {0};

    if (mt_python_of_command(command, &choice, &error))
        fail_msg("%s", error.text);
    assert_string_equal(choice.path, path);
    assert_string_equal(choice.from, from);
}

#define COMMAND(...) ((char *const[]){__VA_ARGS__, NULL})

TEST(test_python_of_commands)
{
    char script[128], second[128], shell[128], text[256];
    const char *path = getenv("PATH");
    struct mt_error error = {0};
    struct mt_python_choice choice;
    char program[] = "python3", env[] = "env", variable[] = "A=b", train[] = "train.py";
    char nice[] = "nice", timeout[] = "timeout", minute[] = "60";

    snprintf(script, sizeof script, "%s/torchrun", root);
    snprintf(second, sizeof second, "%s/accelerate", root);
    snprintf(shell, sizeof shell, "%s/run.sh", root);
    snprintf(text, sizeof text, "#!%s\nimport x\n", python);
    write_text(script, text, 0700);
    snprintf(text, sizeof text, "#!/bin/sh\n'''exec' \"%s\" \"$0\" \"$@\"\n' '''\n", python);
    write_text(second, text, 0700);
    write_text(shell, "#!/bin/bash\npython3 train.py\n", 0700);
    expect_python(COMMAND(python, train), python, "the command");
    expect_python(COMMAND(script, train), python, "first line of torchrun");
    expect_python(COMMAND(second, train), python, "first line of accelerate");
    expect_python(COMMAND(env, variable, python, train), python, "an argument");
    expect_python(COMMAND(nice, timeout, minute, script), python, "first line of torchrun");
    setenv("PATH", root, 1);
    expect_python(COMMAND(program, train), python, "the command");
    write_text(script, "#!/usr/bin/env -S A=b python3 -u\n", 0700);
    expect_python(COMMAND(script), python, "first line of torchrun");
    expect_python(COMMAND(shell), python, "PATH");
    mkdir(format("%s/bin", root), 0700);
    assert_int_equal(symlink(python, format("%s/bin/python3", root)), 0);
    setenv("VIRTUAL_ENV", root, 1);
    expect_python(COMMAND(shell), format("%s/bin/python3", root), "VIRTUAL_ENV");
    unsetenv("VIRTUAL_ENV");
    setenv("PATH", "/nowhere", 1);
    assert_int_equal(mt_python_of_command(COMMAND(shell), &choice, &error), MT_ERR_USAGE);
    assert_int_equal(mt_python_of_command(COMMAND(program), &choice, &error), MT_ERR_USAGE);
    setenv("PATH", path, 1);
}

/* Programs of shell that activate an environment, as the option of a shell and as a file. */
TEST(test_python_of_activation)
{
    char shell[] = "sh", option[] = "-c", program[PATH_MAX], file[PATH_MAX];
    char bash[] = "/bin/bash", options[] = "-euo", value[] = "pipefail", login[] = "-lc";
    char env[] = "env", nice[] = "nice";
    const char *activated = "the environment that the command activates", *path = getenv("PATH");

    mkdir(format("%s/venv", root), 0700);
    mkdir(format("%s/venv/bin", root), 0700);
    assert_int_equal(symlink(python, format("%s/venv/bin/python3", root)), 0);
    snprintf(file, sizeof file, "%s/train.sh", root);
    snprintf(program, sizeof program, ". %s/venv/bin/activate&& python train.py", root);
    write_text(file, program, 0600);
    expect_python(COMMAND(shell, option, program), format("%s/venv/bin/python3", root), activated);
    expect_python(COMMAND(shell, file), format("%s/venv/bin/python3", root), activated);
    expect_python(COMMAND(bash, options, value, file), format("%s/venv/bin/python3", root),
                  activated);
    expect_python(COMMAND(env, nice, bash, options, value, login, program),
                  format("%s/venv/bin/python3", root), activated);
    snprintf(program, sizeof program, "cd a; source \t'%s/venv/bin/activate'; make", root);
    expect_python(COMMAND(shell, option, program), format("%s/venv/bin/python3", root), activated);
    snprintf(program, sizeof program,
             ". %s/nowhere/bin/activate\n# source %s/venv/bin/activate\ncat %s/venv/bin/activate",
             root, root, root);
    setenv("PATH", root, 1);
    expect_python(COMMAND(shell, option, program), python, "PATH");
    setenv("PATH", path, 1);
}

/* A Python that only data names, or that other users can replace, is never chosen. */
TEST(test_data_is_not_run)
{
    char data[64 + 16], script[64 + 16], listed[64 + 16], program[PATH_MAX], text[256];
    char ls[] = "ls", cp[] = "cp", git[] = "git", grep[] = "grep", shell[] = "sh", option[] = "-c";
    char print[] = "print", nowhere[] = "/dev/null";
    struct mt_python_choice choice;
    struct mt_error error = {0};

    mkdir(format("%s/data", root), 0700);
    mkdir(format("%s/data/bin", root), 0700);
    snprintf(data, sizeof data, "%s/data/python3", root);
    snprintf(script, sizeof script, "%s/data/tool.py", root);
    snprintf(listed, sizeof listed, "%s/data/train.sh", root);
    write_text(data, "#!/bin/sh\n", 0700);
    write_text(format("%s/data/bin/python3", root), "#!/bin/sh\n", 0700);
    snprintf(text, sizeof text, "#!%s\n", data);
    write_text(script, text, 0700);
    snprintf(text, sizeof text, "#!/bin/sh\n. %s/data/bin/activate\n", root);
    write_text(listed, text, 0700);
    setenv("VIRTUAL_ENV", format("%s/ours", root), 1);
    mkdir(format("%s/ours", root), 0700);
    mkdir(format("%s/ours/bin", root), 0700);
    assert_int_equal(symlink(python, format("%s/ours/bin/python3", root)), 0);
    const char *ours = format("%s/ours/bin/python3", root);
    expect_python(COMMAND(ls, data), ours, "VIRTUAL_ENV");
    expect_python(COMMAND(cp, script, nowhere), ours, "VIRTUAL_ENV");
    expect_python(COMMAND(cp, listed, nowhere), ours, "VIRTUAL_ENV");
    expect_python(COMMAND(git, grep, data), ours, "VIRTUAL_ENV");
    expect_python(COMMAND(shell, option, print, data), ours, "VIRTUAL_ENV");
    snprintf(program, sizeof program, ". %s/data/bin/activate", root);
    expect_python(COMMAND(ls, program), ours, "VIRTUAL_ENV");
    unsetenv("VIRTUAL_ENV");

    expect_python(COMMAND(script), data, "first line of tool.py");
    expect_python(COMMAND(listed), format("%s/data/bin/python3", root),
                  "the environment that the command activates");
    assert_int_equal(chmod(format("%s/data", root), 0777), 0);
    assert_int_equal(mt_python_of_command(COMMAND(listed), &choice, &error), MT_ERR_USAGE);
    assert_non_null(strstr(error.text, "other users can write to"));
    assert_non_null(strstr(error.text, "name it in the command"));
    setenv("VIRTUAL_ENV", format("%s/data", root), 1); /* the user trusts it */
    expect_python(COMMAND(listed), format("%s/data/bin/python3", root),
                  "the environment that the command activates");
    unsetenv("VIRTUAL_ENV");
}

/* Number of words, separated by spaces, before the program to run. */
static size_t words_before(const char *command, size_t (*count_words)(char *const *words))
{
    char text[256], *words[16], *rest = NULL;
    size_t count = 0;

    snprintf(text, sizeof text, "%s", command);
    for (char *word = strtok_r(text, " ", &rest); word; word = strtok_r(NULL, " ", &rest))
        words[count++] = word;
    words[count] = NULL;
    return count_words(words);
}

static size_t runner_words(const char *command)
{
    return words_before(command, mt_environment_runner);
}

static size_t launcher_words(const char *command)
{
    return words_before(command, mt_program_launcher);
}

TEST(test_program_launchers)
{
    assert_int_equal(launcher_words("env -i A=b -x=c D=e python train.py F=g"), 5);
    assert_int_equal(launcher_words("/usr/bin/env -u A -- B=c python"), 5);
    assert_int_equal(launcher_words("env -S python"), 0);
    assert_int_equal(launcher_words("nice -n 5 python"), 3);
    assert_int_equal(launcher_words("nice -5 env python"), 2);
    assert_int_equal(launcher_words("timeout -v -k 5 60 python -k 5"), 5);
    assert_int_equal(launcher_words("timeout 60"), 0);
    assert_int_equal(launcher_words("taskset -c 0-3 python"), 3);
    assert_int_equal(launcher_words("taskset -p 7"), 0);
    assert_int_equal(launcher_words("numactl --cpunodebind=0 -m 0 python"), 4);
    assert_int_equal(launcher_words("numactl --show python"), 0);
    assert_int_equal(launcher_words("nohup"), 0);
    assert_int_equal(launcher_words("ls python"), 0);
    assert_int_equal(launcher_words(""), 0);
}

TEST(test_environment_runners)
{
    assert_int_equal(runner_words("uv run python train.py"), 2);
    assert_int_equal(runner_words("/opt/uv -q --directory run run --with a -p 3.12 train.py -p"),
                     9);
    assert_int_equal(runner_words("uv run --with=a --no-sync -- torchrun train.py"), 5);
    assert_int_equal(runner_words("uv run --no-sync -m torch.distributed.run"), 3);
    assert_int_equal(runner_words("uv run -"), 2);
    assert_int_equal(runner_words("conda run -n ml --no-capture-output python train.py"), 5);
    assert_int_equal(runner_words("poetry -C app run python train.py"), 4);
    assert_int_equal(runner_words("uv run"), 0);
    assert_int_equal(runner_words("uv run --with"), 0);
    assert_int_equal(runner_words("uv run --"), 0);
    assert_int_equal(runner_words("uv"), 0);
    assert_int_equal(runner_words("uv pip run python"), 0);
    assert_int_equal(runner_words("uv -- run python"), 0);
    assert_int_equal(runner_words("python train.py run python"), 0);
    assert_int_equal(runner_words(""), 0);
}

/* The answer of the environment counts, not the Python of conda's first line. Like conda, this
 * runner refuses arguments of several lines. */
TEST(test_runner_is_asked)
{
    char conda[128], text[3 * PATH_MAX], run[] = "run", option[] = "-n", name[] = "ml";
    char program[] = "python3.12";
    struct mt_python_choice choice;
    struct mt_wheel wheel;
    struct mt_error error = {0};

    snprintf(conda, sizeof conda, "%s/conda", root);
    snprintf(
        text, sizeof text,
        "#!/bin/sh\n[ \"$*\" = \"run -n ml python3.12 -B -c $7\" ] || exit 1\n"
        "case $7 in *'\n'*) exit 2;; esac\n"
        "cat <<'END'\n\nmemtrace-version=3.12\nmemtrace-executable=/envs/ml/bin/python\n%s\nEND\n",
        torch_lines("2.4.1+cu121", "12.1"));
    write_text(conda, text, 0700);
    assert_int_equal(
        mt_python_of_command(COMMAND(conda, run, option, name, program), &choice, &error), MT_OK);
    assert_string_equal(choice.path, conda);
    assert_string_equal(choice.from, "conda run");
    if (mt_wheel_find(&choice, &wheel, &error))
        fail_msg("%s", error.text);
    assert_string_equal(wheel.python, "/envs/ml/bin/python");
}

/* The script arrives unchanged, with a real Python and a real runner. */
TEST(test_probe_behind_a_runner)
{
    char env[] = "env", variable[] = "WORD=\"\\";
    const struct mt_python_choice choice = {.path = "/usr/bin/env",
                                            .runner = COMMAND(env, variable),
                                            .runner_words = 2,
                                            .runner_python = "python3"};
    struct mt_buf output = {0};
    struct mt_error error = {0};

    assert_int_equal(mt_python_probe(&choice,
                                     "import os, sys\nif 1:\n"
                                     "    sys.stdout.write(os.environ['WORD'] + '\\'\\\\\\n\"')\n",
                                     60, &output, &error),
                     MT_OK);
    assert_int_equal(output.length, 6);
    assert_memory_equal(output.data, "\"\\'\\\n\"", 6);
    mt_buf_release(&output);
}

static long pid_in(const char *pid_file)
{
    FILE *file = fopen(pid_file, "r");
    long pid = 0;

    if (file && fscanf(file, "%ld", &pid) != 1)
        pid = 0;
    if (file)
        fclose(file);
    return pid;
}

/* Ended, or dead and not yet reaped by its new parent, within a minute. */
static bool has_ended(const char *pid_file)
{
    char path[64], text[512] = "";
    long pid = pid_in(pid_file);

    if (!pid)
        fail_msg("no process was started");
    snprintf(path, sizeof path, "/proc/%ld/stat", pid);
    for (int i = 0; i < 6000; i++) {
        FILE *file = fopen(path, "r");
        if (!file)
            return true;
        size_t length = fread(text, 1, sizeof text - 1, file);
        fclose(file);
        text[length] = '\0';
        if (strstr(text, ") Z"))
            return true;
        usleep(10000);
    }
    kill((pid_t)pid, SIGKILL);
    return false;
}

TEST(test_probe_ends)
{
    char text[256];
    struct mt_python_choice choice = {.path = ""};
    struct mt_buf output = {0};
    struct mt_error error = {0};

    snprintf(text, sizeof text, "#!/bin/sh\nsleep 600 & echo $! > %s/pid\nsleep 600\n", root);
    write_text(python, text, 0700);
    snprintf(choice.path, sizeof choice.path, "%s", python);
    assert_int_equal(mt_python_probe(&choice, "", 1, &output, &error), MT_ERR_IO);
    assert_non_null(strstr(error.text, "within 1 s"));
    assert_true(has_ended(format("%s/pid", root)));
    mt_buf_release(&output);
    strcpy(choice.path, "/nowhere/python3");
    assert_int_equal(mt_python_probe(&choice, "", 1, &output, &error), MT_ERR_IO);
    mt_buf_release(&output);
    python_says(torch_lines("2.4.1+cu121", "12.1"));
}

/* Runs the Python in another process, and sends that process a signal as soon as the Python has
 * written its number. */
static int interrupted(int signal_number, const char *script)
{
    struct mt_python_choice choice = {.path = ""};
    struct mt_buf output = {0};
    struct mt_error error = {0};
    const char *pid_file = format("%s/pid", root);
    int status = 0;

    (void)unlink(pid_file);
    write_text(python, script, 0700);
    snprintf(choice.path, sizeof choice.path, "%s", python);
    pid_t child = fork();
    if (child == 0)
        setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
    if (child == 0)
        _exit(mt_python_probe(&choice, "", 600, &output, &error) == MT_OK ? 0 : 1);
    while (!pid_in(pid_file) && waitpid(child, &status, WNOHANG) == 0)
        usleep(10000);
    kill(child, signal_number);
    assert_int_equal(waitpid(child, &status, 0), child);
    return WIFSIGNALED(status) ? WTERMSIG(status) : -WEXITSTATUS(status);
}

/* Ctrl-C, and what a job scheduler or a terminal that goes away sends: the signal ends this process
 * as ever, after the Python and its children. */
TEST(test_signals_end_the_python)
{
    static const int numbers[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};
    char script[256];

    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        snprintf(script, sizeof script, "#!/bin/sh\nsleep 600 & echo $! >%s/pid\nwait\n", root);
        assert_int_equal(interrupted(numbers[i], script), numbers[i]);
        assert_true(has_ended(format("%s/pid", root)));
    }
    snprintf(script, sizeof script, "#!/bin/sh\necho $$ >%s/pid\nexec sleep 600\n", root);
    assert_int_equal(interrupted(SIGKILL, script), SIGKILL);
    assert_true(has_ended(format("%s/pid", root)));
    python_says(torch_lines("2.4.1+cu121", "12.1"));
}

static enum mt_status probed(const char *script, int timeout_s, struct mt_buf *output,
                             struct mt_error *error)
{
    struct mt_python_choice choice = {.path = ""};

    *output = (struct mt_buf){0};
    write_text(python, script, 0700);
    snprintf(choice.path, sizeof choice.path, "%s", python);
    return mt_python_probe(&choice, "", timeout_s, output, error);
}

TEST(test_probe_reads_no_flood)
{
    struct mt_error error = {0};
    struct mt_buf output;

    assert_int_equal(probed("#!/bin/sh\nexec yes memtrace\n", 60, &output, &error), MT_ERR_IO);
    assert_non_null(strstr(error.text, "more than 64 KiB"));
    mt_buf_release(&output);
    python_says(torch_lines("2.4.1+cu121", "12.1"));
}

/* A process that outlives the Python keeps the pipe open. */
TEST(test_probe_waits_for_the_python_only)
{
    char script[256];
    struct mt_error error = {0};
    struct mt_buf output;

    snprintf(script, sizeof script,
             "#!/bin/sh\nsetsid sh -c 'echo $$ >%s/pid; exec sleep 600' &\n"
             "while [ ! -s %s/pid ]; do :; done\necho answer\n",
             root, root);
    (void)unlink(format("%s/pid", root));
    enum mt_status status = probed(script, 60, &output, &error);
    kill((pid_t)pid_in(format("%s/pid", root)), SIGKILL);
    assert_int_equal(status, MT_OK);
    assert_string_equal(output.data, "answer\n");
    mt_buf_release(&output);
    assert_int_equal(probed("#!/bin/sh\nexec >/dev/null\nsleep 600\n", 1, &output, &error),
                     MT_ERR_IO);
    assert_non_null(strstr(error.text, "within 1 s"));
    mt_buf_release(&output);
    python_says(torch_lines("2.4.1+cu121", "12.1"));
}

int main(void)
{
    return run_tests_of_file(make_root, remove_root);
}

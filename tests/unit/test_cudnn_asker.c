/* The child process that queries cuDNN: its answers, and that its failures do not reach the
 * program. The real child loads fake_cudnn.c. Tests of a child that misbehaves play its role
 * themselves. */
#define _GNU_SOURCE
#include "cmocka_all.h"

#include <sys/syscall.h>

#include "../../simulate/driver/cudnn/cudnn_asker.c"
#include "fake_cudnn.h"

static const char *device_text = "{}";

void sim_device_json(char json[MAX_DEVICE_JSON])
{
    snprintf(json, MAX_DEVICE_JSON, "%s", device_text);
}

static struct convolution with_batch(int64_t batch)
{
    struct convolution c = {.x = {.sizes = {batch, 3, 20, 20}, .dimensions = 4}};

    c.w = c.y = c.x;
    return c;
}

static bool ask(int64_t batch, struct cudnn_answer *answer)
{
    struct convolution c = with_batch(batch);

    memset(answer, 0, sizeof *answer);
    return sim_ask_cudnn(&c, answer);
}

static void use(const char *program, const char *library)
{
    setenv(SIM_ASKER_PROGRAM, program, 1);
    setenv(SIM_ASKER_LIBRARY, library, 1);
}

static int begin(void **state)
{
    (void)state;
    stop_asker();
    asker.failures = 0;
    asker.questions = 0;
    asker.cannot_plan = false;
    first_timeout_ms = timeout_ms = 30000;
    device_text = "{}";
    use(ASKER, FAKE_CUDNN);
    return *ASKER ? 0 : 1;
}

/* Waits up to two seconds. A zombie counts as ended: its adoptive parent reaps it. */
static bool has_ended(pid_t process)
{
    char path[64], state = 'R';

    snprintf(path, sizeof path, "/proc/%ld/stat", (long)process);
    for (int i = 0; i < 200 && state != 'Z'; i++) {
        FILE *file = fopen(path, "r");
        if (!file)
            return true;
        if (fscanf(file, "%*d %*s %c", &state) != 1)
            state = 'Z';
        fclose(file);
        usleep(10000);
    }
    return state == 'Z';
}

/* The pid of the running child. */
static pid_t asker_process(void)
{
    return beginning.asker;
}

TEST_WITH(configurations_come_in_order, begin, NULL)
{
    struct cudnn_answer answer;

    assert_true(ask(5, &answer));
    assert_int_equal(answer.count, 2);
    assert_int_equal(answer.configurations[0].workspace_bytes, 48);
    assert_int_equal(answer.configurations[0].engine, 60);
    assert_int_equal(answer.configurations[0].numerical_notes, 1);
    assert_int_equal(answer.configurations[0].knobs[25], 7);
    assert_int_equal(answer.configurations[0].knobs[24], CUDNN_NO_KNOB);
    assert_int_equal(answer.configurations[1].workspace_bytes, 96);
    assert_int_equal(answer.configurations[1].numerical_notes, 16);
    pid_t first = asker_process();
    assert_true(ask(6, &answer));
    assert_int_equal(answer.configurations[0].workspace_bytes, 49);
    assert_int_equal(asker_process(), first);
    assert_true(ask(FAKE_NOTHING, &answer));
    assert_int_equal(answer.count, 0);
}

/* 1 device and 20 others: two tensors of six, geometry, operation, graph, heuristics,
 * configurations. */
TEST_WITH(descriptors_are_destroyed, begin, NULL)
{
    struct cudnn_answer answer;

    assert_true(ask(FAKE_LEAKS, &answer));
    int64_t before = answer.configurations[0].workspace_bytes;
    assert_true(ask(1, &answer));
    assert_true(ask(FAKE_LEAKS, &answer));
    assert_int_equal(answer.configurations[0].workspace_bytes, before);
    assert_int_equal(answer.configurations[1].workspace_bytes, before);
}

TEST_WITH(no_driver_is_opened, begin, NULL)
{
    struct cudnn_answer answer;

    assert_true(ask(FAKE_DRIVER, &answer));
    assert_int_equal(answer.count, 2);
    assert_int_equal(answer.configurations[0].workspace_bytes, 100); /* no device */
}

TEST_WITH(the_child_inherits_nothing, begin, NULL)
{
    struct cudnn_answer answer;
    int left_open = dup2(STDERR_FILENO, 9);

    setenv("LD_PRELOAD", "", 1);
    assert_true(ask(FAKE_ENVIRONMENT, &answer));
    assert_int_equal(answer.configurations[0].workspace_bytes, 0);
    unsetenv("LD_PRELOAD");
    close(left_open);
}

static volatile sig_atomic_t child_signals;

static void count_signal(int signal)
{
    (void)signal;
    child_signals++;
}

TEST_WITH(wait_of_the_program_does_not_see_it, begin, NULL)
{
    struct cudnn_answer answer;

    signal(SIGCHLD, count_signal);
    assert_true(ask(5, &answer));
    assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
    assert_int_equal(errno, ECHILD);
    kill(asker_process(), SIGKILL);
    usleep(50000);
    assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
    assert_int_equal(errno, ECHILD);
    assert_false(ask(5, &answer));
    assert_int_equal(child_signals, 0);
    signal(SIGCHLD, SIG_DFL);
}

TEST_WITH(a_crash_fails_one_query, begin, NULL)
{
    struct cudnn_answer answer;

    assert_true(ask(5, &answer));
    pid_t first = asker_process();
    assert_false(ask(FAKE_CRASH, &answer));
    assert_true(has_ended(first));
    assert_true(ask(5, &answer));
    assert_int_not_equal(asker_process(), first);
    assert_false(ask(FAKE_CRASH, &answer));
    assert_false(ask(FAKE_CRASH, &answer));
    assert_false(ask(5, &answer)); /* enough */
    assert_int_equal(asker.socket, NO_SOCKET);
}

TEST_WITH(a_hang_ends_in_time, begin, NULL)
{
    struct cudnn_answer answer;

    assert_true(ask(5, &answer));
    pid_t first = asker_process();
    timeout_ms = 100;
    int64_t begin_ms = (int64_t)mt_now_ms();
    assert_false(ask(FAKE_HANG, &answer));
    assert_true((int64_t)mt_now_ms() - begin_ms < 2000);
    assert_false(has_ended(first));
    kill(first, SIGALRM); /* as the child does after 20 seconds */
    assert_true(has_ended(first));
}

TEST_WITH(an_old_library_is_queried_once, begin, NULL)
{
    struct cudnn_answer answer;

    device_text = FAKE_OLD_DEVICE;
    assert_false(ask(5, &answer));
    assert_true(asker.cannot_plan);
    assert_int_equal(asker.socket, NO_SOCKET);
    uint32_t questions = asker.questions;
    assert_false(ask(5, &answer));
    assert_int_equal(asker.questions, questions);
}

TEST_WITH(without_library_or_program_there_is_no_answer, begin, NULL)
{
    struct cudnn_answer answer;

    use(ASKER, "/nowhere/libcudnn_graph.so.9");
    assert_false(ask(5, &answer));
    begin(NULL);
    use("/nowhere/memtrace-ask-cudnn", FAKE_CUDNN);
    assert_false(ask(5, &answer));
    begin(NULL);
    unsetenv(SIM_ASKER_LIBRARY);
    assert_false(ask(5, &answer));
    assert_int_equal(asker.questions, 0);
}

TEST_WITH(malformed_answers_are_refused, begin, NULL)
{
    static const char *const kinds[] = {"/play/mark", "/play/number", "/play/count", "/play/state",
                                        "/play/short"};
    struct cudnn_answer answer;
    char self[PATH_MAX] = "";

    assert_true(readlink("/proc/self/exe", self, sizeof self - 1) > 0);
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        begin(state);
        use(self, kinds[i]);
        assert_false(ask(5, &answer));
        assert_int_equal(asker.questions, 1);
    }
    begin(state);
    use(self, "/play/well");
    assert_true(ask(5, &answer));
}

/* A program may close files that it did not open, and open others with the same numbers. */
TEST_WITH(a_reused_file_number_is_left_alone, begin, NULL)
{
    struct cudnn_answer answer;

    assert_true(ask(5, &answer));
    int place = asker.socket;
    int other = open("/dev/null", O_RDWR);
    assert_int_equal(dup2(other, place), place);
    close(other);
    assert_false(ask(5, &answer));
    assert_int_equal(write(place, "x", 1), 1); /* still open */
    close(place);
}

/* Otherwise, the program's next output would go to the child. */
TEST_WITH(standard_streams_are_not_used, begin, NULL)
{
    struct cudnn_answer answer;
    int status = -1;
    pid_t child = fork();

    if (child == 0) {
        close(STDIN_FILENO);
        close(STDOUT_FILENO);
        close(STDERR_FILENO);
        bool is_answered = ask(5, &answer) && asker.socket > STDERR_FILENO &&
                           fcntl(STDIN_FILENO, F_GETFD) < 0 && fcntl(STDERR_FILENO, F_GETFD) < 0;
        _exit(is_answered ? 0 : 1);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

TEST_WITH(a_child_of_fork_has_its_own, begin, NULL)
{
    struct cudnn_answer answer;
    int status = -1;

    assert_true(ask(5, &answer));
    pid_t first = asker_process(), child = fork();
    if (child == 0) {
        bool is_answered = asker.socket == NO_SOCKET && ask(7, &answer) &&
                           answer.configurations[0].workspace_bytes == 50 &&
                           asker_process() != first;
        _exit(is_answered ? 0 : 1);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_true(ask(5, &answer));
    assert_int_equal(asker_process(), first);
}

/* However a program ends, even if a child of it lives on with its files. */
TEST_WITH(it_ends_with_the_program, begin, NULL)
{
    int ends_of_pipe[2], stays[2];
    pid_t process = 0, child;

    assert_int_equal(pipe(ends_of_pipe), 0);
    assert_int_equal(pipe(stays), 0);
    child = fork();
    if (child == 0) {
        struct cudnn_answer answer;
        bool is_answered = ask(5, &answer);
        process = is_answered ? asker_process() : 0;
        if (syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0) ==
            0) { /* keeps the socket: fork handlers do not run */
            close(stays[1]);
            (void)!read(stays[0], &process, 1);
            _exit(0);
        }
        (void)!write(ends_of_pipe[1], &process, sizeof process);
        kill(getpid(), SIGKILL);
    }
    assert_int_equal(read(ends_of_pipe[0], &process, sizeof process), sizeof process);
    assert_true(process > 0);
    assert_int_equal(waitpid(child, NULL, 0), child);
    assert_true(has_ended(process));
    close(stays[1]);
}

static int end(void **state)
{
    (void)state;
    stop_asker();
    return 0;
}

static int play(const char *how)
{
    struct cudnn_question question;
    struct cudnn_answer answer = {.mark = CUDNN_ANSWER_MARK};
    size_t length = sizeof answer;

    while (recv(CUDNN_ASKER_SOCKET, &question, sizeof question, 0) == sizeof question) {
        answer.number = question.number;
        answer.mark ^= !strcmp(how, "/play/mark");
        answer.number += !strcmp(how, "/play/number");
        answer.count = !strcmp(how, "/play/count") ? MAX_CUDNN_CONFIGURATIONS + 1 : 1;
        answer.state = !strcmp(how, "/play/state") ? CUDNN_ANSWER_STATES : 0;
        length -= !strcmp(how, "/play/short");
        (void)!send(CUDNN_ASKER_SOCKET, &answer, length, 0);
    }
    return 0;
}

int main(int count, char **arguments)
{
    return count == 4 ? play(arguments[1]) : run_tests_of_file(NULL, end);
}

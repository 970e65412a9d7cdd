/* The source of a convolution's plans: the table, for the card and the cuDNN version that it was
 * measured with; else the program's cuDNN; else the rule. */
#include "cmocka_all.h"

#include "../../simulate/driver/cudnn/convolution_plans.c"

static struct sim_card card;
static int cudnn;
static struct convolution_workspace workspace;
static bool is_answered;
static int questions;

const struct sim_card *sim_card(void)
{
    return &card;
}

int sim_cudnn_version(void)
{
    return cudnn;
}

struct convolution_workspace sim_convolution_workspace(const struct convolution *convolution)
{
    (void)convolution;
    return workspace;
}

bool sim_ask_cudnn(const struct convolution *convolution, struct cudnn_answer *answer)
{
    (void)convolution;
    questions++;
    memset(answer, 0, sizeof *answer);
    answer->count = 2;
    answer->configurations[0].workspace_bytes = 77;
    answer->configurations[0].engine = 8;
    answer->configurations[0].numerical_notes = 3;
    answer->configurations[1].workspace_bytes = 78;
    return is_answered;
}

int64_t sim_stream_k_tail(const struct convolution *convolution,
                          const struct cudnn_configuration *configuration)
{
    (void)convolution, (void)configuration;
    return 0;
}

static void check(const char *name, int version, enum workspace_source without,
                  enum workspace_source with)
{
    struct convolution_plans plans;
    struct convolution convolution = {0};

    card.name = name;
    cudnn = version;
    for (int i = 0; i < 2; i++) {
        is_answered = i;
        sim_convolution_plans(&convolution, &plans);
        bool is_list = i && without != WORKSPACE_GUESSED;
        assert_int_equal(plans.count, is_list ? 2 : 1);
        assert_int_equal(plans.plans[0].workspace.source, i ? with : without);
        assert_int_equal(plans.plans[0].workspace.bytes,
                         i && with == WORKSPACE_ASKED ? 77 : workspace.bytes);
        assert_int_equal(plans.plans[0].engine, is_list ? 8 : 0);
        assert_int_equal(plans.plans[0].numerical_notes, is_list ? 3 : 0);
        assert_true(!is_list || (plans.plans[1].workspace.source == WORKSPACE_ASKED &&
                                 plans.plans[1].workspace.bytes == 78));
    }
    assert_int_equal(sim_workspace_unasked(&convolution).source, without);
}

TEST(the_table_applies_to_its_card_and_version)
{
    workspace = (struct convolution_workspace){5, WORKSPACE_MEASURED};
    check("NVIDIA H200", 91900, WORKSPACE_MEASURED, WORKSPACE_MEASURED);
    check("NVIDIA H200", 91002, WORKSPACE_BY_RULE, WORKSPACE_ASKED);
    check("NVIDIA A100-SXM4-80GB", 91900, WORKSPACE_BY_RULE, WORKSPACE_ASKED);
}

TEST(other_shapes_are_requested_from_cudnn)
{
    workspace = (struct convolution_workspace){5, WORKSPACE_BY_RULE};
    check("NVIDIA H200", 91900, WORKSPACE_BY_RULE, WORKSPACE_ASKED);
}

TEST(invalid_shapes_are_not_requested)
{
    questions = 0;
    workspace = (struct convolution_workspace){0, WORKSPACE_GUESSED};
    check("NVIDIA H200", 91900, WORKSPACE_GUESSED, WORKSPACE_GUESSED);
    assert_int_equal(questions, 0);
}

int main(void)
{
    return run_tests_of_file(NULL, NULL);
}

/* The C library's pipelines: normal use, and the errors for each kind of misuse. */
#define _POSIX_C_SOURCE 200809L
#include "check.h"
#include <cosched.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

enum { COMPUTE = COSCHED_PIPELINE_RESOURCE_COMPUTE, IO = COSCHED_PIPELINE_RESOURCE_IO };

struct numbers {
    uint64_t next, count;
};

/* A source of the numbers below `count`, as tags. */
static int produce(void *state, cosched_pipeline_buffer *buffer) {
    struct numbers *numbers = state;
    if (numbers->next == numbers->count)
        return COSCHED_PIPELINE_FLOW_END;
    cosched_pipeline_buffer_set_tag(buffer, numbers->next++);
    cosched_pipeline_buffer_set_length(buffer, 8);
    return COSCHED_PIPELINE_FLOW_CONTINUE;
}

struct total {
    _Atomic uint64_t sum, rounds;
    uint64_t next_round;
    int in_order;
};

static int consume(void *state, cosched_pipeline_buffer *buffer) {
    struct total *total = state;
    total->sum += cosched_pipeline_buffer_tag(buffer);
    total->rounds++;
    total->in_order &= cosched_pipeline_buffer_round(buffer) == total->next_round++;
    return 0;
}

static int fail_at_five(void *state, cosched_pipeline_buffer *buffer) {
    (void)state;
    return cosched_pipeline_buffer_tag(buffer) == 5 ? cosched_pipeline_fail("no more paper") : 0;
}

static int fail_silently(void *state, cosched_pipeline_buffer *buffer) {
    (void)state, (void)buffer;
    return -1;
}

static int say_42(void *state, cosched_pipeline_buffer *buffer) {
    (void)state, (void)buffer;
    return 42;
}

/* produce -> `middle` -> consume. */
static cosched_pipeline *line(struct numbers *numbers, cosched_pipeline_round_fn middle, struct total *total) {
    cosched_pipeline *pipeline = cosched_pipeline_new("line");
    int stages[] = {
        cosched_pipeline_stage(pipeline, "produce", IO, produce, numbers),
        cosched_pipeline_stage(pipeline, "middle", COMPUTE, middle, NULL),
        cosched_pipeline_stage(pipeline, "consume", IO, consume, total),
    };
    cosched_pipeline_path(pipeline, "all", 4, 64, stages, 3);
    return pipeline;
}

static int let_by(void *state, cosched_pipeline_buffer *buffer) {
    (void)state, (void)buffer;
    return 0;
}

static int pass(void *state, cosched_pipeline_buffer *buffer) {
    (void)state;
    CHECK(cosched_pipeline_buffer_length(buffer) == 8);
    CHECK(cosched_pipeline_buffer_set_length(buffer, 65) == -1);
    CHECK(cosched_pipeline_buffer_path(buffer) == 0);
    return 0;
}

static void test_runs_and_reports(void) {
    struct numbers numbers = {0, 100};
    struct total total = {.in_order = 1};
    cosched_pipeline *pipeline = line(&numbers, pass, &total);
    char *report = NULL;
    cosched_error *error = (cosched_error *)&numbers;
    CHECK(cosched_pipeline_memory_bytes(pipeline) == 256);
    CHECK(cosched_pipeline_check(pipeline, NULL) == 0);
    CHECK(cosched_pipeline_set_trace(pipeline, true) == 0);
    CHECK(cosched_pipeline_run(pipeline, &report, &error) == 0);
    CHECK(error == NULL);
    CHECK(total.sum == 4950 && total.rounds == 100 && total.in_order);
    CHECK_TEXT(report, "\"format\":\"cosched-pipeline-report-1\"");
    CHECK_TEXT(report, "\"name\":\"middle\"");
    char *text = cosched_pipeline_report_text(report), *trace = cosched_pipeline_report_trace(report);
    CHECK_TEXT(text, "middle");
    CHECK_TEXT(trace, "\"traceEvents\"");
    CHECK_TEXT(trace, "\"ph\":\"X\"");
    CHECK(cosched_pipeline_report_text("{}") == NULL && cosched_pipeline_report_text(NULL) == NULL);
    cosched_string_free(text);
    cosched_string_free(trace);
    cosched_string_free(report);
    CHECK(cosched_pipeline_run(pipeline, &report, &error) == -1);
    CHECK(cosched_error_code(error) == COSCHED_CODE_INVALID);
    CHECK_TEXT(cosched_error_message(error), "it runs once");
    cosched_error_free(error);
    cosched_pipeline_free(pipeline);
}

static void expect_failure(cosched_pipeline_round_fn middle, const char *what) {
    struct numbers numbers = {0, 1000000};
    struct total total = {0};
    cosched_pipeline *pipeline = line(&numbers, middle, &total);
    char *report = NULL;
    cosched_error *error = NULL;
    CHECK(cosched_pipeline_run(pipeline, &report, &error) == -1);
    CHECK(report == NULL);
    CHECK(cosched_error_code(error) == COSCHED_CODE_STAGE);
    CHECK_TEXT(cosched_error_stage(error), "middle");
    CHECK_TEXT(cosched_error_what(error), what);
    CHECK_TEXT(cosched_error_where(error), "cosched_pipeline_run");
    CHECK_TEXT(cosched_error_message(error), "pipeline 'line': stage 'middle'");
    CHECK_TEXT(cosched_error_report(error), "cosched-pipeline-report-1");
    cosched_error_free(error);
    cosched_pipeline_free(pipeline);
}

static void test_failing_stages(void) {
    expect_failure(fail_at_five, "no more paper");
    expect_failure(fail_silently, "its round callback failed and did not say why");
    expect_failure(say_42, "its round callback returned 42, which is not a cosched_pipeline_flow");
}

struct incarnation {
    atomic_int *users;
    size_t number;
    uint64_t rounds;
};

struct lives {
    atomic_int begun, ended, freed;
    _Atomic uint64_t rounds;
};

static struct lives lives;

static int begin(void **state, size_t number) {
    struct incarnation *own = malloc(sizeof *own);
    if (own == NULL)
        return cosched_pipeline_fail("no memory");
    *own = (struct incarnation){.users = *state, .number = number};
    *state = own;
    lives.begun++;
    return 0;
}

static int work(void *state, cosched_pipeline_buffer *buffer) {
    struct incarnation *own = state;
    (void)buffer;
    own->rounds++;
    return 0;
}

static int finish(void *state) {
    struct incarnation *own = state;
    lives.rounds += own->rounds;
    lives.ended++;
    free(own);
    return 0;
}

static void free_user(void *user) {
    (void)user;
    lives.freed++;
}

static void test_incarnations_have_states_of_their_own(void) {
    struct numbers numbers = {0, 300};
    struct total total = {.in_order = 1};
    cosched_pipeline *pipeline = line(&numbers, work, &total);
    int middle = 1;
    CHECK(cosched_pipeline_stage_incarnations(pipeline, middle, 3) == 0);
    CHECK(cosched_pipeline_stage_ordered(pipeline, middle, true) == 0);
    CHECK(cosched_pipeline_stage_init(pipeline, middle, begin) == 0);
    CHECK(cosched_pipeline_stage_cleanup(pipeline, middle, finish) == 0);
    CHECK(cosched_pipeline_stage_free(pipeline, middle, free_user) == 0);
    CHECK(cosched_pipeline_stage_kind(pipeline, middle, COSCHED_PIPELINE_KIND_THREAD) == 0);
    CHECK(cosched_pipeline_run(pipeline, NULL, NULL) == 0);
    CHECK(lives.begun == 3 && lives.ended == 3 && lives.rounds == 300);
    CHECK(total.in_order && total.rounds == 300);
    cosched_pipeline_free(pipeline);
    CHECK(lives.freed == 1);

    lives = (struct lives){0};
    pipeline = line(&numbers, work, &total);
    cosched_pipeline_stage_free(pipeline, middle, free_user);
    cosched_pipeline_free(pipeline);
    CHECK(lives.freed == 1);
}

static void test_shared_thread_and_workers(void) {
    struct numbers numbers = {0, 50};
    struct total total = {.in_order = 1};
    cosched_pipeline *pipeline = line(&numbers, pass, &total);
    cosched_pipeline_stage_on_thread(pipeline, 0, "io");
    cosched_pipeline_stage_on_thread(pipeline, 2, "io");
    cosched_pipeline_stage_repeat(pipeline, 0, 2);
    cosched_pipeline_stage_repeat(pipeline, 2, 2);
    cosched_pipeline_set_workers(pipeline, 1);
    CHECK(cosched_pipeline_run(pipeline, NULL, NULL) == 0);
    CHECK(total.rounds == 50 && total.in_order);
    cosched_pipeline_free(pipeline);
}

static void test_settings_reach_the_threads(void) {
    struct numbers numbers = {0, 50};
    struct total total = {.in_order = 1};
    cosched_pipeline *pipeline = line(&numbers, let_by, &total);
    char *report = NULL;
    CHECK(cosched_pipeline_stage_nice(pipeline, 0, 5) == 0);
    CHECK(cosched_pipeline_stage_slice_us(pipeline, 0, 200) == 0);
    CHECK(cosched_pipeline_stage_class(pipeline, 1, COSCHED_PIPELINE_CLASS_BATCH, 0) == 0);
    CHECK(cosched_pipeline_stage_cpus(pipeline, 2, (int[]){0}, 1) == 0);
    CHECK(cosched_pipeline_stage_replicable(pipeline, 1, 2) == 0);
    CHECK(cosched_pipeline_set_priorities(pipeline, "adjust-up-down") == 0);
    CHECK(cosched_pipeline_set_stall_warning(pipeline, 5.0) == 0);
    CHECK(cosched_pipeline_set_serve(pipeline, false) == 0);
    CHECK(cosched_pipeline_set_pin_in_turn(pipeline, true) == 0);
    CHECK(cosched_pipeline_run(pipeline, &report, NULL) == 0);
    CHECK_TEXT(report, "nice 5");
    CHECK_TEXT(report, "\"priorities\":\"adjust-up-down\"");
    CHECK(total.rounds == 50);
    cosched_string_free(report);
    cosched_pipeline_free(pipeline);
}

static atomic_int stuck = 1;

static int wait_for_ever(void *state, cosched_pipeline_buffer *buffer) {
    (void)state, (void)buffer;
    while (stuck)
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    return 0;
}

static void test_a_stage_that_is_stuck_is_named(void) {
    /* Its thread is left behind, so what it uses must stay. */
    static struct numbers numbers = {0, 50};
    static struct total total;
    cosched_pipeline *pipeline = line(&numbers, wait_for_ever, &total);
    cosched_error *error = NULL;
    CHECK(cosched_pipeline_set_stall_limit(pipeline, 1.0) == 0);
    CHECK(cosched_pipeline_run(pipeline, NULL, &error) == -1);
    CHECK(cosched_error_code(error) == COSCHED_CODE_STALLED);
    CHECK_TEXT(cosched_error_stage(error), "middle");
    cosched_error_free(error);
    cosched_pipeline_free(pipeline);
    stuck = 0;
}

/* The sum of the tags of two paths goes out on a third one. */
static int merge(void *state, cosched_pipeline_port *port) {
    uint64_t sum = 0;
    (void)state;
    for (int path = 0; path < 2; path++) {
        cosched_pipeline_buffer *in;
        while ((in = cosched_pipeline_accept_from(port, path)) != NULL) {
            if (cosched_pipeline_buffer_carries_block(in))
                sum += cosched_pipeline_buffer_tag(in);
            CHECK(cosched_pipeline_convey(port, in) == 0);
        }
    }
    CHECK(cosched_pipeline_output_backlog(port, 2) <= 2);
    cosched_pipeline_buffer *out = cosched_pipeline_accept_from(port, 2);
    if (out == NULL)
        return cosched_pipeline_stopping(port) ? 0 : cosched_pipeline_fail("no empty buffer");
    cosched_pipeline_buffer_set_tag(out, sum);
    cosched_pipeline_buffer_mark_last(out);
    cosched_pipeline_convey(port, out);
    return 0;
}

static int convey_twice(void *state, cosched_pipeline_port *port) {
    cosched_pipeline_buffer *buffer;
    (void)state;
    while ((buffer = cosched_pipeline_accept(port)) != NULL) {
        cosched_pipeline_convey(port, buffer);
        CHECK(cosched_pipeline_convey(port, buffer) == -1);
    }
    return 0;
}

static int keep(void *state, cosched_pipeline_port *port) {
    cosched_pipeline_buffer *buffer;
    (void)state;
    cosched_pipeline_accept(port);
    while ((buffer = cosched_pipeline_accept(port)) != NULL)
        cosched_pipeline_convey(port, buffer);
    return 0;
}

static void test_bodies(void) {
    struct numbers odd = {0, 50}, even = {0, 30};
    struct total total = {.in_order = 1};
    cosched_pipeline *pipeline = cosched_pipeline_new("merge");
    int from[] = {
        cosched_pipeline_stage(pipeline, "odd", IO, produce, &odd),
        cosched_pipeline_stage(pipeline, "even", IO, produce, &even),
    };
    int middle = cosched_pipeline_body(pipeline, "merge", COMPUTE, merge, NULL);
    int to = cosched_pipeline_stage(pipeline, "consume", IO, consume, &total);
    CHECK(cosched_pipeline_path(pipeline, "odd", 2, 16, (int[]){from[0], middle}, 2) == 0);
    CHECK(cosched_pipeline_path(pipeline, "even", 2, 16, (int[]){from[1], middle}, 2) == 1);
    CHECK(cosched_pipeline_path(pipeline, "out", 2, 16, (int[]){middle, to}, 2) == 2);
    CHECK(cosched_pipeline_run(pipeline, NULL, NULL) == 0);
    CHECK(total.sum == 49 * 50 / 2 + 29 * 30 / 2 && total.rounds == 1);
    cosched_pipeline_free(pipeline);

    struct {
        cosched_pipeline_body_fn body;
        const char *what;
    } wrong[] = {{convey_twice, "it conveyed a buffer that it had not accepted"}, {keep, "while holding 1 buffers"}};
    for (int i = 0; i < 2; i++) {
        struct numbers numbers = {0, 10};
        cosched_error *error = NULL;
        pipeline = cosched_pipeline_new("wrong");
        int stages[] = {
            cosched_pipeline_stage(pipeline, "produce", IO, produce, &numbers),
            cosched_pipeline_body(pipeline, "body", IO, wrong[i].body, NULL),
        };
        cosched_pipeline_path(pipeline, "all", 3, 16, stages, 2);
        CHECK(cosched_pipeline_run(pipeline, NULL, &error) == -1);
        CHECK_TEXT(cosched_error_message(error), wrong[i].what);
        CHECK_TEXT(cosched_error_stage(error), "body");
        cosched_error_free(error);
        cosched_pipeline_free(pipeline);
    }
}

static void *stop_soon(void *pipeline) {
    nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
    char *snapshot = cosched_pipeline_snapshot(pipeline);
    CHECK_TEXT(snapshot, "\"name\":\"produce\"");
    cosched_string_free(snapshot);
    cosched_pipeline_stop(pipeline);
    return NULL;
}

static void test_stops_from_another_thread(void) {
    struct numbers numbers = {0, UINT64_MAX};
    struct total total = {0};
    cosched_pipeline *pipeline = line(&numbers, let_by, &total);
    cosched_error *error = NULL;
    pthread_t stopper;
    CHECK(cosched_pipeline_wait(pipeline, NULL, &error) == -1);
    CHECK_TEXT(cosched_error_message(error), "was not started");
    cosched_error_free(error);
    CHECK(cosched_pipeline_snapshot(pipeline) == NULL);
    CHECK(cosched_pipeline_start(pipeline, &error) == 0);
    pthread_create(&stopper, NULL, stop_soon, pipeline);
    CHECK(cosched_pipeline_wait(pipeline, NULL, &error) == -1);
    CHECK(cosched_error_code(error) == COSCHED_CODE_STOPPED);
    CHECK(cosched_error_stage(error) == NULL);
    cosched_error_free(error);
    pthread_join(stopper, NULL);
    CHECK(cosched_pipeline_wait(pipeline, NULL, &error) == -1);
    CHECK_TEXT(cosched_error_message(error), "waits or has waited");
    cosched_error_free(error);
    cosched_pipeline_free(pipeline);

    /* A running pipeline may be freed: it is stopped. */
    numbers.next = 0;
    pipeline = line(&numbers, let_by, &total);
    CHECK(cosched_pipeline_start(pipeline, NULL) == 0);
    cosched_pipeline_free(pipeline);
}

static cosched_pipeline *own;

static int wait_for_itself(void *state, cosched_pipeline_buffer *buffer) {
    cosched_error *error = NULL;
    (void)state, (void)buffer;
    CHECK(cosched_pipeline_wait(own, NULL, &error) == -1);
    CHECK_TEXT(cosched_error_message(error), "cannot wait for its own pipeline");
    cosched_error_free(error);
    cosched_pipeline_stop(own);
    return 0;
}

static void test_a_stage_may_stop_its_pipeline_and_not_wait_for_it(void) {
    struct numbers numbers = {0, UINT64_MAX};
    struct total total = {0};
    cosched_error *error = NULL;
    own = line(&numbers, wait_for_itself, &total);
    CHECK(cosched_pipeline_run(own, NULL, &error) == -1);
    CHECK(cosched_error_code(error) == COSCHED_CODE_STOPPED);
    cosched_error_free(error);
    cosched_pipeline_free(own);
}

/* The first error is reported, both by check and by run. */
static void expect_wrong(cosched_pipeline *pipeline, cosched_code code, const char *where, const char *what) {
    cosched_error *error = NULL;
    for (int i = 0; i < 2; i++) {
        CHECK((i ? cosched_pipeline_run(pipeline, NULL, &error) : cosched_pipeline_check(pipeline, &error)) == -1);
        CHECK(cosched_error_code(error) == code);
        CHECK_TEXT(cosched_error_message(error), what);
        CHECK_TEXT(cosched_error_where(error), where);
        cosched_error_free(error);
    }
    cosched_pipeline_free(pipeline);
}

static void test_wrong_building(void) {
    struct numbers numbers = {0, 1};
    CHECK(cosched_pipeline_new(NULL) == NULL);
    CHECK(cosched_pipeline_new("\xff") == NULL);
    expect_wrong(cosched_pipeline_new("empty"), COSCHED_CODE_GRAPH, "cosched_pipeline_", "has no path");

    cosched_pipeline *pipeline = cosched_pipeline_new("p");
    CHECK(cosched_pipeline_stage(pipeline, "a", 7, produce, &numbers) == -1);
    expect_wrong(pipeline, COSCHED_CODE_INVALID, "cosched_pipeline_stage", "7 is not a cosched_pipeline_resource");

    pipeline = cosched_pipeline_new("p");
    CHECK(cosched_pipeline_stage(pipeline, "a", IO, NULL, NULL) == -1);
    expect_wrong(pipeline, COSCHED_CODE_INVALID, "cosched_pipeline_stage", "the callback of stage 'a' is NULL");

    pipeline = cosched_pipeline_new("p");
    CHECK(cosched_pipeline_stage(pipeline, "caf\xe9", IO, produce, NULL) == -1);
    expect_wrong(pipeline, COSCHED_CODE_INVALID, "cosched_pipeline_stage", "the stage's name is not UTF-8");

    pipeline = cosched_pipeline_new("p");
    CHECK(cosched_pipeline_stage_repeat(pipeline, 3, 2) == -1);
    expect_wrong(pipeline, COSCHED_CODE_INVALID, "cosched_pipeline_stage_repeat", "there is no stage 3");

    pipeline = cosched_pipeline_new("p");
    int body = cosched_pipeline_body(pipeline, "b", IO, keep, NULL);
    CHECK(cosched_pipeline_stage_incarnations(pipeline, body, 2) == -1);
    CHECK(cosched_pipeline_path(pipeline, "x", 2, 2, (int[]){body, -1}, 2) == -1);
    expect_wrong(pipeline, COSCHED_CODE_INVALID, "cosched_pipeline_stage_incarnations", "is a body");

    pipeline = cosched_pipeline_new("p");
    body = cosched_pipeline_body(pipeline, "b", IO, keep, NULL);
    int source = cosched_pipeline_stage(pipeline, "s", IO, produce, &numbers);
    CHECK(cosched_pipeline_path(pipeline, "x", 2, 8, (int[]){source, body}, 2) == 0);
    CHECK(cosched_pipeline_stage_holds(pipeline, body, 2) == 0);
    expect_wrong(pipeline, COSCHED_CODE_GRAPH, "cosched_pipeline_", "path 'x' hold up to 2 buffers");

    pipeline = cosched_pipeline_new("p");
    CHECK(cosched_pipeline_set_priorities(pipeline, "faster") == -1);
    expect_wrong(pipeline, COSCHED_CODE_INVALID, "cosched_pipeline_set_priorities", "'faster' is not a rule");

    pipeline = cosched_pipeline_new("p");
    CHECK(cosched_pipeline_set_stall_limit(pipeline, -1.0) == -1);
    expect_wrong(pipeline, COSCHED_CODE_INVALID, "cosched_pipeline_set_stall_limit", "-1 is not a time in seconds");

    struct total total;
    pipeline = line(&numbers, pass, &total);
    CHECK(cosched_pipeline_stage_slice_us(pipeline, 1, 99) == 0);
    expect_wrong(pipeline, COSCHED_CODE_GRAPH, "cosched_pipeline_", "a slice is 100 to 100000 us");

    pipeline = line(&numbers, pass, &total);
    CHECK(cosched_pipeline_stage_incarnations(pipeline, 1, 0) == 0);
    expect_wrong(pipeline, COSCHED_CODE_GRAPH, "cosched_pipeline_", "stage 'middle' has 0 incarnations");
}

static void test_null_is_told_or_ignored(void) {
    cosched_error *error = NULL;
    CHECK(cosched_pipeline_run(NULL, NULL, &error) == -1);
    CHECK_TEXT(cosched_error_message(error), "the pipeline is NULL");
    cosched_error_free(error);
    CHECK(cosched_pipeline_run(NULL, NULL, NULL) == -1);
    CHECK(cosched_error_code(NULL) == COSCHED_CODE_OK && *cosched_error_message(NULL) == '\0');
    CHECK(cosched_pipeline_set_workers(NULL, 1) == -1 && cosched_pipeline_convey(NULL, NULL) == -1);
    CHECK(cosched_pipeline_buffer_data(NULL) == NULL && cosched_pipeline_accept(NULL) == NULL);
    cosched_pipeline_free(NULL);
    cosched_error_free(NULL);
    cosched_string_free(NULL);
    cosched_pipeline_stop(NULL);
}

int main(void) {
    /* A hang must not block the suite. */
    alarm(60);
    CHECK(cosched_version_number() == COSCHED_VERSION_NUMBER);
    CHECK_TEXT(cosched_version(), COSCHED_VERSION);
    test_runs_and_reports();
    test_failing_stages();
    test_incarnations_have_states_of_their_own();
    test_shared_thread_and_workers();
    test_settings_reach_the_threads();
    test_a_stage_that_is_stuck_is_named();
    test_bodies();
    test_stops_from_another_thread();
    test_a_stage_may_stop_its_pipeline_and_not_wait_for_it();
    test_wrong_building();
    test_null_is_told_or_ignored();
    return checks_end();
}

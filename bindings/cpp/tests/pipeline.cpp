// The C++ interface: normal use, and the exceptions after failures.
#include <cosched/pipeline.hpp>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <memory>
#include <string>
#include <thread>
#include <type_traits>
#include <unistd.h>

using namespace cosched::pipeline;

static std::atomic<int> passed{0}, failed{0};

#define CHECK(condition) check((condition), #condition, __LINE__)

static void check(bool holds, const char *what, int line) {
    (holds ? passed : failed)++;
    if (!holds)
        std::printf("FAILED: line %d: %s\n", line, what);
}

static bool contains(const std::string &text, const std::string &part) { return text.find(part) != std::string::npos; }

static_assert(!std::is_copy_constructible_v<Graph> && std::is_nothrow_move_constructible_v<Graph>);
static_assert(!std::is_copy_constructible_v<Buffer> && std::is_nothrow_move_constructible_v<Buffer>);
static_assert(std::is_convertible_v<Span<int>, Span<const int>> && !std::is_convertible_v<Span<const int>, Span<int>>);

// A source of the numbers below `count`.
static Stage numbers(const std::string &name, std::uint64_t count) {
    return Stage(name, Resource::io, [count, next = std::uint64_t{0}](Buffer &buffer) mutable {
        if (next == count)
            return Flow::end;
        buffer.resize(sizeof next);
        buffer.as<std::uint64_t>()[0] = next++;
        return Flow::more;
    });
}

static std::uint64_t number(Buffer &buffer) { return buffer.as<std::uint64_t>()[0]; }

static void runs_and_reports() {
    std::uint64_t sum = 0;
    Pipeline pipeline("sum");
    pipeline.buffers(4, 4096).stage(numbers("count", 1000));
    pipeline.stage(Stage("double", Resource::compute, [](Buffer &buffer) { buffer.as<std::uint64_t>()[0] *= 2; }));
    pipeline.stage(Stage("add", Resource::io, [&sum](Buffer &buffer) { sum += number(buffer); }));
    Options options;
    options.workers = 1;
    options.trace = true;
    Report report = pipeline.run(options);
    CHECK(sum == 999 * 1000);
    CHECK(contains(report.text(), "double") && contains(report.trace(), "\"traceEvents\""));
    bool again = false;
    try {
        pipeline.run();
    } catch (const std::logic_error &error) {
        again = contains(error.what(), "runs once");
    }
    CHECK(again);
    CHECK(contains(report.json, "\"format\":\"cosched-pipeline-report-1\""));
}

struct Strange {};

// A graph whose middle stage calls `work`; if that throws, the pipeline ends.
template <class Work>
static Graph failing(Work work) {
    Graph graph("fails");
    StageId count = graph.stage(numbers("count", 1000000));
    StageId sort = graph.stage(Stage("sort", Resource::compute, work));
    graph.path("all", 3, 64, {count, sort});
    return graph;
}

static void an_exception_arrives_with_the_stage_s_name() {
    try {
        failing([](Buffer &buffer) {
            if (number(buffer) == 5)
                throw std::out_of_range("on purpose");
        }).run();
        CHECK(!"it ran");
    } catch (const StageError &error) {
        CHECK(error.stage() == "sort" && error.reason() == "on purpose");
        CHECK(error.code() == COSCHED_CODE_STAGE && !error.stopped());
        CHECK(contains(error.what(), "pipeline 'fails': stage 'sort': on purpose"));
        CHECK(contains(error.report(), "\"name\":\"sort\""));
        try {
            std::rethrow_if_nested(error);
            CHECK(!"something is nested");
        } catch (const std::out_of_range &cause) {
            CHECK(std::string(cause.what()) == "on purpose");
        }
    }
    try {
        failing([](Buffer &) { throw Strange(); }).run();
        CHECK(!"it ran");
    } catch (const StageError &error) {
        CHECK(contains(error.reason(), "no std::exception"));
        try {
            std::rethrow_if_nested(error);
        } catch (const Strange &) {
            CHECK(true);
        }
    }
    try {
        failing([](Buffer &buffer) { buffer.resize(65); }).run();
        CHECK(!"it ran");
    } catch (const StageError &error) {
        CHECK(contains(error.reason(), "65 bytes in a buffer of 64"));
    }
}

static std::atomic<int> begun{0}, ended{0}, alive{0};

// A stage with separate state for each incarnation.
struct Worker {
    std::shared_ptr<int> life = std::shared_ptr<int>(new int(alive++), [](int *p) { alive--, delete p; });
    std::uint64_t rounds = 0;
    std::atomic<std::uint64_t> *total;

    void init() { begun++; }
    void operator()(Buffer &) { rounds++; }
    void cleanup() {
        *total += rounds;
        ended++;
    }
};

static void incarnations_are_separate_and_keep_the_order() {
    std::atomic<std::uint64_t> total{0};
    std::uint64_t next = 0;
    bool in_order = true;
    {
        Graph graph("fork");
        auto make = [&total](std::size_t) {
            Worker worker;
            worker.total = &total;
            return worker;
        };
        StageId count = graph.stage(numbers("count", 500));
        StageId work = graph.stage(Stage::replicated("work", 3, Resource::compute, make).kind(Kind::thread).ordered(true));
        StageId tell = graph.stage(Stage("tell", Resource::io, [&](Buffer &buffer) { in_order &= number(buffer) == next++; }));
        graph.path("all", 6, 64, {count, work, tell});
        CHECK(graph.memory_bytes() == 384);
        graph.check();
        Graph moved = std::move(graph);
        moved.run();
    }
    CHECK(total == 500 && next == 500 && in_order);
    CHECK(begun == 3 && ended == 3 && alive == 0);
}

static void settings_reach_the_threads() {
    Pipeline pipeline("settings");
    pipeline.buffers(2, 64).stage(numbers("count", 10).nice(5).slice_us(200));
    pipeline.stage(Stage("work", Resource::compute, [](Buffer &) {}).scheduling(Class::batch).cpus({0}));
    Options options;
    options.priorities = "adjust-once";
    options.pin_in_turn = true;
    std::string report = pipeline.run(options).json;
    CHECK(contains(report, "nice 5") && contains(report, "\"priorities\":\"adjust-once\""));

    auto complains = [](Stage stage, const std::string &priorities, const std::string &what) {
        try {
            Options wrong;
            wrong.priorities = priorities;
            Pipeline("p").buffers(2, 64).stage(std::move(stage)).run(wrong);
        } catch (const Error &error) {
            return contains(error.what(), what);
        }
        return false;
    };
    CHECK(complains(numbers("a", 1).nice(20), "auto", "a nice value is -20 to 19"));
    CHECK(complains(numbers("a", 1).scheduling(Class::fifo), "auto", "1 to 99"));
    CHECK(complains(numbers("a", 1), "faster", "'faster' is not a rule for priorities"));
}

static void a_stage_that_is_stuck_is_named_and_left_behind() {
    auto stuck = std::make_shared<std::atomic<bool>>(true);
    {
        Pipeline pipeline("stuck");
        pipeline.buffers(2, 64).stage(numbers("count", 10));
        pipeline.stage(Stage("wait", Resource::io, [stuck](Buffer &) {
            while (*stuck)
                std::this_thread::sleep_for(std::chrono::milliseconds(1));
        }));
        Options options;
        options.stall_limit = std::chrono::seconds(1);
        try {
            pipeline.run(options);
            CHECK(!"it ran");
        } catch (const StageError &error) {
            CHECK(error.stage() == "wait" && error.code() == COSCHED_CODE_STALLED);
        }
    }
    // The stage still exists, for its thread.
    CHECK(stuck.use_count() > 1);
    *stuck = false;
    for (int i = 0; i < 5000 && stuck.use_count() > 1; i++)
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    CHECK(stuck.use_count() == 1);
}

static void paths_meet_in_a_body() {
    std::uint64_t result = 0;
    Graph graph("meet");
    PathId odd, even, out;
    StageId from_odd = graph.stage(numbers("odd", 50)), from_even = graph.stage(numbers("even", 30));
    StageId meet = graph.stage(Stage("meet", Resource::compute, [&](Port &port) {
        std::uint64_t sum = 0;
        for (PathId path : {odd, even})
            while (auto buffer = port.accept_from(path)) {
                if (buffer->carries_block())
                    sum += number(*buffer);
                port.convey(std::move(*buffer));
            }
        CHECK(port.output_backlog(out) <= 2);
        auto buffer = port.accept_from(out);
        buffer->resize(sizeof sum);
        buffer->as<std::uint64_t>()[0] = sum;
        port.convey(std::move(*buffer));
        port.end(out);
    }).holds(1));
    StageId tell = graph.stage(Stage("tell", Resource::io, [&](Buffer &buffer) { result = number(buffer); }));
    odd = graph.path("odd", 2, 16, {from_odd, meet});
    even = graph.path("even", 2, 16, {from_even, meet});
    out = graph.path("out", 2, 16, {meet, tell});
    graph.run();
    CHECK(result == 49 * 50 / 2 + 29 * 30 / 2);
}

static void stops_from_another_thread() {
    std::atomic<bool> seen{false};
    auto endless = [&seen](Buffer &) { seen = true; };
    {
        Graph graph = failing(endless);
        CHECK(!seen);
    }
    Pipeline pipeline("endless");
    pipeline.buffers(2, 64).stage(numbers("count", ~std::uint64_t{0})).stage(Stage("pass", Resource::compute, endless));
    Running running = pipeline.start();
    std::thread stopper([&] {
        while (!seen)
            std::this_thread::yield();
        CHECK(contains(running.snapshot().json, "\"name\":\"pass\""));
        running.stop();
    });
    try {
        running.wait();
        CHECK(!"it ended by itself");
    } catch (const Error &error) {
        CHECK(error.stopped());
    }
    stopper.join();

    Pipeline dropped("dropped");
    dropped.buffers(2, 64).stage(numbers("count", ~std::uint64_t{0})).start();
}

static void wrong_building_is_thrown_at_once() {
    auto complains = [](auto build, const std::string &what) {
        try {
            build();
        } catch (const Error &error) {
            return contains(error.what(), what);
        }
        return false;
    };
    Graph graph("wrong");
    CHECK(complains([&] { graph.check(); }, "has no path"));
    CHECK(complains([&] { graph.path("p", 1, 1, {StageId{9}}); }, "there is no stage 9"));
    CHECK(complains([] { Pipeline("p").buffers(0, 64).stage(numbers("count", 1)).run(); }, "has no buffers"));
    CHECK(complains([] { Pipeline("p").buffers(2, 64).stage(numbers("\xff", 1)); }, "is not UTF-8"));
    auto none = [](std::size_t) { return [](Buffer &) {}; };
    Pipeline empty("p");
    empty.buffers(2, 64).stage(numbers("count", 1)).stage(Stage::replicated("work", 0, Resource::compute, none));
    CHECK(complains([&] { empty.run(); }, "0 incarnations"));
}

int main() {
    // A hang must not block the suite.
    alarm(60);
    runs_and_reports();
    an_exception_arrives_with_the_stage_s_name();
    incarnations_are_separate_and_keep_the_order();
    settings_reach_the_threads();
    a_stage_that_is_stuck_is_named_and_left_behind();
    paths_meet_in_a_body();
    stops_from_another_thread();
    wrong_building_is_thrown_at_once();
    std::printf("%d passed, %d failed\n", passed.load(), failed.load());
    return failed ? 1 : 0;
}

// Peers of `bench pipeline`: oneTBB's parallel_pipeline and Taskflow's Pipeline do the same as cosched-pipeline's example
// `handoff`: a number of tokens pass through serial stages, a fixed pool of buffers circulates, each stage works for a
// number of steps and touches its token. The time is that from the first call of the first stage to the last call of the
// last one: the creation of threads is left out. One line of JSON.
//
//   pipeline_peers tbb|taskflow|bound --stages N --tokens N --buffers N --workers N --steps N
//
// `bound` is the work alone: plain threads that share it, with no hand-off.
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <string>
#include <thread>
#include <vector>

#ifdef WITH_TBB
#include <oneapi/tbb/global_control.h>
#include <oneapi/tbb/parallel_pipeline.h>
#include <oneapi/tbb/version.h>
#endif
#ifdef WITH_TASKFLOW
#include <taskflow/algorithm/pipeline.hpp>
#include <taskflow/taskflow.hpp>
#endif

namespace {

struct Buffer {
    alignas(64) std::uint64_t tag;
};

struct Options {
    long stages = 2, tokens = 100000, buffers = 16, workers = 1, steps = 0;
};

// The same dependent steps as in the Rust program, which nothing can shorten.
void work(long steps) {
    std::uint64_t x = 1;
    asm volatile("" : "+r"(x));
    for (long i = 0; i < steps; ++i) {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
    }
    asm volatile("" : : "r"(x));
}

void stage(Buffer &buffer, long steps) {
    work(steps);
    ++buffer.tag;
}

using Clock = std::chrono::steady_clock;

struct Span {
    Clock::time_point begin, end;

    double seconds() const { return std::chrono::duration<double>(end - begin).count(); }
};

#ifdef WITH_TBB
double run_tbb(const Options &o) {
    Span span;
    namespace tbb = oneapi::tbb;
    tbb::global_control limit(tbb::global_control::max_allowed_parallelism, static_cast<std::size_t>(o.workers));
    std::vector<Buffer> buffers(static_cast<std::size_t>(o.buffers));
    long next = 0, seen = 0;
    const auto mode = tbb::filter_mode::serial_in_order;
    auto chain = tbb::make_filter<void, Buffer *>(mode, [&](tbb::flow_control &control) -> Buffer * {
        if (next == o.tokens) {
            control.stop();
            return nullptr;
        }
        if (next == 0) span.begin = Clock::now();
        Buffer *buffer = &buffers[static_cast<std::size_t>(next++ % o.buffers)];
        stage(*buffer, o.steps);
        return buffer;
    });
    for (long i = 1; i + 1 < o.stages; ++i) {
        chain = chain & tbb::make_filter<Buffer *, Buffer *>(mode, [&](Buffer *buffer) {
            stage(*buffer, o.steps);
            return buffer;
        });
    }
    auto whole = chain & tbb::make_filter<Buffer *, void>(mode, [&](Buffer *buffer) {
        stage(*buffer, o.steps);
        if (++seen == o.tokens) span.end = Clock::now();
    });
    tbb::parallel_pipeline(static_cast<std::size_t>(o.buffers), whole);
    if (seen != o.tokens) {
        std::fprintf(stderr, "pipeline_peers: tbb carried %ld tokens of %ld\n", seen, o.tokens);
        std::exit(1);
    }
    return span.seconds();
}
#endif

#ifdef WITH_TASKFLOW
double run_taskflow(const Options &o) {
    Span span;
    tf::Executor executor(static_cast<std::size_t>(o.workers));
    tf::Taskflow flow;
    std::vector<Buffer> buffers(static_cast<std::size_t>(o.buffers));
    long seen = 0;
    std::vector<tf::Pipe<>> pipes;
    for (long i = 0; i < o.stages; ++i) {
        pipes.emplace_back(tf::PipeType::SERIAL, [&, i](tf::Pipeflow &token) {
            if (i == 0 && token.token() == static_cast<std::size_t>(o.tokens)) {
                token.stop();
                return;
            }
            if (i == 0 && token.token() == 0) span.begin = Clock::now();
            stage(buffers[token.line()], o.steps);
            if (i + 1 == o.stages && ++seen == o.tokens) span.end = Clock::now();
        });
    }
    tf::ScalablePipeline<std::vector<tf::Pipe<>>::iterator> line(static_cast<std::size_t>(o.buffers), pipes.begin(), pipes.end());
    flow.composed_of(line);
    executor.run(flow).wait();
    if (seen != o.tokens) {
        std::fprintf(stderr, "pipeline_peers: taskflow carried %ld tokens of %ld\n", seen, o.tokens);
        std::exit(1);
    }
    return span.seconds();
}
#endif

double run_bound(const Options &o) {
    std::vector<std::thread> threads;
    std::vector<Span> spans(static_cast<std::size_t>(o.workers));
    for (long t = 0; t < o.workers; ++t) {
        threads.emplace_back([&o, t, &span = spans[static_cast<std::size_t>(t)]] {
            span.begin = Clock::now();
            Buffer buffer{static_cast<std::uint64_t>(t) + 1};
            const long visits = o.tokens * o.stages;
            for (long i = t; i < visits; i += o.workers) stage(buffer, o.steps);
            span.end = Clock::now();
            if (buffer.tag == 0) std::abort();  // so that the work is used
        });
    }
    for (auto &thread : threads) thread.join();
    Span all = spans[0];
    for (const Span &span : spans) {
        all.begin = std::min(all.begin, span.begin);
        all.end = std::max(all.end, span.end);
    }
    return all.seconds();
}

long number(const char *text, const char *name) {
    char *end;
    const long value = std::strtol(text, &end, 10);
    if (*end || end == text || value < (std::strcmp(name, "--steps") ? 1 : 0)) {
        std::fprintf(stderr, "pipeline_peers: %s '%s' is not a number that can be\n", name, text);
        std::exit(2);
    }
    return value;
}

}  // namespace

int main(int argc, char **argv) {
    Options o;
    const std::string kind = argc > 1 ? argv[1] : "";
    for (int i = 2; i + 1 < argc; i += 2) {
        const std::string name = argv[i];
        long *where = name == "--stages" ? &o.stages : name == "--tokens" ? &o.tokens : name == "--buffers" ? &o.buffers
                    : name == "--workers" ? &o.workers : name == "--steps" ? &o.steps : nullptr;
        if (!where) {
            std::fprintf(stderr, "pipeline_peers: what is '%s'?\n", argv[i]);
            return 2;
        }
        *where = number(argv[i + 1], argv[i]);
    }
    double took_s = 0;
    std::string version = "-";
    if (kind == "bound") {
        took_s = run_bound(o);
#ifdef WITH_TBB
    } else if (kind == "tbb") {
        took_s = run_tbb(o);
        version = TBB_runtime_version();
#endif
#ifdef WITH_TASKFLOW
    } else if (kind == "taskflow") {
        took_s = run_taskflow(o);
        version = tf::version();
#endif
    } else {
        std::fprintf(stderr, "pipeline_peers: '%s' is none of the peers that were built in\n", kind.c_str());
        return 2;
    }
    const double cpu_s = static_cast<double>(std::clock()) / CLOCKS_PER_SEC;
    const double visits = static_cast<double>(o.tokens) * static_cast<double>(o.stages);
    std::printf("{\"peer\": \"%s\", \"version\": \"%s\", \"elapsed_s\": %.9f, \"cpu_s\": %.6f, \"ns_per_visit\": %.3f}\n",
                kind.c_str(), version.c_str(), took_s, cpu_s, took_s * 1e9 / visits);
    return 0;
}

// Graphs of stages, and their runs.
#ifndef COSCHED_PIPELINE_GRAPH_HPP
#define COSCHED_PIPELINE_GRAPH_HPP

#include <cosched.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cosched/pipeline/buffer.hpp>
#include <cosched/pipeline/error.hpp>
#include <cosched/pipeline/stage.hpp>
#include <exception>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace cosched::pipeline {

// A report of what the stages did in a run. docs/pipeline-bindings.md describes the fields of the JSON.
struct Report {
    std::string json;

    // The report as a table for people.
    std::string text() const { return taken(cosched_pipeline_report_text(json.c_str())); }
    // The report as a Chrome trace; it contains the rounds if Options::trace was set.
    std::string trace() const { return taken(cosched_pipeline_report_trace(json.c_str())); }

    // Copies a text of libcosched, and frees it.
    static std::string taken(char *text) {
        std::unique_ptr<char, void (*)(char *)> owner(text, cosched_string_free);
        return text != nullptr ? text : "";
    }
};

// How to run a graph.
struct Options {
    // The number of workers for the stages that compute; 0 for one per CPU.
    std::size_t workers = 0;
    // How the scheduling of the stages' threads is chosen: "auto", "adjust-once", "nice-up-io" and others (docs/pipeline.md).
    std::string priorities = "default";
    // Bind each stage that has a thread of its own to one CPU, in turn.
    bool pin_in_turn = false;
    // A stage that works on one buffer for longer than this ends the run; 0: no limit.
    std::chrono::duration<double> stall_limit{0};
    // A stage that takes longer than this is named on standard error and in the report; 0: the library's default.
    std::chrono::duration<double> stall_warning{0};
    // Record the start and the end of every round, for Report::trace.
    bool trace = false;
    // Answer `cosched pipeline show` while it runs.
    bool serve = false;
};

// The index of a stage in its graph.
struct StageId {
    int number = -1;
};

namespace detail {

// libcosched's pipeline and its stages.
class Handle {
public:
    explicit Handle(const std::string &name) : raw_(cosched_pipeline_new(name.c_str())) {
        if (raw_ == nullptr)
            throw std::invalid_argument("the pipeline's name is not UTF-8");
    }
    ~Handle() { cosched_pipeline_free(raw_); }
    Handle(const Handle &) = delete;
    Handle &operator=(const Handle &) = delete;

    cosched_pipeline *raw() const noexcept { return raw_; }

    void keep(std::shared_ptr<StageState> state) { stages_.push_back(std::move(state)); }

    // Returns the result of a call, unless it is the -1 of a failed one.
    int checked(int result) {
        if (result != -1)
            return result;
        cosched_error *error = nullptr;
        if (cosched_pipeline_check(raw_, &error) == 0)
            throw std::logic_error("the pipeline was started before; it runs once, and is built before that");
        fail(error);
    }

    // Throws an error of libcosched, with the exception of the failed stage nested in it.
    [[noreturn]] void fail(cosched_error *error) {
        std::unique_ptr<cosched_error, void (*)(cosched_error *)> owner(error, cosched_error_free);
        if (cosched_error_stage(error) == nullptr)
            throw Error(error);
        StageError stage_error(error);
        std::exception_ptr cause = failure_of(stage_error.stage());
        if (!cause)
            throw stage_error;
        try {
            std::rethrow_exception(cause);
        } catch (...) {
            std::throw_with_nested(stage_error);
        }
    }

    Report wait() {
        char *json = nullptr;
        cosched_error *error = nullptr;
        int result = cosched_pipeline_wait(raw_, &json, &error);
        for (auto &stage : stages_) {
            std::lock_guard<std::mutex> guard(stage->lock);
            for (auto &incarnation : stage->incarnations)
                acquire(incarnation.get());
        }
        if (result != 0)
            fail(error);
        return Report{Report::taken(json)};
    }

private:
    std::exception_ptr failure_of(const std::string &name) {
        for (auto &stage : stages_) {
            std::lock_guard<std::mutex> guard(stage->lock);
            if (stage->name == name)
                return stage->failure;
        }
        return nullptr;
    }

    std::vector<std::shared_ptr<StageState>> stages_;
    cosched_pipeline *raw_;
};

}  // namespace detail

// A running graph. Destroying it stops it and waits for its threads.
class Running {
public:
    explicit Running(std::shared_ptr<detail::Handle> handle) : handle_(std::move(handle)) {}
    Running(Running &&) noexcept = default;
    Running(const Running &) = delete;
    Running &operator=(Running &&) = delete;
    ~Running() {
        if (handle_ != nullptr && !waited_) {
            stop();
            cosched_pipeline_wait(handle_->raw(), nullptr, nullptr);
        }
    }

    // Waits until the graph has ended. Throws StageError or Error; all threads have ended then. May be called once.
    Report wait() {
        waited_ = true;
        return handle_->wait();
    }

    // Stops the graph as soon as each stage has finished its current buffer; wait() then throws an Error that says so.
    void stop() noexcept { cosched_pipeline_stop(handle_->raw()); }
    // A report of what has been done so far.
    Report snapshot() const { return Report{Report::taken(cosched_pipeline_snapshot(handle_->raw()))}; }

private:
    std::shared_ptr<detail::Handle> handle_;
    bool waited_ = false;
};

// Stages and the paths of buffers through them. It can be moved, not copied, and runs once. Errors in a stage or a path are
// thrown as an Error by the call that adds it; errors in the whole graph by check, start and run.
class Graph {
public:
    explicit Graph(const std::string &name) : handle_(std::make_shared<detail::Handle>(name)) {}
    Graph(Graph &&) noexcept = default;
    Graph &operator=(Graph &&) noexcept = default;
    Graph(const Graph &) = delete;
    Graph &operator=(const Graph &) = delete;

    StageId stage(Stage stage) {
        int number = add(stage);
        cosched_pipeline *raw = handle_->raw();
        set(cosched_pipeline_stage_ordered(raw, number, stage.ordered_));
        if (!stage.body_)
            set(cosched_pipeline_stage_incarnations(raw, number, stage.incarnations_));
        if (stage.replicable_ > 0)
            set(cosched_pipeline_stage_replicable(raw, number, stage.replicable_));
        if (stage.kind_)
            set(cosched_pipeline_stage_kind(raw, number, static_cast<int>(*stage.kind_)));
        if (stage.thread_)
            set(cosched_pipeline_stage_on_thread(raw, number, stage.thread_->c_str()));
        if (stage.repeat_)
            set(cosched_pipeline_stage_repeat(raw, number, *stage.repeat_));
        if (stage.holds_)
            set(cosched_pipeline_stage_holds(raw, number, *stage.holds_));
        if (stage.nice_)
            set(cosched_pipeline_stage_nice(raw, number, *stage.nice_));
        if (stage.slice_us_)
            set(cosched_pipeline_stage_slice_us(raw, number, *stage.slice_us_));
        if (stage.class_)
            set(cosched_pipeline_stage_class(raw, number, static_cast<int>(*stage.class_), stage.fifo_priority_));
        if (stage.cpus_)
            set(cosched_pipeline_stage_cpus(raw, number, stage.cpus_->data(), stage.cpus_->size()));
        return {number};
    }

    // Adds a path with a pool of `buffers` buffers of `size_bytes`, which pass through the stages in this order and return to
    // the pool.
    PathId path(const std::string &name, std::size_t buffers, std::size_t size_bytes, const std::vector<StageId> &stages) {
        std::vector<int> numbers;
        for (StageId stage : stages)
            numbers.push_back(stage.number);
        return {handle_->checked(cosched_pipeline_path(handle_->raw(), name.c_str(), buffers, size_bytes,
                                                       numbers.data(), numbers.size()))};
    }

    // The memory of all buffers in bytes.
    std::uint64_t memory_bytes() const noexcept { return cosched_pipeline_memory_bytes(handle_->raw()); }
    // Throws an Error if the graph cannot run.
    void check() { succeed(cosched_pipeline_check); }

    // Starts it and returns.
    Running start(const Options &options = {}) {
        cosched_pipeline *raw = handle_->raw();
        set(cosched_pipeline_set_workers(raw, options.workers));
        set(cosched_pipeline_set_priorities(raw, options.priorities.c_str()));
        set(cosched_pipeline_set_pin_in_turn(raw, options.pin_in_turn));
        set(cosched_pipeline_set_stall_limit(raw, options.stall_limit.count()));
        set(cosched_pipeline_set_stall_warning(raw, options.stall_warning.count()));
        set(cosched_pipeline_set_trace(raw, options.trace));
        set(cosched_pipeline_set_serve(raw, options.serve));
        succeed(cosched_pipeline_start);
        return Running(handle_);
    }

    // Runs it until it has ended. Throws StageError or Error; all threads have ended then.
    Report run(const Options &options = {}) { return start(options).wait(); }

private:
    // Adds a stage, which is owned by libcosched from then on.
    int add(Stage &stage) {
        cosched_pipeline *raw = handle_->raw();
        auto user = std::make_unique<std::shared_ptr<detail::StageState>>(stage.state_);
        const char *name = stage.state_->name.c_str();
        int resource = static_cast<int>(stage.resource_);
        int number = stage.body_ ? cosched_pipeline_body(raw, name, resource, detail::on_body, user.get())
                                 : cosched_pipeline_stage(raw, name, resource, detail::on_round, user.get());
        set(number);
        set(cosched_pipeline_stage_free(raw, number, detail::on_free));
        user.release();
        handle_->keep(stage.state_);
        set(cosched_pipeline_stage_init(raw, number, detail::on_init));
        set(cosched_pipeline_stage_cleanup(raw, number, detail::on_cleanup));
        return number;
    }

    void set(int result) { handle_->checked(result); }

    void succeed(int (*call)(cosched_pipeline *, cosched_error **)) {
        cosched_error *error = nullptr;
        if (call(handle_->raw(), &error) != 0)
            handle_->fail(error);
    }

    std::shared_ptr<detail::Handle> handle_;
};

// The common case: a single path, stage after stage.
class Pipeline {
public:
    explicit Pipeline(std::string name) : name_(std::move(name)), graph_(name_) {}

    Pipeline &buffers(std::size_t count, std::size_t size_bytes) {
        count_ = count;
        size_bytes_ = size_bytes;
        return *this;
    }
    // Adds the next stage. The first one is the source.
    Pipeline &stage(Stage stage) {
        stages_.push_back(graph_.stage(std::move(stage)));
        return *this;
    }

    Running start(const Options &options = {}) {
        graph_.path(name_, count_, size_bytes_, stages_);
        return graph_.start(options);
    }
    Report run(const Options &options = {}) { return start(options).wait(); }

private:
    std::string name_;
    Graph graph_;
    std::vector<StageId> stages_;
    std::size_t count_ = 0, size_bytes_ = 0;
};

}  // namespace cosched::pipeline

#endif

// Stages: what works on buffers, and how it is to run.
#ifndef COSCHED_PIPELINE_STAGE_HPP
#define COSCHED_PIPELINE_STAGE_HPP

#include <cosched.h>

#include <cstddef>
#include <cosched/pipeline/buffer.hpp>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace cosched::pipeline {

// What a stage mostly uses.
enum class Resource {
    compute = COSCHED_PIPELINE_RESOURCE_COMPUTE,
    communicate = COSCHED_PIPELINE_RESOURCE_COMMUNICATE,
    io = COSCHED_PIPELINE_RESOURCE_IO,
};

// How a stage runs: on a thread of its own, for what blocks; on the workers, for what computes.
enum class Kind { thread = COSCHED_PIPELINE_KIND_THREAD, worker = COSCHED_PIPELINE_KIND_WORKER };

// What the stage at the beginning of a path says: there is more to come; this buffer is the last; this buffer carries
// nothing, the one before was the last.
enum class Flow {
    more = COSCHED_PIPELINE_FLOW_CONTINUE,
    last = COSCHED_PIPELINE_FLOW_LAST,
    end = COSCHED_PIPELINE_FLOW_END,
};

namespace detail {

template <class F, class = void>
struct has_init : std::false_type {};
template <class F>
struct has_init<F, std::void_t<decltype(std::declval<F &>().init())>> : std::true_type {};
template <class F, class = void>
struct has_cleanup : std::false_type {};
template <class F>
struct has_cleanup<F, std::void_t<decltype(std::declval<F &>().cleanup())>> : std::true_type {};

// One incarnation of a stage, whatever type it has.
class Unit {
public:
    virtual ~Unit() = default;
    virtual void init() = 0;
    virtual Flow round(Buffer &buffer) = 0;
    virtual void run(Port &port) = 0;
    virtual void cleanup() = 0;
};

template <class F>
class UnitOf final : public Unit {
public:
    explicit UnitOf(F work) : work_(std::move(work)) {}

    void init() override {
        if constexpr (has_init<F>::value)
            work_.init();
    }

    Flow round([[maybe_unused]] Buffer &buffer) override {
        if constexpr (!std::is_invocable_v<F &, Buffer &>)
            return Flow::end;
        else if constexpr (std::is_void_v<std::invoke_result_t<F &, Buffer &>>)
            return work_(buffer), Flow::more;
        else
            return work_(buffer);
    }

    void run([[maybe_unused]] Port &port) override {
        if constexpr (std::is_invocable_v<F &, Port &>)
            work_(port);
    }

    void cleanup() override {
        if constexpr (has_cleanup<F>::value)
            work_.cleanup();
    }

private:
    F work_;
};

// What the stage's callbacks share: its incarnations, and the first exception that left one.
struct StageState {
    struct Incarnation {
        StageState *stage;
        std::unique_ptr<Unit> unit;
    };

    std::string name;
    std::vector<Incarnation> incarnations;
    std::mutex lock;
    std::exception_ptr failure;

    // Keeps the exception that is being handled, and says to libcosched what it says.
    int failed() noexcept {
        auto current = std::current_exception();
        {
            std::lock_guard<std::mutex> guard(lock);
            if (!failure)
                failure = current;
        }
        try {
            std::rethrow_exception(current);
        } catch (const std::exception &error) {
            return cosched_pipeline_fail(error.what());
        } catch (...) {
            return cosched_pipeline_fail("an exception that is no std::exception");
        }
    }
};

// Calls one incarnation's code for libcosched.
template <class Code>
int call(StageState::Incarnation &own, Code code) noexcept {
    acquire(&own);
    int said;
    try {
        said = static_cast<int>(code(*own.unit));
    } catch (...) {
        said = own.stage->failed();
    }
    release(&own);
    return said;
}

inline StageState::Incarnation &incarnation(void *state) noexcept {
    return *static_cast<StageState::Incarnation *>(state);
}

inline int on_init(void **state, std::size_t number) noexcept {
    auto &own = static_cast<StageState *>(*state)->incarnations[number];
    *state = &own;
    return call(own, [](Unit &unit) { return unit.init(), 0; });
}

inline int on_round(void *state, cosched_pipeline_buffer *raw) noexcept {
    void *memory = cosched_pipeline_buffer_data(raw);
    acquire(memory);
    int said = call(incarnation(state), [raw](Unit &unit) {
        Buffer buffer(raw);
        return unit.round(buffer);
    });
    release(memory);
    return said;
}

inline int on_body(void *state, cosched_pipeline_port *raw) noexcept {
    return call(incarnation(state), [raw](Unit &unit) {
        Port port(raw);
        return unit.run(port), 0;
    });
}

inline int on_cleanup(void *state) noexcept {
    return call(incarnation(state), [](Unit &unit) { return unit.cleanup(), 0; });
}

}  // namespace detail

// A stage and how it is to run. `work` is called with a Buffer & and returns nothing or a Flow, or with a Port & (a body:
// it accepts and conveys by itself, and may stand where paths meet). If it has members init() and cleanup(), these are called
// before the first and behind the last buffer.
class Stage {
public:
    template <class F>
    Stage(std::string name, Resource resource, F work) : Stage(std::move(name), resource, is_body<F>) {
        add(std::move(work));
    }

    // Fork and join: `incarnations` of it run at once, each a callable of its own, as `make(number)` returns it.
    template <class Make>
    static Stage replicated(std::string name, std::size_t incarnations, Resource resource, Make make) {
        using F = std::invoke_result_t<Make &, std::size_t>;
        static_assert(!is_body<F>, "only one of a body runs");
        Stage stage(std::move(name), resource, false);
        for (std::size_t number = 0; number < incarnations; number++)
            stage.add(make(number));
        return stage;
    }

    Stage kind(Kind kind) && { return kind_ = kind, std::move(*this); }
    // Whether the buffers leave several incarnations in order; they do unless told otherwise.
    Stage ordered(bool ordered) && { return ordered_ = ordered, std::move(*this); }
    // Multistage thread: all stages with this thread's name share it and work in turn.
    Stage on_thread(std::string thread) && { return thread_ = std::move(thread), std::move(*this); }
    // Multistage repeat: so many buffers in its turn.
    Stage repeat(std::size_t times) && { return repeat_ = times, std::move(*this); }

private:
    friend class Graph;

    template <class F>
    static constexpr bool is_body = std::is_invocable_v<F &, Port &>;

    Stage(std::string name, Resource resource, bool body)
        : state_(std::make_unique<detail::StageState>()), resource_(resource), body_(body) {
        state_->name = std::move(name);
    }

    template <class F>
    void add(F work) {
        static_assert(is_body<F> != std::is_invocable_v<F &, Buffer &>,
                      "a stage is called with a Buffer &, a body with a Port &, and nothing with both");
        state_->incarnations.push_back({state_.get(), std::make_unique<detail::UnitOf<F>>(std::move(work))});
    }

    std::unique_ptr<detail::StageState> state_;
    Resource resource_;
    bool body_;
    std::optional<Kind> kind_;
    bool ordered_ = true;
    std::optional<std::string> thread_;
    std::optional<std::size_t> repeat_;
};

}  // namespace cosched::pipeline

#endif

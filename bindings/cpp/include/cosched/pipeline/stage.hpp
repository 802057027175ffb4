// Stages: the code that works on buffers, and how to run it.
#ifndef COSCHED_PIPELINE_STAGE_HPP
#define COSCHED_PIPELINE_STAGE_HPP

#include <cosched.h>

#include <cstddef>
#include <cstdint>
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

// How a stage runs: on a thread of its own, for stages that block; on the workers, for stages that compute.
enum class Kind { thread = COSCHED_PIPELINE_KIND_THREAD, worker = COSCHED_PIPELINE_KIND_WORKER };

// A scheduling class of Linux: SCHED_OTHER, SCHED_BATCH, SCHED_IDLE, SCHED_FIFO.
enum class Class {
    normal = COSCHED_PIPELINE_CLASS_NORMAL,
    batch = COSCHED_PIPELINE_CLASS_BATCH,
    idle = COSCHED_PIPELINE_CLASS_IDLE,
    fifo = COSCHED_PIPELINE_CLASS_FIFO,
};

// What the first stage of a path returns: more buffers follow; this buffer is the last; this buffer carries no block, the
// previous one was the last.
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

// The type-erased code of one incarnation of a stage.
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

// Creates the incarnations of a stage.
class Maker {
public:
    virtual ~Maker() = default;
    virtual std::unique_ptr<Unit> make(std::size_t number) = 0;
};

// For a stage with a single incarnation, which already exists.
class One final : public Maker {
public:
    explicit One(std::unique_ptr<Unit> unit) : unit_(std::move(unit)) {}
    std::unique_ptr<Unit> make(std::size_t) override { return std::move(unit_); }

private:
    std::unique_ptr<Unit> unit_;
};

// For a stage with any number of incarnations.
template <class Make>
class Many final : public Maker {
public:
    explicit Many(Make make) : make_(std::move(make)) {}
    std::unique_ptr<Unit> make(std::size_t number) override {
        using F = std::invoke_result_t<Make &, std::size_t>;
        return std::make_unique<UnitOf<F>>(make_(number));
    }

private:
    Make make_;
};

struct StageState;

// The state of one incarnation that the callbacks get.
struct Incarnation {
    StageState &stage;
    std::unique_ptr<Unit> unit;
};

// The state that all incarnations of a stage share. libcosched frees it when no more callbacks can come.
struct StageState {
    std::string name;
    std::unique_ptr<Maker> maker;
    std::mutex lock;
    std::vector<std::unique_ptr<Incarnation>> incarnations;
    // The first exception that was thrown by an incarnation.
    std::exception_ptr failure;

    ~StageState() {
        for (auto &incarnation : incarnations)
            acquire(incarnation.get());
    }

    Incarnation &add() {
        std::lock_guard<std::mutex> guard(lock);
        incarnations.push_back(std::unique_ptr<Incarnation>(new Incarnation{*this, nullptr}));
        return *incarnations.back();
    }

    // Keeps the exception that is being handled, and reports its message to libcosched.
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

// Calls the code of one incarnation for libcosched.
template <class Code>
int call(Incarnation &own, Code code) noexcept {
    acquire(&own);
    int said;
    try {
        said = static_cast<int>(code());
    } catch (...) {
        said = own.stage.failed();
    }
    release(&own);
    return said;
}

inline Incarnation &incarnation(void *state) noexcept { return *static_cast<Incarnation *>(state); }

inline int on_init(void **state, std::size_t number) noexcept {
    StageState &stage = **static_cast<std::shared_ptr<StageState> *>(*state);
    release(*state);
    try {
        Incarnation &own = stage.add();
        *state = &own;
        return call(own, [&] {
            {
                // The user's `make` is called by only one thread at a time.
                std::lock_guard<std::mutex> guard(stage.lock);
                own.unit = stage.maker->make(number);
            }
            return own.unit->init(), 0;
        });
    } catch (...) {
        return stage.failed();
    }
}

inline void on_free(void *user) noexcept {
    acquire(user);
    delete static_cast<std::shared_ptr<StageState> *>(user);
}

inline int on_round(void *state, cosched_pipeline_buffer *raw) noexcept {
    void *memory = cosched_pipeline_buffer_data(raw);
    acquire(memory);
    Incarnation &own = incarnation(state);
    int said = call(own, [&] {
        Buffer buffer(raw);
        return own.unit->round(buffer);
    });
    release(memory);
    return said;
}

inline int on_body(void *state, cosched_pipeline_port *raw) noexcept {
    Incarnation &own = incarnation(state);
    return call(own, [&] {
        Port port(raw);
        return own.unit->run(port), 0;
    });
}

inline int on_cleanup(void *state) noexcept {
    Incarnation &own = incarnation(state);
    return call(own, [&] { return own.unit->cleanup(), 0; });
}

}  // namespace detail

// A stage and how to run it. `work` is called with a Buffer & and returns nothing or a Flow; or it is called with a Port & (a
// body: it accepts and conveys buffers itself, and may be where paths meet). If it has members init() and cleanup(), these
// are called before the first and after the last buffer.
class Stage {
public:
    template <class F>
    Stage(std::string name, Resource resource, F work) : Stage(std::move(name), resource, is_body<F>, 1) {
        check<F>();
        state_->maker = std::make_unique<detail::One>(std::make_unique<detail::UnitOf<F>>(std::move(work)));
    }

    // Fork and join: `incarnations` of it run concurrently, each a callable of its own, which `make(number)` returns on the
    // incarnation's thread, before its first buffer.
    template <class Make>
    static Stage replicated(std::string name, std::size_t incarnations, Resource resource, Make make) {
        using F = std::invoke_result_t<Make &, std::size_t>;
        static_assert(!is_body<F>, "only one of a body runs");
        check<F>();
        Stage stage(std::move(name), resource, false, incarnations);
        stage.state_->maker = std::make_unique<detail::Many<Make>>(std::move(make));
        return stage;
    }

    Stage kind(Kind kind) && { return kind_ = kind, std::move(*this); }
    // Whether the buffers leave several incarnations in order; the default is true.
    Stage ordered(bool ordered) && { return ordered_ = ordered, std::move(*this); }
    // The maximum number of incarnations to which autotune may raise a replicated stage.
    Stage replicable(std::size_t incarnations_max) && { return replicable_ = incarnations_max, std::move(*this); }
    // Multistage thread: all stages with this thread name share one thread and take turns on it.
    Stage on_thread(std::string thread) && { return thread_ = std::move(thread), std::move(*this); }
    // Multistage repeat: the number of buffers in its turn.
    Stage repeat(std::size_t times) && { return repeat_ = times, std::move(*this); }
    // For a body: the number of other buffers of a path that it may hold while it waits for a buffer of that path.
    Stage holds(std::size_t buffers) && { return holds_ = buffers, std::move(*this); }
    // The scheduling of its threads: nice value (-20 highest priority, 19 lowest), slice (100 to 100000 us), class (a
    // priority is only for Class::fifo), CPUs.
    Stage nice(int nice) && { return nice_ = nice, std::move(*this); }
    Stage slice_us(std::uint32_t slice_us) && { return slice_us_ = slice_us, std::move(*this); }
    Stage scheduling(Class name, int fifo_priority = 0) && {
        return class_ = name, fifo_priority_ = fifo_priority, std::move(*this);
    }
    Stage cpus(std::vector<int> cpus) && { return cpus_ = std::move(cpus), std::move(*this); }

private:
    friend class Graph;

    template <class F>
    static constexpr bool is_body = std::is_invocable_v<F &, Port &>;

    template <class F>
    static constexpr void check() {
        static_assert(is_body<F> != std::is_invocable_v<F &, Buffer &>,
                      "a stage is called with a Buffer &, a body with a Port &, and nothing with both");
    }

    Stage(std::string name, Resource resource, bool body, std::size_t incarnations)
        : state_(std::make_shared<detail::StageState>()), resource_(resource), body_(body), incarnations_(incarnations) {
        state_->name = std::move(name);
    }

    std::shared_ptr<detail::StageState> state_;
    Resource resource_;
    bool body_;
    std::size_t incarnations_;
    bool ordered_ = true;
    std::size_t replicable_ = 0;
    std::optional<Kind> kind_;
    std::optional<std::string> thread_;
    std::optional<std::size_t> repeat_;
    std::optional<std::size_t> holds_;
    std::optional<int> nice_;
    std::optional<std::uint32_t> slice_us_;
    std::optional<Class> class_;
    int fifo_priority_ = 0;
    std::optional<std::vector<int>> cpus_;
};

}  // namespace cosched::pipeline

#endif

// Buffers, and the ports through which a body accepts and conveys them.
#ifndef COSCHED_PIPELINE_BUFFER_HPP
#define COSCHED_PIPELINE_BUFFER_HPP

#include <cosched.h>

#include <cstddef>
#include <cstdint>
#include <cosched/pipeline/span.hpp>
#include <optional>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>

#if defined(__SANITIZE_THREAD__)
#define COSCHED_TSAN 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define COSCHED_TSAN 1
#endif
#endif

#ifdef COSCHED_TSAN
extern "C" void __tsan_acquire(void *address);
extern "C" void __tsan_release(void *address);
#endif

namespace cosched::pipeline {

namespace detail {

// ThreadSanitizer does not see how the library, which is not compiled with it, synchronises threads. These annotations tell
// it.
inline void acquire([[maybe_unused]] void *address) noexcept {
#ifdef COSCHED_TSAN
    __tsan_acquire(address);
#endif
}

inline void release([[maybe_unused]] void *address) noexcept {
#ifdef COSCHED_TSAN
    __tsan_release(address);
#endif
}

}  // namespace detail

// The index of a path in its graph.
struct PathId {
    int number = -1;
    friend bool operator==(PathId a, PathId b) noexcept { return a.number == b.number; }
    friend bool operator!=(PathId a, PathId b) noexcept { return a.number != b.number; }
};

// A buffer of a path's pool: page-aligned memory that moves from stage to stage without a copy. It can be moved, not
// copied. A stage gets it as its argument; a body gets it from Port::accept and passes it on with Port::convey.
class Buffer {
public:
    explicit Buffer(cosched_pipeline_buffer *raw) noexcept : raw_(raw) {}
    Buffer(Buffer &&other) noexcept : raw_(std::exchange(other.raw_, nullptr)) {}
    Buffer &operator=(Buffer &&other) noexcept {
        raw_ = std::exchange(other.raw_, nullptr);
        return *this;
    }
    Buffer(const Buffer &) = delete;
    Buffer &operator=(const Buffer &) = delete;

    // All of its memory, regardless of the length of the contents.
    Span<std::byte> storage() noexcept { return {data(), capacity()}; }
    // Its contents.
    Span<std::byte> bytes() noexcept { return {data(), size()}; }
    Span<const std::byte> bytes() const noexcept { return {data(), size()}; }

    // Its contents as values; bytes at the end that are less than a whole value are left out.
    template <class T>
    Span<T> as() noexcept {
        static_assert(std::is_trivially_copyable_v<T>, "a buffer holds bytes: only what can be copied as bytes");
        return {reinterpret_cast<T *>(data()), size() / sizeof(T)};
    }
    // All of its memory as values.
    template <class T>
    Span<T> storage_as() noexcept {
        static_assert(std::is_trivially_copyable_v<T>, "a buffer holds bytes: only what can be copied as bytes");
        return {reinterpret_cast<T *>(data()), capacity() / sizeof(T)};
    }

    // The capacity, and the length of the contents, in bytes.
    std::size_t capacity() const noexcept { return cosched_pipeline_buffer_capacity(raw_); }
    std::size_t size() const noexcept { return cosched_pipeline_buffer_length(raw_); }
    bool empty() const noexcept { return size() == 0; }

    // Sets the length of the contents. Throws std::length_error if it exceeds the capacity.
    void resize(std::size_t size) {
        if (cosched_pipeline_buffer_set_length(raw_, size) != 0)
            throw std::length_error(std::to_string(size) + " bytes in a buffer of " + std::to_string(capacity()));
    }

    // The number of its round on its path, from 0; known only after the path's first stage.
    std::uint64_t round() const noexcept { return cosched_pipeline_buffer_round(raw_); }
    PathId path() const noexcept { return {cosched_pipeline_buffer_path(raw_)}; }
    // Whether it is the last one of its path; and, for a body that begins the path, marking it as such.
    bool is_last() const noexcept { return cosched_pipeline_buffer_is_last(raw_); }
    void mark_last() noexcept { cosched_pipeline_buffer_mark_last(raw_); }
    // Whether it carries a block. One without a block only ends its path, and is only seen by bodies.
    bool carries_block() const noexcept { return cosched_pipeline_buffer_carries_block(raw_); }
    // A number that the program may attach to the buffer.
    std::uint64_t tag() const noexcept { return cosched_pipeline_buffer_tag(raw_); }
    void set_tag(std::uint64_t tag) noexcept { cosched_pipeline_buffer_set_tag(raw_, tag); }

    // libcosched's own pointer; null if the buffer was moved from.
    cosched_pipeline_buffer *native() const noexcept { return raw_; }

private:
    std::byte *data() const noexcept { return static_cast<std::byte *>(cosched_pipeline_buffer_data(raw_)); }

    cosched_pipeline_buffer *raw_;
};

// Through which a body accepts and conveys buffers.
class Port {
public:
    explicit Port(cosched_pipeline_port *raw) noexcept : raw_(raw) {}
    Port(const Port &) = delete;
    Port &operator=(const Port &) = delete;

    // Waits for the next buffer of any path. Empty when all incoming paths have ended, or when the pipeline stops.
    std::optional<Buffer> accept() { return accepted(cosched_pipeline_accept(raw_)); }
    // Waits for the next buffer of one path; if the body is the path's first stage, for an empty one.
    std::optional<Buffer> accept_from(PathId path) {
        return accepted(cosched_pipeline_accept_from(raw_, path.number));
    }
    // The next buffer, if one is waiting; does not block.
    std::optional<Buffer> try_accept() { return accepted(cosched_pipeline_try_accept(raw_)); }

    // Hands a buffer to the next stage of its path, or back to the pool.
    void convey(Buffer &&buffer) {
        detail::release(cosched_pipeline_buffer_data(buffer.native()));
        if (cosched_pipeline_convey(raw_, std::exchange(buffer, Buffer(nullptr)).native()) != 0)
            throw std::logic_error("a buffer was conveyed that the body does not hold");
    }

    // Ends a path that the body begins, after its last block. False if the pipeline is stopping.
    bool end(PathId path) { return cosched_pipeline_end(raw_, path.number) == 0; }
    // The number of buffers that wait for the body.
    std::size_t backlog() const noexcept { return cosched_pipeline_backlog(raw_); }
    // The number of buffers that wait for the next stage on a path.
    std::size_t output_backlog(PathId path) const noexcept { return cosched_pipeline_output_backlog(raw_, path.number); }
    // Whether the pipeline is stopping: the body should return.
    bool stopping() const noexcept { return cosched_pipeline_stopping(raw_); }

private:
    static std::optional<Buffer> accepted(cosched_pipeline_buffer *raw) {
        if (raw == nullptr)
            return std::nullopt;
        detail::acquire(cosched_pipeline_buffer_data(raw));
        return Buffer(raw);
    }

    cosched_pipeline_port *raw_;
};

}  // namespace cosched::pipeline

#endif

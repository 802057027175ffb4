// A non-owning view of memory, like std::span of C++20.
#ifndef COSCHED_PIPELINE_SPAN_HPP
#define COSCHED_PIPELINE_SPAN_HPP

#include <cassert>
#include <cstddef>
#include <type_traits>

namespace cosched::pipeline {

template <class T>
class Span {
public:
    using value_type = std::remove_cv_t<T>;
    using iterator = T *;

    constexpr Span() noexcept = default;
    constexpr Span(T *data, std::size_t size) noexcept : data_(data), size_(size) {}

    // A view of T is a view of const T.
    template <class U, class = std::enable_if_t<std::is_same_v<const U, T>>>
    constexpr Span(Span<U> other) noexcept : data_(other.data()), size_(other.size()) {}

    constexpr T *data() const noexcept { return data_; }
    constexpr std::size_t size() const noexcept { return size_; }
    constexpr std::size_t size_bytes() const noexcept { return size_ * sizeof(T); }
    constexpr bool empty() const noexcept { return size_ == 0; }
    constexpr T *begin() const noexcept { return data_; }
    constexpr T *end() const noexcept { return data_ + size_; }

    constexpr T &operator[](std::size_t index) const noexcept {
        assert(index < size_);
        return data_[index];
    }

    // The first `count` elements.
    constexpr Span first(std::size_t count) const noexcept {
        assert(count <= size_);
        return {data_, count};
    }

    // All elements after the first `offset`.
    constexpr Span behind(std::size_t offset) const noexcept {
        assert(offset <= size_);
        return {data_ + offset, size_ - offset};
    }

private:
    T *data_ = nullptr;
    std::size_t size_ = 0;
};

}  // namespace cosched::pipeline

#endif

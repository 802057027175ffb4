// Copies a file and prints its checksum (FNV-1a, 64 bits); reading, summing and writing overlap.
//
//   c++ -std=c++17 copy.cpp $(pkg-config --cflags --libs cosched) -o copy && ./copy FROM TO
#include <cosched/pipeline.hpp>

#include <cerrno>
#include <cinttypes>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <system_error>

using namespace cosched::pipeline;

using File = std::shared_ptr<std::FILE>;

static File open(const char *path, const char *mode) {
    std::FILE *file = std::fopen(path, mode);
    if (file == nullptr)
        throw std::system_error(errno, std::generic_category(), path);
    return {file, std::fclose};
}

// The first stage of the path: it fills the empty buffers.
static Stage read_from(File file) {
    return Stage("read", Resource::io, [file](Buffer &buffer) {
        Span<std::byte> room = buffer.storage();
        buffer.resize(std::fread(room.data(), 1, room.size(), file.get()));
        if (std::ferror(file.get()))
            throw std::system_error(errno, std::generic_category(), "reading");
        if (buffer.empty())
            return Flow::end;
        return std::feof(file.get()) ? Flow::last : Flow::more;
    });
}

static Stage sum_into(std::uint64_t &hash) {
    return Stage("sum", Resource::compute, [&hash](Buffer &buffer) {
        for (std::byte byte : buffer.bytes())
            hash = (hash ^ std::to_integer<std::uint64_t>(byte)) * 0x100000001b3U;
    });
}

static Stage write_to(File file) {
    return Stage("write", Resource::io, [file](Buffer &buffer) {
        Span<std::byte> block = buffer.bytes();
        if (std::fwrite(block.data(), 1, block.size(), file.get()) != block.size())
            throw std::system_error(errno, std::generic_category(), "writing");
        if (buffer.is_last() && std::fflush(file.get()) != 0)
            throw std::system_error(errno, std::generic_category(), "writing");
    });
}

int main(int argc, char **argv) {
    if (argc != 3) {
        std::fprintf(stderr, "copy: usage: copy FROM TO\n");
        return 2;
    }
    try {
        std::uint64_t hash = 0xcbf29ce484222325U;
        Pipeline("copy")
            .buffers(4, 1 << 20)
            .stage(read_from(open(argv[1], "rb")))
            .stage(sum_into(hash))
            .stage(write_to(open(argv[2], "wb")))
            .run();
        std::printf("%016" PRIx64 "  %s\n", hash, argv[2]);
    } catch (const std::exception &error) {
        std::fprintf(stderr, "copy: %s\n", error.what());
        return 1;
    }
}

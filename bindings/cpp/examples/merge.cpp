// Merges sorted files of 64-bit numbers into one: an intersecting pipeline.
//
// Each file has a path of its own, with its own buffers, so that no file can use up the buffers of another. One stage reads
// all of them (a virtual stage: one thread serves the same stage of many paths); the paths meet in the body "merge", which
// is the first stage of the output's path.
//
//   c++ -std=c++17 merge.cpp $(pkg-config --cflags --libs cosched) -o merge && ./merge OUT IN...
#include <cosched/pipeline.hpp>

#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <memory>
#include <optional>
#include <queue>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

using namespace cosched::pipeline;

using Number = std::uint64_t;
using File = std::unique_ptr<std::FILE, int (*)(std::FILE *)>;

static File open(const std::string &path, const char *mode) {
    std::FILE *file = std::fopen(path.c_str(), mode);
    if (file == nullptr)
        throw std::system_error(errno, std::generic_category(), path);
    return {file, std::fclose};
}

// Reads from the file whose path the empty buffer belongs to: paths have the same indices as the files.
struct Reader {
    std::vector<File> files;

    Flow operator()(Buffer &buffer) {
        std::FILE *file = files.at(static_cast<std::size_t>(buffer.path().number)).get();
        Span<Number> room = buffer.storage_as<Number>();
        std::size_t count = std::fread(room.data(), sizeof(Number), room.size(), file);
        if (std::ferror(file))
            throw std::system_error(errno, std::generic_category(), "reading");
        buffer.resize(count * sizeof(Number));
        return count == 0 ? Flow::end : Flow::more;
    }
};

// The block of one file that is being merged, and the position in it.
struct Run {
    PathId path;
    std::optional<Buffer> block;
    std::size_t at = 0;

    // Ensures that there is a number to take. False at the end of the run.
    bool advance(Port &port) {
        while (block && at == block->as<Number>().size()) {
            port.convey(std::move(*block));
            block = port.accept_from(path);
            at = 0;
        }
        return block.has_value();
    }
    Number take() { return block->as<Number>()[at++]; }
    Number peek() { return block->as<Number>()[at]; }
};

// Writes numbers into buffers of the output's path.
struct Output {
    Port &port;
    PathId path;
    std::optional<Buffer> block = port.accept_from(path);
    std::size_t count = 0;

    // False if the pipeline is stopping.
    bool put(Number number) {
        if (!block)
            return false;
        block->storage_as<Number>()[count++] = number;
        block->resize(count * sizeof(Number));
        if (count == block->storage_as<Number>().size()) {
            port.convey(std::move(*block));
            block = port.accept_from(path);
            count = 0;
        }
        return true;
    }
    void end() {
        if (!block)
            return;
        block->mark_last();
        port.convey(std::move(*block));
    }
};

static void merge(Port &port, const std::vector<PathId> &in, PathId out) {
    using Head = std::pair<Number, std::size_t>;
    std::priority_queue<Head, std::vector<Head>, std::greater<Head>> heads;
    std::vector<Run> runs;
    for (PathId path : in) {
        runs.push_back({path, port.accept_from(path)});
        if (runs.back().advance(port))
            heads.push({runs.back().peek(), runs.size() - 1});
    }
    Output output{port, out};
    while (!heads.empty()) {
        std::size_t which = heads.top().second;
        heads.pop();
        if (!output.put(runs[which].take()))
            return;
        if (runs[which].advance(port))
            heads.push({runs[which].peek(), which});
    }
    output.end();
}

int main(int argc, char **argv) {
    if (argc < 3) {
        std::fprintf(stderr, "merge: usage: merge OUT IN...\n");
        return 2;
    }
    try {
        constexpr std::size_t buffers = 3, size_bytes = 1 << 16;
        std::vector<std::string> names(argv + 2, argv + argc);
        Reader reader;
        for (const std::string &name : names)
            reader.files.push_back(open(name, "rb"));

        Graph graph("merge");
        std::vector<PathId> in;
        PathId out;
        StageId read = graph.stage(Stage("read", Resource::io, std::move(reader)));
        StageId meet = graph.stage(Stage("merge", Resource::compute, [&](Port &port) { merge(port, in, out); }));
        StageId write = graph.stage(Stage("write", Resource::io, [file = open(argv[1], "wb")](Buffer &buffer) {
            if (std::fwrite(buffer.bytes().data(), 1, buffer.size(), file.get()) != buffer.size())
                throw std::system_error(errno, std::generic_category(), "writing");
        }));
        for (const std::string &name : names)
            in.push_back(graph.path(name, buffers, size_bytes, {read, meet}));
        out = graph.path("out", buffers, size_bytes, {meet, write});
        graph.run();
    } catch (const std::exception &error) {
        std::fprintf(stderr, "merge: %s\n", error.what());
        return 1;
    }
}

// Two stages that increment one variable without a lock: ThreadSanitizer has to report it, but only with the argument
// `racy`.
#include <cosched/pipeline.hpp>

#include <atomic>
#include <cstring>
#include <unistd.h>

using namespace cosched::pipeline;

int main(int argc, char **argv) {
    alarm(60);
    bool racy = argc > 1 && std::strcmp(argv[1], "racy") == 0;
    int plain = 0;
    std::atomic<int> safe{0};
    auto count = [&](Buffer &buffer) {
        safe++;
        if (racy)
            plain++;
        buffer.storage_as<int>()[0]++;
    };
    auto source = [&](Buffer &buffer) {
        buffer.resize(sizeof(int));
        count(buffer);
        return safe > 2000 ? Flow::last : Flow::more;
    };
    Pipeline("count").buffers(4, 64).stage(Stage("one", Resource::io, source)).stage(Stage("two", Resource::io, count)).run();
    return safe > 2000 ? 0 : 1;
}

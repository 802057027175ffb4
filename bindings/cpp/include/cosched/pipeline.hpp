// Pipelines of stages on recycled buffers, for C++17: a header-only interface to libcosched.
//
// A stage is anything that can be called with a Buffer &. An exception that leaves a stage ends the pipeline and arrives at
// run() as a StageError with the stage's name; the exception itself is nested in it (std::rethrow_if_nested).
//
//     using namespace cosched::pipeline;
//     Pipeline("double")
//         .buffers(4, 4096)
//         .stage(Stage("count", Resource::io, [n = 0](Buffer &b) mutable {
//             b.resize(sizeof(int));
//             b.as<int>()[0] = n;
//             return ++n == 10 ? Flow::last : Flow::more;
//         }))
//         .stage(Stage("double", Resource::compute, [](Buffer &b) { b.as<int>()[0] *= 2; }))
//         .run();
//
// Threads: stages are called on threads of the library, different stages concurrently, but one incarnation of a stage never
// concurrently with itself. A Buffer belongs to the stage that has it. Running::stop and Running::snapshot may be called
// from any thread.
#ifndef COSCHED_PIPELINE_HPP
#define COSCHED_PIPELINE_HPP

#include <cosched/pipeline/buffer.hpp>
#include <cosched/pipeline/error.hpp>
#include <cosched/pipeline/graph.hpp>
#include <cosched/pipeline/span.hpp>
#include <cosched/pipeline/stage.hpp>

#endif

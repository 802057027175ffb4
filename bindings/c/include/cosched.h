/* cosched for programs in C: libcosched. Made by cbindgen from crates/cosched-ffi; not to be changed by hand.
 *
 * Handles are opaque. Texts are UTF-8 and end with NUL. Functions that can fail return -1 or NULL; where they have an
 * `error` argument, it may be NULL, or the address of a pointer that gets the error (NULL where there is none), which the
 * caller frees with cosched_error_free. No function throws or unwinds, and callbacks must not: an exception or a longjmp
 * that leaves a callback ends the process.
 *
 * Threads: every function may be called from any thread. Buffers and ports are for the callback that got them.
 *
 * docs/pipeline-bindings.md has examples.
 */

#ifndef COSCHED_H
#define COSCHED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define COSCHED_VERSION "0.1.0"
#define COSCHED_VERSION_NUMBER 1000

/**
 * What kind of error it is.
 */
typedef enum {
  /**
   * None.
   */
  COSCHED_CODE_OK = 0,
  /**
   * An argument that cannot be, or a call at the wrong time.
   */
  COSCHED_CODE_INVALID = 1,
  /**
   * The pipeline's graph cannot run.
   */
  COSCHED_CODE_GRAPH = 2,
  /**
   * Memory or threads that the system does not give.
   */
  COSCHED_CODE_SYSTEM = 3,
  /**
   * A stage failed.
   */
  COSCHED_CODE_STAGE = 4,
  /**
   * A stage broke the framework's rules.
   */
  COSCHED_CODE_MISUSE = 5,
  /**
   * It was stopped by cosched_pipeline_stop.
   */
  COSCHED_CODE_STOPPED = 6,
  /**
   * A stage held a buffer for longer than cosched_pipeline_set_stall_limit says. Its callback may still run: its user
   * pointer is not freed then.
   */
  COSCHED_CODE_STALLED = 7,
  /**
   * A fault in cosched itself.
   */
  COSCHED_CODE_INTERNAL = 8,
} cosched_code;

/**
 * A scheduling class of Linux (man 7 sched).
 */
typedef enum {
  /**
   * SCHED_OTHER.
   */
  COSCHED_PIPELINE_CLASS_NORMAL = 0,
  /**
   * SCHED_BATCH: does not preempt others when it wakes up.
   */
  COSCHED_PIPELINE_CLASS_BATCH = 1,
  /**
   * SCHED_IDLE: what the others leave, nearly.
   */
  COSCHED_PIPELINE_CLASS_IDLE = 2,
  /**
   * SCHED_FIFO: before all others. Needs a right.
   */
  COSCHED_PIPELINE_CLASS_FIFO = 3,
} cosched_pipeline_class;

/**
 * What a stage's callback says.
 */
typedef enum {
  /**
   * It failed: the pipeline ends. cosched_pipeline_fail returns this.
   */
  COSCHED_PIPELINE_FLOW_FAILED = -1,
  /**
   * All went well. A stage that begins a path: there are more buffers to come.
   */
  COSCHED_PIPELINE_FLOW_CONTINUE = 0,
  /**
   * Only for a stage that begins a path: this buffer is the last.
   */
  COSCHED_PIPELINE_FLOW_LAST = 1,
  /**
   * Only for a stage that begins a path: this buffer carries nothing, the one before was the last.
   */
  COSCHED_PIPELINE_FLOW_END = 2,
} cosched_pipeline_flow;

/**
 * How a stage runs.
 */
typedef enum {
  /**
   * On a thread of its own: for what blocks. What uses no CPU mostly is of this kind unless told otherwise.
   */
  COSCHED_PIPELINE_KIND_THREAD = 0,
  /**
   * On the pipeline's workers, which carry a buffer through as many stages as they can. What computes is of this kind
   * unless told otherwise.
   */
  COSCHED_PIPELINE_KIND_WORKER = 1,
} cosched_pipeline_kind;

/**
 * What a stage mostly uses.
 */
typedef enum {
  /**
   * A CPU.
   */
  COSCHED_PIPELINE_RESOURCE_COMPUTE = 0,
  /**
   * The network.
   */
  COSCHED_PIPELINE_RESOURCE_COMMUNICATE = 1,
  /**
   * A disk.
   */
  COSCHED_PIPELINE_RESOURCE_IO = 2,
} cosched_pipeline_resource;

/**
 * An error and its texts. Immutable: any thread may read it. The caller frees it with cosched_error_free.
 */
typedef struct cosched_error cosched_error;

/**
 * A pipeline: a graph of stages and the paths of buffers through them. It is built, runs once, and is freed. Every function
 * may be called from any thread; cosched_pipeline_free must be the last one.
 */
typedef struct cosched_pipeline cosched_pipeline;

/**
 * A buffer of a path's pool: page-aligned memory that goes from stage to stage without a copy. Stages get pointers to it and
 * free none. One thread at a time.
 */
typedef struct cosched_pipeline_buffer cosched_pipeline_buffer;

/**
 * Where a body accepts buffers and conveys them. Only for the thread that the body was called on.
 */
typedef struct cosched_pipeline_port cosched_pipeline_port;

/**
 * Works on one buffer. `state` is the stage's user pointer, or what its init callback put in its place. At the beginning of a
 * path the buffer has length 0 and is to be filled. The buffer is the callback's until it returns, and not afterwards.
 * Returns a cosched_pipeline_flow.
 */
typedef int (*cosched_pipeline_round_fn)(void *state, cosched_pipeline_buffer *buffer);

/**
 * Accepts and conveys by itself until its paths have ended. Returns COSCHED_PIPELINE_FLOW_CONTINUE (0) or
 * COSCHED_PIPELINE_FLOW_FAILED (-1). The port is the callback's own thread's until it returns.
 */
typedef int (*cosched_pipeline_body_fn)(void *state, cosched_pipeline_port *port);

/**
 * Called once before the first buffer, for each incarnation of the stage (numbered from 0). `*state` is the user pointer;
 * what it is set to goes to the incarnation's other callbacks. Returns 0, or -1 to end the pipeline.
 */
typedef int (*cosched_pipeline_init_fn)(void **state, size_t incarnation);

/**
 * Called once after the last buffer, and after a failure, if init went well. Returns 0, or -1 to end the pipeline.
 */
typedef int (*cosched_pipeline_cleanup_fn)(void *state);

/**
 * Frees a stage's user pointer. Called once, behind the stage's last callback, by any thread, in cosched_pipeline_free at
 * the latest.
 */
typedef void (*cosched_pipeline_free_fn)(void *user);

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

/**
 * Frees a text that a function of this library returned as char *. NULL is fine. Texts returned as const char * are not to
 * be freed.
 */
void cosched_string_free(char *text);

/**
 * What kind of error it is; COSCHED_CODE_OK of NULL.
 */
cosched_code cosched_error_code(const cosched_error *error);

/**
 * The whole error in one sentence, for people. Valid until the error is freed; "" of NULL.
 */
const char *cosched_error_message(const cosched_error *error);

/**
 * What happened, without where: of a stage that failed, the text that it gave. Valid until the error is freed; "" of NULL.
 */
const char *cosched_error_what(const cosched_error *error);

/**
 * The function of this library whose call was at fault. Valid until the error is freed; "" of NULL.
 */
const char *cosched_error_where(const cosched_error *error);

/**
 * The name of the stage at fault, or NULL if none is. Valid until the error is freed.
 */
const char *cosched_error_stage(const cosched_error *error);

/**
 * What the stages had done when the run failed, as JSON, or NULL if nothing ran. Valid until the error is freed.
 */
const char *cosched_error_report(const cosched_error *error);

/**
 * Frees an error. NULL is fine.
 */
void cosched_error_free(cosched_error *error);

/**
 * Makes a pipeline without stages. The name is for reports and errors.
 *
 * The building functions that follow return -1 where something is wrong, and remember the first thing that was: a program
 * may leave their results alone, cosched_pipeline_check, _start and _run report it.
 *
 * Returns NULL if the name is NULL or not UTF-8. Free it with cosched_pipeline_free.
 */
cosched_pipeline *cosched_pipeline_new(const char *name);

/**
 * Frees a pipeline. One that runs is stopped first, and its threads have ended then. NULL is fine.
 *
 * Not for a stage's callback, which would wait for itself: there it only stops the pipeline, and the memory stays.
 */
void cosched_pipeline_free(cosched_pipeline *pipeline);

/**
 * The beginning of its memory, cosched_pipeline_buffer_capacity bytes, whatever its length is. NULL of NULL.
 */
void *cosched_pipeline_buffer_data(cosched_pipeline_buffer *buffer);

/**
 * How many bytes it can hold.
 */
size_t cosched_pipeline_buffer_capacity(const cosched_pipeline_buffer *buffer);

/**
 * How many bytes it holds.
 */
size_t cosched_pipeline_buffer_length(const cosched_pipeline_buffer *buffer);

/**
 * Says how many bytes it holds. Returns 0, or -1 if that is more than its capacity; it stays as it was then.
 */
int cosched_pipeline_buffer_set_length(cosched_pipeline_buffer *buffer, size_t length);

/**
 * The number of its round on its path, from 0: how many buffers the beginning of the path had conveyed before it. It is
 * known behind the stage that begins the path.
 */
uint64_t cosched_pipeline_buffer_round(const cosched_pipeline_buffer *buffer);

/**
 * The number of the path whose pool it belongs to, as cosched_pipeline_path returned it; -1 of NULL.
 */
int cosched_pipeline_buffer_path(const cosched_pipeline_buffer *buffer);

/**
 * Whether it is its path's last one (the caboose).
 */
bool cosched_pipeline_buffer_is_last(const cosched_pipeline_buffer *buffer);

/**
 * Says that it is its path's last one: for a body that begins the path, before it conveys it.
 */
void cosched_pipeline_buffer_mark_last(cosched_pipeline_buffer *buffer);

/**
 * Whether it carries a block. The last buffer does not where the end was found only behind the last block; only bodies see
 * such a buffer.
 */
bool cosched_pipeline_buffer_carries_block(const cosched_pipeline_buffer *buffer);

/**
 * A number of the program's own that goes with the buffer; 0 at the beginning of a path.
 */
uint64_t cosched_pipeline_buffer_tag(const cosched_pipeline_buffer *buffer);

/**
 * Sets the program's number.
 */
void cosched_pipeline_buffer_set_tag(cosched_pipeline_buffer *buffer, uint64_t tag);

/**
 * Adds a stage that works on one buffer at a time. `resource` is a cosched_pipeline_resource; `user` goes to the callback,
 * on another thread than the caller's. Returns the stage's number, from 0, or -1.
 */
int cosched_pipeline_stage(cosched_pipeline *pipeline,
                           const char *name,
                           int resource,
                           cosched_pipeline_round_fn round,
                           void *user);

/**
 * Adds a stage that accepts and conveys by itself, on a thread of its own: it may hold several buffers, and stand where
 * paths intersect. As cosched_pipeline_stage otherwise.
 */
int cosched_pipeline_body(cosched_pipeline *pipeline,
                          const char *name,
                          int resource,
                          cosched_pipeline_body_fn body,
                          void *user);

/**
 * Sets what is called before the stage's first buffer. Returns 0 or -1.
 */
int cosched_pipeline_stage_init(cosched_pipeline *pipeline, int stage, cosched_pipeline_init_fn init);

/**
 * Sets what is called after the stage's last buffer. Returns 0 or -1.
 */
int cosched_pipeline_stage_cleanup(cosched_pipeline *pipeline, int stage, cosched_pipeline_cleanup_fn cleanup);

/**
 * Sets what frees the stage's user pointer: called once, also when the pipeline never runs. Returns 0, or -1: then it is
 * not called.
 */
int cosched_pipeline_stage_free(cosched_pipeline *pipeline,
                                int stage,
                                cosched_pipeline_free_fn free);

/**
 * Sets how a stage runs, a cosched_pipeline_kind. A body always has a thread of its own. Returns 0 or -1.
 */
int cosched_pipeline_stage_kind(cosched_pipeline *pipeline, int stage, int kind);

/**
 * Fork and join: so many of the stage run at once, each on buffers of its own. They share the user pointer, unless the
 * stage's init callback gives each one a state of its own. Not for bodies. Returns 0 or -1.
 */
int cosched_pipeline_stage_incarnations(cosched_pipeline *pipeline, int stage, size_t count);

/**
 * Autotune (see cosched_pipeline_set_priorities) may add incarnations up to so many where the stage limits. Not for bodies.
 * Returns 0 or -1.
 */
int cosched_pipeline_stage_replicable(cosched_pipeline *pipeline,
                                      int stage,
                                      size_t count_max);

/**
 * Whether the buffers leave several incarnations in the order in which they came; they do unless told otherwise. Returns 0
 * or -1.
 */
int cosched_pipeline_stage_ordered(cosched_pipeline *pipeline,
                                   int stage,
                                   bool ordered);

/**
 * Multistage thread: all stages with this thread's name share a thread and work in turn, in the order in which they were
 * added. Returns 0 or -1.
 */
int cosched_pipeline_stage_on_thread(cosched_pipeline *pipeline,
                                     int stage,
                                     const char *thread);

/**
 * Multistage repeat: in its turn on a shared thread the stage does so many buffers. Returns 0 or -1.
 */
int cosched_pipeline_stage_repeat(cosched_pipeline *pipeline, int stage, size_t times);

/**
 * For a body: while it waits for a buffer of a path it may hold so many others of it. A path with fewer buffers than that and
 * one more is refused; it would wait for ever. Returns 0 or -1.
 */
int cosched_pipeline_stage_holds(cosched_pipeline *pipeline,
                                 int stage,
                                 size_t buffers);

/**
 * Adds a path: a pool of `buffers` buffers of `size_bytes`, which go through the stages with these numbers, in this order,
 * and back to the pool. Returns the path's number, from 0, or -1.
 */
int cosched_pipeline_path(cosched_pipeline *pipeline,
                          const char *name,
                          size_t buffers,
                          size_t size_bytes,
                          const int *stages,
                          size_t stage_count);

/**
 * So many workers for the stages that compute; 0 for one per CPU that the process may use, as unless told otherwise.
 * Returns 0 or -1.
 */
int cosched_pipeline_set_workers(cosched_pipeline *pipeline, size_t workers);

/**
 * How the scheduling of the stages' threads is chosen: "default", "auto" (autotune), "adjust-once", "adjust-up-down", or a
 * fixed rule as "nice-up-io" (docs/pipeline.md lists them). What a stage asks for itself comes first. Returns 0 or -1.
 */
int cosched_pipeline_set_priorities(cosched_pipeline *pipeline,
                                    const char *rule);

/**
 * Whether each stage that has a thread of its own gets one CPU, in turn, of those that the process may use. Returns 0 or -1.
 */
int cosched_pipeline_set_pin_in_turn(cosched_pipeline *pipeline,
                                     bool pin);

/**
 * A stage that works on one buffer for longer than `limit_s` seconds ends the run with COSCHED_CODE_STALLED and its name; so
 * does a graph in which all wait for each other. 0, as unless told otherwise: nothing is ended. Returns 0 or -1.
 */
int cosched_pipeline_set_stall_limit(cosched_pipeline *pipeline,
                                     double limit_s);

/**
 * What takes longer than `limit_s` seconds is named on standard error and in the report, and goes on; 0 for the library's own
 * limit of 30 s. Returns 0 or -1.
 */
int cosched_pipeline_set_stall_warning(cosched_pipeline *pipeline,
                                       double limit_s);

/**
 * Whether the begin and the end of every round are kept, for cosched_pipeline_report_trace. Returns 0 or -1.
 */
int cosched_pipeline_set_trace(cosched_pipeline *pipeline, bool trace);

/**
 * Whether `cosched pipeline show` may look at it while it runs. Returns 0 or -1.
 */
int cosched_pipeline_set_serve(cosched_pipeline *pipeline, bool serve);

/**
 * Waits for the next buffer of any path; a stage that only begins paths gets an empty one. NULL when all paths that come in
 * have ended, or when the pipeline stops. The buffer is the body's until it conveys it.
 */
cosched_pipeline_buffer *cosched_pipeline_accept(cosched_pipeline_port *port);

/**
 * Waits for the next buffer of one path; of one that this stage begins, for an empty one. NULL when the path has ended, or
 * when the pipeline stops.
 */
cosched_pipeline_buffer *cosched_pipeline_accept_from(cosched_pipeline_port *port,
                                                      int path);

/**
 * As cosched_pipeline_accept, but NULL also when no buffer waits now.
 */
cosched_pipeline_buffer *cosched_pipeline_try_accept(cosched_pipeline_port *port);

/**
 * Hands a buffer to the successor on its path, or back to the pool behind the path's last stage. The pointer is not valid
 * afterwards. Returns 0, or -1 if this body does not hold such a buffer; the pipeline fails then when the body returns.
 */
int cosched_pipeline_convey(cosched_pipeline_port *port,
                            cosched_pipeline_buffer *buffer);

/**
 * Ends a path that this stage begins, behind its last block. To mark the last block does the same. Returns 0, or -1 when
 * the pipeline stops or the stage is not on this path.
 */
int cosched_pipeline_end(cosched_pipeline_port *port,
                         int path);

/**
 * How many buffers wait for this stage.
 */
size_t cosched_pipeline_backlog(cosched_pipeline_port *port);

/**
 * How many buffers wait behind this stage, before its successor on a path; for the path's last stage, in the pool.
 */
size_t cosched_pipeline_output_backlog(cosched_pipeline_port *port, int path);

/**
 * Whether the pipeline stops. A body that works long on one buffer may ask and return 0.
 */
bool cosched_pipeline_stopping(cosched_pipeline_port *port);

/**
 * A report (JSON, of cosched_pipeline_wait, _run, _snapshot or cosched_error_report) as a table for people. Free it with
 * cosched_string_free. NULL if it is no report.
 */
char *cosched_pipeline_report_text(const char *report);

/**
 * A report as a Chrome trace (Perfetto, chrome://tracing). Rounds are in it where cosched_pipeline_set_trace said so; queues
 * and changes of priorities always. Free it with cosched_string_free. NULL if it is no report.
 */
char *cosched_pipeline_report_trace(const char *report);

/**
 * The memory that all buffers of the pipeline will take, in bytes; 0 once it was started.
 */
uint64_t cosched_pipeline_memory_bytes(const cosched_pipeline *pipeline);

/**
 * Whether the pipeline can run as it was built. Returns 0, or -1 and the first thing that is wrong.
 */
int cosched_pipeline_check(cosched_pipeline *pipeline, cosched_error **error);

/**
 * Starts the pipeline and returns. Returns 0, or -1 and why it cannot run: nothing has run then.
 */
int cosched_pipeline_start(cosched_pipeline *pipeline, cosched_error **error);

/**
 * Waits for the end of a pipeline that was started. All its threads have ended then. Once for each pipeline.
 *
 * Returns 0 and, where `report` is not NULL, what the stages did, as JSON; free it with cosched_string_free. Or -1 and the
 * first failure, with cosched_error_stage and cosched_error_report; `report` is left alone then.
 */
int cosched_pipeline_wait(cosched_pipeline *pipeline,
                          char **report,
                          cosched_error **error);

/**
 * cosched_pipeline_start and cosched_pipeline_wait in one.
 */
int cosched_pipeline_run(cosched_pipeline *pipeline, char **report, cosched_error **error);

/**
 * Ends a pipeline that runs, as soon as each stage is done with its present buffer; who waits for it gets
 * COSCHED_CODE_STOPPED. From any thread, a stage's callback too. On one that does not run it has no effect. It takes a
 * lock: not for signal handlers.
 */
void cosched_pipeline_stop(cosched_pipeline *pipeline);

/**
 * What the stages of a pipeline that runs or ran have done so far, as JSON; free it with cosched_string_free. From any
 * thread. NULL if it was not started.
 */
char *cosched_pipeline_snapshot(const cosched_pipeline *pipeline);

/**
 * The nice value of the stage's threads, -20 (first) to 19 (last). Lower than the present one needs a right. Returns 0 or -1.
 */
int cosched_pipeline_stage_nice(cosched_pipeline *pipeline,
                                int stage,
                                int nice);

/**
 * The slice that the kernel grants to the stage's threads, 100 to 100000 microseconds: a short one for a thread that blocks
 * often gets it its CPU sooner. Linux 6.12; needs no right. Returns 0 or -1.
 */
int cosched_pipeline_stage_slice_us(cosched_pipeline *pipeline,
                                    int stage,
                                    uint32_t slice_us);

/**
 * The scheduling class of the stage's threads, a cosched_pipeline_class; `fifo_priority` is for COSCHED_PIPELINE_CLASS_FIFO,
 * 1 to 99, and 0 for the others. Returns 0 or -1.
 */
int cosched_pipeline_stage_class(cosched_pipeline *pipeline,
                                 int stage,
                                 int class_,
                                 int fifo_priority);

/**
 * The CPUs that the stage's threads may use. Returns 0 or -1.
 */
int cosched_pipeline_stage_cpus(cosched_pipeline *pipeline, int stage, const int *cpus, size_t count);

/**
 * For a stage's callback: says why it fails, and returns COSCHED_PIPELINE_FLOW_FAILED, so that a callback may write
 * `return cosched_pipeline_fail("…");`. The text is copied. Outside of callbacks it has no effect.
 */
int cosched_pipeline_fail(const char *why);

/**
 * The library's version, "MAJOR.MINOR.PATCH". Not to be freed.
 */
const char *cosched_version(void);

/**
 * The library's version as a number: MAJOR * 1000000 + MINOR * 1000 + PATCH, as COSCHED_VERSION_NUMBER of the header that
 * a program was compiled with.
 */
int cosched_version_number(void);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* COSCHED_H */

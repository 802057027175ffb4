/* cosched for programs in C: libcosched. Made by cbindgen from crates/cosched-ffi; not to be changed by hand.
 *
 * Jobs (cosched_open, cosched_register, ...): a program registers itself for gang scheduling with the daemon of its machine.
 * Functions return 0 or a negative cosched_err; cosched_strerror says what it means, cosched_last_error what happened in
 * this thread. docs/api.md has examples.
 *
 * Pipelines (cosched_pipeline_...): stages on threads in this process, without a daemon. Functions that can fail return -1
 * or NULL; where they have an `error` argument, it may be NULL, or the address of a pointer that gets the error (NULL where
 * there is none), which the caller frees with cosched_error_free. docs/pipeline-bindings.md has examples.
 *
 * Handles are opaque. Texts are UTF-8 and end with NUL. No function throws or unwinds, and callbacks must not: an exception
 * or a longjmp that leaves a callback ends the process. Threads: every function may be called from any thread. Buffers and
 * ports are for the callback that got them.
 */

#ifndef COSCHED_H
#define COSCHED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define COSCHED_VERSION "0.1.0"
#define COSCHED_VERSION_NUMBER 1000
/* 0 if the library that the program found at run time is what it was compiled for. */
#define COSCHED_CHECK_VERSION() cosched_check_version(COSCHED_VERSION_NUMBER)
/* A number that is not known. */
#define COSCHED_UNKNOWN UINT64_MAX

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
 * What a function of the job API returns. 0 is success, all others are negative.
 */
typedef enum {
  /**
   * Done.
   */
  COSCHED_ERR_OK = 0,
  /**
   * An argument that cannot be: NULL, no handle, out of range, a job that can never fit.
   */
  COSCHED_ERR_INVALID = -1,
  /**
   * No daemon answers on the socket.
   */
  COSCHED_ERR_NO_DAEMON = -2,
  /**
   * No such job, process or node.
   */
  COSCHED_ERR_NOT_FOUND = -3,
  /**
   * Not the caller's right.
   */
  COSCHED_ERR_FORBIDDEN = -4,
  /**
   * Not in the present state of the job or the process.
   */
  COSCHED_ERR_CONFLICT = -5,
  /**
   * This daemon or this machine cannot do it, such as a node that it does not have.
   */
  COSCHED_ERR_UNSUPPORTED = -6,
  /**
   * Program, library and daemon are of versions that do not go together.
   */
  COSCHED_ERR_VERSION = -7,
  /**
   * The daemon failed, or its answer was not understood.
   */
  COSCHED_ERR_DAEMON = -8,
  /**
   * The daemon did not answer in time.
   */
  COSCHED_ERR_TIMEOUT = -9,
  /**
   * A fault in this library.
   */
  COSCHED_ERR_INTERNAL = -10,
} cosched_err;

/**
 * A job's class, from the most to the least urgent.
 */
typedef enum {
  /**
   * What the daemon gives: interactive.
   */
  COSCHED_CLASS_DEFAULT = 0,
  /**
   * Mission critical; for administrators.
   */
  COSCHED_CLASS_EXPRESS = 1,
  /**
   * Rapid response.
   */
  COSCHED_CLASS_INTERACTIVE = 2,
  /**
   * Throughput.
   */
  COSCHED_CLASS_BATCH = 3,
  /**
   * Takes what others leave.
   */
  COSCHED_CLASS_STANDBY = 4,
} cosched_class;

/**
 * Where a job is in its life.
 */
typedef enum {
  /**
   * Scheduled.
   */
  COSCHED_STATE_RUNNING = 1,
  /**
   * A gang that used no CPU for a while: it has no slots until it uses some.
   */
  COSCHED_STATE_ASLEEP = 2,
  /**
   * Stopped by its user or an administrator.
   */
  COSCHED_STATE_SUSPENDED = 3,
  /**
   * All its processes have ended or left.
   */
  COSCHED_STATE_ENDED = 4,
  /**
   * Its processes vanished while no daemon was looking.
   */
  COSCHED_STATE_LOST = 5,
  /**
   * A gang that used no CPU for a very long time: Linux schedules it until a user resumes it.
   */
  COSCHED_STATE_DROPPED = 6,
  /**
   * In its queue: it has no place yet, or its nodes lack memory for it now.
   */
  COSCHED_STATE_WAITING = 7,
} cosched_state;

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
 * A connection to a daemon. Opaque. Any thread may use it, and so may the children of the process that opened it.
 */
typedef struct cosched_t cosched_t;

/**
 * What a job is.
 */
typedef struct {
  /**
   * Its number.
   */
  uint64_t id;
  /**
   * Its owner's number.
   */
  uint32_t uid;
  /**
   * A cosched_state; 0: one that this library does not know.
   */
  int state;
  /**
   * A cosched_class.
   */
  int job_class;
  /**
   * The CPUs at a time that it was given.
   */
  uint32_t cpus;
  /**
   * Its first process; 0: none yet.
   */
  int32_t pid;
  /**
   * 0.
   */
  uint32_t unused;
  /**
   * The memory that it says it needs, on all its nodes together; COSCHED_UNKNOWN: it does not.
   */
  uint64_t memory_bytes;
  /**
   * The disk space that it says it needs; COSCHED_UNKNOWN: it does not.
   */
  uint64_t disk_bytes;
  /**
   * When it was registered, in milliseconds since 1970.
   */
  uint64_t submitted_unix_ms;
  /**
   * When it ended; COSCHED_UNKNOWN: it has not.
   */
  uint64_t ended_unix_ms;
  /**
   * Its name, cut to fit, ended by NUL.
   */
  char name[256];
  /**
   * For later versions.
   */
  uint64_t reserved[4];
} cosched_job;

/**
 * What a job uses: in a cluster, on the node of the daemon that is asked, and when it has ended, on all its nodes.
 * COSCHED_UNKNOWN where the kernel does not tell.
 */
typedef struct {
  /**
   * CPU time so far, of all its processes, those that have ended or left included. Of a job that has ended: to the
   * millisecond.
   */
  uint64_t cpu_time_us;
  /**
   * Memory in use now; unknown of a job that has ended.
   */
  uint64_t memory_bytes;
  /**
   * The most memory that it used.
   */
  uint64_t memory_peak_bytes;
  /**
   * Its processes now; 0 of a job that has ended.
   */
  uint64_t processes;
  /**
   * For later versions.
   */
  uint64_t reserved[4];
} cosched_use;

/**
 * How busy a node is.
 */
typedef struct {
  /**
   * The node's name, cut to fit, ended by NUL.
   */
  char node[256];
  /**
   * The CPUs that it gives to jobs.
   */
  uint32_t cpus;
  /**
   * Threads that run or wait for a CPU now, registered or not.
   */
  uint32_t runnable;
  /**
   * Jobs that are neither ended nor suspended.
   */
  uint32_t jobs;
  /**
   * The CPUs that these jobs have at a time, together.
   */
  uint32_t job_cpus;
  /**
   * Threads that run or wait for a CPU, on average over 1 minute.
   */
  double load_1min;
  /**
   * Over 5 minutes.
   */
  double load_5min;
  /**
   * Over 15 minutes.
   */
  double load_15min;
  /**
   * The node's memory.
   */
  uint64_t memory_bytes;
  /**
   * Memory that new programs could have without swapping.
   */
  uint64_t memory_available_bytes;
  /**
   * The memory that its jobs say they need, together.
   */
  uint64_t memory_declared_bytes;
  /**
   * When that was measured, in ms since the Unix epoch: of another node than the daemon's. A node reports again, within half a
   * minute, when one of its load averages has changed by half a thread and an eighth, or its memory by a sixteenth.
   * COSCHED_UNKNOWN: now.
   */
  uint64_t measured_unix_ms;
  /**
   * For later versions.
   */
  uint64_t reserved[3];
} cosched_load;

/**
 * What a job wants of one node. Set it to zero first (memset, or = {0}): what is 0 is not said.
 */
typedef struct {
  /**
   * The node's name, as gethostname says it there; NULL or "" for the node of the daemon.
   */
  const char *node;
  /**
   * CPUs at a time; 0: all of the node's.
   */
  uint32_t cpus;
  /**
   * The job also takes fewer, but not fewer than this; 0: it wants exactly `cpus`.
   */
  uint32_t cpus_min;
  /**
   * The memory that it needs there; 0: not said.
   */
  uint64_t memory_bytes;
  /**
   * The disk space that it needs there; 0: not said. Kept and shown; no disk is reserved.
   */
  uint64_t disk_bytes;
  /**
   * For later versions: 0.
   */
  uint64_t reserved[4];
} cosched_resources;

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
 * Connects to the daemon and puts a handle into `*handle`, for all other functions. Close it with cosched_close.
 *
 * `socket` is the path of the daemon's socket. NULL or "": that of the environment variable COSCHED_SOCKET, else the
 * system's daemon if it runs, else the user's own. No daemon is started.
 *
 * A child after fork(2) may keep using the handle: it gets a connection of its own. So does a program that has become
 * another user: each call is made with the rights of the effective user of that moment.
 *
 * Errors: COSCHED_ERR_NO_DAEMON when no daemon answers; COSCHED_ERR_VERSION when the daemon is older than this library;
 * COSCHED_ERR_FORBIDDEN when this user may not open the socket; COSCHED_ERR_INVALID when `handle` is NULL.
 */
int cosched_open(const char *socket, cosched_t **handle);

/**
 * Closes a handle. The jobs that were registered through it keep running. NULL is fine. No other thread may be using the handle.
 *
 * Errors: COSCHED_ERR_INVALID when it is no handle; nothing is done then.
 */
int cosched_close(cosched_t *handle);

/**
 * Gives a job another class, a cosched_class. Users lower the class of their own jobs; administrators set any.
 *
 * Errors: COSCHED_ERR_FORBIDDEN when the job is not the caller's or the class is above its present one; COSCHED_ERR_INVALID
 * when it is no class; COSCHED_ERR_NOT_FOUND when there is no such job; COSCHED_ERR_CONFLICT when it has ended; and those of
 * the connection.
 */
int cosched_set_class(cosched_t *handle,
                      uint64_t job,
                      int job_class);

/**
 * Stops a job, on all its nodes, until it is resumed. One that is suspended stays so. A process that suspends its own job
 * is stopped before or soon after this returns.
 *
 * Errors: COSCHED_ERR_NOT_FOUND when there is no such job; COSCHED_ERR_FORBIDDEN when it is not the caller's;
 * COSCHED_ERR_CONFLICT when it has ended; and those of the connection.
 */
int cosched_suspend(cosched_t *handle,
                    uint64_t job);

/**
 * Resumes a suspended job. One that is not suspended stays as it is.
 *
 * Errors: as for cosched_suspend.
 */
int cosched_resume(cosched_t *handle, uint64_t job);

/**
 * Sends a signal to every process of a job, on all its nodes: SIGTERM to ask it to end, SIGKILL to force it; what remains
 * after another signal is not killed. A suspended job that is asked to end is resumed for it.
 *
 * Errors: COSCHED_ERR_INVALID when the signal is not 1 to 64; and as for cosched_suspend.
 */
int cosched_kill(cosched_t *handle,
                 uint64_t job,
                 int signal);

/**
 * What a job is, into `*result`: its state, class, the CPUs that it was given. Of any user's job, also of one that has ended
 * and is still remembered.
 *
 * Errors: COSCHED_ERR_NOT_FOUND when there is no such job; COSCHED_ERR_INVALID when `result` is NULL; and those of the
 * connection.
 */
int cosched_get_job(cosched_t *handle,
                    uint64_t job,
                    cosched_job *result);

/**
 * What a job uses, into `*result`: CPU time, memory, processes, as its cgroups count them. Of any user's job, also of one that
 * has ended and is still remembered.
 *
 * Errors: as for cosched_get_job.
 */
int cosched_get_use(cosched_t *handle,
                    uint64_t job,
                    cosched_use *result);

/**
 * How busy a node is, into `*result`. `node` is its name; NULL or "": the daemon's. In a cluster any daemon tells of any of
 * its nodes.
 *
 * Errors: COSCHED_ERR_NOT_FOUND when no node of the cluster has this name now; the message lists the present nodes;
 * COSCHED_ERR_UNSUPPORTED when the daemon is of one machine, and this is not its name; COSCHED_ERR_CONFLICT when the node has
 * just joined and said nothing yet; COSCHED_ERR_INVALID when `result` is NULL; and those of the connection.
 */
int cosched_node_load(cosched_t *handle,
                      const char *node,
                      cosched_load *result);

/**
 * Registers a job for this user and puts its number into `*job`.
 *
 * `name` is for display; NULL: the program's name. `job_class` is a cosched_class. `nodes` says what the job wants of each
 * of its nodes, `node_count` of them; NULL and 0: the daemon's node with all its CPUs.
 *
 * The job has no process yet. Each process of the program puts itself into it, or is put, by cosched_add_process; children
 * that it starts afterwards are in it by birth. A job that has got no process after 60 seconds ends, and so does one whose
 * processes have all ended or left.
 *
 * A daemon of one machine knows one node: more nodes, or the name of another, are refused with COSCHED_ERR_UNSUPPORTED.
 *
 * Errors: COSCHED_ERR_INVALID for what can never fit; COSCHED_ERR_FORBIDDEN for class express, unless the caller is an
 * administrator; COSCHED_ERR_CONFLICT when this user has 16 jobs without a process already, and when a cluster has no such
 * node or none that can ever fit it; and those of the connection: COSCHED_ERR_NO_DAEMON, COSCHED_ERR_TIMEOUT,
 * COSCHED_ERR_DAEMON.
 */
int cosched_register(cosched_t *handle,
                     const char *name,
                     int job_class,
                     const cosched_resources *nodes,
                     size_t node_count,
                     uint64_t *job);

/**
 * Puts a process with all its threads into a job: it is scheduled with the job when this returns. `pid` 0: the calling
 * process. Its present children stay where they are; those that it starts afterwards are in the job by birth. A process that
 * is in this job already stays, and that is no error.
 *
 * The process must run as the job's owner, and the caller must be the owner or an administrator. Should the process end and
 * its number be given to another one before the daemon has it, the other one is not taken for it.
 *
 * Errors: COSCHED_ERR_NOT_FOUND when there is no such job or process; COSCHED_ERR_FORBIDDEN when one of the two is not the
 * caller's; COSCHED_ERR_CONFLICT when the process is in another job, or this job has ended; COSCHED_ERR_INVALID when `pid` is
 * negative or a thread's; and those of the connection.
 */
int cosched_add_process(cosched_t *handle,
                        uint64_t job,
                        int pid);

/**
 * As cosched_add_process, for the process behind a descriptor of pidfd_open(2) or clone(2): it never means another process,
 * however long ago it was opened.
 *
 * Errors: as for cosched_add_process; COSCHED_ERR_INVALID when it is no pidfd.
 */
int cosched_add_pidfd(cosched_t *handle,
                      uint64_t job,
                      int pidfd);

/**
 * Takes a process with all its threads out of a job: back to the cgroups that the job's first process came from, where
 * Linux schedules it. `pid` 0: the calling process. The CPU time that it used stays the job's.
 *
 * Errors: COSCHED_ERR_NOT_FOUND when there is no such job, or the process is not in it; COSCHED_ERR_FORBIDDEN when the job is
 * not the caller's; COSCHED_ERR_CONFLICT when the job has ended, or there is no cgroup to go back to; and those of the
 * connection.
 */
int cosched_remove_process(cosched_t *handle,
                           uint64_t job,
                           int pid);

/**
 * Changes what a job wants, while it runs, as for cosched_register: all that is said there is replaced. A job that has
 * started keeps its nodes, and gets what it wants more at once or not at all; one that waits keeps its place in its queue.
 *
 * Errors: COSCHED_ERR_INVALID for what can never fit, and when `node_count` is 0; COSCHED_ERR_UNSUPPORTED for a node that a
 * daemon of one machine does not have; COSCHED_ERR_CONFLICT when a cluster has no such node, can never fit it, or has no room
 * for more now (cosched_last_error tells what is lacking), and when the job has ended; COSCHED_ERR_NOT_FOUND,
 * COSCHED_ERR_FORBIDDEN as for cosched_add_process; and those of the connection. The job stays as it was then.
 */
int cosched_set_resources(cosched_t *handle,
                          uint64_t job,
                          const cosched_resources *nodes,
                          size_t node_count);

/**
 * Why the last function of the job API that failed in this thread did: what happened, why, and what to do, in one line for
 * people. "" if none has failed. Valid until the next one fails in this thread; not to be freed.
 */
const char *cosched_last_error(void);

/**
 * What a code means, in a few words, for every number. cosched_last_error says more. Not to be freed.
 */
const char *cosched_strerror(int code);

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
 * Fork and join: this number of copies of the stage run at once, each on buffers of its own. They share the user pointer, unless the
 * stage's init callback gives each one a state of its own. Not for bodies. Returns 0 or -1.
 */
int cosched_pipeline_stage_incarnations(cosched_pipeline *pipeline,
                                        int stage,
                                        size_t count);

/**
 * Autotune (see cosched_pipeline_set_priorities) may add incarnations, up to this number, where the stage is the bottleneck. Not for bodies.
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
 * Multistage repeat: in its turn on a shared thread the stage processes this number of buffers. Returns 0 or -1.
 */
int cosched_pipeline_stage_repeat(cosched_pipeline *pipeline, int stage, size_t times);

/**
 * For a body: while it waits for a buffer of a path it may hold at most this number of others of it. A path with no more buffers
 * than that is refused, as the body could wait for ever. Returns 0 or -1.
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
 * The number of workers for the stages that compute; 0, the default, for one per CPU that the process may use.
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
 * A call of a stage that takes longer than `limit_s` seconds is named on standard error and in the report, and continues; 0 for the
 * library's own limit of 30 s. Returns 0 or -1.
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
 * Ends a running pipeline, as soon as each stage is done with its present buffer; its waiting caller gets
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

/**
 * Whether this library is what a program was compiled for; COSCHED_CHECK_VERSION() calls it with the number of the header.
 * 0: it has the same MAJOR and is not older. COSCHED_ERR_VERSION: it is not; cosched_last_error then tells the two versions.
 */
int cosched_check_version(int header_version_number);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* COSCHED_H */

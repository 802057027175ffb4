//! The state of the recording, and one call.
//!
//! The thread that called `MPI_Init` owns the state; calls of other threads are counted. A call within a call (an MPI
//! library may use its own functions) is part of the outer one.
//!
//! The reason of time off the CPU is read from the kernel only where there was some: reading the run delay costs a microsecond. The error is below
//! [`OFF_NS_MIN`] per call.

use crate::comms::Comms;
use crate::file::{self, File, put};
use crate::library;
use crate::requests::{Pending, Requests};
use crate::sys::{self, RunDelay};
use core::cell::UnsafeCell;
use core::ffi::{CStr, c_int};
use core::sync::atomic::{AtomicBool, AtomicPtr, AtomicU16, AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::ffi::CString;

/// The least time off the CPU for which the reason is read, in nanoseconds.
const OFF_NS_MIN: u64 = 3_000;
/// The size of a rank's file unless the environment says otherwise, in bytes.
const LIMIT_BYTES: usize = 256 << 20;

/// The directory of the files; null: nothing is recorded.
static DIRECTORY: AtomicPtr<libc::c_char> = AtomicPtr::new(core::ptr::null_mut());
static LIMIT: AtomicUsize = AtomicUsize::new(LIMIT_BYTES);
/// The thread that owns the state; 0 before `MPI_Init` and after `MPI_Finalize`.
static OWNER: AtomicUsize = AtomicUsize::new(0);
/// The owner is in a call: calls within it are not recorded.
static WITHIN: AtomicBool = AtomicBool::new(false);
/// Calls of other threads.
static OTHER_THREADS: AtomicU64 = AtomicU64::new(0);

/// A function's number in the file; 0 before its first call.
pub(crate) type Number = AtomicU16;

struct Global(UnsafeCell<Option<State>>);

// SAFETY: only the thread that OWNER names uses what is inside; OWNER changes hands in MPI_Init and MPI_Finalize only.
unsafe impl Sync for Global {}

static STATE: Global = Global(UnsafeCell::new(None));

struct State {
    file: File,
    delay: RunDelay,
    comms: Comms,
    requests: Requests,
    /// The handles of the requests that the present call names.
    handles: Vec<usize>,
    /// Room for statuses if the program passes none.
    statuses: Vec<u64>,
    record: Vec<u8>,
    events: Vec<u8>,
    event_count: u64,
    functions: u16,
    /// The clocks when the last call ended.
    last: Clocks,
    /// The time of unsuccessful tests since the last record, and whether the last call was one.
    polls: Times,
    polled: bool,
}

/// The clocks at a moment, in nanoseconds.
#[derive(Clone, Copy, Debug, Default)]
struct Clocks {
    wall_ns: u64,
    cpu_ns: u64,
    delay_ns: u64,
    /// Voluntary context switches of the thread.
    switches: u64,
}

/// How the time before a call and in it was spent, in nanoseconds.
#[derive(Clone, Copy, Debug, Default)]
struct Times {
    compute_ns: u64,
    io_ns: u64,
    delay_ns: u64,
    call_ns: u64,
    call_cpu_ns: u64,
    call_delay_ns: u64,
}

/// A call of the program that is being recorded.
pub(crate) struct Call {
    state: &'static mut State,
    function: u16,
    begin: Clocks,
    end: Clocks,
}

/// For the constructor: whether and where to record.
pub(crate) fn read_environment() {
    let Some(directory) = sys::variable(c"COSCHED_RECORD_DIR").filter(|path| !path.is_empty()) else { return };
    if let Some(text) = sys::variable(c"COSCHED_RECORD_LIMIT") {
        match text.to_str().ok().and_then(|text| text.parse().ok()) {
            Some(bytes) => LIMIT.store(bytes, Relaxed),
            None => sys::complain("COSCHED_RECORD_LIMIT is not a number of bytes; the default limit applies"),
        }
    }
    // The program may change its environment later.
    DIRECTORY.store(directory.to_owned().into_raw(), Relaxed);
}

/// For the destructor: a program that ended without `MPI_Finalize`.
pub(crate) fn process_ends() {
    if OWNER.load(Relaxed) == sys::thread_name() {
        // SAFETY: this thread owns the state.
        let state = unsafe { &mut *STATE.0.get() };
        // A forked child process has a copy of the mapping, which is not its own.
        // SAFETY: no arguments, no effect.
        if state.as_mut().is_some_and(|state| state.file.head().pid == u64::from(unsafe { libc::getpid() } as u32)) {
            close(3);
        }
    }
}

/// `MPI_Init` has returned: recording begins.
pub(crate) fn open() {
    let path = DIRECTORY.load(Relaxed);
    if path.is_null() || OWNER.load(Relaxed) != 0 {
        return;
    }
    // SAFETY: set by `read_environment` from a string, and never freed.
    let directory = unsafe { CStr::from_ptr(path) };
    let errno = sys::errno();
    library::find();
    let state = library::rank_and_size(library::world()).and_then(|(rank, ranks)| State::new(directory, rank, ranks));
    if state.is_none() {
        sys::complain("the recording of a rank cannot be written; the program continues without it");
    } else {
        // SAFETY: no thread owns the state yet, and MPI_Init is called once.
        unsafe { *STATE.0.get() = state };
        OWNER.store(sys::thread_name(), Relaxed);
    }
    sys::set_errno(errno);
}

/// `MPI_Finalize` has returned, or the process ends: `how` is the state in the head.
pub(crate) fn close(how: u64) {
    if OWNER.swap(0, Relaxed) != sys::thread_name() {
        return;
    }
    // SAFETY: this thread owned the state until now, and no thread can own it again.
    let Some(mut state) = (unsafe { &mut *STATE.0.get() }).take() else { return };
    let cpu_ns = sys::process_cpu_ns();
    let thread_cpu_ns = sys::thread_cpu_ns();
    let last = state.last;
    let head = state.file.head();
    head.process_cpu_ns = cpu_ns.saturating_sub(head.process_cpu_ns);
    head.outside_cpu_ns += thread_cpu_ns.saturating_sub(last.cpu_ns);
    head.other_threads = OTHER_THREADS.load(Relaxed);
    head.state = how;
    state.file.close();
}

impl State {
    fn new(directory: &CStr, rank: c_int, ranks: c_int) -> Option<State> {
        // SAFETY: no arguments, no effect.
        let pid = unsafe { libc::getpid() };
        let path = CString::new([directory.to_bytes(), format!("/rank-{rank}-{pid}").as_bytes()].concat()).ok()?;
        let mut file = File::create(&path, LIMIT.load(Relaxed))?;
        let delay = RunDelay::open();
        let (delay_ns, switches) = (delay.ns(), sys::voluntary_switches());
        let last = Clocks { wall_ns: sys::now_ns(), cpu_ns: sys::thread_cpu_ns(), delay_ns, switches };
        let head = file.head();
        head.rank = u64::from(rank as u32);
        head.ranks = u64::from(ranks as u32);
        head.pid = u64::from(pid as u32);
        head.library = library::library() as u64;
        head.begin_ns = last.wall_ns;
        head.outside_cpu_ns = last.cpu_ns;
        head.process_cpu_ns = sys::process_cpu_ns();
        // SAFETY: the array has this length.
        unsafe { libc::gethostname(head.host.as_mut_ptr().cast(), head.host.len() - 1) };
        head.state = 1;
        head.mark = file::MARK;
        let mut state = State {
            file,
            delay,
            comms: Comms::new(),
            requests: Requests::new(),
            handles: Vec::new(),
            statuses: Vec::new(),
            record: Vec::with_capacity(256),
            events: Vec::with_capacity(256),
            event_count: 0,
            functions: 0,
            last,
            polls: Times::default(),
            polled: false,
        };
        // The world comes first: so every file contains it, with its members.
        state.comms.number(library::world(), &mut state.record);
        state.write_record();
        Some(state)
    }

    /// The present clocks; the run delay is read only if there was time off the CPU since `since`.
    fn clocks(&self, since: Clocks) -> Clocks {
        let (wall_ns, cpu_ns) = (sys::now_ns(), sys::thread_cpu_ns());
        let off_ns = (wall_ns - since.wall_ns).saturating_sub(cpu_ns - since.cpu_ns);
        if off_ns < OFF_NS_MIN {
            return Clocks { wall_ns, cpu_ns, ..since };
        }
        Clocks { wall_ns, cpu_ns, delay_ns: self.delay.ns(), switches: sys::voluntary_switches() }
    }

    /// The function's number; its first call assigns one and writes its name to the head.
    fn function(&mut self, number: &Number, name: &str) -> u16 {
        let known = number.load(Relaxed);
        if known != 0 {
            return known;
        }
        let index = usize::from(self.functions).min(file::FUNCTIONS_MAX - 1);
        self.functions = index as u16 + 1;
        let place = &mut self.file.head().counts[index].name;
        let length = name.len().min(file::NAME_BYTES - 1);
        place[..length].copy_from_slice(&name.as_bytes()[..length]);
        number.store(self.functions, Relaxed);
        self.functions
    }

    fn write_record(&mut self) -> bool {
        let written = self.file.add(&self.record);
        self.record.clear();
        written
    }

    /// Adds the call with these times to the present record, and writes it.
    fn write_call(&mut self, function: u16, times: Times) {
        self.record.push(2);
        let delays = [times.call_ns, times.call_cpu_ns, times.call_delay_ns];
        let fields = [u64::from(function), times.compute_ns, times.io_ns, times.delay_ns];
        fields.into_iter().chain(delays).chain([self.event_count]).for_each(|field| put(&mut self.record, field));
        self.record.append(&mut self.events);
        self.event_count = 0;
        let written = self.write_record();
        let head = self.file.head();
        *(if written { &mut head.recorded } else { &mut head.dropped }) += 1;
    }
}

/// The time off the CPU between two moments: (waiting for a CPU, other reasons). A thread without a voluntary switch did no I/O, whatever took the
/// CPU from it: another process, an interrupt, the host of a virtual machine. A very short time is that between the readings of the two clocks.
fn off_cpu_ns(begin: Clocks, end: Clocks) -> (u64, u64) {
    let off_ns = (end.wall_ns - begin.wall_ns).saturating_sub(end.cpu_ns - begin.cpu_ns);
    if off_ns < OFF_NS_MIN || end.switches == begin.switches {
        return (off_ns, 0);
    }
    let delay_ns = end.delay_ns.saturating_sub(begin.delay_ns).min(off_ns);
    (delay_ns, off_ns - delay_ns)
}

impl Call {
    /// To be called when a call begins. `None` if it is not to be recorded.
    #[inline]
    pub(crate) fn begin(number: &Number, name: &str) -> Option<Call> {
        match OWNER.load(Relaxed) {
            0 => None,
            owner if owner == sys::thread_name() => Call::begin_own(number, name),
            _ => {
                OTHER_THREADS.fetch_add(1, Relaxed);
                None
            }
        }
    }

    fn begin_own(number: &Number, name: &str) -> Option<Call> {
        if WITHIN.swap(true, Relaxed) {
            return None;
        }
        // SAFETY: this thread owns the state, and of nested calls only the outermost comes here.
        let state = unsafe { &mut *STATE.0.get() }.as_mut()?;
        let errno = sys::errno();
        let begin = state.clocks(state.last);
        sys::set_errno(errno);
        let function = state.function(number, name);
        state.file.head().counts[usize::from(function) - 1].calls += 1;
        Some(Call { state, function, begin, end: begin })
    }

    /// To be called when the library has returned.
    pub(crate) fn stop(&mut self) {
        let errno = sys::errno();
        self.end = self.state.clocks(self.begin);
        sys::set_errno(errno);
    }

    /// Ends the call and records it.
    pub(crate) fn end(mut self) {
        let times = self.times();
        self.state.polled = false;
        self.state.write_call(self.function, times);
        self.account(times);
    }

    /// Ends a call that found nothing: its time is added to the next record.
    pub(crate) fn end_poll(mut self) {
        let times = self.times();
        self.state.polls = times;
        self.state.polled = true;
        self.account(Times::default());
    }

    /// Ends the call `MPI_Finalize`, and with it the recording.
    pub(crate) fn finalize(self) {
        self.end();
        close(2);
    }

    /// The times of the call, with those of the tests before it. A thread that slept between tests waited for a message, not for a device.
    fn times(&mut self) -> Times {
        let (delay_ns, off_ns) = off_cpu_ns(self.state.last, self.begin);
        let (call_delay_ns, _) = off_cpu_ns(self.begin, self.end);
        let polls = core::mem::take(&mut self.state.polls);
        let (io_ns, waited_ns) = if self.state.polled { (0, off_ns) } else { (off_ns, 0) };
        Times {
            // The clocks are read one after the other. The sum of all parts has to be the wall time.
            compute_ns: polls.compute_ns
                + (self.begin.cpu_ns - self.state.last.cpu_ns).min(self.begin.wall_ns - self.state.last.wall_ns),
            io_ns: polls.io_ns + io_ns,
            delay_ns: polls.delay_ns + delay_ns,
            call_ns: polls.call_ns + waited_ns + (self.end.wall_ns - self.begin.wall_ns),
            call_cpu_ns: polls.call_cpu_ns + (self.end.cpu_ns - self.begin.cpu_ns),
            call_delay_ns: polls.call_delay_ns + call_delay_ns,
        }
    }

    fn account(self, times: Times) {
        let end = self.end;
        self.state.last = end;
        WITHIN.store(false, Relaxed);
        let head = self.state.file.head();
        head.elapsed_ns = end.wall_ns - head.begin_ns;
        head.compute_ns += times.compute_ns;
        head.io_ns += times.io_ns;
        head.delay_ns += times.delay_ns;
        head.call_ns += times.call_ns;
        head.call_cpu_ns += times.call_cpu_ns;
    }

    /// The bytes of `count` elements of a type.
    pub(crate) fn bytes(count: usize, datatype: usize) -> u64 {
        match u64::try_from(count as c_int).unwrap_or(0) {
            // The type may be invalid then.
            0 => 0,
            count => count * library::type_bytes(library::handle(datatype)),
        }
    }

    fn event(&mut self, fields: &[u64]) {
        fields.iter().for_each(|field| put(&mut self.state.events, *field));
        self.state.event_count += 1;
    }

    fn comm(&mut self, comm: usize) -> usize {
        self.state.comms.number(comm, &mut self.state.record)
    }

    /// Converts a rank of a communicator to one of the world; `None` for `MPI_PROC_NULL`.
    fn world_rank(&self, comm: usize, rank: c_int) -> Option<u64> {
        let members = self.state.comms.members(comm);
        let world = usize::try_from(rank).ok().and_then(|rank| members.get(rank));
        world.and_then(|rank| u64::try_from(*rank).ok())
    }

    /// Records that a message was sent.
    pub(crate) fn sent(&mut self, count: usize, datatype: usize, to: usize, comm: usize) {
        if to as c_int == library::proc_null() {
            return;
        }
        let (comm, bytes) = (self.comm(comm), Call::bytes(count, datatype));
        match self.world_rank(comm, to as c_int) {
            Some(to) => {
                self.event(&[1, to, bytes]);
                let head = self.state.file.head();
                head.sends += 1;
                head.send_bytes += bytes;
            }
            None => self.unknown(),
        }
    }

    /// Records a received message; the `index`th status contains the source.
    ///
    /// # Safety
    /// The library has written that status.
    pub(crate) unsafe fn received(&mut self, comm: usize, statuses: usize, index: usize) {
        let comm = self.comm(comm);
        // SAFETY: the caller's promise.
        unsafe { self.received_in(comm, statuses, index) }
    }

    /// # Safety
    /// As [`Call::received`].
    unsafe fn received_in(&mut self, comm: usize, statuses: usize, index: usize) {
        // SAFETY: the caller's promise.
        let (source, bytes) = unsafe { library::status_at(statuses, index) };
        if source == library::proc_null() {
            return;
        }
        match self.world_rank(comm, source) {
            Some(from) => {
                self.event(&[2, from, bytes]);
                let head = self.state.file.head();
                head.receives += 1;
                head.receive_bytes += bytes;
            }
            None => self.unknown(),
        }
    }

    /// Records a collective of a communicator: with the bytes of each rank, and a root or -1.
    pub(crate) fn collective(&mut self, comm: usize, root: usize, bytes: u64) {
        self.collective_event(3, self.function.into(), comm, root as c_int, bytes);
    }

    fn collective_event(&mut self, tag: u64, function: u64, comm: usize, root: c_int, bytes: u64) {
        let comm = self.comm(comm);
        if self.state.comms.members(comm).is_empty() {
            return self.unknown();
        }
        self.event(&[tag, function, comm as u64, (root + 1) as u64, bytes]);
    }

    /// Records the begin of a nonblocking collective; its request was written to `request`.
    ///
    /// # Safety
    /// `request` points to a request.
    pub(crate) unsafe fn begun(&mut self, comm: usize, root: usize, bytes: u64, request: usize) {
        let function = self.function.into();
        self.collective_event(4, function, comm, root as c_int, bytes);
        let pending = Pending::Collective { function, comm: self.comm(comm), root: root as c_int, bytes };
        // SAFETY: the caller's promise.
        self.state.requests.add(unsafe { library::handle_at(request, 0) }, pending);
    }

    /// Records a posted receive; the request (or the matched message) was written to `request`.
    ///
    /// # Safety
    /// As [`Call::begun`].
    pub(crate) unsafe fn posted(&mut self, from: usize, comm: usize, request: usize) {
        if from as c_int != library::proc_null() {
            let pending = Pending::Receive { comm: self.comm(comm) };
            // SAFETY: the caller's promise.
            self.state.requests.add(unsafe { library::handle_at(request, 0) }, pending);
        }
    }

    /// Saves the requests that the call names, before the library overwrites the handles.
    ///
    /// # Safety
    /// `requests` is an array of `count` requests.
    pub(crate) unsafe fn ask(&mut self, requests: usize, count: usize) {
        let count = usize::try_from(count as c_int).unwrap_or(0);
        self.state.handles.clear();
        // SAFETY: the caller's promise.
        self.state.handles.extend((0..count).map(|index| unsafe { library::handle_at(requests, index) }));
    }

    /// Records that the request with this index is complete; its status is the `place`th.
    ///
    /// # Safety
    /// The library has written that status.
    pub(crate) unsafe fn completed(&mut self, index: usize, statuses: usize, place: usize) {
        let handle = self.state.handles.get(index).copied();
        match handle.and_then(|handle| self.state.requests.take(handle)) {
            // SAFETY: the caller's promise.
            Some(Pending::Receive { comm }) => unsafe { self.received_in(comm, statuses, place) },
            Some(Pending::Collective { function, comm, root, bytes }) => {
                self.event(&[5, function, comm as u64, (root + 1) as u64, bytes]);
            }
            None => {}
        }
    }

    /// Records that all requests of the call are complete, in their order.
    ///
    /// # Safety
    /// The library has written a status for each.
    pub(crate) unsafe fn completed_all(&mut self, statuses: usize) {
        for index in 0..self.state.handles.len() {
            // SAFETY: the caller's promise.
            unsafe { self.completed(index, statuses, index) };
        }
    }

    /// A matched message is received by another request.
    ///
    /// # Safety
    /// Both point to handles; the first one was saved by `ask`.
    pub(crate) unsafe fn passed_on(&mut self, request: usize) {
        let found = self.state.handles.first().copied().and_then(|handle| self.state.requests.take(handle));
        if let Some(pending) = found {
            // SAFETY: the caller's promise.
            self.state.requests.add(unsafe { library::handle_at(request, 0) }, pending);
        }
    }

    /// Removes the call's requests, which will never be complete.
    pub(crate) fn given_up(&mut self) {
        for handle in &self.state.handles {
            self.state.requests.take(*handle);
        }
        self.unknown();
    }

    /// The address to which the library is to write statuses: the program's, or our own if it passes none.
    pub(crate) fn statuses(&mut self, asked: usize, count: usize) -> usize {
        if !library::is_ignored(asked) {
            return asked;
        }
        let count = usize::try_from(count as c_int).unwrap_or(0).max(1);
        let words = count * (library::STATUS_BYTES / 8);
        if self.state.statuses.len() < words {
            self.state.statuses.resize(words, 0);
        }
        self.state.statuses.as_mut_ptr() as usize
    }

    /// Records that a file was read or written.
    pub(crate) fn file_moved(&mut self, count: usize, datatype: usize) {
        let bytes = Call::bytes(count, datatype);
        self.event(&[6, bytes]);
    }

    /// Records that only the time of this call is known.
    pub(crate) fn unknown(&mut self) {
        self.event(&[7]);
    }

    /// A communicator was freed: its handle may be reused.
    pub(crate) fn freed(&mut self, comm: usize) {
        self.state.comms.forget(comm);
    }

    /// The bytes of one part: from the mean of `counts`, one count for each member; 0 if there are none.
    ///
    /// # Safety
    /// `counts` is null or has a count for each member.
    pub(crate) unsafe fn mean_bytes(&mut self, counts: usize, comm: usize, bytes_each: impl Fn(usize) -> u64) -> u64 {
        let comm = self.comm(comm);
        let members = self.state.comms.members(comm).len();
        if counts == 0 || members == 0 {
            return 0;
        }
        // SAFETY: the caller's promise.
        let count = |index: usize| unsafe { *(counts as *const c_int).add(index) };
        let sum: u64 = (0..members).map(|index| count(index).max(0) as u64 * bytes_each(index)).sum();
        sum / members as u64
    }

    /// Whether this process is the root.
    pub(crate) fn is_root(&mut self, comm: usize, root: usize) -> bool {
        let comm = self.comm(comm);
        let own = self.state.file.head().rank;
        self.world_rank(comm, root as c_int) == Some(own)
    }
}

//! The switch of one job: open descriptors and the last values written to them.
//!
//! A switch needs no preparation: the files are open, the values are short, and the last value of each file is remembered so that only differences
//! are written. Only the slot thread (or a test in its place) writes; others may read the state.

use std::fs::{File, OpenOptions};
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicU64, Ordering::Relaxed};

use cosched_core::Disposition;
use rustix::io::Errno;

use crate::cgfile;
use crate::cpubits::{CpuBits, WORDS};
use crate::gangcpu::GangCpu;

fn code(state: Option<Disposition>) -> u8 {
    match state {
        None => 0,
        Some(Disposition::Run) => 1,
        Some(Disposition::Background) => 2,
        Some(Disposition::Stop) => 3,
    }
}

fn from_code(code: u8) -> Option<Disposition> {
    match code {
        1 => Some(Disposition::Run),
        2 => Some(Disposition::Background),
        3 => Some(Disposition::Stop),
        _ => None,
    }
}

/// The weight of a job of which nothing is known.
pub(crate) const WEIGHT_DEFAULT: u32 = 100;

/// The file and scale for a weight of 1 to 10000.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WeightFile {
    /// cpu.weight of v2: the weight itself.
    Weight,
    /// cpu.shares of v1, 2 to 262144: 26 shares for each point of weight, so that the whole range fits.
    Shares,
}

impl WeightFile {
    /// The number to write for `weight`, which is clamped to 1..=10000.
    pub fn value(self, weight: u32) -> u32 {
        let weight = weight.clamp(1, 10_000);
        match self {
            WeightFile::Weight => weight,
            WeightFile::Shares => weight * 26,
        }
    }

    /// The smallest number that the file accepts.
    pub fn least(self) -> u32 {
        match self {
            WeightFile::Weight => 1,
            WeightFile::Shares => 2,
        }
    }
}

/// The files of a job's switch.
#[derive(Debug, Clone)]
pub struct SwitchFiles {
    /// The cgroup is outside our subtree.
    pub adopted: bool,
    /// cgroup.freeze.
    pub freeze: PathBuf,
    /// cpu.idle, where the kernel has it (5.15).
    pub idle: Option<PathBuf>,
    /// cpu.weight or cpu.shares.
    pub weight: Option<(PathBuf, WeightFile)>,
    /// cgroup.procs of the gang; `None`: its processes cannot be signalled here.
    pub procs: Option<PathBuf>,
    /// cpu.stat, from which the CPU time is read; `None`: CPU time is not counted.
    pub usage: Option<PathBuf>,
    /// pids.current, where there is a controller that counts tasks.
    pub tasks: Option<PathBuf>,
}

/// A gang with more tasks than this is a crowd, see [`JobSwitch::freeze_for_others`].
const CROWD: u64 = 256;

/// A flag in a control file is 0, 1, or this if unknown.
const UNKNOWN: u8 = 2;

/// The open files of a switch.
#[derive(Debug, Clone)]
struct Handles {
    /// Those of the job's cgroup, and of each cgroup that it has beside it.
    freeze: Vec<Arc<File>>,
    idle: Option<Arc<File>>,
    weight: Option<(Arc<File>, WeightFile)>,
    procs: Option<Arc<File>>,
    tasks: Option<Arc<File>>,
    usage: Vec<Arc<File>>,
}

/// The open switch of one job. Equal only to itself.
#[derive(Debug)]
pub struct JobSwitch {
    id: u64,
    adopted: bool,
    files: Handles,
    frozen_written: AtomicU8,
    idle_written: AtomicU8,
    /// 0: unknown.
    weight_written: AtomicU32,
    stopped_by_signal: AtomicU8,
    state: AtomicU8,
    /// The CPUs that it may use.
    place: CpuBits,
    /// The table that last contained this job; see `slots`.
    pub(crate) table: AtomicU64,
    /// That table lets it run in every turn.
    pub(crate) always_runs: AtomicBool,
    /// Its threads only spin, and there are more of them than CPUs.
    wants_ticks: AtomicBool,
    /// The number of its subgangs, and whether they are programs of several ranks each.
    subgangs: AtomicU32,
    programs_take_turns: AtomicBool,
    pub(crate) boosts: AtomicU64,
    pub(crate) boosted_ns: AtomicU64,
    /// Its CPU time inside and outside its slots.
    pub(crate) cpu: GangCpu,
}

impl PartialEq for JobSwitch {
    fn eq(&self, other: &JobSwitch) -> bool {
        std::ptr::eq(self, other)
    }
}

impl JobSwitch {
    /// Opens the files of job `id`.
    ///
    /// # Errors
    /// A file cannot be opened; the message names it.
    pub fn open(id: u64, files: &SwitchFiles) -> io::Result<JobSwitch> {
        let named = |path: &PathBuf, opened: io::Result<File>| {
            let named = |e: io::Error| io::Error::new(e.kind(), format!("{}: {e}", path.display()));
            opened.map(Arc::new).map_err(named)
        };
        let open_rw = |path: &PathBuf| named(path, OpenOptions::new().write(true).open(path));
        let open = |path: &PathBuf| named(path, File::open(path));
        let weight = match &files.weight {
            Some((path, kind)) => Some((open_rw(path)?, *kind)),
            None => None,
        };
        let handles = Handles {
            freeze: vec![open_rw(&files.freeze)?],
            idle: files.idle.as_ref().map(open_rw).transpose()?,
            weight,
            procs: files.procs.as_ref().map(open).transpose()?,
            tasks: files.tasks.as_ref().map(open).transpose()?,
            usage: files.usage.iter().map(open).collect::<io::Result<_>>()?,
        };
        Ok(JobSwitch::of(id, files.adopted, handles))
    }

    /// A switch of the same job that also freezes and thaws these adopted cgroups. It knows nothing yet of what the files contain.
    pub(crate) fn with<'a>(&self, others: impl Iterator<Item = &'a JobSwitch>) -> JobSwitch {
        let mut files = self.files.clone();
        let mut adopted = self.adopted;
        for other in others {
            adopted = true;
            files.freeze.extend_from_slice(&other.files.freeze);
            files.usage.extend_from_slice(&other.files.usage);
        }
        JobSwitch::of(self.id, adopted, files)
    }

    fn of(id: u64, adopted: bool, files: Handles) -> JobSwitch {
        JobSwitch {
            id,
            adopted,
            cpu: GangCpu::of(files.usage.clone()),
            files,
            frozen_written: AtomicU8::new(UNKNOWN),
            idle_written: AtomicU8::new(UNKNOWN),
            weight_written: AtomicU32::new(0),
            stopped_by_signal: AtomicU8::new(UNKNOWN),
            state: AtomicU8::new(0),
            place: CpuBits::all(),
            table: AtomicU64::new(0),
            always_runs: AtomicBool::new(false),
            wants_ticks: AtomicBool::new(false),
            subgangs: AtomicU32::new(0),
            programs_take_turns: AtomicBool::new(false),
            boosts: AtomicU64::new(0),
            boosted_ns: AtomicU64::new(0),
        }
    }

    /// The job's number.
    pub fn id(&self) -> u64 {
        self.id
    }

    /// Whether the job competes for CPUs outside our subtree. Marks and weights of ours have no effect there: it either runs or is frozen, and while
    /// it runs no gang uses the CPUs that it leaves idle.
    pub fn is_adopted(&self) -> bool {
        self.adopted
    }

    /// The state that was last applied; `None` before the first.
    pub fn state(&self) -> Option<Disposition> {
        from_code(self.state.load(Relaxed))
    }

    /// Records the state that was applied.
    pub fn set_state(&self, state: Option<Disposition>) {
        self.state.store(code(state), Relaxed);
    }

    /// True when the job was last frozen by its cgroup.freeze.
    pub fn is_frozen(&self) -> bool {
        self.frozen_written.load(Relaxed) == 1
    }

    /// Sets the CPUs of its processes.
    pub(crate) fn set_place(&self, cpus: &[u32]) {
        self.place.set(cpus);
    }

    /// The number of these CPUs that its processes may use.
    pub(crate) fn may_use(&self, cpus: &[u64; WORDS]) -> u32 {
        self.place.count_of(cpus)
    }

    /// Sets whether very short turns are needed on its CPUs while it runs; returns true if that is a change.
    pub fn want_ticks(&self, wants: bool) -> bool {
        self.wants_ticks.swap(wants, Relaxed) != wants
    }

    /// Adds the CPUs on which it needs them.
    pub(crate) fn ticks_into(&self, cpus: &mut [u64; WORDS]) {
        if self.wants_ticks.load(Relaxed) {
            self.place.join_into(cpus);
        }
    }

    /// The number of its subgangs.
    pub fn subgangs(&self) -> u32 {
        self.subgangs.load(Relaxed)
    }

    /// Whether programs of several ranks take turns in it, or did a short time ago.
    pub fn programs_take_turns(&self) -> bool {
        self.programs_take_turns.load(Relaxed)
    }

    pub(crate) fn set_subgangs(&self, count: u32, programs: bool) {
        self.subgangs.store(count, Relaxed);
        self.programs_take_turns.store(programs, Relaxed);
    }

    /// How often it was boosted.
    pub fn boosts(&self) -> u64 {
        self.boosts.load(Relaxed)
    }

    /// The CPU time in nanoseconds that it has used inside and outside its slots, up to its last switch.
    pub fn slot_cpu_ns(&self) -> (u64, u64) {
        self.cpu.totals()
    }

    /// The time for which it was boosted, in nanoseconds, up to the last sample.
    pub fn boosted_ns(&self) -> u64 {
        self.boosted_ns.load(Relaxed)
    }

    /// Writes cgroup.freeze, of all its cgroups, unless it has this value already.
    ///
    /// # Errors
    /// The kernel's; a removed cgroup is no error.
    pub fn set_frozen(&self, frozen: bool) -> Result<(), Errno> {
        if self.frozen_written.load(Relaxed) == u8::from(frozen) {
            return Ok(());
        }
        // All of them, also where one refuses.
        let all = self.files.freeze.iter().map(|file| put(file, if frozen { b"1" } else { b"0" }));
        let done = all.fold(Ok(()), Result::and);
        // Where one has refused, the others have it.
        self.frozen_written.store(if done.is_ok() { u8::from(frozen) } else { UNKNOWN }, Relaxed);
        done
    }

    /// Freezes the gang for a slot of others. Each of its tasks has to run up to the point where it stops. For a few tasks that time is negligible;
    /// for 3,000 it is some 5 % of a slot of 100 ms on two CPUs, so a crowd does it with cpu.idle, in the CPU time that the others leave. No program
    /// code runs meanwhile: a task with a pending freeze gets no further than its next return from the kernel.
    ///
    /// # Errors
    /// As [`JobSwitch::set_frozen`].
    pub fn freeze_for_others(&self) -> Result<(), Errno> {
        if !self.is_frozen() && self.is_crowd() {
            // It is frozen in any case, so an error does not matter.
            let _ = self.set_idle(true);
        }
        self.set_frozen(true)
    }

    fn is_crowd(&self) -> bool {
        self.tasks().is_some_and(|tasks| tasks > CROWD)
    }

    pub(crate) fn tasks(&self) -> Option<u64> {
        cgfile::first_number(self.files.tasks.as_ref()?, b"")
    }

    /// Writes cpu.idle unless it has this value already. The kernel then resets the weight, so the next [`JobSwitch::set_weight`] writes it again.
    ///
    /// # Errors
    /// As [`JobSwitch::set_frozen`].
    pub fn set_idle(&self, idle: bool) -> Result<(), Errno> {
        let Some(file) = &self.files.idle else { return Ok(()) };
        if self.idle_written.load(Relaxed) == u8::from(idle) {
            return Ok(());
        }
        put(file, if idle { b"1" } else { b"0" })?;
        self.idle_written.store(u8::from(idle), Relaxed);
        self.weight_written.store(0, Relaxed);
        Ok(())
    }

    /// Writes a weight of 1 to 10000 unless the file has it already. The kernel refuses it while the job is idle.
    ///
    /// # Errors
    /// As [`JobSwitch::set_frozen`].
    pub fn set_weight(&self, weight: u32) -> Result<(), Errno> {
        match &self.files.weight {
            Some((_, kind)) => self.put_weight(kind.value(weight)),
            None => Ok(()),
        }
    }

    /// Writes the smallest possible weight.
    ///
    /// # Errors
    /// As [`JobSwitch::set_frozen`].
    pub fn set_least_weight(&self) -> Result<(), Errno> {
        match &self.files.weight {
            Some((_, kind)) => self.put_weight(kind.least()),
            None => Ok(()),
        }
    }

    fn put_weight(&self, value: u32) -> Result<(), Errno> {
        let Some((file, _)) = &self.files.weight else { return Ok(()) };
        if self.weight_written.load(Relaxed) == value {
            return Ok(());
        }
        let mut digits = [0u8; 11];
        put(file, decimal(value, &mut digits))?;
        self.weight_written.store(value, Relaxed);
        Ok(())
    }

    /// Sends `signal` to the processes of the gang's own cgroup, reading their numbers into `buffer` (not those of cgroups that the job made itself).
    /// Stopping is repeated until no new process appears, because a running one may fork meanwhile.
    ///
    /// # Errors
    /// The kernel's on reading the list. A process that no longer exists is no error.
    pub(crate) fn signal(&self, stop: bool, buffer: &mut [u8]) -> Result<(), Errno> {
        if self.stopped_by_signal.load(Relaxed) == u8::from(stop) {
            return Ok(());
        }
        // Some have it already where an error ends this.
        self.stopped_by_signal.store(UNKNOWN, Relaxed);
        let mut seen = 0;
        for _ in 0..4 {
            let count = self.signal_round(if stop { libc::SIGSTOP } else { libc::SIGCONT }, buffer)?;
            if count <= seen {
                break;
            }
            seen = count;
        }
        self.stopped_by_signal.store(u8::from(stop), Relaxed);
        Ok(())
    }

    fn signal_round(&self, signal: i32, buffer: &mut [u8]) -> Result<usize, Errno> {
        let Some(procs) = &self.files.procs else { return Ok(0) };
        let mut count = 0;
        let mut offset = 0;
        let mut pid = 0i32;
        loop {
            let n = match rustix::io::pread(procs, &mut *buffer, offset) {
                Err(Errno::NODEV) => return Ok(0),
                other => other?,
            };
            if n == 0 {
                return Ok(count);
            }
            for &byte in &buffer[..n] {
                if byte.is_ascii_digit() {
                    pid = pid.wrapping_mul(10).wrapping_add(i32::from(byte - b'0'));
                } else {
                    if pid > 0 {
                        // SAFETY: kill takes two numbers and touches no memory of ours.
                        unsafe { libc::kill(pid, signal) };
                        count += 1;
                    }
                    pid = 0;
                }
            }
            offset += n as u64;
        }
    }

    /// Forgets the written values, so that the next application writes all of them: another process (the guard) may have thawed the job.
    pub fn forget(&self) {
        self.frozen_written.store(UNKNOWN, Relaxed);
        self.idle_written.store(UNKNOWN, Relaxed);
        self.weight_written.store(0, Relaxed);
        self.stopped_by_signal.store(UNKNOWN, Relaxed);
        self.set_state(None);
    }
}

/// One write at the start of a control file. A removed cgroup is no error: it needs no switch.
pub(crate) fn put(file: &File, value: &[u8]) -> Result<(), Errno> {
    match rustix::io::pwrite(file, value, 0) {
        // The latter where it was removed while the write waited.
        Ok(_) | Err(Errno::NODEV | Errno::NOENT) => Ok(()),
        Err(e) => Err(e),
    }
}

/// `value` in decimal with a newline, without allocating.
pub(crate) fn decimal(mut value: u32, digits: &mut [u8; 11]) -> &[u8] {
    let mut at = digits.len() - 1;
    digits[at] = b'\n';
    loop {
        at -= 1;
        digits[at] = b'0' + (value % 10) as u8;
        value /= 10;
        if value == 0 {
            return &digits[at..];
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weights_map_into_the_range_of_each_file() {
        assert_eq!(WeightFile::Weight.value(100), 100);
        assert_eq!(WeightFile::Weight.value(0), 1);
        assert_eq!(WeightFile::Shares.value(100), 2600);
        assert_eq!(WeightFile::Shares.value(1), 26);
        assert!(WeightFile::Shares.value(u32::MAX) <= 262_144);
        assert!(WeightFile::Shares.value(1) > WeightFile::Shares.least());
    }

    #[test]
    fn decimals_are_written_without_allocation() {
        let mut digits = [0; 11];
        assert_eq!(decimal(0, &mut digits), b"0\n");
        assert_eq!(decimal(262_144, &mut digits), b"262144\n");
        assert_eq!(decimal(u32::MAX, &mut digits), b"4294967295\n");
    }

    #[test]
    fn states_survive_their_codes() {
        for state in [None, Some(Disposition::Run), Some(Disposition::Background), Some(Disposition::Stop)] {
            assert_eq!(from_code(code(state)), state);
        }
    }
}

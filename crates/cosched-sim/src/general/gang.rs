//! Gang scheduling: rows of the matrix take turns (D17).

use super::engine::{Doing, Sim, Work};
use super::event::Kind;
use super::grain::Needs;
use super::process::{Pid, State};
use crate::observe::Observer;
use crate::strategy::Strategy;
use cosched_core::{JobId, Matrix, NodeId, Packing, next_row};

/// What the present period is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// Nothing: the matrix is empty.
    Stopped,
    /// The current row has its quantum; a row that just came needs its start.
    Quantum,
    /// All CPUs switch to this row.
    Switch(usize),
}

/// The matrix and its clock.
#[derive(Debug)]
pub(super) struct Gang {
    matrix: Matrix,
    current: usize,
    phase: Phase,
    /// When the present quantum began.
    began_ns: u64,
    /// Incremented with each quantum, so that the end events of cancelled ones can be recognised.
    generation: u64,
    /// A job has come into an empty matrix: its quantum begins when it starts.
    begins: bool,
}

impl Gang {
    pub(super) fn new(columns: u32) -> Gang {
        let machine = cosched_core::Node { id: NodeId(0), cpus: columns };
        let matrix = Matrix::new(&[machine]);
        Gang { matrix, current: 0, phase: Phase::Stopped, began_ns: 0, generation: 0, begins: false }
    }

    /// Puts a job into the first row with room; returns its columns, ascending.
    pub(super) fn insert(&mut self, rows_max: usize, job: u32, tasks: u32) -> Option<Vec<u32>> {
        let home = self.matrix.insert_within(rows_max, JobId(job.into()), tasks, Packing::FirstFit)?;
        self.begin_with(home.row);
        Some(home.columns)
    }

    /// Puts a job into these columns of a row; whether they are free.
    pub(super) fn insert_at(&mut self, row: usize, columns: &[u32], job: u32) -> bool {
        let free = self.matrix.insert_at(row, columns, JobId(job.into()));
        if free {
            self.begin_with(row);
        }
        free
    }

    fn begin_with(&mut self, row: usize) {
        if self.phase == Phase::Stopped {
            self.current = row;
            self.phase = Phase::Quantum;
            self.begins = true;
        }
    }

    /// The job of each cell, row by row.
    pub(super) fn cells(&self) -> impl Iterator<Item = Vec<Option<u32>>> {
        let cells = |row: &cosched_core::Row| row.cells().iter().map(|job| job.map(|job| job.0 as u32)).collect();
        self.matrix.rows().iter().map(cells)
    }

    pub(super) fn remove(&mut self, job: u32) {
        self.matrix.remove(JobId(job.into()));
        if self.matrix.rows().iter().all(|row| row.free() == row.cells().len()) {
            self.phase = Phase::Stopped;
            self.generation += 1;
        }
    }

    pub(super) fn row_of(&self, job: u32) -> Option<u32> {
        self.matrix.home(JobId(job.into())).map(|home| home.row as u32)
    }

    /// The job in a cell.
    fn cell(&self, row: usize, column: usize) -> Option<u32> {
        self.matrix.rows().get(row)?.cells()[column].map(|job| job.0 as u32)
    }

    /// The row whose turn it is.
    pub(super) fn current(&self) -> usize {
        self.current
    }

    pub(super) fn began_ns(&self) -> u64 {
        self.began_ns
    }

    pub(super) fn has_turn(&self, row: usize) -> bool {
        self.phase == Phase::Quantum && self.current == row
    }

    pub(super) fn set_turn(&mut self, row: usize) {
        self.current = row;
    }

    /// All rows but the current one, from that on.
    pub(super) fn other_rows(&self) -> impl Iterator<Item = usize> + use<> {
        let (rows, current) = (self.matrix.rows().len(), self.current);
        (1..rows).map(move |step| (current + step) % rows)
    }

    pub(super) fn jobs_of(&self, row: usize) -> impl Iterator<Item = u32> {
        self.matrix.rows().get(row).into_iter().flat_map(|row| row.jobs()).map(|job| job.0 as u32)
    }

    /// The row after the current one, according to the reading of empty rows.
    fn next(&self, rows_max: usize, empty_rows: bool) -> usize {
        if empty_rows {
            return (self.current + 1) % rows_max;
        }
        next_row(&self.matrix, self.current).unwrap_or(self.current)
    }
}

impl<O: Observer> Sim<'_, O> {
    /// The process that a CPU should run: the one in its cell of the current row, if it is runnable; else, where idle
    /// CPUs are lent, that of the next row (paired gang) or of the first following row that has a runnable one (soft
    /// gang).
    pub(super) fn pick_of_gang(&self, gang: &Gang, cpu: usize) -> Option<Pid> {
        if gang.phase != Phase::Quantum {
            return None;
        }
        if self.is_flexible() {
            return self.pick_flexible(gang, cpu);
        }
        let rows = gang.matrix.rows().len();
        let host = self.ready_in_cell(gang, gang.current, cpu);
        host.or_else(|| match self.params.strategy {
            Strategy::PairedGang => self.ready_in_cell(gang, next_row(&gang.matrix, gang.current)?, cpu),
            Strategy::SoftGang => {
                (1..rows).find_map(|step| self.ready_in_cell(gang, (gang.current + step) % rows, cpu))
            }
            _ => None,
        })
    }

    pub(super) fn ready_in_cell(&self, gang: &Gang, row: usize, cpu: usize) -> Option<Pid> {
        let pid = self.in_cell(gang, row, cpu)?;
        let process = self.jobs[pid.job as usize].processes.get(pid.task as usize);
        process.is_some_and(|process| process.state == State::Ready).then_some(pid)
    }

    pub(super) fn in_cell(&self, gang: &Gang, row: usize, cpu: usize) -> Option<Pid> {
        let job = gang.cell(row, cpu)?;
        let task = self.jobs[job as usize].places.binary_search(&(cpu as u32)).ok()?;
        Some(Pid { job, task: task as u32 })
    }

    /// Whether a CPU runs a guest and the process in its own cell is ready.
    pub(super) fn host_is_ready(&self, cpu: usize) -> bool {
        let Some(gang) = self.gang.as_ref().filter(|gang| gang.phase == Phase::Quantum) else { return false };
        let claims = |pid| !self.is_flexible() || self.needs(pid) != Needs::Loose;
        self.ready_in_cell(gang, gang.current, cpu).is_some_and(claims)
    }

    /// A process of a gang has become ready: if its CPU is lent, it takes it back.
    pub(super) fn host_may_return(&mut self, pid: Pid) {
        let cpu = self.jobs[pid.job as usize].places[pid.task as usize] as usize;
        if self.cpus[cpu].current.is_some() && self.host_is_ready(cpu) {
            self.cpus[cpu].resched = true;
        }
    }

    /// If a job has come into an empty matrix, its row's quantum begins.
    pub(super) fn begin_if_first(&mut self) {
        if let Some(gang) = &mut self.gang
            && std::mem::take(&mut gang.begins)
        {
            self.begin_quantum();
        }
    }

    pub(super) fn begin_quantum(&mut self) {
        let readings = self.params.readings;
        let Some(gang) = &mut self.gang else { return };
        gang.phase = Phase::Quantum;
        gang.began_ns = self.now_ns;
        gang.generation += 1;
        let (stamp, row) = (gang.generation, gang.current);
        let switch_ns = if readings.switch_in_quantum { self.params.switch_ns } else { 0 };
        let run_ns = self.params.quantum_ns.saturating_sub(switch_ns).max(1);
        self.agenda.push(self.now_ns + run_ns, Kind::Gang, [0; 4], stamp);
        if O::TELL {
            self.observer.row(self.now_ns, row as u32);
        }
    }

    /// A quantum or a switch ends.
    pub(super) fn gang_event(&mut self, stamp: u64) {
        if self.is_live() {
            return self.control_event(stamp);
        }
        let (rows_max, empty_rows) = (self.params.mpl as usize, self.params.readings.empty_rows);
        let Some(gang) = self.gang.as_mut().filter(|gang| gang.generation == stamp) else { return };
        if self.params.strategy == Strategy::Auto {
            self.next_turn();
            return self.begin_quantum();
        }
        if let Phase::Switch(row) = gang.phase {
            gang.current = row;
            self.begin_quantum();
            for cpu in 0..self.cpus.len() {
                self.stop(cpu);
                self.cpus[cpu].last_owner = self.gang.as_ref().and_then(|gang| self.in_cell(gang, row, cpu));
                self.resume(cpu);
            }
            return;
        }
        let (current, usual) = (gang.current, gang.next(rows_max, empty_rows));
        let next = self.ask_row(current, usual);
        if self.is_flexible() {
            self.judge_row();
        }
        if next == current {
            self.begin_quantum();
        } else if self.is_flexible() && !self.switch_together(next) {
            self.pass_turn(next);
        } else {
            self.begin_switch(next);
        }
    }

    /// All CPUs leave the current row, whatever they are doing there.
    fn begin_switch(&mut self, row: usize) {
        let Some(gang) = &mut self.gang else { return };
        gang.phase = Phase::Switch(row);
        gang.generation += 1;
        let stamp = gang.generation;
        self.agenda.push(self.now_ns + self.params.switch_ns, Kind::Gang, [0; 4], stamp);
        self.out.context_switches += self.cpus.len() as u64;
        for cpu in 0..self.cpus.len() {
            self.suspend_kernel(cpu);
            self.stop(cpu);
            self.take_current(cpu, State::Ready);
            self.begin(cpu, Doing::Switch, None);
        }
    }

    /// Kernel work that a switch of rows interrupts is completed after it.
    fn suspend_kernel(&mut self, cpu: usize) {
        let state = &mut self.cpus[cpu];
        if let Doing::Kernel(work) = state.doing {
            let cost_ns = work.cost_ns - (self.now_ns - state.since_ns);
            state.kernel.push_front(Work { cost_ns, ..work });
        }
    }
}

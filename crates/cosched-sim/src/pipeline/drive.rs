//! The rules at work: the input that they get, and how their decisions are carried out.

use super::books::Account;
use super::engine::{Sim, us};
use super::event::Event;
use super::fair::Attr;
use super::outcome::{PipelineOutcome, StageOutcome, Told};
use super::settings::Priorities;
use super::spec::{MachineSpec, PipelineSpec, StageKind};
use super::thread::{Role, State, Thread};
use cosched_core::stage::adjust::Adjusting;
use cosched_core::stage::autotune::{Action, Autotune, Config, Rights, StageInfo};
use cosched_core::stage::{Change, Class, Setting, Window, bound, fixed, limiting};

/// The rule, the present settings, and what was done.
#[derive(Debug)]
pub(super) struct Driver {
    priorities: Priorities,
    settings: Vec<Setting>,
    autotune: Option<Autotune>,
    told: Vec<Told>,
    changes: u64,
    /// The accounts at the end of the last window, and its end.
    before: Vec<Account>,
    done_before: u64,
    before_ns: u64,
    hogs_before_ns: u64,
}

impl Driver {
    pub(super) fn new(spec: &PipelineSpec, priorities: Priorities) -> Driver {
        let incarnations = |incarnations| Setting { incarnations: Some(incarnations), ..Setting::default() };
        let settings: Vec<Setting> = spec.stages.iter().map(|stage| incarnations(stage.incarnations)).collect();
        let auto = priorities == Priorities::Auto;
        Driver {
            priorities,
            autotune: auto.then(|| Autotune::new(config(spec), &infos(spec, &settings))),
            settings,
            told: Vec::new(),
            changes: 0,
            before: vec![Account::default(); spec.stages.len()],
            done_before: 0,
            before_ns: 0,
            hogs_before_ns: 0,
        }
    }

    /// How long the next window is to be, if a rule uses windows.
    pub(super) fn window_ns(&self) -> Option<u64> {
        self.autotune.as_ref().map(Autotune::window_ns)
    }

    /// The number of threads of a stage, or of concurrent workers.
    pub(super) fn incarnations(&self, stage: usize) -> u32 {
        self.settings[stage].incarnations.unwrap_or(1)
    }
}

fn config(spec: &PipelineSpec) -> Config {
    let MachineSpec { may_raise, real_time, .. } = spec.machine;
    let rights = Rights { lower_nice: may_raise, real_time: may_raise && real_time };
    Config { rights, cpus: (0..spec.machine.cpus as usize).collect(), ..Config::default() }
}

fn infos(spec: &PipelineSpec, settings: &[Setting]) -> Vec<StageInfo> {
    let info = |(stage, start): (&super::StageSpec, &Setting)| StageInfo {
        resource: stage.resource,
        own_threads: stage.kind == StageKind::Thread,
        replicable_to: stage.replicable_to,
        start: start.clone(),
    };
    spec.stages.iter().zip(settings).map(info).collect()
}

impl Sim<'_> {
    pub(super) fn start_threads(&mut self) {
        let cpus = self.spec.machine.cpus;
        let wide = self.driver.autotune.as_mut().map(|rule| rule.begin(cpus)).unwrap_or_default();
        for Action { stage, change, why } in wide {
            self.driver.settings[stage].apply(&change);
            self.driver.changes += 1;
            self.driver.told.push(Told { time_ns: self.now_ns, stage, change, why: Some(why), refused: false });
        }
        if let Priorities::Fixed(rule) = self.driver.priorities {
            self.set_before_the_run(rule);
        }
        for stage in 0..self.spec.stages.len() {
            if self.spec.stages[stage].kind == StageKind::Thread {
                (0..self.driver.incarnations(stage)).for_each(|_| self.add_thread(Role::Stage(stage), 0));
            }
        }
        if self.spec.stages.iter().any(|stage| stage.kind == StageKind::Worker) {
            let workers = self.spec.workers.unwrap_or(self.spec.machine.cpus);
            (0..workers).for_each(|_| self.add_thread(Role::Worker, 0));
        }
        for hog in &self.spec.hogs {
            let until_ns = hog.until_s.map_or(u64::MAX, |s| us(s * 1e6));
            let role = Role::Hog { busy_ns: us(hog.busy_us).max(1), sleep_ns: us(hog.sleep_us), until_ns };
            for _ in 0..hog.count {
                self.add_thread(role, us(hog.from_s * 1e6));
                let attr = &mut self.threads.last_mut().expect("a thread was added").attr;
                attr.nice = hog.nice;
            }
        }
    }

    fn set_before_the_run(&mut self, rule: fixed::FixedRule) {
        let resources: Vec<_> = self.spec.stages.iter().map(|stage| stage.resource).collect();
        for (stage, setting) in fixed::settings(rule, &resources).into_iter().enumerate() {
            for change in setting.changes_from(&self.driver.settings[stage].clone()) {
                self.ask(stage, change, None);
            }
        }
    }

    /// Adds a thread that enters a run queue at this time.
    fn add_thread(&mut self, role: Role, from_ns: u64) {
        let (attr, allowed) = match role {
            Role::Stage(stage) => (self.attr(stage), self.allowed(stage)),
            _ => (self.attr_of(&Setting::default()), u64::MAX),
        };
        let id = self.threads.len();
        let mut thread = Thread::new(role, attr, allowed, self.now_ns);
        thread.cpu = id % self.cpus.len();
        thread.adjusting = match (self.driver.priorities, role) {
            (Priorities::Adjust(rule), Role::Stage(_)) => Some(Adjusting::new(rule)),
            _ => None,
        };
        self.threads.push(thread);
        self.agenda.push(from_ns.max(self.now_ns), Event::Woken { thread: id });
    }

    fn attr(&self, stage: usize) -> Attr {
        self.attr_of(&self.driver.settings[stage])
    }

    fn attr_of(&self, setting: &Setting) -> Attr {
        let slice_us = setting.slice_us.filter(|us| *us > 0).unwrap_or(self.kernel_slice_us());
        let slice_ns = i64::from(slice_us) * 1_000;
        let lag_ns_max = (2 * slice_ns).max(i64::from(self.spec.machine.tick_us) * 1_000);
        Attr { nice: setting.nice.unwrap_or(0), slice_ns, class: setting.class.unwrap_or_default(), lag_ns_max }
    }

    fn kernel_slice_us(&self) -> u32 {
        let machine = &self.spec.machine;
        if machine.slice_us > 0 { machine.slice_us } else { 700 * (1 + machine.cpus.min(8).ilog2()) }
    }

    fn allowed(&self, stage: usize) -> u64 {
        let cpus = self.driver.settings[stage].cpus.iter().flatten();
        let bits = cpus.filter(|cpu| **cpu < self.cpus.len()).fold(0, |bits, cpu| bits | 1 << cpu);
        if bits == 0 { u64::MAX } else { bits }
    }

    /// The rule of a conveying thread considers the queue behind it.
    pub(super) fn adjust(&mut self, thread: usize, output_len: usize) {
        let Some(adjusting) = &mut self.threads[thread].adjusting else { return };
        let Some(Change::Nice(nice)) = adjusting.convey(output_len) else { return };
        if nice < self.threads[thread].attr.nice && !self.spec.machine.may_raise {
            self.threads[thread].adjusting.iter_mut().for_each(Adjusting::refused);
            return;
        }
        self.driver.changes += 1;
        self.threads[thread].attr.nice = nice;
        let (cpu, attr) = (self.threads[thread].cpu, self.threads[thread].attr);
        self.cpus[cpu].queue.change(thread, attr);
        self.cpus[cpu].look_again = true;
    }

    pub(super) fn end_of_window(&mut self) {
        let window = self.window();
        let Some(autotune) = &mut self.driver.autotune else { return };
        let actions = autotune.window(&window);
        self.act(actions);
        if let Some(window_ns) = self.driver.window_ns() {
            self.agenda.push(self.now_ns + window_ns, Event::Window);
        }
    }

    fn act(&mut self, actions: Vec<Action>) {
        for Action { stage, change, why } in actions {
            if let (false, Some(rule)) = (self.ask(stage, change.clone(), Some(why)), &mut self.driver.autotune) {
                rule.refused(stage, &change);
            }
        }
    }

    /// Changes a stage, if the user may do that.
    fn ask(&mut self, stage: usize, change: Change, why: Option<cosched_core::stage::autotune::Reason>) -> bool {
        let setting = &self.driver.settings[stage];
        let refused = !self.spec.machine.may_raise && raises(setting, &change);
        self.driver.changes += u64::from(!refused);
        if why.is_some() || refused {
            self.driver.told.push(Told { time_ns: self.now_ns, stage, change: change.clone(), why, refused });
        }
        if !refused {
            self.driver.settings[stage].apply(&change);
            self.apply(stage, &change);
        }
        !refused
    }

    fn apply(&mut self, stage: usize, change: &Change) {
        if let Change::Incarnations(count) = change {
            return self.set_incarnations(stage, *count);
        }
        let (attr, allowed) = (self.attr(stage), self.allowed(stage));
        for thread in self.threads_of(stage) {
            (self.threads[thread].attr, self.threads[thread].allowed) = (attr, allowed);
            self.reschedule(thread);
        }
    }

    /// The threads of a stage that are not about to end.
    fn threads_of(&self, stage: usize) -> Vec<usize> {
        let stays = |thread: &Thread| thread.state != State::Gone && !thread.retires;
        let of_stage = |(_, thread): &(usize, &Thread)| thread.role == Role::Stage(stage) && stays(thread);
        self.threads.iter().enumerate().filter(of_stage).map(|(id, _)| id).collect()
    }

    fn set_incarnations(&mut self, stage: usize, count: u32) {
        if self.spec.stages[stage].kind == StageKind::Worker {
            return self.call_workers();
        }
        let threads = self.threads_of(stage);
        let count = count as usize;
        (threads.len()..count).for_each(|_| self.add_thread(Role::Stage(stage), 0));
        for thread in threads.into_iter().skip(count) {
            self.threads[thread].retires = true;
            // One that sleeps for lack of a buffer ends at once, because no other thread would wake it.
            if let Some(place) = self.books[stage].hungry.iter().position(|hungry| *hungry == thread) {
                self.book(thread);
                self.books[stage].hungry.remove(place);
                self.threads[thread].state = State::Gone;
            }
        }
    }

    fn call_workers(&mut self) {
        for worker in std::mem::take(&mut self.idle_workers) {
            self.wake(worker);
        }
    }

    fn settle(&mut self) {
        (0..self.threads.len()).for_each(|thread| self.book(thread));
        let now_ns = self.now_ns;
        self.books.iter_mut().for_each(|books| books.settle(now_ns));
    }

    /// What happened since the last window, as a live host would see it.
    fn window(&mut self) -> Window {
        self.settle();
        let accounts: Vec<Account> = self.books.iter().map(|books| books.account).collect();
        let before = std::mem::replace(&mut self.driver.before, accounts.clone());
        let length_ns = self.now_ns - std::mem::replace(&mut self.driver.before_ns, self.now_ns);
        let rounds = self.done - std::mem::replace(&mut self.driver.done_before, self.done);
        let view = |stage: usize| {
            let (spec, account) = (&self.spec.stages[stage], accounts[stage].since(&before[stage]));
            let threads = self.driver.incarnations(stage);
            account.view(length_ns, spec.resource, threads, spec.replicable_to, self.spec.buffers)
        };
        let stages = (0..accounts.len()).map(view).collect();
        let others_ns = Some(self.hogs_ns - std::mem::replace(&mut self.driver.hogs_before_ns, self.hogs_ns));
        Window { length_ns, cpus: self.spec.machine.cpus, rounds, stages, others_ns }
    }

    pub(super) fn outcome(mut self) -> PipelineOutcome {
        self.driver.before = vec![Account::default(); self.books.len()];
        (self.driver.before_ns, self.driver.done_before, self.driver.hogs_before_ns) = (0, 0, 0);
        let window = self.window();
        let stage = |(k, spec): (usize, &super::StageSpec)| {
            let account = &self.books[k].account;
            StageOutcome {
                name: spec.name.clone(),
                resource: spec.resource,
                incarnations: self.driver.incarnations(k),
                rounds: account.rounds,
                busy_ns: account.busy_ns,
                cpu_ns: account.cpu_ns,
                delay_ns: account.delay_ns,
                wait_in_ns: account.wait_in_ns,
                wait_out_ns: account.wait_out_ns,
                queue_mean: window.stages[k].queue_in,
                setting: self.driver.settings[k].clone(),
            }
        };
        PipelineOutcome {
            elapsed_ns: self.now_ns,
            rounds: self.done,
            stages: self.spec.stages.iter().enumerate().map(stage).collect(),
            hogs_ns: self.hogs_ns,
            switches: self.switches,
            changes: self.driver.changes,
            bound: bound(&window),
            limit: limiting(&window),
            told: self.driver.told,
            events: self.events,
        }
    }
}

/// Whether a change needs a privilege that not all users have.
fn raises(setting: &Setting, change: &Change) -> bool {
    match change {
        Change::Nice(nice) => *nice < setting.nice.unwrap_or(0),
        Change::Class(Class::Fifo(_)) => true,
        Change::Class(class) => setting.class == Some(Class::Idle) && *class != Class::Idle,
        _ => false,
    }
}

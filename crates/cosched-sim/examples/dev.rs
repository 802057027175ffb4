use cosched_sim::*;
struct Tell(Vec<Slice>);
impl Observer for Tell {
    fn slice(&mut self, s: Slice) {
        self.0.push(s);
    }
    fn message(&mut self, _: Message) {}
    fn job(&mut self, _: u64, _: u32, _: JobChange, _: &[u32], _: Option<u32>) {}
    fn row(&mut self, _: u64, _: u32) {}
}
fn main() {
    let a: Vec<String> = std::env::args().collect();
    let strategy: Strategy = a[1].parse().unwrap();
    let text = std::fs::read_to_string(&a[2]).unwrap();
    let mut jobs = vec![];
    for line in text.lines().skip(1) {
        let f: Vec<&str> = line.split(',').collect();
        let ns = |s: &str| (s.parse::<f64>().unwrap() * 1e9).round() as u64;
        jobs.push(JobSpec {
            arrival_ns: ns(f[0]),
            tasks: f[1].parse().unwrap(),
            exec_ns: ns(f[2]),
            kind: f[3].parse().unwrap(),
        });
    }
    let mut p = Params::paper(strategy, a[3].parse().unwrap());
    p.mpl = a[4].parse().unwrap();
    p.skew = a[5].parse().unwrap();
    p.check_invariants = std::env::var("CHECK").is_ok();
    if let Ok(g) = std::env::var("GRAIN") {
        p = p.coarser(g.parse().unwrap());
    }
    if let Ok(g) = std::env::var("END") {
        p.end_ns = Some(g.parse::<u64>().unwrap() * 1_000_000_000);
    }
    for (v, f) in [
        ("CS", &mut p.switch_ns),
        ("INTR", &mut p.interrupt_ns),
        ("SPIN", &mut p.spin_ns),
        ("CHK", &mut p.check_ns),
        ("Q", &mut p.quantum_ns),
        ("SEED", &mut p.seed),
    ] {
        if let Ok(g) = std::env::var(v) {
            *f = g.parse().unwrap();
        }
    }
    if std::env::var("TRACE").is_ok() {
        let mut tell = Tell(vec![]);
        if std::env::var("GENERAL").is_ok() {
            general::run(&p, &jobs, &mut tell, &mut |_| true).unwrap()
        } else {
            paper::run(&p, &jobs, &mut tell, &mut |_| true).unwrap()
        };
        tell.0.sort_by_key(|s| (s.node, s.start_ns, s.end_ns));
        let mut last: Option<Slice> = None;
        for s in tell.0 {
            if let Some(l) = &mut last {
                if l.node == s.node && l.activity == s.activity && l.process == s.process && l.end_ns == s.start_ns {
                    l.end_ns = s.end_ns;
                    continue;
                }
            }
            if let Some(l) = last.replace(s) {
                println!(
                    "{} {} {} {:?} {:?}",
                    l.node,
                    l.start_ns,
                    l.end_ns,
                    l.activity,
                    if matches!(l.activity, Activity::Compute | Activity::Spin | Activity::Io | Activity::Blocked) {
                        l.process
                    } else {
                        None
                    }
                );
            }
        }
        return;
    }
    let t = std::time::Instant::now();
    let o = if std::env::var("SAMPLED").is_ok() {
        let (o, r) = paper::run_sampled(&p, &jobs, &Default::default(), &mut |_| true).unwrap();
        eprintln!("{r:?} {:.3} skipped", r.skipped_ns as f64 / o.sim_end_ns as f64);
        o
    } else if std::env::var("GENERAL").is_ok() {
        general::run(&p, &jobs, &mut Silent, &mut |_| true).unwrap()
    } else {
        paper::run(&p, &jobs, &mut Silent, &mut |_| true).unwrap()
    };
    let w = t.elapsed().as_secs_f64();
    let s = o.sim_end_ns as f64 / 1e9;
    let ns = s * p.nodes as f64;
    let resp: f64 = o
        .jobs
        .iter()
        .zip(&jobs)
        .map(|(o, j)| (o.finish_ns.unwrap_or(j.arrival_ns) - j.arrival_ns) as f64 / 1e9)
        .sum::<f64>()
        / jobs.len() as f64;
    println!(
        "{strategy} end {s:.3} events/node-s {:.0} ti/node-s {:.0} msg/node-s {:.0} sw/node-s {:.0} blocks {:.0} | wall {w:.3} node-s/s {:.0} Mti/s {:.3} Mev/s {:.2}| resp {resp:.4} useful {:.3} compute {:.3} spin {:.3} switch {:.3} intr {:.3} sched {:.3} idle {:.3}",
        o.events as f64 / ns,
        o.task_iterations as f64 / ns,
        o.messages as f64 / ns,
        o.context_switches as f64 / ns,
        o.blocks as f64 / ns,
        ns / w,
        o.task_iterations as f64 / w / 1e6,
        o.events as f64 / w / 1e6,
        o.useful_ns as f64 / ns / 1e9,
        o.cpu.compute_ns as f64 / ns / 1e9,
        o.cpu.spin_ns as f64 / ns / 1e9,
        o.cpu.switch_ns as f64 / ns / 1e9,
        o.cpu.interrupt_ns as f64 / ns / 1e9,
        o.cpu.sched_ns as f64 / ns / 1e9,
        o.cpu.idle_ns as f64 / ns / 1e9
    );
    if std::env::var("JOBS").is_ok() {
        for j in &o.jobs {
            println!("{:?} {:?}", j.start_ns.unwrap(), j.finish_ns.unwrap());
        }
    }
}

use cosched_core::stage::Resource::{self, *};
use cosched_sim::pipeline::*;
fn st(name: &str, r: Resource, cpu: f64, wait: f64) -> StageSpec {
    StageSpec {
        name: name.into(),
        resource: r,
        cpu_us: cpu,
        wait_us: wait,
        mb: 0.0,
        disk: None,
        cv: std::env::var("CV").map_or(0.1, |s| s.parse().unwrap()),
        kind: StageKind::Thread,
        incarnations: 1,
        replicable_to: std::env::var("REPL").map_or(1, |s| s.parse().unwrap()),
    }
}
fn hog(n: u32) -> Vec<HogSpec> {
    if n == 0 {
        vec![]
    } else {
        vec![HogSpec { count: n, nice: 0, busy_us: 1e3, sleep_us: 0.0, from_s: 0.0, until_s: None }]
    }
}
fn main() {
    let only = std::env::args().nth(2);
    let secs: f64 = std::env::args().nth(1).map_or(10.0, |a| a.parse().unwrap());
    let grid: Vec<(&str, Vec<StageSpec>, u32, u32)> = vec![
        (
            "compute",
            vec![
                st("read", Io, 60., 300.),
                st("sort", Compute, 900., 0.),
                st("comm", Communicate, 60., 100.),
                st("perm", Compute, 800., 0.),
                st("write", Io, 60., 300.),
            ],
            8,
            0,
        ),
        (
            "compute+hog",
            vec![
                st("read", Io, 60., 300.),
                st("sort", Compute, 900., 0.),
                st("comm", Communicate, 60., 100.),
                st("perm", Compute, 800., 0.),
                st("write", Io, 60., 300.),
            ],
            8,
            1,
        ),
        (
            "compute+2hog",
            vec![
                st("read", Io, 60., 300.),
                st("sort", Compute, 900., 0.),
                st("comm", Communicate, 60., 100.),
                st("perm", Compute, 800., 0.),
                st("write", Io, 60., 300.),
            ],
            8,
            2,
        ),
        (
            "io",
            vec![
                st("read", Io, 60., 900.),
                st("sort", Compute, 400., 0.),
                st("comm", Communicate, 60., 100.),
                st("perm", Compute, 300., 0.),
                st("write", Io, 60., 800.),
            ],
            8,
            0,
        ),
        (
            "io+hog",
            vec![
                st("read", Io, 60., 900.),
                st("sort", Compute, 400., 0.),
                st("comm", Communicate, 60., 100.),
                st("perm", Compute, 300., 0.),
                st("write", Io, 60., 800.),
            ],
            8,
            1,
        ),
        (
            "io+2hog",
            vec![
                st("read", Io, 60., 900.),
                st("sort", Compute, 400., 0.),
                st("comm", Communicate, 60., 100.),
                st("perm", Compute, 300., 0.),
                st("write", Io, 60., 800.),
            ],
            8,
            2,
        ),
        (
            "io 3buf",
            vec![
                st("read", Io, 60., 900.),
                st("sort", Compute, 400., 0.),
                st("comm", Communicate, 60., 100.),
                st("perm", Compute, 300., 0.),
                st("write", Io, 60., 800.),
            ],
            3,
            0,
        ),
        (
            "heavy",
            vec![
                st("read", Io, 40., 200.),
                st("a", Compute, 200., 0.),
                st("b", Compute, 1000., 0.),
                st("c", Compute, 200., 0.),
                st("write", Io, 40., 200.),
            ],
            8,
            0,
        ),
        (
            "heavy+hog",
            vec![
                st("read", Io, 40., 200.),
                st("a", Compute, 200., 0.),
                st("b", Compute, 1000., 0.),
                st("c", Compute, 200., 0.),
                st("write", Io, 40., 200.),
            ],
            8,
            1,
        ),
        (
            "balanced",
            vec![
                st("read", Io, 60., 800.),
                st("sort", Compute, 700., 0.),
                st("perm", Compute, 700., 0.),
                st("write", Io, 60., 800.),
            ],
            8,
            0,
        ),
        (
            "balanced 4buf",
            vec![
                st("read", Io, 60., 800.),
                st("sort", Compute, 700., 0.),
                st("perm", Compute, 700., 0.),
                st("write", Io, 60., 800.),
            ],
            4,
            0,
        ),
        (
            "bigblocks+hog",
            vec![
                st("read", Io, 1000., 20000.),
                st("sort", Compute, 12000., 0.),
                st("perm", Compute, 8000., 0.),
                st("write", Io, 1000., 20000.),
            ],
            8,
            1,
        ),
        ("idle", vec![st("read", Io, 20., 300.), st("sort", Compute, 200., 0.), st("write", Io, 20., 300.)], 8, 0),
    ];
    let may = std::env::var("NORIGHT").is_err();
    let mut names = vec![
        "nice-up-io",
        "nice-down-io",
        "raise-compute",
        "short-slices",
        "short-and-long-slices",
        "batch-rest-of-compute",
    ];
    if !may {
        names = vec!["nice-up-io", "short-slices", "short-and-long-slices", "batch-rest-of-compute"];
    }
    if may && std::env::var("FIFO").is_ok() {
        names.push("fifo-io");
    }
    for (name, stages, buffers, hogs) in grid {
        if only.as_deref().is_some_and(|only| !only.split(',').any(|o| o == name)) {
            continue;
        }
        let mk = |rounds, seed| PipelineSpec {
            name: name.into(),
            rounds,
            buffers,
            seed,
            workers: None,
            stages: stages.clone(),
            machine: MachineSpec { may_raise: may, real_time: std::env::var("FIFO").is_ok(), ..MachineSpec::default() },
            disks: vec![],
            hogs: hog(hogs),
        };
        let probe = simulate(&mk(500, 1), "default".parse().unwrap()).unwrap();
        let rounds = (probe.rate() * secs) as u64;
        print!("{:16}", name);
        for seed in 1..=4 {
            let spec = mk(rounds, seed);
            let base = simulate(&spec, "default".parse().unwrap()).unwrap().elapsed_ns as f64;
            let auto = simulate(&spec, "auto".parse().unwrap()).unwrap();
            print!("  auto {:.3}/{:.2}", auto.elapsed_ns as f64 / base, base / 1e9);
            if std::env::var("LOG").is_ok() {
                for t in auto.told.iter().filter(|t| !t.why.unwrap().name().starts_with("comparing")) {
                    println!(
                        "{:.3} {} {:?} {}",
                        t.time_ns as f64 / 1e9,
                        t.stage,
                        t.change,
                        t.why.map_or("".into(), |w| w.to_string())
                    );
                }
            }
            if seed == 1 {
                let best = names
                    .iter()
                    .map(|n| (simulate(&spec, n.parse().unwrap()).unwrap().elapsed_ns as f64 / base, n))
                    .min_by(|a, b| a.0.total_cmp(&b.0))
                    .unwrap();
                print!("  (best {:.3} {})", best.0, best.1);
            }
        }
        println!();
    }
}

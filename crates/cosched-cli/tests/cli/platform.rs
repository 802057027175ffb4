//! `--platform`, energy, Paje and `cosched sim batsim`.

use crate::fake::{Place, text};
use serde_json::Value;
use std::fs;

fn file(place: &Place, name: &str, content: &str) -> String {
    let path = place.path(name);
    fs::write(&path, content).unwrap();
    path.to_str().unwrap().to_owned()
}

const TREE: &str = "[[cluster]]\nname = \"c\"\nspeed = \"1Gf\"\ncores = 2\nbandwidth = \"125MBps\"\nlatency = \"50us\"\n\
                    fat-tree = [[2, 1, 1], [2, 2, 1]]\n";
const JOBS: &str = "arrival_s,tasks,exec_s,type\n0,4,0.05,J3\n0.01,2,0.03,J5\n0.2,3,0.04,J1\n";

fn json(place: &Place, words: &[&str]) -> Value {
    let output = place.output(&[words, &["--json"]].concat());
    assert!(output.status.success(), "{words:?}: {}", text(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn a_platform_gives_nodes_and_slower_messages() {
    let place = Place::new();
    let (tree, jobs) = (file(&place, "tree.toml", TREE), file(&place, "jobs.csv", JOBS));
    let paje = place.path("trace.paje").to_str().unwrap().to_owned();
    let run =
        ["sim", "run", "-s", "SB", "--jobs", &jobs, "--platform", &tree, "--watts", "100,200,150,0", "--paje", &paje];
    let found = json(&place, &run);
    // Four hosts of two cores.
    let cpu: u64 = found["cpu_ns"].as_object().unwrap().values().map(|ns| ns.as_u64().unwrap()).sum();
    assert_eq!(cpu, 8 * found["sim_end_ns"].as_u64().unwrap());
    assert_eq!((found["unfinished"].as_u64(), found["jobs"].as_array().unwrap().len()), (Some(0), 3));
    let of = |key: &str| found["energy"][key].as_f64().unwrap();
    assert!((of("total_j") - of("busy_j") - of("spinning_j") - of("idle_j")).abs() < 1e-9 && of("off_j") == 0.0);
    assert!(of("busy_j") > 0.0 && of("idle_j") > 0.0);
    assert!(fs::read_to_string(&paje).unwrap().starts_with("%EventDef PajeDefineContainerType 0"));
    let program = file(&place, "p.prog", "repeat 3 { compute 1ms; exchange 1d 1MB }");
    let rows =
        json(&place, &["sim", "program", &program, "-n", "4", "--platform", &tree, "-s", "Local", "--copies", "1"]);
    // Three times 1 ms, 200 us × 13.01 of latency, and 1 MB or two at 125 MB/s.
    let took_s = rows[0]["mean_execution_s"].as_f64().unwrap();
    assert!((0.034..0.08).contains(&took_s), "{took_s}");
}

#[test]
fn bad_platforms_are_refused_with_file_and_line() {
    let place = Place::new();
    let (jobs, prog) = (file(&place, "jobs.csv", JOBS), file(&place, "p.prog", "compute 1ms"));
    let nowhere = "<platform version=\"4.1\"><zone id=\"z\" routing=\"Full\"><host id=\"a\" speed=\"1f\"/>\n<host id=\"b\" \
                   speed=\"1f\"/>\n<route src=\"a\" dst=\"b\"><link_ctn id=\"l\"/></route></zone></platform>";
    let other = TREE.replace("cores = 2", "cores = 3").replace("\"c\"", "\"d\"");
    let link = "[[link]]\nbetween = [\"c\", \"d\"]\nbandwidth = \"1\"\nlatency = \"0\"\n";
    let cases = [
        ("nowhere.xml", nowhere.to_owned(), "nowhere.xml: line 3: there is no link `l`"),
        ("negative.toml", TREE.replace("125", "-125"), "negative.toml: line 5: `-125MBps` is out of range"),
        ("unlike.toml", format!("{TREE}{other}{link}"), "c-0 has 2 CPUs, and d-0 has 3"),
        (
            "entities.xml",
            "<!DOCTYPE a [<!ENTITY b \"c\">]><platform/>".to_owned(),
            "line 1: the file declares entities",
        ),
        ("empty.toml", String::new(), "missing field `cluster`"),
    ];
    for (name, content, part) in &cases {
        let path = file(&place, name, content);
        for words in [&["sim", "run", "-s", "SB", "--jobs", &jobs][..], &["sim", "program", &prog, "-n", "2"]] {
            let output = place.output(&[words, &["--platform", &path]].concat());
            let message = text(&output.stderr);
            assert_eq!((output.status.code(), output.stdout.len()), (Some(6), 0), "{name}: {message}");
            assert!(message.contains(part) && message.contains("hint:"), "{name}: {message}");
        }
    }
    let tree = file(&place, "tree.toml", TREE);
    let cases: [(&[&str], &str); 4] = [
        (&["--nodes", "9"], "9 nodes on a platform of 4 hosts"),
        (&["--engine", "fast"], "the fast engine cannot simulate SB"),
        (&["--sampled"], "cannot be used with"),
        (&["--watts", "1,-2"], "numbers of watts"),
    ];
    let run = ["sim", "run", "-s", "SB", "--jobs", &jobs, "--platform", &tree];
    for (more, part) in cases {
        let output = place.output(&[&run[..], more].concat());
        assert!(!output.status.success() && text(&output.stderr).contains(part), "{more:?}: {}", text(&output.stderr));
    }
}

#[test]
fn batsim_workloads_run_and_are_written() {
    let place = Place::new();
    let tree = file(&place, "tree.toml", TREE);
    let workload = r#"{"nb_res": 8, "jobs": [
        {"id": "a", "subtime": 0, "res": 8, "walltime": 9, "profile": "h"}, {"id": "b", "subtime": 0.5, "res": 4, "profile": "d"},
        {"id": "c", "subtime": 0.5, "res": 9, "profile": "d"}, {"id": "e", "subtime": 0.5, "res": 1, "profile": "s"}],
        "profiles": {"h": {"type": "parallel_homogeneous", "cpu": 1e9, "com": 1000}, "d": {"type": "delay", "delay": 2},
        "s": {"type": "smpi"}}}"#;
    let workload = file(&place, "w.json", workload);
    let run = ["sim", "batsim", &workload, "--platform", &tree, "-s", "FCFS"];
    let found = json(&place, &run);
    assert_eq!((found["jobs"].as_u64(), found["ended"].as_u64(), found["nodes"].as_u64()), (Some(2), Some(2), Some(4)));
    assert!((found["makespan_s"].as_f64().unwrap() - 3.0).abs() < 0.01, "{found}");
    let output = place.output(&[&run[..], &["--csv", "-"]].concat());
    assert!(text(&output.stderr).contains("1 (its profile s is of type smpi, which is not simulated), 1 (larger than"));
    let csv = text(&output.stdout);
    let lines: Vec<Vec<&str>> = csv.lines().map(|line| line.split(',').collect()).collect();
    assert_eq!((lines.len(), lines[1].len()), (3, 17), "{csv}");
    assert_eq!((lines[1][0], lines[1][1], lines[1][2], lines[1][5], lines[1][14]), ("a", "w", "h", "9", "0-3"));
    assert_eq!((lines[2][0], lines[2][4], lines[2][7]), ("b", "4", "COMPLETED_SUCCESSFULLY"));
    let output = place.output(&["sim", "batsim", &tree]);
    assert_eq!(output.status.code(), Some(6), "{}", text(&output.stderr));
}

/// What the general engine gave before it knew platforms: times, messages and switches of 24 jobs, as FNV-1a. That of `live` is from when it began to
/// fill idle CPUs by the rule of live nodes (its tests compute what that gives by hand).
const BEFORE: [(&str, u64); 16] = [
    ("GS", 0xb95f51b985d87a42),
    ("Local", 0x37429f408cb634b9),
    ("SB", 0x4f68fb816decb0ab),
    ("SY", 0x3b0eddf49a5483ce),
    ("DCS", 0x6caa68983575a173),
    ("PB", 0x45d36e36e05f76cc),
    ("DCS-SB", 0x0e4a204c32d25db8),
    ("PB-SB", 0x282366fc3e451806),
    ("DCS-SY", 0xbacd33614b2c5b0b),
    ("PB-SY", 0x566e14e575907ac9),
    ("paired-gang", 0xb141a38e4b029665),
    ("soft-gang", 0x6f15366eccc9aeff),
    ("auto", 0x9d02b7d9705113f4),
    ("live", 0x62be98c102061942),
    ("FCFS", 0x0d37969d2b78b868),
    ("EASY", 0x7e1dd087ed34e339),
];

#[test]
fn without_a_platform_nothing_changes() {
    let place = Place::new();
    let jobs = crate::sim_results::jobs(&place);
    for (strategy, expected) in BEFORE {
        let run = ["sim", "run", "-s", strategy, "--jobs", &jobs, "--nodes", "4", "--mpl", "3", "--engine", "general"];
        let found = json(&place, &run);
        let mut words: Vec<String> =
            ["sim_end_ns", "messages", "context_switches"].map(|key| found[key].to_string()).to_vec();
        words.extend(found["jobs"].as_array().unwrap().iter().map(|job| job["finish_ns"].to_string()));
        let step = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3);
        let hash = words.join(" ").bytes().fold(0xcbf2_9ce4_8422_2325, step);
        assert_eq!(hash, expected, "{strategy}: {hash:#018x}");
    }
}

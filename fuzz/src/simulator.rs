//! Fuzz targets as plain functions of bytes. Each panics if a parser does, or if writing and reading a parsed value
//! does not give the same value.

use cosched_sim::batch::{
    BatchJob, EventOrder, Failures, Filter, Malleable, Oversubscribe, Policy, RoundRobin, Sharing, SoftGang, Source,
    simulate, simulate_decided, simulate_failing, simulate_shared, summarise,
};
use cosched_sim::general::{Cache, Config, Memory, Own, ProgramJob, Socket, Work, simulate_on};
use cosched_sim::phases::{Lengths, PhasePolicy, PhaseSettings, simulate_phases, summarise_phases};
use cosched_sim::platform::{Platform, PlatformError, read_toml, read_xml};
use cosched_sim::program::Program;
use cosched_sim::sweep::{Description, Plan};
use cosched_sim::workload::batsim::{
    BatsimPrograms, read_batsim, read_batsim_described, read_batsim_programs, write_batsim, write_batsim_programs,
};
use cosched_sim::workload::outages::read_outages;
use cosched_sim::workload::phase_jobs::read_phase_jobs;
use cosched_sim::workload::stats::Collector;
use cosched_sim::workload::swf::{read_records, unpack, write_header, write_record};
use cosched_sim::workload::{read_jobs, write_jobs};
use cosched_sim::{Footprint, Params, Silent};

/// A trace: reader, statistics, backfilling, writer.
pub fn swf(data: &[u8]) {
    let Ok((records, header, report)) = unpack(data).map_err(drop).and_then(|text| read_records(text).map_err(drop))
    else {
        return;
    };
    let mut written = Vec::new();
    write_header(&mut written, &header).unwrap();
    records.iter().for_each(|record| write_record(&mut written, record).unwrap());
    let (again, _, second) = read_records(&written[..]).unwrap();
    assert_eq!(again, records);
    assert_eq!((second.malformed, second.records), (0, report.records));
    let mut collector = Collector::default();
    records.iter().for_each(|record| collector.add(record));
    collector.finish(&header, &report, None);
    let mut filter = Filter::new(64);
    records.iter().for_each(|record| filter.add(record));
    let (jobs, dropped, _) = filter.finish();
    assert_eq!(jobs.len() as u64 + dropped.total(), report.records);
    for policy in Policy::ALL {
        summarise(&jobs, 64, &simulate(&jobs, 64, policy, EventOrder::All));
    }
    for sharing in [
        Sharing::SoftGang(SoftGang { rows: 3, slot_us: 10_000, switch_us: 100 }),
        Sharing::RoundRobin(RoundRobin { rows: 3, slot_us: 1_000_000_000_000, switch_us: 1_000_000 }),
        Sharing::Oversubscribe(Oversubscribe { rows: 2, speed: 0.9 }),
        Sharing::Malleable(Malleable { part: 0.5, least: 0.5, most: 2.0, serial: 0.1, resize_us: 1_000_000, seed: 1 }),
    ] {
        summarise(&jobs, 64, &simulate_shared(&jobs, 64, &sharing));
    }
}

/// A sweep's description as TOML.
pub fn sweep(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let Ok(description) = toml::from_str::<Description>(text) else { return };
    let _ = Plan::new(&description, &|strategy, nodes| Config::paper(Params::paper(strategy, nodes.unwrap_or(32))));
}

/// A program's text: reader and writer.
pub fn program(data: &[u8]) {
    let Some(program) = std::str::from_utf8(data).ok().and_then(|text| text.parse::<Program>().ok()) else { return };
    assert_eq!(program.to_string().parse::<Program>(), Ok(program));
}

/// A job list: reader and writer.
pub fn job_list(data: &[u8]) {
    let Ok(jobs) = read_jobs(data) else { return };
    let mut written = Vec::new();
    write_jobs(&mut written, &jobs).unwrap();
    assert_eq!(read_jobs(&written[..]).unwrap(), jobs);
}

/// A Batsim workload: reader and writer.
pub fn batsim(data: &[u8]) {
    if let Ok(read) = read_batsim_programs(data, 1e9) {
        programs_are_read_back(read);
    }
    let _ = read_batsim_described(data, 1e9);
    let Ok(workload) = read_batsim(data, Some(1e9)) else { return };
    let mut written = Vec::new();
    write_batsim(&mut written, workload.procs, &workload.jobs).unwrap();
    let again = read_batsim(&written[..], None).unwrap();
    assert_eq!((again.procs, again.jobs), (workload.procs, workload.jobs));
}

fn programs_are_read_back(mut read: BatsimPrograms) {
    read.jobs.retain(|job| job.job.tasks <= 64);
    let (mut written, params) = (Vec::new(), Params::paper("GS".parse().unwrap(), 64));
    let left_out = write_batsim_programs(&mut written, read.procs, &read.jobs, (1e9, &params)).unwrap();
    let kept = read.jobs.len() as u64 - left_out.iter().map(|(_, count)| count).sum::<u64>();
    if kept > 0 {
        let again = read_batsim_programs(&written[..], 1e9).unwrap();
        assert_eq!((again.jobs.len() as u64, again.dropped), (kept, vec![]));
    }
}

/// What a scheduler answers by Batsim's protocol: a line for each message.
pub fn decisions(data: &[u8]) {
    let workload = br#"{"nb_res": 4, "jobs": [{"id": "1", "subtime": 0, "res": 2, "profile": "d", "walltime": 2},
        {"id": "2", "subtime": 1, "res": 3, "profile": "d"}], "profiles": {"d": {"type": "delay", "delay": 3}}}"#;
    let workload = read_batsim_described(&workload[..], 1.0).unwrap();
    let mut answers = data.split(|byte| *byte == b'\n');
    let found = simulate_decided(&workload, 4, |_| answers.next().map(<[u8]>::to_vec).ok_or(()));
    for (job, decided) in workload.jobs.iter().zip(found.iter().flat_map(|decided| &decided.jobs)) {
        assert!(job.submit_us <= decided.start_us && decided.start_us <= decided.end_us);
        assert!(decided.end_us - decided.start_us <= job.duration_us().0);
    }
}

/// Outages of nodes: reader, and a machine of 100 nodes that has them.
pub fn outages(data: &[u8]) {
    let Ok(mut outages) = read_outages(data) else { return };
    outages.retain(|outage| outage.node < 100);
    let job =
        |submit_us| BatchJob { number: 0, user: 0, submit_us, size: 70, run_us: 9_000_000, estimate_us: 10_000_000 };
    let failures = Failures { node_procs: 1, source: Source::Listed(outages), checkpoint: None, restarts_max: 3 };
    simulate_failing(&[job(0), job(1), job(8_000_000)], 100, Policy::Easy, &failures).unwrap();
}

/// Jobs of phases: reader, and each policy on those with few iterations.
pub fn phases(data: &[u8]) {
    let Ok(mut jobs) = read_phase_jobs(data) else { return };
    jobs.retain(|job| job.iterations <= 1000);
    let lengths = Lengths { seed: 1, cv: 0.5, longest: 2.0 };
    let settings = PhaseSettings {
        prices: [1.0, 2.0],
        memory_gb: 2000,
        switch_us: 1_000_000,
        cold_us: 60_000_000,
        slot_us: 60_000_000,
        lengths,
    };
    for policy in PhasePolicy::ALL {
        let run = simulate_phases(&jobs, policy, &settings);
        let summary = summarise_phases(&jobs, &settings, policy, &run);
        assert!(policy != PhasePolicy::Phases || summary.is_none_or(|summary| summary.within_limit == 1.0));
    }
}

/// A platform as TOML.
pub fn platform_toml(data: &[u8]) {
    platform(data, read_toml);
}

/// A platform as XML.
pub fn platform_xml(data: &[u8]) {
    platform(data, read_xml);
}

/// Reads, and sends messages between all hosts.
fn platform(data: &[u8], read: fn(&str) -> Result<Platform, PlatformError>) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let Ok(platform) = read(text) else { return };
    let hosts = platform.hosts().len() as u32;
    if hosts > 100 {
        return;
    }
    let program = std::sync::Arc::new("compute 1us; exchange 1d 1kB; barrier".parse().unwrap());
    let _: &std::sync::Arc<Program> = &program;
    let job = ProgramJob {
        arrival_ns: 0,
        tasks: hosts,
        program,
        estimate_ns: None,
        class: cosched_sim::Class::Batch,
        own: Own { footprint: Footprint { working_set_bytes: 1 << 20, bytes_per_s: 7_000_000_000 }, ..Own::default() },
    };
    let params = Params { end_ns: Some(1_000_000), ..Params::paper("SB".parse().unwrap(), hosts) };
    let cache = Some(Cache { bytes: 1 << 18, bytes_per_s: 3_000_000_000_000 });
    let socket = Some(Socket { cpus: 3, bytes_per_s: 10_000_000_000 });
    let config = Config { memory: Memory { cache, socket }, ..Config::paper(params) };
    let _ = simulate_on(&config, Some(&platform), &[Work::Program(job)], &mut Silent, &mut |_| true);
}

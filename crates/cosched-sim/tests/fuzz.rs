//! The fuzz targets on random and on damaged input: a little fuzzing in every run of the tests, on any toolchain.

// Public for the fuzzer's programs.
#[allow(unreachable_pub)]
#[path = "../../../fuzz/src/simulator.rs"]
mod targets;

use proptest::prelude::*;

const LOG: &[u8] = include_bytes!("../testdata/swf/synthetic.swf");
const JOBS: &[u8] = b"# two\narrival_s,tasks,exec_s,type\n0.000000,32,12.345678,J1\n1.5,1,0.000001,6\n";
const BATSIM: &[u8] = br#"{"nb_res": 4, "jobs": [{"id": "7", "subtime": 1.5, "walltime": 9, "res": 2, "profile": "c",
    "extra_data": {"type": "J2"}}, {"id": "8", "subtime": 2, "res": 1, "profile": "h"}], "profiles": {"d": {"type": "delay",
    "delay": 3.25}, "h": {"type": "parallel_homogeneous", "cpu": 5e9, "com": 1}, "c": {"type": "composed", "repeat": 3,
    "seq": ["d", "h"]}}}"#;

const DECISIONS: &[u8] = br#"{"now": 0.0, "events": []}
{"now": 0.0, "events": [{"timestamp": 0.0, "type": "EXECUTE_JOB", "data": {"job_id": "w0!1", "alloc": "0-1"}}]}
{"now": 1.5, "events": [{"timestamp": 1.0, "type": "CALL_ME_LATER", "data": {"timestamp": 1.75}}]}
{"now": 1.75, "events": [{"timestamp": 1.75, "type": "KILL_JOB", "data": {"job_ids": ["w0!1"]}}]}
{"now": 1.75, "events": [{"timestamp": 1.75, "type": "REJECT_JOB", "data": {"job_id": "w0!2"}}]}
"#;

const OUTAGES: &[u8] = b"# three\nnode,down_s,up_s\n3,1.5,20\n70,2,2.5\n3,30,31.000001\n";

const TOML: &[u8] = br#"model = "CM02"
[[cluster]]
name = "a"
hosts = 3
speed = "1Gf"
bandwidth = "125MBps"
latency = "50us"
backbone = { bandwidth = "1GBps", latency = "1us" }
[[cluster]]
name = "b"
speed = "2Gf"
bandwidth = "1Gbps"
latency = "1us"
fat-tree = [[2, 1, 1], [2, 2, 1]]
[[link]]
between = ["a", "b"]
bandwidth = "1GBps"
latency = "1ms"
"#;
const XML: &[u8] = br#"<platform version="4.1"><zone id="w" routing="Floyd"><cluster id="c" prefix="n" radical="0-3"
 suffix="" speed="1Gf" bw="1MBps" lat="50us" topology="TORUS" topo_parameters="2,2" router_id="r"/><host id="h" speed="2Gf"/>
 <router id="q"/><link id="l" bandwidth="1GBps" latency="1ms" sharing_policy="SPLITDUPLEX"/><zone id="z" routing="Full">
 <host id="g" speed="1f"/></zone><route src="h" dst="q"><link_ctn id="l" direction="UP"/></route>
 <zoneRoute src="q" dst="z" gw_src="q" gw_dst="g"/><zoneRoute src="c" dst="z"
 gw_src="r" gw_dst="g"><link_ctn id="l"/></zoneRoute></zone></platform>"#;

/// Up to 600 bytes of a text, with some of them replaced, removed or duplicated.
fn damaged(text: &'static [u8]) -> impl Strategy<Value = Vec<u8>> {
    let edit = (0..3_u8, any::<prop::sample::Index>(), prop_oneof![any::<u8>(), Just(b'-'), Just(b'9'), Just(b'\n')]);
    let part = (0..text.len(), 1..600_usize);
    (part, prop::collection::vec(edit, 0..8)).prop_map(move |((from, length), edits)| {
        let from = if text.len() < 600 { 0 } else { from };
        let mut bytes = text[from..text.len().min(from + length)].to_vec();
        for (kind, place, byte) in edits {
            let place = if bytes.is_empty() { continue } else { place.index(bytes.len()) };
            match kind {
                0 => bytes[place] = byte,
                1 => drop(bytes.remove(place)),
                _ => bytes.insert(place, byte),
            }
        }
        bytes
    })
}

fn random() -> impl Strategy<Value = Vec<u8>> {
    prop::collection::vec(any::<u8>(), 0..300)
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn swf(data in prop_oneof![random(), damaged(LOG)]) {
        targets::swf(&data);
    }

    #[test]
    fn job_list(data in prop_oneof![random(), damaged(JOBS)]) {
        targets::job_list(&data);
    }

    #[test]
    fn batsim(data in prop_oneof![random(), damaged(BATSIM)]) {
        targets::batsim(&data);
    }

    #[test]
    fn decisions(data in prop_oneof![random(), damaged(DECISIONS)]) {
        targets::decisions(&data);
    }

    #[test]
    fn outages(data in prop_oneof![random(), damaged(OUTAGES)]) {
        targets::outages(&data);
    }

    #[test]
    fn platform_toml(data in prop_oneof![random(), damaged(TOML)]) {
        targets::platform_toml(&data);
    }

    #[test]
    fn platform_xml(data in prop_oneof![random(), damaged(XML)]) {
        targets::platform_xml(&data);
    }
}

#[test]
fn whole_texts_pass() {
    targets::swf(LOG);
    targets::job_list(JOBS);
    targets::batsim(BATSIM);
    targets::decisions(DECISIONS);
    targets::outages(OUTAGES);
    targets::platform_toml(TOML);
    targets::platform_xml(XML);
}

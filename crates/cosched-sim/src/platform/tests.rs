//! The reference's times, ways through all topologies, and what is refused.

use super::*;
use proptest::prelude::*;
use serde_json::Value;

const CASES: &str = include_str!("../../testdata/platforms/simgrid.json");

fn file(name: &str) -> String {
    let path = format!("{}/testdata/platforms/{name}.xml", env!("CARGO_MANIFEST_DIR"));
    std::fs::read_to_string(path).unwrap()
}

/// When flows end that start at these times, in s.
fn ends_s(platform: &Platform, flows: &[(f64, u32, u32, u64)]) -> Vec<f64> {
    let mut ends = vec![0.0; flows.len()];
    let start = |(number, (start_s, from, to, bytes)): (usize, &(f64, u32, u32, u64))| {
        let (latency_ns, wanted) = platform.message(*from, *to, *bytes);
        ((start_s * 1e9).round() as u64 + latency_ns, number, wanted)
    };
    let mut starts: Vec<_> = flows.iter().enumerate().map(start).collect();
    starts.sort_by_key(|(ns, number, _)| (*ns, *number));
    let mut starts = std::collections::VecDeque::from(starts);
    let mut active = platform.flows();
    while let Some(now) = starts.front().map(|start| start.0).into_iter().chain(active.next_end_ns()).min() {
        while let Some(number) = active.ended(now) {
            let number: usize = number;
            ends[number] = now as f64 / 1e9;
        }
        while let Some((_, number, wanted)) = starts.pop_front_if(|start| start.0 == now) {
            active.start(now, wanted, number);
        }
        active.share(now);
    }
    ends
}

/// SimGrid 3.32 gave these times on the same files: pings, shared bottlenecks with two and three flows, windows, acknowledgements, and
/// random traffic on each topology.
#[test]
fn flows_end_when_simgrid_says() {
    let cases: Vec<Value> = serde_json::from_str(CASES).unwrap();
    assert_eq!(cases.len(), 36);
    let mut off = Vec::new();
    for case in &cases {
        let name = case["platform"].as_str().unwrap();
        let mut platform = read_xml(&file(name)).unwrap();
        platform.network = super::toml::named(case["model"].as_str().unwrap()).unwrap();
        let host =
            |of: &Value| platform.hosts().iter().position(|host| host.name == of.as_str().unwrap()).unwrap() as u32;
        let flow = |of: &Value| (of[0].as_f64().unwrap(), host(&of[1]), host(&of[2]), of[3].as_f64().unwrap() as u64);
        let flows: Vec<_> = case["flows"].as_array().unwrap().iter().map(flow).collect();
        for (found, expected) in ends_s(&platform, &flows).iter().zip(case["ends"].as_array().unwrap()) {
            let part = (found / expected.as_f64().unwrap() - 1.0).abs();
            off.push((part, format!("{name} {} {}: {found} s, not {expected}", case["model"], case["what"])));
        }
    }
    off.sort_by(|a, b| b.0.total_cmp(&a.0));
    let above = off.iter().filter(|of| of.0 > 0.001).count();
    // Which these are: docs/platforms.md.
    assert!(off[0].0 < 0.02 && above <= 4, "{above} of {} differ by more than 0.1 %: {:#?}", off.len(), &off[..8]);
}

#[test]
fn a_token_goes_round_in_the_sum_of_its_hops() {
    let platform = read_xml(&file("star")).unwrap();
    let (mut now, bytes) = (0.0, 1_000_000);
    for hop in 0..8 {
        now = ends_s(&platform, &[(now, hop, (hop + 1) % 8, bytes)])[0];
    }
    assert!((now - 8.0 * (100e-6 * 13.01 + 1e6 / (125e6 * 0.97))).abs() < 1e-6, "{now}");
}

const SMALL: &str =
    "[[cluster]]\nname = \"c\"\nhosts = 4\nspeed = \"1Gf\"\nbandwidth = \"125MBps\"\nlatency = \"50us\"\n";

#[test]
fn toml_says_the_same_as_xml() {
    let tree = SMALL.replace("hosts = 4", "fat-tree = [[4, 1, 1], [4, 2, 2]]");
    let (own, other) = (read_toml(&tree).unwrap(), read_xml(&file("fat-tree")).unwrap());
    assert_eq!((own.hosts().len(), own.links()), (16, other.links()));
    let flows = [(0.0, 0, 9, 1_000_000), (0.0, 1, 13, 1_000_000), (0.0, 2, 5, 1_000_000)];
    assert_eq!(ends_s(&own, &flows), ends_s(&other, &flows));
    let two = format!(
        "{SMALL}{}[[link]]\nbetween = [\"c\", \"d\"]\nbandwidth = \"1GBps\"\nlatency = \"1ms\"\n",
        SMALL.replace("\"c\"", "\"d\"")
    );
    let platform = read_toml(&two).unwrap();
    assert_eq!((platform.hosts().len(), platform.hosts()[4].name.as_str()), (8, "d-0"));
    // 100 us of cables and 1 ms of the link.
    assert_eq!(platform.message(0, 7, 0).0, (1.1e-3_f64 * 13.01 * 1e9).round() as u64);
}

/// Why this is refused, from line 2 on.
fn xml(body: &str) -> String {
    read_xml(&format!("<platform version=\"4.1\">\n{body}\n</platform>")).unwrap_err().to_string()
}

/// The same in a zone, from line 3 on.
fn zone(body: &str) -> String {
    xml(&format!("<zone id=\"z\" routing=\"Full\">\n{body}\n</zone>"))
}

const TWO: &str = "<host id=\"a\" speed=\"1Gf\"/><host id=\"b\" speed=\"1Gf\"/><link id=\"l\" bandwidth=\"1\"/>";

/// What would be ignored, and what it must be answered with.
fn strange_xml() -> Vec<(String, &'static str)> {
    let cluster = |more: &str| xml(&format!("<cluster id=\"c\" radical=\"0-3\" speed=\"1f\" bw=\"1\" lat=\"0\"{more}"));
    let link = |more: &str| zone(&format!("{TWO}\n<route src=\"a\" dst=\"b\">\n<link_ctn id=\"l\" {more}/></route>"));
    vec![
        (zone("<host id=\"a\" speed=\"1Gf\">\n<disk id=\"d\"/></host>"), "line 4: <disk> in a host"),
        (zone("<link id=\"l\" bandwidth=\"1\">\n<limit/></link>"), "line 4: <limit> in a link"),
        (zone("<router id=\"r\"><x/></router>"), "line 3: <x> in a router"),
        (zone("<host id=\"a\" speed=\"1Gf,2Gf\" pstate=\"2\"/>"), "line 3: pstate 2, of which there is no speed"),
        (link("x=\"1\""), "line 5: <link_ctn> has x"),
        (link("direction=\"SIDEWAYS\""), "line 5: direction SIDEWAYS"),
        (cluster(" bb_lat=\"1\"/>"), "line 2: a cluster has bb_lat without bb_bw"),
        (cluster(" loopback_lat=\"1\"/>"), "line 2: a cluster has loopback_lat without loopback_bw"),
        (cluster(">\n<prop id=\"a\" value=\"b\"/><disk/></cluster>"), "line 3: <disk> in a cluster"),
        (cluster(" topology=\"TORUS\" topo_parameters=\"600\"/>"), "line 2: a torus has ways of 300 links"),
    ]
}

/// Messages about bad XML, and what they must contain.
fn bad_xml() -> Vec<(String, &'static str)> {
    vec![
        (
            zone(&format!("{TWO}\n<route src=\"a\" dst=\"b\">\n<link_ctn id=\"none\"/></route>")),
            "line 5: there is no link `none`",
        ),
        (zone(&format!("{TWO}\n<route src=\"a\" dst=\"c\"/>")), "line 4: there is no host, router or zone `c`"),
        (zone(TWO), "no way from a to b"),
        (zone("<host id=\"a\" speed=\"-1Gf\"/>"), "line 3: `-1Gf` is out of range"),
        (zone("<host id=\"a\" speed=\"1Gf\" core=\"0\"/>"), "line 3: host a has 0 cores"),
        (zone("<link id=\"l\" bandwidth=\"1e99\"/>"), "line 3: `1e99` is out of range"),
        (zone("<host id=\"a\" speed=\"1Gf\"/>\n<host id=\"a\" speed=\"1Gf\"/>"), "line 4: a exists twice"),
        (zone("<zone id=\"z\" routing=\"Full\"/>"), "line 3: z exists twice"),
        (zone("<storage id=\"s\"/>"), "line 3: <storage> in a zone"),
        (zone("<host id=\"a\" speed=\"1Gf\" speed_file=\"x\"/>"), "line 3: <host> has speed_file"),
        (xml("<cluster id=\"c\" radical=\"0-4000000000\" speed=\"1f\" bw=\"1\" lat=\"0\"/>"), "line 2: too many hosts"),
        (
            xml(
                "<cluster id=\"c\" radical=\"0-9\" speed=\"1f\" bw=\"1\" lat=\"0\" topology=\"TORUS\" topo_parameters=\"60000,60000\"/>",
            ),
            "line 2: a topology has a size",
        ),
        (
            xml(
                "<cluster id=\"c\" radical=\"0-9\" speed=\"1f\" bw=\"1\" lat=\"0\" topology=\"TORUS\" topo_parameters=\"3,3\"/>",
            ),
            "line 2: cluster c has 10 hosts",
        ),
        (
            xml(
                "<cluster id=\"c\" radical=\"0-3\" speed=\"1f\" bw=\"1\" lat=\"0\" topology=\"DRAGONFLY\" topo_parameters=\"4,1;1,1;1,1;1\"/>",
            ),
            "line 2: a dragonfly has 4 groups",
        ),
        (xml(""), "has no hosts"),
        (xml("<zone"), "line 3: "),
        (
            xml(&format!("{}{}", "<zone id=\"a\" routing=\"Full\">".repeat(900), "</zone>".repeat(900))),
            "line 2: a exists twice",
        ),
        (
            read_xml("<!DOCTYPE p [\n<!ENTITY a \"aaaa\">]>\n<platform version=\"4\"/>").unwrap_err().to_string(),
            "line 2: the file declares entities",
        ),
    ]
}

/// A ring of this many hosts, whose way out begins at its host 0, and a host behind a slow link.
fn ring(hosts: u32) -> Result<Platform, PlatformError> {
    read_xml(&format!(
        "<platform version=\"4\"><config><prop id=\"network/model\" value=\"CM02\"/></config><zone id=\"w\" routing=\"Full\">\
         <cluster id=\"a\" prefix=\"a\" radical=\"0-{}\" speed=\"1Gf\" bw=\"1GBps\" lat=\"1us\" topology=\"TORUS\" topo_parameters=\"{hosts}\"/>\
         <zone id=\"z\" routing=\"Full\"><host id=\"h\" speed=\"1Gf\"/><router id=\"g\"/><link id=\"slow\" bandwidth=\"1MBps\"/>\
         <route src=\"g\" dst=\"h\"><link_ctn id=\"slow\"/></route></zone><link id=\"fast\" bandwidth=\"1GBps\"/>\
         <zoneRoute src=\"a\" dst=\"z\" gw_src=\"a0\" gw_dst=\"g\"><link_ctn id=\"fast\"/></zoneRoute></zone></platform>",
        hosts - 1
    ))
}

/// The first host of a cluster may be near where another one is far.
#[test]
fn no_way_loses_a_link() {
    let platform = ring(508).unwrap();
    assert_eq!([0, 1, 254].map(|from| platform.way(from, 508).len()), [2, 3, 256]);
    assert_eq!(ends_s(&platform, &[(0.0, 254, 508, 1_000_000)])[0].round(), 1.0, "over the slow link");
    let error = ring(510).unwrap_err();
    assert!(error.what.contains("no way from a0 to h") && error.what.contains("more than 256 links"), "{error}");
    let slowest = |nodes| {
        let (latency_ns, byte_ns) = platform.slowest(nodes, false);
        (latency_ns.round(), byte_ns)
    };
    assert_eq!([slowest(509), slowest(508)], [(254_000.0, 1000.0), (254_000.0, 1.0)]);
}

#[test]
fn the_model_comes_before_its_factors_wherever_it_stands() {
    let with = |props: [(&str, &str); 2]| {
        let props = props.map(|(id, value)| format!("<prop id=\"network/{id}\" value=\"{value}\"/>")).concat();
        let host = "<zone id=\"z\" routing=\"Full\"><host id=\"a\" speed=\"1Gf,4Gf\" pstate=\"1\"/></zone>";
        read_xml(&format!("<platform version=\"4\"><config>{props}</config>{host}</platform>")).unwrap()
    };
    let (model, factor) = (("model", "CM02"), ("latency-factor", "3"));
    let platform = with([factor, model]);
    assert_eq!(platform.network, with([model, factor]).network);
    assert_eq!(platform.network, NetworkModel { latency_factor: 3.0, ..NetworkModel::CM02 });
    assert_eq!(platform.hosts()[0].flops, 4e9, "the state in which it starts");
}

#[test]
fn shortest_ways_are_found_in_a_table_of_all_pairs() {
    let count = 60;
    let mut hops = std::collections::HashMap::new();
    for from in 0..count {
        for to in (0..count).filter(|to| *to != from) {
            let links = vec![0; 1 + (from * 7 + to * 3) as usize % 5];
            hops.insert((from, to), super::wires::Hop { from, to, links });
        }
    }
    let before = super::wires::shortest(count, &hops);
    assert_eq!(before.len(), (count * (count - 1)) as usize);
    let cost = |from: u32, to: u32| hops[&(from, to)].links.len();
    for ((from, to), last) in &before {
        // Directly, or by one other member.
        let best = (0..count).filter(|by| by != from && by != to).map(|by| cost(*from, by) + cost(by, *to));
        let best = best.chain([cost(*from, *to)]).min().unwrap();
        let way =
            |to: u32| std::iter::successors(Some(to), |at| before.get(&(*from, *at)).copied()).collect::<Vec<u32>>();
        let found: usize = way(*to).windows(2).map(|pair| cost(pair[1], pair[0])).sum();
        assert!(found <= best && way(*to)[1] == *last, "{from} to {to}: {found}, not {best}");
    }
}

#[test]
fn bad_platforms_have_their_line() {
    let bad_toml = [
        (read_toml("[[cluster]]\nname = 3").unwrap_err().to_string(), "line 2: "),
        (read_toml(&SMALL.replace("50us", "-50us")).unwrap_err().to_string(), "line 6: `-50us` is out of range"),
        (read_toml(&SMALL.replace("4", "4000000000")).unwrap_err().to_string(), "line 1: too many hosts"),
        (read_toml(&SMALL.replace("hosts", "torus = [2, 2]\nhosts")).unwrap().hosts().len().to_string(), "4"),
        (
            read_toml(&format!("{SMALL}[[link]]\nbetween = [\"c\", \"x\"]\nbandwidth = \"1\"\nlatency = \"0\"\n"))
                .unwrap_err()
                .to_string(),
            "line 7: there is no host, router or zone `x`",
        ),
        (
            read_toml(&format!("{SMALL}{}", SMALL.replace("\"c\"", "\"d\""))).unwrap_err().to_string(),
            "no way from c-0 to d-0",
        ),
        (
            read_toml(&format!("model = \"x\"\n{SMALL}")).unwrap_err().to_string(),
            "line 1: there is no network model `x`",
        ),
    ];
    for (message, expected) in bad_xml().into_iter().chain(strange_xml()).chain(bad_toml) {
        assert!(message.contains(expected), "{message}\n  is not: {expected}");
    }
    let deep: String = (0..40).map(|number| format!("<zone id=\"z{number}\" routing=\"Full\">")).collect();
    assert!(
        read_xml(&format!("<platform version=\"4\">{deep}{}</platform>", "</zone>".repeat(40)))
            .unwrap_err()
            .to_string()
            .contains("too deep")
    );
}

#[test]
fn the_examples_of_the_documentation_are_platforms() {
    let text = include_str!("../../../../docs/platforms.md");
    let example = |kind: &str| text.split(&format!("```{kind}\n")).nth(1).unwrap().split("```").next().unwrap();
    assert_eq!(read_toml(example("toml")).unwrap().hosts().len(), 32);
    assert_eq!(read_xml(example("xml")).unwrap().hosts().len(), 17);
}

fn any_shape() -> impl Strategy<Value = String> {
    let tree = prop::collection::vec(prop::array::uniform3(1..5_u32), 1..4)
        .prop_map(|levels| format!("fat-tree = {levels:?}"));
    let torus = prop::collection::vec(1..6_u32, 1..4).prop_map(|sizes| format!("torus = {sizes:?}"));
    let fly = (1..4_u32, 1..4_u32, 3..5_u32, 1..3_u32).prop_map(|(groups, chassis, routers, nodes)| {
        format!("dragonfly = {{ groups = [{groups}, 2], chassis = [{chassis}, 1], routers = [{routers}, 3], nodes = {nodes} }}")
    });
    prop_oneof![tree, torus, fly]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, failure_persistence: None, ..ProptestConfig::default() })]

    /// Every way has links that exist, none twice, its reverse is as long, and ways of other hosts do not begin with its first cable.
    #[test]
    fn ways_are_possible(shape in any_shape(), shared in any::<bool>(), pick in any::<[u32; 2]>()) {
        let text = SMALL.replace("hosts = 4", &format!("{shape}\nshared = {shared}"));
        let platform = read_toml(&text).unwrap();
        let count = platform.hosts().len() as u32;
        let [from, to] = pick.map(|number| number % count);
        let (there, back) = (platform.way(from, to), platform.way(to, from));
        prop_assert_eq!(there.len(), back.len());
        prop_assert!(from == to || !there.is_empty());
        let set: std::collections::BTreeSet<_> = there.iter().collect();
        prop_assert_eq!(set.len(), there.len());
        prop_assert!(there.iter().all(|link| (*link as usize) < platform.links()));
        if from != to && !shape.starts_with("torus") {
            let other = (0..count).find(|other| *other != from && *other != to);
            prop_assert!(other.is_none_or(|other| platform.way(other, to)[0] != there[0]));
        }
    }
}

//! A platform in SimGrid's XML: the subset of docs/platforms.md.

use super::build::{Builder, Cluster};
use super::error::too_many;
use super::limits::HOSTS_MAX;
use super::regular::Shape;
use super::toml::{named, no_backbone};
use super::units::{bytes_per_s, flops, seconds, shown};
use super::{Platform, PlatformError};
use roxmltree::{Document, Node, ParsingOptions};

/// The most of a file: it is held in memory as a tree.
const ELEMENTS_MAX: u32 = 2_000_000;

/// Reads a platform from XML.
///
/// # Errors
/// Not XML; a DTD with entities; elements and attributes outside of the subset; values that cannot be; hosts that are not connected.
pub fn read_xml(text: &str) -> Result<Platform, PlatformError> {
    let line_of = |at: usize| text.as_bytes()[..at.min(text.len())].iter().filter(|byte| **byte == b'\n').count() + 1;
    if let Some(at) = text.find("<!ENTITY") {
        let what = "the file declares entities";
        return Err(PlatformError::new(what, "a small file could mean a huge one", "write them out").at(line_of(at)));
    }
    let options = ParsingOptions { allow_dtd: true, nodes_limit: ELEMENTS_MAX, ..ParsingOptions::default() };
    let document = Document::parse_with_options(text, options).map_err(|error| {
        let new = PlatformError::new(shown_error(&error), "it is not well-formed XML", "look at that place");
        new.at(error.pos().row as usize)
    })?;
    let root = document.root_element();
    let mut reader = Reader { builder: Builder::new(), line_of: &line_of };
    reader.at(root, |reader| reader.platform(root))?;
    reader.builder.finish()
}

fn shown_error(error: &roxmltree::Error) -> String {
    let text = error.to_string();
    let end = text.find(" at ").unwrap_or(text.len());
    text[..end].chars().filter(|c| !c.is_control()).take(120).collect()
}

type Read<T = ()> = Result<T, PlatformError>;

struct Reader<'a> {
    builder: Builder,
    line_of: &'a dyn Fn(usize) -> usize,
}

/// An attribute; missing ones are named.
fn need<'a>(node: Node<'a, '_>, name: &str) -> Read<&'a str> {
    node.attribute(name).ok_or_else(|| {
        let what = format!("<{}> has no {name}", node.tag_name().name());
        PlatformError::new(what, "nothing stands for it", "add the attribute")
    })
}

fn number(text: &str) -> Read<u32> {
    text.trim().parse().map_err(|_| {
        PlatformError::new(format!("`{}` is no whole number", shown(text)), "a number from 0 is meant", "write one")
    })
}

fn outside(what: String) -> PlatformError {
    PlatformError::new(
        what,
        "only a subset of SimGrid's platforms is read",
        "docs/platforms.md has it; leave the rest out",
    )
}

impl<'a> Reader<'a> {
    /// Adds the line of an element to an error.
    fn at<T>(&mut self, node: Node<'_, '_>, read: impl FnOnce(&mut Self) -> Read<T>) -> Read<T> {
        read(self)
            .map_err(|error| if error.line.is_some() { error } else { error.at((self.line_of)(node.range().start)) })
    }

    fn platform(&mut self, root: Node<'_, '_>) -> Read {
        if root.tag_name().name() != "platform" {
            return Err(outside(format!("the file is a <{}>", shown(root.tag_name().name()))));
        }
        known(root, &["version"])?;
        let version = need(root, "version")?;
        if !matches!(version, "4" | "4.0" | "4.1") {
            return Err(outside(format!("the platform has version {}", shown(version))));
        }
        self.model(root)?;
        let mut zones = 0;
        for child in root.children().filter(Node::is_element) {
            self.at(child, |reader| match child.tag_name().name() {
                "config" => reader.config(child),
                "zone" | "AS" | "cluster" if zones == 0 => {
                    zones += 1;
                    reader.member(child, None)
                }
                "zone" | "AS" | "cluster" => Err(outside("the platform has two outermost zones".to_owned())),
                other => Err(outside(format!("<{}> in the platform", shown(other)))),
            })?;
        }
        Ok(())
    }

    /// The model of the network, wherever it stands: it has a value for all that the other settings change.
    fn model(&mut self, root: Node<'_, '_>) -> Read {
        let configs = root.children().filter(|child| child.tag_name().name() == "config");
        for prop in configs.flat_map(|config| config.children()) {
            if prop.attribute("id") == Some("network/model") {
                *self.builder.network() = self.at(prop, |_| named(need(prop, "value")?))?;
            }
        }
        Ok(())
    }

    /// The other settings of the network; the rest concerns SimGrid's own run.
    fn config(&mut self, config: Node<'_, '_>) -> Read {
        for prop in config.children().filter(Node::is_element) {
            let (name, value) = (need(prop, "id")?, need(prop, "value")?);
            let factor = |range: std::ops::RangeInclusive<f64>| {
                let factor = value.trim().parse::<f64>().ok().filter(|factor| range.contains(factor));
                factor.ok_or_else(|| outside(format!("`{}` for {}", shown(value), shown(name))))
            };
            let model = self.builder.network();
            match name {
                "network/latency-factor" => model.latency_factor = factor(0.0..=1000.0)?,
                "network/bandwidth-factor" => model.bandwidth_factor = factor(0.01..=1.0)?,
                "network/weight-S" => model.weight_bytes = factor(0.0..=1e12)?,
                "network/TCP-gamma" => model.window_bytes = factor(0.0..=1e15)?,
                "network/crosstraffic" => model.crosstraffic = !matches!(value, "0" | "no" | "false" | "off"),
                _ => {}
            }
        }
        Ok(())
    }

    /// A member of a zone, or what connects members.
    fn member(&mut self, node: Node<'_, '_>, zone: Option<u32>) -> Read {
        let (name, Some(zone)) = (node.tag_name().name(), zone) else { return self.zone_or_cluster(node, zone) };
        match name {
            "zone" | "AS" | "cluster" => self.zone_or_cluster(node, Some(zone)),
            "host" => {
                known(node, &["id", "speed", "core", "pstate", "coordinates"])?;
                self.has_no_children(node)?;
                let speed = speed(node)?;
                let cores = node.attribute("core").map_or(Ok(1), number)?;
                self.builder.host(zone, need(node, "id")?, speed, cores)
            }
            "router" => {
                known(node, &["id", "coordinates"])?;
                self.has_no_children(node)?;
                self.builder.router(zone, need(node, "id")?)
            }
            "link" => self.link(node),
            "route" | "zoneRoute" | "ASroute" => self.route(node, zone),
            "prop" => Ok(()),
            other => Err(outside(format!("<{}> in a zone", shown(other)))),
        }
    }

    fn zone_or_cluster(&mut self, node: Node<'_, '_>, parent: Option<u32>) -> Read {
        if node.tag_name().name() == "cluster" {
            self.has_no_children(node)?;
            let cluster = cluster(node)?;
            return self.builder.cluster(parent, &cluster);
        }
        known(node, &["id", "routing"])?;
        let composed = match need(node, "routing")?.to_ascii_lowercase().as_str() {
            "full" => false,
            "floyd" | "dijkstra" | "dijkstracache" => true,
            "none" => false,
            other => return Err(outside(format!("routing {}", shown(other)))),
        };
        let zone = self.builder.zone(need(node, "id")?, parent, composed)?;
        for child in node.children().filter(Node::is_element) {
            self.at(child, |reader| reader.member(child, Some(zone)))?;
        }
        Ok(())
    }

    /// Refuses what would be ignored, such as disks; properties concern SimGrid's users.
    fn has_no_children(&mut self, node: Node<'_, '_>) -> Read {
        let child = node.children().find(|child| child.is_element() && child.tag_name().name() != "prop");
        child.map_or(Ok(()), |child| {
            let what = format!("<{}> in a {}", shown(child.tag_name().name()), node.tag_name().name());
            self.at(child, |_| Err(outside(what)))
        })
    }

    fn link(&mut self, node: Node<'_, '_>) -> Read {
        known(node, &["id", "bandwidth", "latency", "sharing_policy"])?;
        self.has_no_children(node)?;
        let latency_s = node.attribute("latency").map_or(Ok(0.0), seconds)?;
        let (fat, split) = policy(node.attribute("sharing_policy").unwrap_or("SHARED"))?;
        self.builder.link(need(node, "id")?, (bytes_per_s(need(node, "bandwidth")?)?, latency_s), fat, split)
    }

    fn route(&mut self, node: Node<'_, '_>, zone: u32) -> Read {
        known(node, &["src", "dst", "gw_src", "gw_dst", "symmetrical"])?;
        let zones = node.tag_name().name() != "route";
        let gateways = if zones { Some([need(node, "gw_src")?, need(node, "gw_dst")?]) } else { None };
        let mut links = Vec::new();
        for link in node.children().filter(Node::is_element) {
            links.push(self.at(link, |reader| {
                if link.tag_name().name() != "link_ctn" {
                    return Err(outside(format!("<{}> in a route", shown(link.tag_name().name()))));
                }
                known(link, &["id", "direction"])?;
                let (name, down) = (need(link, "id")?, is_down(link.attribute("direction"))?);
                reader.builder.find_link(name, down)?;
                Ok((name, down))
            })?);
        }
        let symmetrical = node.attribute("symmetrical").is_none_or(|word| !word.eq_ignore_ascii_case("no"));
        self.builder.way(zone, [need(node, "src")?, need(node, "dst")?], gateways, (links, symmetrical))
    }
}

/// Refuses attributes that would be ignored, such as profiles of availability.
fn known(node: Node<'_, '_>, names: &[&str]) -> Read {
    match node.attributes().find(|attribute| !names.contains(&attribute.name())) {
        Some(other) => Err(outside(format!("<{}> has {}", node.tag_name().name(), shown(other.name())))),
        None => Ok(()),
    }
}

/// One speed for each state of a host's power, of which it starts in one and keeps that.
fn speed(node: Node<'_, '_>) -> Read<f64> {
    let state = node.attribute("pstate").map_or(Ok(0), number)?;
    let mut all = need(node, "speed")?.split(',');
    flops(all.nth(state as usize).ok_or_else(|| outside(format!("pstate {state}, of which there is no speed")))?)
}

fn is_down(direction: Option<&str>) -> Read<bool> {
    match direction {
        None | Some("UP" | "NONE") => Ok(false),
        Some("DOWN") => Ok(true),
        Some(other) => Err(outside(format!("direction {}", shown(other)))),
    }
}

/// Whether each flow has all of it, and whether the directions are links of their own.
fn policy(word: &str) -> Read<(bool, bool)> {
    match word {
        "SHARED" => Ok((false, false)),
        "FATPIPE" => Ok((true, false)),
        "SPLITDUPLEX" => Ok((false, true)),
        other => Err(outside(format!("sharing policy {}", shown(other)))),
    }
}

fn cluster(node: Node<'_, '_>) -> Read<Cluster> {
    let names =
        ["id", "prefix", "suffix", "radical", "speed", "core", "bw", "lat", "sharing_policy", "bb_bw", "bb_lat"];
    let more = ["bb_sharing_policy", "topology", "topo_parameters", "loopback_bw", "loopback_lat", "router_id"];
    known(node, &[&names[..], &more[..]].concat())?;
    let name = need(node, "id")?;
    let [prefix, suffix] = ["prefix", "suffix"].map(|key| node.attribute(key).unwrap_or_default());
    let optional = |rate: &str, latency: &str| -> Read<Option<(f64, f64)>> {
        let Some(rate) = node.attribute(rate) else {
            let lone = node.attribute(latency).map(|_| outside(format!("a cluster has {latency} without {rate}")));
            return lone.map_or(Ok(None), Err);
        };
        Ok(Some((bytes_per_s(rate)?, node.attribute(latency).map_or(Ok(0.0), seconds)?)))
    };
    let shape = shape(node)?;
    let backbone = optional("bb_bw", "bb_lat")?;
    if backbone.is_some() && shape != Shape::Star {
        return Err(no_backbone());
    }
    let (fat, split) = policy(node.attribute("sharing_policy").unwrap_or("SPLITDUPLEX"))?;
    let (fat_backbone, _) = policy(node.attribute("bb_sharing_policy").unwrap_or("SHARED"))?;
    Ok(Cluster {
        name: name.to_owned(),
        hosts: radical(need(node, "radical")?)?.into_iter().map(|number| format!("{prefix}{number}{suffix}")).collect(),
        router: node.attribute("router_id").map_or_else(|| format!("{prefix}{name}_router{suffix}"), str::to_owned),
        flops: speed(node)?,
        cores: node.attribute("core").map_or(Ok(1), number)?,
        shape,
        cable: (bytes_per_s(need(node, "bw")?)?, seconds(need(node, "lat")?)?),
        split,
        fat,
        backbone: backbone.map(|(rate, latency)| (rate, latency, fat_backbone)),
        loopback: optional("loopback_bw", "loopback_lat")?,
    })
}

/// `0-15,20`.
fn radical(text: &str) -> Read<Vec<u32>> {
    let mut all = Vec::new();
    for part in text.split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last) = (number(first)?, number(last)?);
        if last < first || u64::from(last - first) + all.len() as u64 >= HOSTS_MAX {
            return Err(if last < first {
                outside(format!("radical {}", shown(text)))
            } else {
                too_many("hosts", HOSTS_MAX)
            });
        }
        all.extend(first..=last);
    }
    Ok(all)
}

/// `2;4,4;1,2;1,2`, `3,2,2`, `3,4;4,3;5,1;2`.
fn shape(node: Node<'_, '_>) -> Read<Shape> {
    let topology = node.attribute("topology").unwrap_or("FLAT");
    if topology == "FLAT" {
        return Ok(Shape::Star);
    }
    let text = need(node, "topo_parameters")?;
    let lists: Vec<Vec<u32>> =
        text.split(';').map(|list| list.split(',').map(number).collect()).collect::<Read<_>>()?;
    let shape = match (topology, &lists[..]) {
        ("TORUS", [sizes]) => Shape::Torus(sizes.clone()),
        ("FAT_TREE", [count, children, parents, parallel])
            if count.len() == 1 && [children, parents, parallel].iter().all(|of| of.len() == count[0] as usize) =>
        {
            Shape::FatTree((0..children.len()).map(|at| [children[at], parents[at], parallel[at]]).collect())
        }
        ("DRAGONFLY", [groups, chassis, routers, nodes]) => {
            let two = |list: &Vec<u32>| <[u32; 2]>::try_from(&list[..]).ok();
            match (two(groups), two(chassis), two(routers), &nodes[..]) {
                (Some(groups), Some(chassis), Some(routers), [nodes]) => {
                    Shape::Dragonfly { groups, chassis, routers, nodes: *nodes }
                }
                _ => return Err(outside(format!("topo_parameters {}", shown(text)))),
            }
        }
        _ => return Err(outside(format!("topology {} with topo_parameters {}", shown(topology), shown(text)))),
    };
    shape.check()?;
    Ok(shape)
}

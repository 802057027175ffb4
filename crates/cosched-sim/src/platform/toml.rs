//! A platform as a small TOML table: clusters, and the links between them.

use super::build::{Builder, Cluster};
use super::error::too_many;
use super::limits::HOSTS_MAX;
use super::regular::Shape;
use super::units::{bytes_per_s, flops, seconds, shown};
use super::{NetworkModel, Platform, PlatformError};
use serde::Deserialize;
use toml::Spanned;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    model: Option<Spanned<String>>,
    cluster: Vec<Spanned<ClusterTable>>,
    #[serde(default)]
    link: Vec<Spanned<LinkTable>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct ClusterTable {
    name: String,
    hosts: Option<u32>,
    speed: Spanned<String>,
    cores: Option<u32>,
    bandwidth: Spanned<String>,
    latency: Spanned<String>,
    #[serde(default)]
    shared: bool,
    fat_tree: Option<Vec<[u32; 3]>>,
    torus: Option<Vec<u32>>,
    dragonfly: Option<DragonflyTable>,
    backbone: Option<CostsTable>,
    loopback: Option<CostsTable>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct DragonflyTable {
    groups: [u32; 2],
    chassis: [u32; 2],
    routers: [u32; 2],
    nodes: u32,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CostsTable {
    bandwidth: Spanned<String>,
    latency: Spanned<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct LinkTable {
    between: [String; 2],
    bandwidth: Spanned<String>,
    latency: Spanned<String>,
}

/// Reads a platform from TOML.
///
/// # Errors
/// Not TOML; unknown keys; values that cannot be; clusters that are not connected.
pub fn read_toml(text: &str) -> Result<Platform, PlatformError> {
    let line = |at: usize| text.as_bytes()[..at.min(text.len())].iter().filter(|byte| **byte == b'\n').count() + 1;
    let file: File = toml::from_str(text).map_err(|error| {
        let new = PlatformError::new(
            error.message().trim().replace('\n', "; "),
            "a platform has [[cluster]] tables with name, hosts, speed, bandwidth and latency",
            "docs/platforms.md has examples",
        );
        PlatformError { line: error.span().map(|span| line(span.start)), ..new }
    })?;
    let mut builder = Builder::new();
    if let Some(model) = &file.model {
        *builder.network() = named(model.get_ref()).map_err(|error| error.at(line(model.span().start)))?;
    }
    let root = builder.zone("platform", None, true)?;
    for table in &file.cluster {
        let cluster = cluster(table.get_ref(), &line);
        cluster.and_then(|of| builder.cluster(Some(root), &of)).map_err(|error| error.at(line(table.span().start)))?;
    }
    for (number, table) in file.link.iter().enumerate() {
        let (name, at) = (format!("link {number}"), line(table.span().start));
        let LinkTable { between: [from, to], bandwidth, latency } = table.get_ref();
        let costs = costs(bandwidth, latency, &line)?;
        let gateways = [from, to].map(|name| router(name));
        let added = builder.link(&name, costs, false, true).and_then(|()| {
            let gateways = [gateways[0].as_str(), gateways[1].as_str()];
            builder.way(root, [from, to], Some(gateways), (vec![(&name, false)], true))
        });
        added.map_err(|error| error.at(at))?;
    }
    builder.finish()
}

/// A model of the network by its name.
pub(super) fn named(name: &str) -> Result<NetworkModel, PlatformError> {
    match name {
        "LV08" => Ok(NetworkModel::LV08),
        "CM02" => Ok(NetworkModel::CM02),
        _ => {
            let what = format!("there is no network model `{}`", shown(name));
            Err(PlatformError::new(what, "LV08 and CM02 can be simulated", "choose one of them"))
        }
    }
}

fn router(cluster: &str) -> String {
    format!("{cluster} router")
}

/// Bandwidth and latency.
fn costs(
    bandwidth: &Spanned<String>,
    latency: &Spanned<String>,
    line: &impl Fn(usize) -> usize,
) -> Result<(f64, f64), PlatformError> {
    let rate = bytes_per_s(bandwidth.get_ref()).map_err(|error| error.at(line(bandwidth.span().start)))?;
    let latency_s = seconds(latency.get_ref()).map_err(|error| error.at(line(latency.span().start)))?;
    Ok((rate, latency_s))
}

fn cluster(table: &ClusterTable, line: &impl Fn(usize) -> usize) -> Result<Cluster, PlatformError> {
    let shapes = [
        table.fat_tree.clone().map(Shape::FatTree),
        table.torus.clone().map(Shape::Torus),
        table.dragonfly.as_ref().map(|of| Shape::Dragonfly {
            groups: of.groups,
            chassis: of.chassis,
            routers: of.routers,
            nodes: of.nodes,
        }),
    ];
    let mut given = shapes.into_iter().flatten();
    let shape = given.next().unwrap_or(Shape::Star);
    if given.next().is_some() {
        let what = format!("cluster {} has two topologies", shown(&table.name));
        return Err(PlatformError::new(what, "its hosts are connected in one way", "remove one"));
    }
    shape.check()?;
    let hosts = table
        .hosts
        .map(u64::from)
        .or_else(|| shape.nodes())
        .ok_or_else(|| PlatformError::new("a star has no number of hosts", "it may have any", "add hosts = N"))?;
    if hosts > HOSTS_MAX {
        return Err(too_many("hosts", HOSTS_MAX));
    }
    let of = |costs: &CostsTable| self::costs(&costs.bandwidth, &costs.latency, line);
    if table.backbone.is_some() && shape != Shape::Star {
        return Err(no_backbone());
    }
    Ok(Cluster {
        name: table.name.clone(),
        hosts: (0..hosts).map(|number| format!("{}-{number}", table.name)).collect(),
        router: router(&table.name),
        flops: flops(table.speed.get_ref()).map_err(|error| error.at(line(table.speed.span().start)))?,
        cores: table.cores.unwrap_or(1),
        shape,
        cable: costs(&table.bandwidth, &table.latency, line)?,
        split: !table.shared,
        fat: false,
        backbone: table.backbone.as_ref().map(of).transpose()?.map(|(rate, latency)| (rate, latency, false)),
        loopback: table.loopback.as_ref().map(of).transpose()?,
    })
}

pub(super) fn no_backbone() -> PlatformError {
    PlatformError::new("a backbone without a star", "other topologies have their own switches", "remove the backbone")
}

//! The CPUs with their load, or the nodes of a cluster with theirs.

use super::{Theme, history};
use crate::format;
use crate::top::view::View;
use cosched_api::{Load, NodeStatus, Status};
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};
use ratatui::widgets::Paragraph;

/// The width of one CPU's bar with its name.
const BAR_WIDTH: u16 = 26;
/// The maximum number of lines of bars; the rest is summarised.
const BAR_LINES_MAX: u16 = 8;

/// The number of lines that it needs.
pub(super) fn wanted(view: &View, width: u16) -> u16 {
    let Some(shot) = &view.shot else { return 0 };
    match nodes_of(&shot.status) {
        Some(nodes) => 1 + u16::try_from(nodes.len()).unwrap_or(u16::MAX).min(2 * BAR_LINES_MAX),
        None => 1 + bar_lines(&shot.status, width),
    }
}

fn bar_lines(status: &Status, width: u16) -> u16 {
    let cpus = status.load.as_ref().map_or(0, |load| load.cpus.len());
    u16::try_from(cpus.div_ceil(bars_in_line(width))).unwrap_or(u16::MAX).min(BAR_LINES_MAX)
}

fn bars_in_line(width: u16) -> usize {
    usize::from((width / BAR_WIDTH).max(1))
}

pub(super) fn paragraph(view: &View, theme: Theme, unix_ns: u128, area: Rect) -> Paragraph<'static> {
    let Some(shot) = &view.shot else { return Paragraph::default() };
    let status = &shot.status;
    let nodes = nodes_of(status);
    let mut lines = match nodes {
        Some(nodes) => nodes_lines(nodes, theme, (unix_ns / 1_000_000) as u64),
        None => status.load.as_ref().map_or(Vec::new(), |load| bars(load, theme, area)),
    };
    if nodes.is_none() {
        lines.insert(0, Line::styled(with_history(view, totals(status), usize::from(area.width)), theme.faint()));
    }
    Paragraph::new(lines)
}

/// The nodes of a cluster; for a single machine the CPUs tell more.
fn nodes_of(status: &Status) -> Option<&[NodeStatus]> {
    let is_alone = status.cluster.as_ref().is_some_and(|cluster| cluster.alone);
    status.nodes.as_deref().filter(|_| !is_alone)
}

/// Behind the totals, where there is room: the use of the CPUs in the last hour.
fn with_history(view: &View, totals: String, width: usize) -> String {
    const BARS_MIN: usize = 8;
    let values = history::machine(view);
    let Some(time) = history::span(&view.past, values.len()) else { return totals };
    let room = width.saturating_sub(totals.chars().count() + 2 + time.len() + 2);
    if room < BARS_MIN { totals } else { format!("{totals}  {} {time}", history::line(&values, room)) }
}

fn totals(status: &Status) -> String {
    let load = status.load.clone().unwrap_or_default();
    let average = load.average.map_or(String::new(), |average| format!("  load {average:.2}"));
    let memory = match load.memory_available_bytes {
        Some(free) => format!(
            "  memory {} of {}",
            format::size(status.memory_bytes.saturating_sub(free)),
            format::size(status.memory_bytes)
        ),
        None => format!("  memory {}", format::size(status.memory_bytes)),
    };
    format!("CPUs {}{average}{memory}", status.cpus.len())
}

fn bars(load: &Load, theme: Theme, area: Rect) -> Vec<Line<'static>> {
    let in_line = bars_in_line(area.width);
    let room = usize::from(area.height.saturating_sub(1).min(BAR_LINES_MAX)) * in_line;
    // The last place shows the mean of those that do not fit.
    let shown = if load.cpus.len() > room { room.saturating_sub(1) } else { load.cpus.len() };
    let mut all: Vec<Vec<Span>> =
        load.cpus[..shown].iter().map(|cpu| bar(&format!("cpu{}", cpu.cpu), cpu.busy, theme)).collect();
    let rest = &load.cpus[shown..];
    if !rest.is_empty() {
        let mean = rest.iter().map(|cpu| cpu.busy).sum::<f64>() / rest.len() as f64;
        all.push(bar(&format!("+{}", rest.len()), mean, theme));
    }
    all.chunks(in_line).map(|bars| Line::from(bars.concat())).collect()
}

fn bar(name: &str, busy: f64, theme: Theme) -> Vec<Span<'static>> {
    const LENGTH: usize = 12;
    let filled = ((busy * LENGTH as f64).round() as usize).min(LENGTH);
    let style = match busy {
        _ if busy >= 0.9 => theme.good(),
        _ if busy >= 0.5 => theme.middling(),
        _ => theme.faint(),
    };
    let percent = format::percent(busy);
    vec![
        format!("{name:<6}[").into(),
        Span::styled("|".repeat(filled), style),
        format!("{}]{percent:>5} ", " ".repeat(LENGTH - filled)).into(),
    ]
}

fn nodes_lines(nodes: &[NodeStatus], theme: Theme, now_unix_ms: u64) -> Vec<Line<'static>> {
    let title = format!("{:<16} {:>5} {:>7} {:>7} {:>8}  {}", "NODE", "CPUS", "LOAD", "MEM", "PLAN", "STATE");
    let dash = || "-".to_owned();
    let row = |node: &NodeStatus| {
        let clock_bad = node.clock.as_ref().and_then(|clock| clock.holds_slots.clone());
        let (state, style) = match (node.alive, clock_bad, node.drains) {
            (false, ..) => (format::gone(node.gone_since_unix_ms, now_unix_ms), theme.bad()),
            (_, Some(why), _) => (format!("no slots: {why}"), theme.bad()),
            (_, _, true) => ("drained".to_owned(), theme.middling()),
            _ => ("up".to_owned(), theme.good()),
        };
        Line::from(vec![
            format!(
                "{:<16} {:>5} {:>7} {:>7} {:>8}  ",
                node.name,
                if node.alive { node.cpus.to_string() } else { dash() },
                node.load.map_or_else(dash, |load| format!("{load:.2}")),
                node.memory_bytes.map_or_else(dash, format::size),
                node.plan_generation.map_or_else(dash, |generation| generation.to_string())
            )
            .into(),
            Span::styled(state, style),
        ])
    };
    std::iter::once(Line::styled(title, theme.strong())).chain(nodes.iter().map(row)).collect()
}

//! The first line: the machine, the policy, the number of jobs, and any problems.

use super::Theme;
use crate::format;
use crate::top::sort::Sort;
use crate::top::view::View;
use cosched_api::Status;
use ratatui::text::{Line, Span};

pub(super) fn line(view: &View, theme: Theme, unix_ns: u128, width: u16) -> Line<'static> {
    let Some(shot) = &view.shot else { return Line::styled("cosched top: waiting for the daemon", theme.strong()) };
    let status = &shot.status;
    let mut parts = vec![
        Span::styled(format!("{} ", status.node), theme.strong()),
        format!(
            "{} {} {}  plan {}",
            status.policy.name(),
            status.sharing.name(),
            format::slot_ms(status.slot_length_ms),
            status.generation
        )
        .into(),
        format!("  {}", counts(status)).into(),
    ];
    parts.extend(listed(view));
    parts.extend(clock(status, theme));
    if !status.warnings.is_empty() {
        let what = match status.warnings.len() {
            1 => status.warnings[0].what.clone(),
            count => format!("{count} problems (cosched status)"),
        };
        parts.push(Span::styled(format!("  {what}"), theme.bad()));
    }
    let room = usize::from(width).saturating_sub(parts.iter().map(Span::width).sum());
    let age = format::duration_ms(((unix_ns / 1_000_000) as u64).saturating_sub(status.started_unix_ms));
    let up = format!("up {age}");
    if room > up.len() + 2 {
        parts.push(format!("{up:>room$}").into());
    }
    Line::from(parts)
}

fn counts(status: &Status) -> String {
    let living = status.jobs.iter().filter(|(state, count)| {
        **count > 0 && !matches!(state, cosched_api::JobState::Ended | cosched_api::JobState::Lost)
    });
    let parts: Vec<String> = living.map(|(state, count)| format!("{count} {}", state.name())).collect();
    if parts.is_empty() { "no jobs".into() } else { parts.join(", ") }
}

/// How the displayed list differs from all jobs in order of their ids.
fn listed(view: &View) -> Option<Span<'static>> {
    let order = match (view.sort, view.turned) {
        (Sort::Id, false) => String::new(),
        (sort, turned) => format!("  by {}{}", sort.name(), if turned { ", reversed" } else { "" }),
    };
    let filter = if view.filter.is_empty() { String::new() } else { format!("  with `{}`", view.filter) };
    let text = order + &filter;
    (!text.is_empty()).then(|| text.into())
}

/// Shown only if there is something to know about the clock.
fn clock(status: &Status, theme: Theme) -> Option<Span<'static>> {
    let clock = status.clock.as_ref()?;
    match (&clock.holds_slots, clock.steps) {
        (Some(why), _) => Some(Span::styled(format!("  no slots: {why}"), theme.bad())),
        (None, 0) => None,
        (None, steps) => Some(Span::styled(format!("  clock set {steps}×"), theme.middling())),
    }
}

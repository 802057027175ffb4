//! The questions to the user, and the help.

use super::Theme;
use crate::top::feed::Order;
use crate::top::help::KEYS;
use crate::top::view::{CLASSES, Mode, View};
use cosched_api::Job;
use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::Line;
use ratatui::widgets::{Block, Clear, Paragraph};

pub(super) fn draw(frame: &mut Frame, view: &View, theme: Theme, area: Rect) {
    let (title, lines) = match &view.mode {
        Mode::List | Mode::Filter | Mode::Page(_) => return,
        Mode::Help => ("keys", help()),
        Mode::Class(id) => ("class", classes(view, *id)),
        Mode::Confirm(order) => ("sure?", question(view, *order)),
    };
    let width = lines.iter().map(Line::width).max().unwrap_or(0) as u16 + 4;
    let place = centred(area, width, lines.len() as u16 + 2);
    frame.render_widget(Clear, place);
    let block = Block::bordered().title(format!(" {title} ")).border_style(theme.strong());
    frame.render_widget(Paragraph::new(lines).block(block), place);
}

fn centred(area: Rect, width: u16, height: u16) -> Rect {
    let (width, height) = (width.min(area.width), height.min(area.height));
    Rect { x: area.x + (area.width - width) / 2, y: area.y + (area.height - height) / 2, width, height }
}

fn help() -> Vec<Line<'static>> {
    let keys = KEYS.iter().map(|(key, what)| Line::raw(format!(" {key:<24}{what}")));
    let words = [
        "",
        " DUE  the CPU time that the plan gave the job, as a fraction",
        " GOT  the fraction it used; far below DUE: it waits or is disturbed",
        " > the current row   · a free cell",
        " any key closes this",
    ];
    keys.chain(words.map(Line::raw)).collect()
}

fn classes(view: &View, id: u64) -> Vec<Line<'static>> {
    let mut lines = vec![Line::raw(format!(" {}: change its class to", name(view, id)))];
    lines.extend(CLASSES.map(|(key, class)| Line::raw(format!("   {key}  {}", class.name()))));
    lines.push(Line::raw(" any other key: cancel"));
    lines
}

fn question(view: &View, order: Order) -> Vec<Line<'static>> {
    let what = match order {
        Order::Suspend(_) => "suspend it?".to_owned(),
        Order::Resume(_) => "resume it?".to_owned(),
        Order::Kill(_) => "end it (TERM, KILL after 5 s)?".to_owned(),
        Order::Class(_, class) => format!("make it {}?", class.name()),
    };
    vec![
        Line::raw(format!(" {}", name(view, order.job()))),
        Line::raw(format!(" {what}")),
        Line::raw(" y: yes   any other key: no"),
    ]
}

fn name(view: &View, id: u64) -> String {
    let find = |job: &&Job| job.id == id;
    match view.shot.as_ref().and_then(|shot| shot.jobs.iter().find(find)) {
        Some(job) => format!("job {id} {} of {}", job.name, job.user),
        None => format!("job {id}"),
    }
}

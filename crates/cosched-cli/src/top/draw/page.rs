//! The page of one job: what `cosched show` says, and its last hour.

use super::{Theme, history};
use crate::top::view::View;
use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::Line;
use ratatui::widgets::{Block, Clear, Paragraph};

/// As wide as the names of `cosched show`.
const NAME: usize = 11;

pub(super) fn draw(frame: &mut Frame, view: &View, id: u64, theme: Theme, unix_ns: u128, area: Rect) {
    let block = Block::bordered().title(format!(" job {id}: Esc closes ")).border_style(theme.strong());
    let inner = block.inner(area);
    frame.render_widget(Clear, area);
    let all = lines(view, id, (unix_ns / 1_000_000) as u64, usize::from(inner.width));
    // What does not fit is scrolled to.
    let most = all.len().saturating_sub(usize::from(inner.height));
    let from = view.scrolled.min(most);
    let shown: Vec<Line<'static>> = all.into_iter().skip(from).map(Line::raw).collect();
    frame.render_widget(Paragraph::new(shown).block(block), area);
}

fn lines(view: &View, id: u64, now_unix_ms: u64, width: usize) -> Vec<String> {
    let Some(job) = view.shot.iter().flat_map(|shot| &shot.jobs).find(|job| job.id == id) else {
        return vec!["it has ended: `cosched show` and `cosched history` know how".to_owned()];
    };
    let mut lines: Vec<String> = Vec::new();
    let [due, got] = history::job(view, id);
    for (name, values) in [("due", due), ("got", got)] {
        let time = history::span(&view.past, values.len());
        let room = width.saturating_sub(NAME);
        if let Some(time) = time {
            lines.push(
                format!("{name:<NAME$}{}", history::line(&values, room.saturating_sub(time.len() + 1))) + " " + &time,
            );
        }
    }
    for line in crate::commands::show::text(job, now_unix_ms).lines() {
        lines.extend(wrapped(line, width));
    }
    lines
}

/// Long values continue in the next lines, indented.
fn wrapped(line: &str, width: usize) -> Vec<String> {
    let letters: Vec<char> = line.chars().collect();
    let (first, rest) = letters.split_at(letters.len().min(width.max(NAME + 1)));
    let indented = |piece: &[char]| " ".repeat(NAME) + &piece.iter().collect::<String>();
    let rest = rest.chunks(width.saturating_sub(NAME).max(1)).map(indented);
    std::iter::once(first.iter().collect()).chain(rest).collect()
}

//! A single picture as text, or JSON objects, for pipes.

use super::feed::Shot;
use super::view::View;
use super::{Top, draw};
use crate::context::Context;
use crate::jobs::connect;
use crate::out::{Failure, print, print_json, terminal_width};
use cosched_api::Client;
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::buffer::Buffer;
use std::time::Duration;

/// The time that the daemon needs to measure the load of the CPUs.
const LOAD_PAUSE: Duration = Duration::from_millis(550);
const WIDTH: u16 = 80;
const WIDTH_MIN: u16 = 40;

/// `cosched top --once`
pub(super) fn text(context: &Context, options: &Top) -> Result<u8, Failure> {
    let mut client = connect(context)?;
    let mut view = View::new(&options.filter, options.sort, false);
    view.still = true;
    view.take(with_load(&mut client)?);
    // A daemon of before has none.
    view.past = client.samples().map(|past| past.samples).unwrap_or_default();
    let columns = std::env::var("COLUMNS").ok().and_then(|columns| columns.parse().ok());
    let width = terminal_width().map(|width| width as u16).or(columns).unwrap_or(WIDTH).max(WIDTH_MIN);
    print(&picture(&mut view, width)?)?;
    Ok(0)
}

/// `cosched top --json`: one object per interval until interrupted, or a single one.
pub(super) fn json(context: &Context, options: &Top, once: bool) -> Result<u8, Failure> {
    let mut client = connect(context)?;
    loop {
        let shot = if once { with_load(&mut client)? } else { Shot::take(&mut client)? };
        let mut view = View::new(&options.filter, options.sort, false);
        view.take(shot);
        let jobs = view.jobs().into_iter().cloned().collect();
        let Some(Shot { status, .. }) = view.shot else { return Ok(1) };
        print_json(&Shot { status, jobs })?;
        if once {
            return Ok(0);
        }
        std::thread::sleep(options.interval);
    }
}

/// The daemon measures the load between two requests: if there was none before, a second one is made.
fn with_load(client: &mut Client) -> Result<Shot, Failure> {
    let first = Shot::take(client)?;
    if first.status.load.as_ref().is_some_and(|load| load.cpus.is_empty()) {
        std::thread::sleep(LOAD_PAUSE);
        return Ok(Shot::take(client)?);
    }
    Ok(first)
}

/// High enough for everything.
fn picture(view: &mut View, width: u16) -> Result<String, Failure> {
    let height = draw::height(view, width);
    let failed = |e| Failure::other(format!("the screen cannot be drawn: {e}"));
    let mut terminal = Terminal::new(TestBackend::new(width, height)).map_err(failed)?;
    let now = crate::format::now_unix_ms();
    terminal.draw(|frame| draw::draw(frame, view, u128::from(now) * 1_000_000)).map_err(failed)?;
    Ok(lines(terminal.backend().buffer()))
}

/// The text of a picture, without blanks at the end of lines.
pub(super) fn lines(buffer: &Buffer) -> String {
    let mut text = String::new();
    for row in buffer.content().chunks(usize::from(buffer.area.width).max(1)) {
        let line: String = row.iter().map(|cell| cell.symbol()).collect();
        text.push_str(line.trim_end());
        text.push('\n');
    }
    format!("{}\n", text.trim_end())
}

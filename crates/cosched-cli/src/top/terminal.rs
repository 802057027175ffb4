//! The terminal: it is taken over, drawn on, and restored in every case.

use super::feed::{self, News};
use super::keys::Outcome;
use super::view::{Message, View};
use super::{Top, draw};
use crate::context::Context;
use crate::jobs::connect;
use crate::out::{Failure, use_colour};
use crate::run::signals::Signals;
use cosched_api::SocketChoice;
use ratatui::DefaultTerminal;
use ratatui::crossterm::cursor::Show;
use ratatui::crossterm::event::{self, Event};
use ratatui::crossterm::execute;
use ratatui::crossterm::style::Print;
use rustix::event::{PollFd, PollFlags, poll};
use std::io::{self, IsTerminal};
use std::sync::mpsc::Receiver;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// How often the current row is updated at most.
const TICK: Duration = Duration::from_millis(100);

/// The terminal tells presses of buttons and turns of the wheel (1000), in the form without a largest column (1006), but no movements.
const MOUSE_ON: &str = "\x1b[?1000h\x1b[?1006h";
const MOUSE_OFF: &str = "\x1b[?1006l\x1b[?1000l";

/// `cosched top` on a terminal.
pub(super) fn run(context: &Context, options: &Top) -> Result<u8, Failure> {
    check_terminal()?;
    // Before anything is drawn: a missing daemon is reported as by all commands.
    let client = connect(context)?;
    let failed = |e: io::Error| Failure::other(format!("the terminal cannot be used: {e}"));
    // Blocked before any thread starts, so that all inherit it.
    let signals = Signals::take().map_err(failed)?;
    let (orders, news) = feed::start(SocketChoice::find(context.socket.clone()), client, options.interval);
    let mut view = View::new(&options.filter, options.sort, use_colour());
    // From here on a panic restores the terminal, too: the library's hook does it, but for the mouse.
    let mut terminal = ratatui::try_init().map_err(failed)?;
    let hook = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        let _ = execute!(io::stdout(), Print(MOUSE_OFF));
        hook(info);
    }));
    end_on_signal(signals);
    execute!(io::stdout(), Print(MOUSE_ON)).map_err(failed)?;
    let ended = watch(&mut terminal, &mut view, &news, |order| {
        // If the thread has ended, it has reported why, or is no longer needed.
        let _ = orders.send(order);
    });
    ended.and(give_back()).map_err(failed)?;
    Ok(0)
}

fn give_back() -> io::Result<()> {
    execute!(io::stdout(), Print(MOUSE_OFF), Show).and(ratatui::try_restore())
}

/// In a separate thread: when the terminal disappears (a closed window), the library's reader of keys never returns, and
/// the signal for that must end the program all the same.
fn end_on_signal(signals: Signals) {
    std::thread::spawn(move || {
        loop {
            // An interrupted wait only causes one more check.
            let _ = poll(&mut [PollFd::new(&signals, PollFlags::IN)], None);
            if let Some(signal) = signals.next() {
                // Locked to the end, so that nothing is drawn on the restored screen.
                let _stdout = io::stdout().lock();
                // A terminal that no longer exists need not be restored.
                let _ = give_back();
                // The exit code by which a shell reports a program killed by a signal.
                std::process::exit(128 + signal.number);
            }
        }
    });
}

fn check_terminal() -> Result<(), Failure> {
    let dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
    let why = match (io::stdout().is_terminal(), io::stdin().is_terminal()) {
        (false, _) => "standard output is not a terminal",
        (_, false) => "standard input is not a terminal",
        _ if dumb => "this terminal (TERM=dumb) cannot be drawn on",
        _ => return Ok(()),
    };
    let hint = "--once prints one screen as text, --json prints objects; `cosched ps` and `cosched status` print lists";
    Err(Failure::explained(2, "cosched top draws on a terminal", why, hint))
}

/// Until the user ends it.
fn watch(
    terminal: &mut DefaultTerminal,
    view: &mut View,
    news: &Receiver<News>,
    mut order: impl FnMut(feed::Order),
) -> io::Result<()> {
    loop {
        for said in news.try_iter() {
            hear(view, said);
        }
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos();
        terminal.draw(|frame| draw::draw(frame, view, now))?;
        if event::poll(TICK)? {
            // Reads all pending events: a held arrow key must not have an effect after it was released.
            while event::poll(Duration::ZERO)? {
                let outcome = match event::read()? {
                    Event::Key(key) => view.press(key),
                    Event::Mouse(mouse) => {
                        view.point(mouse);
                        None
                    }
                    _ => None,
                };
                match outcome {
                    Some(Outcome::Quit) => return Ok(()),
                    Some(Outcome::Order(wanted)) => order(wanted),
                    None => (),
                }
            }
        }
    }
}

fn hear(view: &mut View, said: News) {
    match said {
        News::Shot(shot) => view.take(*shot),
        News::Past(samples) => view.past = samples,
        News::Trouble(why) => view.trouble = Some(why),
        News::Done(text) => view.message = Some(Message { good: true, text }),
        News::Refused(text) => view.message = Some(Message { good: false, text }),
    }
}

//! The effects of keys and of the mouse.

use super::feed::Order;
use super::view::{CLASSES, Message, Mode, View, lives};
use ratatui::crossterm::event::{
    KeyCode, KeyEvent, KeyEventKind, KeyModifiers, MouseButton, MouseEvent, MouseEventKind,
};

/// More lines than a page has.
const LINES_MAX: usize = 1000;

/// What the caller has to do after a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    Quit,
    Order(Order),
}

impl View {
    pub(super) fn press(&mut self, key: KeyEvent) -> Option<Outcome> {
        if key.kind == KeyEventKind::Release {
            return None;
        }
        let control = key.modifiers.contains(KeyModifiers::CONTROL);
        if control && matches!(key.code, KeyCode::Char('c' | 'd')) {
            return Some(Outcome::Quit);
        }
        match self.mode.clone() {
            Mode::List => return self.press_in_list(key.code),
            Mode::Page(_) => return self.press_on_page(key.code),
            Mode::Filter => self.press_in_filter(key.code),
            Mode::Help => self.mode = Mode::List,
            Mode::Class(id) => return self.press_in_classes(key.code, id),
            Mode::Confirm(order) => {
                self.mode = Mode::List;
                if matches!(key.code, KeyCode::Char('y' | 'Y')) {
                    return Some(Outcome::Order(order));
                }
                self.message = Some(Message { good: true, text: "cancelled".into() });
            }
        }
        None
    }

    fn press_in_list(&mut self, key: KeyCode) -> Option<Outcome> {
        self.message = None;
        match key {
            KeyCode::Char('q') => return Some(Outcome::Quit),
            KeyCode::Char('h' | '?') => self.mode = Mode::Help,
            KeyCode::Char('/') => self.mode = Mode::Filter,
            KeyCode::Esc => self.filter.clear(),
            KeyCode::Char('o') => self.sort = self.sort.next(),
            KeyCode::Char('O') => self.turned = !self.turned,
            KeyCode::Up => self.choose(-1),
            KeyCode::Down => self.choose(1),
            KeyCode::PageUp => self.choose(-(self.page as isize)),
            KeyCode::PageDown => self.choose(self.page as isize),
            KeyCode::Home => self.choose(isize::MIN),
            KeyCode::End => self.choose(isize::MAX),
            KeyCode::Enter => self.open(),
            KeyCode::Char('c') => self.ask(Mode::Class),
            KeyCode::Char('s') => self.ask(|id| Mode::Confirm(Order::Suspend(id))),
            KeyCode::Char('r') => self.ask(|id| Mode::Confirm(Order::Resume(id))),
            KeyCode::Char('k') => self.ask(|id| Mode::Confirm(Order::Kill(id))),
            _ => (),
        }
        None
    }

    /// The keys of orders act on its job.
    fn press_on_page(&mut self, key: KeyCode) -> Option<Outcome> {
        match key {
            KeyCode::Esc | KeyCode::Enter | KeyCode::Backspace => self.mode = Mode::List,
            KeyCode::Up => self.scrolled = self.scrolled.saturating_sub(1),
            KeyCode::Down => self.scrolled = self.scrolled.saturating_add(1).min(LINES_MAX),
            KeyCode::Home => self.scrolled = 0,
            KeyCode::Char('q' | 'h' | '?' | 'c' | 's' | 'r' | 'k') => return self.press_in_list(key),
            _ => (),
        }
        None
    }

    /// The mouse shows; it neither answers questions nor gives orders.
    pub(super) fn point(&mut self, mouse: MouseEvent) {
        let wheel = match mouse.kind {
            MouseEventKind::ScrollUp => KeyCode::Up,
            MouseEventKind::ScrollDown => KeyCode::Down,
            MouseEventKind::Down(MouseButton::Left) if self.mode == Mode::List => return self.click(mouse.row),
            // What was opened closes.
            MouseEventKind::Down(MouseButton::Right) if matches!(self.mode, Mode::Page(_) | Mode::Help) => KeyCode::Esc,
            _ => return,
        };
        if matches!(self.mode, Mode::List | Mode::Page(_) | Mode::Help) {
            self.press(KeyEvent::new(wheel, KeyModifiers::NONE));
        }
    }

    /// A click on a job selects it, one on the selected job opens its page.
    fn click(&mut self, line: u16) {
        let (lines, first) = &self.listed;
        let Some(from_top) = lines.contains(&line).then(|| line - lines.start) else { return };
        let jobs = self.jobs();
        let place = first + usize::from(from_top);
        let Some(job) = jobs.get(place).map(|job| job.id) else { return };
        if self.chosen == Some(job) { self.open() } else { self.chosen = Some(job) }
    }

    fn open(&mut self) {
        self.scrolled = 0;
        self.ask(Mode::Page);
    }

    fn choose(&mut self, by: isize) {
        let jobs = self.jobs();
        let last = jobs.len().saturating_sub(1);
        let place = self.place(&jobs).saturating_add_signed(by).min(last);
        self.chosen = jobs.get(place).map(|job| job.id);
    }

    /// Asks a question about the selected job, if there is one.
    fn ask(&mut self, question: impl FnOnce(u64) -> Mode) {
        match self.job().filter(|job| lives(job)).map(|job| job.id) {
            Some(id) => (self.chosen, self.mode) = (Some(id), question(id)),
            None => self.message = Some(Message { good: false, text: "no job is selected".into() }),
        }
    }

    fn press_in_classes(&mut self, key: KeyCode, id: u64) -> Option<Outcome> {
        let class = CLASSES.iter().find(|(letter, _)| key == KeyCode::Char(*letter)).map(|(_, class)| *class);
        match class {
            // The letter chooses the class; it still has to be confirmed.
            Some(class) => self.mode = Mode::Confirm(Order::Class(id, class)),
            None => self.mode = Mode::List,
        }
        None
    }

    fn press_in_filter(&mut self, key: KeyCode) {
        match key {
            KeyCode::Enter => self.mode = Mode::List,
            KeyCode::Esc => {
                self.filter.clear();
                self.mode = Mode::List;
            }
            KeyCode::Backspace => drop(self.filter.pop()),
            KeyCode::Char(letter) if !letter.is_control() => self.filter.push(letter),
            _ => (),
        }
        self.chosen = self.job().map(|job| job.id);
    }
}

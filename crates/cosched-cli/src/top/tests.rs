//! Pictures at several sizes, and the effects of keys.

use super::draw;
use super::feed::{Order, Shot};
use super::keys::Outcome;
use super::once::lines;
use super::sort::Sort;
use super::view::{Message, Mode, View};
use crate::jobs::tests::job;
use cosched_api::{Class, CpuLoad, JobSample, JobState, NodeStatus, Row, Sample};
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers, MouseButton, MouseEvent, MouseEventKind};
use ratatui::style::Modifier;

/// In the second slot of the cycle, which belongs to row 1.
const NOW_NS: u128 = 1_700_000_065_150_000_000;

fn shot() -> Shot {
    let mut status = crate::commands::tests::example_status();
    status.jobs =
        [(JobState::Running, 2), (JobState::Asleep, 1), (JobState::Suspended, 1), (JobState::Ended, 4)].into();
    let mut jobs = vec![job(7, "a.out"), job(8, "solver"), job(9, "editor"), job(12, "night")];
    for (place, job) in jobs.iter_mut().enumerate() {
        job.cpu_percent = Some(95.0 - 30.0 * place as f64);
        job.memory_bytes = Some((place as u64 + 1) << 29);
        (job.share_due, job.share_received) = (Some(0.45), Some(0.44 - 0.1 * place as f64));
        job.processes = Some(2);
    }
    (jobs[1].class, jobs[1].user, jobs[1].outside_ms) = (Class::Batch, "bob".into(), Some(1234));
    (jobs[2].state, jobs[2].share_due) = (JobState::Asleep, None);
    (jobs[3].state, jobs[3].class) = (JobState::Suspended, Class::Standby);
    Shot { status, jobs }
}

fn view() -> View {
    let mut view = View::new("", Sort::Id, false);
    view.take(shot());
    view
}

fn picture(view: &mut View, width: u16, height: u16) -> String {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
    terminal.draw(|frame| draw::draw(frame, view, NOW_NS)).unwrap();
    lines(terminal.backend().buffer())
}

fn key(code: KeyCode) -> KeyEvent {
    KeyEvent::new(code, KeyModifiers::NONE)
}

fn press(view: &mut View, keys: &str) -> Option<Outcome> {
    keys.chars().fold(None, |_, letter| view.press(key(KeyCode::Char(letter))))
}

#[test]
fn a_small_screen() {
    insta::assert_snapshot!("80x24", picture(&mut view(), 80, 24));
}

#[test]
fn a_large_screen() {
    let mut view = view();
    let load = view.shot.as_mut().unwrap().status.load.as_mut().unwrap();
    load.cpus = (0..24).map(|cpu| CpuLoad { cpu, busy: f64::from(cpu) / 23.0 }).collect();
    (view.sort, view.turned, view.filter) = (Sort::Cpu, true, "mpirun".into());
    insta::assert_snapshot!("200x60", picture(&mut view, 200, 60));
}

#[test]
fn questions_and_help_stand_above_the_picture() {
    let mut asked = view();
    press(&mut asked, "k");
    insta::assert_snapshot!("80x24-kill", picture(&mut asked, 80, 24));
    let mut help = view();
    press(&mut help, "?");
    insta::assert_snapshot!("80x24-help", picture(&mut help, 80, 24));
}

/// The last hour: the machine fills, job 7 comes after a third, and is due half.
fn past() -> Vec<Sample> {
    let jobs = |at: u64| match at {
        0..30 => Vec::new(),
        _ => vec![JobSample { id: 7, uid: 1, due: 0.5, received: 0.5 * (at - 30) as f64 / 60.0 }],
    };
    (0..90).map(|at| Sample { unix_ms: at * 10_000, busy: at as f64 / 89.0, jobs: jobs(at) }).collect()
}

#[test]
fn the_last_hour_stands_behind_the_totals_where_there_is_room() {
    let mut view = view();
    view.past = past();
    let text = picture(&mut view, 80, 24);
    let line = text.lines().nth(1).unwrap();
    assert!(line.starts_with("CPUs 2  load 2.25  memory 5.0G of 8.0G  ▁▁") && line.ends_with("█ 14m50s"), "{line}");
    assert!(line.chars().count() <= 80);
    assert!(!picture(&mut view, 50, 24).contains('█'));
    view.past.truncate(1);
    assert!(!picture(&mut view, 80, 24).contains('█'), "one sample is no history");
}

#[test]
fn a_job_has_a_page_on_which_keys_act() {
    let mut view = view();
    view.past = past();
    view.press(key(KeyCode::Enter));
    assert_eq!(view.mode, Mode::Page(7));
    insta::assert_snapshot!("80x24-page", picture(&mut view, 80, 24));
    view.press(key(KeyCode::Down));
    let text = picture(&mut view, 80, 10);
    assert!(text.contains("got") && !text.contains("due  "), "the first line is gone: {text}");
    (0..50).for_each(|_| assert_eq!(view.press(key(KeyCode::Down)), None));
    assert!(picture(&mut view, 80, 10).contains("cgroup"), "the last line can be reached");
    assert_eq!(press(&mut view, "s"), None);
    assert_eq!(view.mode, Mode::Confirm(Order::Suspend(7)));
    view.mode = Mode::Page(7);
    let mut later = shot();
    later.jobs.remove(0);
    view.take(later);
    assert!(picture(&mut view, 80, 24).contains("it has ended"));
    view.press(key(KeyCode::Esc));
    assert_eq!(view.mode, Mode::List);
    let mut other = self::view();
    other.chosen = Some(8);
    other.press(key(KeyCode::Enter));
    let text = picture(&mut other, 80, 24);
    assert!(text.contains("job 8") && !text.contains("got  "), "nothing is known of its past: {text}");
}

fn mouse(view: &mut View, kind: MouseEventKind, row: usize) {
    view.point(MouseEvent { kind, column: 3, row: row as u16, modifiers: KeyModifiers::NONE });
}

#[test]
fn a_click_selects_another_opens_and_the_wheel_scrolls() {
    const LEFT: MouseEventKind = MouseEventKind::Down(MouseButton::Left);
    const RIGHT: MouseEventKind = MouseEventKind::Down(MouseButton::Right);
    let mut view = view();
    mouse(&mut view, LEFT, 12);
    assert_eq!((view.chosen, &view.mode), (Some(7), &Mode::List), "nothing is drawn yet");
    // On a low screen the list begins further down.
    for height in [24, 10] {
        view.chosen = Some(9);
        let text = picture(&mut view, 80, height);
        let line = |name: &str| text.lines().position(|line| line.contains(name)).unwrap();
        let (editor, titles) = (line("editor"), line("COMMAND"));
        for elsewhere in [titles, usize::from(height) - 1, usize::from(u16::MAX)] {
            mouse(&mut view, LEFT, elsewhere);
            assert_eq!((view.chosen, &view.mode), (Some(9), &Mode::List), "{elsewhere} of {height}");
        }
        mouse(&mut view, LEFT, editor - 1);
        assert_eq!((view.chosen, &view.mode), (Some(8), &Mode::List));
        mouse(&mut view, LEFT, editor);
        mouse(&mut view, MouseEventKind::Up(MouseButton::Left), editor);
        assert_eq!((view.chosen, &view.mode), (Some(9), &Mode::List));
        mouse(&mut view, LEFT, editor);
        assert_eq!(view.mode, Mode::Page(9));
        mouse(&mut view, LEFT, editor - 1);
        mouse(&mut view, MouseEventKind::ScrollDown, 0);
        assert_eq!((view.chosen, &view.mode, view.scrolled), (Some(9), &Mode::Page(9), 1), "the list lies below");
        mouse(&mut view, RIGHT, 0);
        assert_eq!(view.mode, Mode::List);
    }
    mouse(&mut view, MouseEventKind::ScrollUp, 0);
    assert_eq!(view.chosen, Some(8));
    press(&mut view, "k");
    [LEFT, RIGHT, MouseEventKind::ScrollUp].into_iter().for_each(|kind| mouse(&mut view, kind, 12));
    assert_eq!((view.chosen, &view.mode), (Some(8), &Mode::Confirm(Order::Kill(8))), "only keys answer");
}

#[test]
fn a_click_in_a_scrolled_list_is_at_the_job_that_is_shown_there() {
    let mut many = shot();
    many.jobs = (100..160).map(|id| job(id, &format!("name{id}"))).collect();
    let mut view = View::new("", Sort::Id, false);
    view.take(many);
    view.press(key(KeyCode::End));
    let text = picture(&mut view, 80, 24);
    let line = text.lines().position(|line| line.contains("name155")).unwrap();
    mouse(&mut view, MouseEventKind::Down(MouseButton::Left), line);
    assert_eq!(view.chosen, Some(155), "{text}");
}

#[test]
fn a_narrow_screen_has_what_is_important() {
    insta::assert_snapshot!("40x16", picture(&mut view(), 40, 16));
    for width in [30, 50, 60, 72] {
        let text = picture(&mut view(), width, 16);
        assert!(text.contains("a.out") && text.contains("h help"), "{width}: {text}");
        let cut = text.lines().any(|line| line.chars().count() > usize::from(width));
        assert!(
            !cut && (width < 44 || text.contains("DUE")) && (width < 50 || text.contains("CPU%")),
            "{width}: {text}"
        );
    }
}

#[test]
fn a_cluster_shows_its_nodes_and_many_cpus_are_summed_up() {
    let mut view = view();
    let shot = view.shot.as_mut().unwrap();
    let gone_since_unix_ms = Some(shot.status.started_unix_ms + 5_000);
    let node = |name: &str| NodeStatus {
        name: name.into(),
        cpus: 64,
        memory_bytes: Some(64 << 30),
        load: Some(12.5),
        clock: None,
        plan_generation: Some(12),
        alive: true,
        gone_since_unix_ms: None,
        silent_since_unix_ms: None,
        drains: false,
        version: None,
    };
    let gone = NodeStatus {
        cpus: 0,
        memory_bytes: None,
        load: None,
        plan_generation: None,
        alive: false,
        gone_since_unix_ms,
        ..node("b")
    };
    shot.status.nodes = Some(vec![node("a"), gone]);
    let wide = |job: u64| [vec![Some(job); 64], vec![None; 64]].concat();
    shot.status.matrix.columns = (0..128).map(|cpu| format!("cpu{cpu}")).collect();
    shot.status.matrix.rows = vec![
        Row { index: 0, cells: wide(7), also: vec![], slots: 1 },
        Row { index: 1, cells: wide(8), also: vec![9], slots: 1 },
    ];
    insta::assert_snapshot!("80x24-cluster", picture(&mut view, 80, 24));
}

#[test]
fn every_size_can_be_drawn() {
    let mut shot = shot();
    shot.status.load.as_mut().unwrap().cpus = (0..512).map(|cpu| CpuLoad { cpu, busy: 0.5 }).collect();
    shot.status.matrix.rows =
        (0..100).map(|index| Row { index, cells: vec![Some(7); 2], also: vec![], slots: 1 }).collect();
    shot.status.matrix.turns = (0..100).collect();
    let mut view = view();
    for (width, height) in [(1, 1), (10, 3), (40, 8), (80, 24), (119, 10), (120, 10), (300, 100)] {
        view.shot = None;
        picture(&mut view, width, height);
        view.take(shot.clone());
        let text = picture(&mut view, width, height);
        assert!(width < 80 || height < 24 || text.contains("a.out"), "{width}x{height}:\n{text}");
        for mode in [Mode::Help, Mode::Page(7), Mode::Class(7), Mode::Filter, Mode::Confirm(Order::Kill(7))] {
            view.mode = mode;
            picture(&mut view, width, height);
        }
        view.mode = Mode::List;
    }
}

#[test]
fn the_current_row_moves_with_the_clock_alone() {
    let view = view();
    let rows: Vec<Option<u32>> = (0..4).map(|slot| view.row_at(NOW_NS + slot * 100_000_000)).collect();
    assert_eq!(rows, [Some(1), Some(0), Some(1), Some(0)]);
    let mut held = shot();
    held.status.matrix.turns.clear();
    let mut view = view;
    view.take(held);
    assert_eq!(view.row_at(NOW_NS), None);
}

#[test]
fn each_order_is_asked_again_and_only_yes_gives_it() {
    let mut view = view();
    for (keys, order) in [
        ("s", Order::Suspend(7)),
        ("r", Order::Resume(7)),
        ("k", Order::Kill(7)),
        ("cb", Order::Class(7, Class::Batch)),
    ] {
        assert_eq!(press(&mut view, keys), None);
        assert_eq!(view.mode, Mode::Confirm(order));
        assert_eq!(press(&mut view, "n"), None, "{keys}");
        assert_eq!(view.mode, Mode::List);
        press(&mut view, keys);
        assert_eq!(press(&mut view, "y"), Some(Outcome::Order(order)));
    }
    assert_eq!((press(&mut view, "cx"), &view.mode), (None, &Mode::List));
    press(&mut view, "k");
    let control_c = KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL);
    assert_eq!(view.press(control_c), Some(Outcome::Quit), "whatever is asked");
}

#[test]
fn a_question_about_a_job_that_ends_is_withdrawn() {
    let mut view = view();
    press(&mut view, "k");
    let mut later = shot();
    later.jobs.remove(0);
    view.take(later);
    assert_eq!(view.mode, Mode::List);
    assert_eq!(press(&mut view, "y"), None);
    assert_eq!(view.job().map(|job| job.id), Some(8), "another one is chosen");
}

#[test]
fn the_chosen_job_stays_chosen_when_the_order_changes() {
    let mut view = view();
    for code in [KeyCode::Down, KeyCode::Down, KeyCode::Up] {
        view.press(key(code));
    }
    assert_eq!(view.chosen, Some(8));
    for _ in 0..7 {
        press(&mut view, "o");
        assert_eq!(view.job().map(|job| job.id), Some(8), "{:?}", view.sort);
    }
    view.press(key(KeyCode::End));
    assert_eq!(view.chosen, Some(12));
    view.press(key(KeyCode::Home));
    assert_eq!(view.chosen, Some(7));
}

#[test]
fn orders_of_the_list() {
    let mut view = view();
    let ids = |view: &View| view.jobs().iter().map(|job| job.id).collect::<Vec<_>>();
    for (sort, expected) in [
        (Sort::Cpu, [7, 8, 9, 12]),
        (Sort::Memory, [12, 9, 8, 7]),
        (Sort::Share, [12, 8, 7, 9]),
        (Sort::Class, [7, 9, 8, 12]),
        (Sort::User, [7, 9, 12, 8]),
        (Sort::Name, [7, 9, 12, 8]),
    ] {
        view.sort = sort;
        assert_eq!(ids(&view), expected, "{sort:?}");
    }
    press(&mut view, "O");
    assert_eq!(ids(&view), [8, 12, 9, 7]);
}

#[test]
fn a_filter_is_written_kept_and_taken_away() {
    let mut view = view();
    press(&mut view, "/BATCH");
    assert_eq!(view.jobs().len(), 1);
    assert!(picture(&mut view, 80, 24).contains("filter: BATCH_"));
    view.press(key(KeyCode::Enter));
    assert_eq!((view.mode.clone(), view.chosen), (Mode::List, Some(8)));
    press(&mut view, "/xyz");
    assert!(picture(&mut view, 80, 24).contains("no job matches `BATCHxyz`"));
    assert_eq!((press(&mut view, "q"), view.filter.as_str()), (None, "BATCHxyzq"), "q is a letter here");
    view.press(key(KeyCode::Esc));
    assert_eq!((view.jobs().len(), &view.mode), (4, &Mode::List));
}

#[test]
fn what_the_daemon_refuses_stands_in_the_last_line() {
    let mut view = view();
    view.message = Some(Message { good: false, text: "job 8 is not yours: it belongs to bob".into() });
    assert!(picture(&mut view, 80, 24).ends_with("job 8 is not yours: it belongs to bob\n"));
    view.trouble = Some("no cosched daemon answers".into());
    assert!(picture(&mut view, 80, 24).ends_with("retrying: no cosched daemon answers\n"));
}

#[test]
fn names_of_others_cannot_write_to_the_terminal() {
    let mut view = view();
    let mut evil = shot();
    evil.jobs[0].name = "a\x1b[2Jb\rc".into();
    evil.jobs[0].command = vec!["x\x07\x1b]0;title\x07".into()];
    view.take(evil);
    let text = picture(&mut view, 200, 60);
    assert!(text.chars().all(|letter| letter == '\n' || !letter.is_control()), "{text:?}");
}

#[test]
fn without_colours_nothing_has_one_and_what_runs_is_marked_all_the_same() {
    for colour in [false, true] {
        let mut view = view();
        view.colour = colour;
        let mut terminal = Terminal::new(TestBackend::new(80, 24)).unwrap();
        terminal.draw(|frame| draw::draw(frame, &mut view, NOW_NS)).unwrap();
        let cells = terminal.backend().buffer().content();
        assert_eq!(cells.iter().any(|cell| cell.fg != ratatui::style::Color::Reset), colour);
        let marked = cells.iter().filter(|cell| cell.modifier.contains(Modifier::REVERSED)).count();
        assert!(marked > 80, "the row and the job: {marked}");
    }
}

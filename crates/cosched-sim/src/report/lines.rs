//! Lines: response against utilisation, load or another axis, and distributions.

use super::frame::{Frame, Scale, WIDTH, at};
use crate::metrics::Estimate;
use std::fmt::Write;

/// One line.
#[derive(Clone, Debug, PartialEq)]
pub struct Line {
    /// The text in the legend.
    pub name: String,
    /// Its colour, mark and dashes: the index of its strategy.
    pub style: usize,
    /// The points, with their intervals.
    pub points: Vec<(f64, Estimate)>,
}

const DASHES: [&str; 4] = ["", "7 3", "2 3", "8 3 2 3"];

/// The colour for an index.
pub(super) fn colour(place: usize) -> usize {
    place % 10
}

/// Lines with marks and intervals.
pub fn lines(lines: &[Line], x_title: &str, y_title: &str, title: &str) -> String {
    let points = || lines.iter().flat_map(|line| line.points.iter());
    let x = Scale::around(points().map(|(x, _)| *x));
    let y = Scale::from_zero(points().map(|(_, y)| y.mean + y.ci95.unwrap_or(0.0).min(y.mean)));
    let mut frame = Frame::new(WIDTH, 380.0, x, y).keep_right(110.0);
    frame.grid_x(x_title);
    frame.grid_y(y_title);
    frame.axes();
    for line in lines {
        let places: Vec<(f64, f64)> = line.points.iter().map(|(x, y)| (frame.x(*x), frame.y(y.mean))).collect();
        path(&mut frame, line.style, &places);
        for ((x, estimate), (px, py)) in line.points.iter().zip(&places) {
            if let Some(half) = estimate.ci95 {
                whisker(&mut frame, line.style, *px, (estimate.mean, half));
            }
            mark(&mut frame, line.style, *px, *py, &format!("{}: {x:.3}, {:.4}", line.name, estimate.mean));
        }
    }
    names(&mut frame, lines);
    frame.finish(title)
}

/// A distribution function.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Distribution {
    pub(super) name: String,
    pub(super) style: usize,
    /// Values, and the fractions of values below them.
    pub(super) points: Vec<(f64, f64)>,
}

/// Distribution functions.
pub(super) fn distributions(lines: &[Distribution], x_title: &str, title: &str) -> String {
    let values = lines.iter().flat_map(|line| line.points.iter().map(|(x, _)| *x));
    let mut frame = Frame::new(WIDTH, 340.0, Scale::log(values), Scale::exact(0.0, 1.0)).keep_right(110.0);
    frame.grid_x(x_title);
    frame.grid_y("part of the jobs");
    frame.axes();
    for line in lines {
        let places: Vec<(f64, f64)> = line.points.iter().map(|(x, part)| (frame.x(*x), frame.y(*part))).collect();
        path(&mut frame, line.style, &places);
    }
    let named = |line: &Distribution| Line { name: line.name.clone(), style: line.style, points: Vec::new() };
    let as_lines: Vec<Line> = lines.iter().map(named).collect();
    names(&mut frame, &as_lines);
    frame.finish(title)
}

/// Step functions: (time, value), each value until the next time.
pub fn steps(series: &[(&str, Vec<(f64, f64)>)], x_title: &str, y_title: &str, title: &str) -> String {
    let points = || series.iter().flat_map(|(_, points)| points.iter());
    let end = points().map(|(x, _)| *x).fold(0.0, f64::max);
    let y = Scale::from_zero(points().map(|(_, y)| *y));
    let mut frame = Frame::new(WIDTH, 240.0, Scale::exact(0.0, end), y).keep_right(110.0);
    frame.grid_x(x_title);
    frame.grid_y(y_title);
    frame.axes();
    for (style, (_, points)) in series.iter().enumerate() {
        let mut places: Vec<(f64, f64)> = Vec::with_capacity(points.len() * 2);
        for (x, y) in points {
            let (px, py) = (frame.x(*x), frame.y(*y));
            if let Some((_, before)) = places.last().copied() {
                places.push((px, before));
            }
            places.push((px, py));
        }
        path(&mut frame, style, &places);
    }
    let named: Vec<Line> = series
        .iter()
        .enumerate()
        .map(|(style, (name, _))| Line { name: (*name).to_owned(), style, points: Vec::new() })
        .collect();
    names(&mut frame, &named);
    frame.finish(title)
}

fn path(frame: &mut Frame, style: usize, places: &[(f64, f64)]) {
    let mut d = String::new();
    for (place, (x, y)) in places.iter().enumerate() {
        let _ = write!(d, "{}{} {}", if place == 0 { "M" } else { "L" }, at(*x), at(*y));
    }
    let dash = DASHES[style / 3 % DASHES.len()];
    let _ = writeln!(frame.svg, r#"<path class="s{}" stroke-dasharray="{dash}" d="{d}"/>"#, colour(style));
}

fn whisker(frame: &mut Frame, style: usize, x: f64, (mean, half): (f64, f64)) {
    let (x, low, high) = (at(x), at(frame.y(mean - half)), at(frame.y(mean + half)));
    let _ = writeln!(frame.svg, r#"<path class="whisker g{}" d="M{x} {low}V{high}"/>"#, colour(style));
}

/// A disc, a square, a triangle or a diamond.
pub(super) fn mark(frame: &mut Frame, style: usize, x: f64, y: f64, title: &str) {
    let shape = match style % 4 {
        0 => "m-4 0a4 4 0 1 0 8 0a4 4 0 1 0 -8 0z",
        1 => "m-3.5 -3.5h7v7h-7z",
        2 => "m0 -4.5l4.5 8h-9z",
        _ => "m0 -5l5 5l-5 5l-5 -5z",
    };
    let _ = writeln!(
        frame.svg,
        r#"<path class="f{}" d="M{} {}{shape}"><title>{}</title></path>"#,
        colour(style),
        at(x),
        at(y),
        super::page::escape(title)
    );
}

/// The names at the right, each with its dashes and mark.
pub(super) fn names(frame: &mut Frame, lines: &[Line]) {
    let (_, right, top, _) = frame.edges();
    for (place, line) in lines.iter().enumerate() {
        let y = top + 6.0 + place as f64 * 19.0;
        path(frame, line.style, &[(right + 10.0, y), (right + 34.0, y)]);
        if !line.points.is_empty() {
            mark(frame, line.style, right + 22.0, y, &line.name);
        }
        frame.text(right + 40.0, y + 4.0, "start", "", &line.name);
    }
}

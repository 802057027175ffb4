//! Points of two quantities that should be equal, against the line on which they are.

use super::frame::{Frame, Scale, WIDTH, at};
use super::lines::{Line, mark, names};

/// A point: its series, the expected and the found value, and what it is.
#[derive(Clone, Debug, PartialEq)]
pub struct Pair {
    /// The index of its series.
    pub series: usize,
    /// What was expected.
    pub x: f64,
    /// What was found.
    pub y: f64,
    /// The tooltip.
    pub title: String,
}

/// Points of named series, with the line of equal values. Both axes have one scale.
pub fn against(series: &[String], pairs: &[Pair], x_title: &str, y_title: &str, title: &str) -> String {
    let scale = Scale::from_zero(pairs.iter().flat_map(|pair| [pair.x, pair.y]));
    let mut frame = Frame::new(WIDTH, 560.0, scale, scale).keep_right(190.0);
    frame.grid_x(x_title);
    frame.grid_y(y_title);
    frame.axes();
    let (left, right, top, bottom) = frame.edges();
    let line = format!(
        "<path class=\"axis\" fill=\"none\" stroke-dasharray=\"7 3\" d=\"M{} {}L{} {}\"/>\n",
        at(left),
        at(bottom),
        at(right),
        at(top)
    );
    frame.svg.push_str(&line);
    for pair in pairs {
        let (x, y) = (frame.x(pair.x), frame.y(pair.y));
        mark(&mut frame, pair.series, x, y, &pair.title);
    }
    let named = |(style, name): (usize, &String)| Line { name: name.clone(), style, points: Vec::new() };
    names(&mut frame, &series.iter().enumerate().map(named).collect::<Vec<Line>>());
    frame.finish(title)
}

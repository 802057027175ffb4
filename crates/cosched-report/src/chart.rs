//! A chart: axes with units, and what is drawn on them.

use serde::Serialize;

/// An axis.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Axis {
    title: String,
    unit: &'static str,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    log: bool,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    cut: bool,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    names: Vec<String>,
}

/// A linear axis: what it measures, and its unit, empty for counts and ratios.
pub fn axis(title: &str, unit: &'static str) -> Axis {
    Axis { title: title.to_owned(), unit, log: false, cut: false, names: Vec::new() }
}

impl Axis {
    /// The same, logarithmic.
    #[must_use]
    pub fn log(self) -> Axis {
        Axis { log: true, ..self }
    }

    /// The same, at whose end bars are cut that are far higher than most.
    #[must_use]
    pub fn cut(self) -> Axis {
        Axis { cut: true, ..self }
    }

    /// The same with names in place of numbers: of 0 to 1, 1 to 2, …
    #[must_use]
    pub fn named(self, names: impl IntoIterator<Item = String>) -> Axis {
        Axis { names: names.into_iter().collect(), ..self }
    }
}

/// A chart.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Chart {
    /// What it shows, for readers who cannot see it, too.
    pub title: String,
    caption: String,
    x: Axis,
    y: Axis,
    /// What is drawn.
    pub series: Vec<Series>,
}

impl Chart {
    /// A chart; the caption says how it is to be read.
    pub fn new(title: &str, caption: &str, x: Axis, y: Axis, series: impl IntoIterator<Item = Series>) -> Chart {
        Chart { title: title.to_owned(), caption: caption.to_owned(), x, y, series: series.into_iter().collect() }
    }
}

/// How points are drawn.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Shape {
    /// Marks with a line through them.
    Line,
    /// A line without marks.
    Curve,
    /// Each value until the next point.
    Steps,
    /// Marks.
    Marks,
    /// A dashed line to compare with.
    Rule,
    /// Bars that stand on the horizontal axis, each series on the one before.
    Bars,
    /// Bars that lie beside the vertical axis, whose names are from the top then.
    Lying,
    /// Rectangles, each from a point to its end.
    Rects,
    /// The same, through which others can be seen.
    Clear,
}

/// The style of what is nothing: idle CPUs, the rest of a whole.
pub const IDLE: usize = 10;

/// Points with a name.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Series {
    /// The text in the legend.
    pub name: String,
    style: usize,
    shape: Shape,
    /// By x where a line joins them.
    pub points: Vec<Point>,
}

impl Series {
    /// Points; the style is their colour, mark and dashes.
    pub fn new<P: Into<Point>>(
        name: impl Into<String>,
        style: usize,
        shape: Shape,
        points: impl IntoIterator<Item = P>,
    ) -> Series {
        Series { name: name.into(), style, shape, points: points.into_iter().map(Into::into).collect() }
    }
}

/// A point.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Point {
    /// Its place on the horizontal axis.
    pub x: f64,
    /// Its place on the vertical axis.
    pub y: f64,
    /// Half the width of the 95 % interval of y.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ci95: Option<f64>,
    /// The other corner of its rectangle.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub end: Option<(f64, f64)>,
    /// What it is, if the series' name does not tell.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub note: String,
}

impl From<(f64, f64)> for Point {
    fn from((x, y): (f64, f64)) -> Point {
        Point { x, y, ..Point::default() }
    }
}

/// The middle of a named place.
pub fn middle(place: usize) -> f64 {
    place as f64 + 0.5
}

/// Lying bars of wholes, in per cent: `parts` has the names and colours of their parts, which are fractions.
pub fn shares(parts: &[(&str, usize)], wholes: &[Vec<f64>]) -> Vec<Series> {
    let part = |(place, (name, style)): (usize, &(&str, usize))| {
        let lengths = wholes.iter().enumerate().map(|(bar, parts)| (parts[place] * 100.0, middle(bar)));
        Series::new(*name, *style, Shape::Lying, lengths)
    };
    parts.iter().enumerate().map(part).collect()
}

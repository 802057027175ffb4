//! A plot's frame: scales, grid, ticks and titles, into which figures draw.

use super::page::escape;
use std::fmt::Write;

/// Maps a quantity to a position.
#[derive(Clone, Copy, Debug)]
pub(super) struct Scale {
    low: f64,
    high: f64,
    is_log: bool,
}

impl Scale {
    /// From 0 to a little above the largest value.
    pub(super) fn from_zero(values: impl Iterator<Item = f64>) -> Scale {
        let high = values.filter(|value| value.is_finite()).fold(0.0, f64::max);
        Scale { low: 0.0, high: if high > 0.0 { high * 1.05 } else { 1.0 }, is_log: false }
    }

    /// Exactly this interval.
    pub(super) fn exact(low: f64, high: f64) -> Scale {
        Scale { low, high: if high > low { high } else { low + 1.0 }, is_log: false }
    }

    /// Around the values, not from 0.
    pub(super) fn around(values: impl Iterator<Item = f64> + Clone) -> Scale {
        let low = values.clone().filter(|value| value.is_finite()).fold(f64::INFINITY, f64::min);
        let high = values.filter(|value| value.is_finite()).fold(f64::NEG_INFINITY, f64::max);
        let room = if high > low { (high - low) * 0.06 } else { high.abs() * 0.1 + 0.1 };
        let low = if low >= 0.0 { (low - room).max(0.0) } else { low - room };
        Scale::exact(low, high + room)
    }

    /// Logarithmic from 1 (slowdowns have no smaller values).
    pub(super) fn log(values: impl Iterator<Item = f64>) -> Scale {
        let high = values.filter(|value| value.is_finite()).fold(1.0, f64::max);
        Scale { low: 1.0, high: (high * 1.1).max(2.0), is_log: true }
    }

    /// The position, 0 to 1.
    fn part(&self, value: f64) -> f64 {
        let part = if self.is_log {
            libm::log(value.max(self.low) / self.low) / libm::log(self.high / self.low)
        } else {
            (value - self.low) / (self.high - self.low)
        };
        part.clamp(0.0, 1.0)
    }

    /// Round numbers in the range: steps of 1, 2 or 5 times a power of ten; on a logarithmic scale 1, 2, 5, 10 …
    fn ticks(&self) -> Vec<f64> {
        if self.is_log {
            let decades = (0..12).flat_map(|k| [1.0, 2.0, 5.0].map(|m| m * libm::pow(10.0, f64::from(k))));
            let ticks: Vec<f64> = decades.take_while(|tick| *tick <= self.high).collect();
            // With many decades there is only room for the powers of ten.
            return if ticks.len() > 9 { ticks.into_iter().step_by(3).collect() } else { ticks };
        }
        let raw = (self.high - self.low) / 6.0;
        let power = libm::pow(10.0, libm::floor(libm::log10(raw)));
        let step = [1.0, 2.0, 5.0, 10.0].map(|m| m * power).into_iter().find(|step| *step >= raw).unwrap_or(raw);
        let first = libm::ceil(self.low / step) as i64;
        let last = libm::floor(self.high / step) as i64;
        (first..=last).map(|k| k as f64 * step).collect()
    }
}

/// A tick's text, without the noise of binary fractions.
fn tick(value: f64) -> String {
    let text = format!("{value:.4}");
    let text = text.trim_end_matches('0').trim_end_matches('.');
    if text.is_empty() || text == "-0" { "0".to_owned() } else { text.to_owned() }
}

/// A coordinate in the drawing.
pub(super) fn at(value: f64) -> String {
    let text = format!("{value:.1}");
    text.strip_suffix(".0").map(str::to_owned).unwrap_or(text)
}

pub(super) const WIDTH: f64 = 860.0;

/// A drawing with scales.
pub(super) struct Frame {
    pub(super) svg: String,
    x: Scale,
    y: Scale,
    left: f64,
    right: f64,
    top: f64,
    bottom: f64,
    width: f64,
    height: f64,
}

impl Frame {
    /// A drawing of this size with an empty margin.
    pub(super) fn new(width: f64, height: f64, x: Scale, y: Scale) -> Frame {
        Frame {
            svg: String::new(),
            x,
            y,
            left: 62.0,
            right: width - 14.0,
            top: 14.0,
            bottom: height - 44.0,
            width,
            height,
        }
    }

    /// Reserves room at the right, for a legend or names of lines.
    pub(super) fn keep_right(mut self, room: f64) -> Frame {
        self.right = self.width - room;
        self
    }

    pub(super) fn x(&self, value: f64) -> f64 {
        self.left + self.x.part(value) * (self.right - self.left)
    }

    pub(super) fn y(&self, value: f64) -> f64 {
        self.bottom - self.y.part(value) * (self.bottom - self.top)
    }

    pub(super) fn edges(&self) -> (f64, f64, f64, f64) {
        (self.left, self.right, self.top, self.bottom)
    }

    pub(super) fn grid_x(&mut self, title: &str) {
        for value in self.x.ticks() {
            let (x, top, bottom) = (at(self.x(value)), at(self.top), at(self.bottom));
            let _ = writeln!(self.svg, r#"<line class="grid" x1="{x}" y1="{top}" x2="{x}" y2="{bottom}"/>"#);
            self.text(self.x(value), self.bottom + 15.0, "middle", "soft", &tick(value));
        }
        self.text((self.left + self.right) / 2.0, self.height - 8.0, "middle", "", title);
    }

    pub(super) fn grid_y(&mut self, title: &str) {
        for value in self.y.ticks() {
            let (y, left, right) = (at(self.y(value)), at(self.left), at(self.right));
            let _ = writeln!(self.svg, r#"<line class="grid" x1="{left}" y1="{y}" x2="{right}" y2="{y}"/>"#);
            self.text(self.left - 6.0, self.y(value) + 4.0, "end", "soft", &tick(value));
        }
        let (x, y) = (14.0, (self.top + self.bottom) / 2.0);
        let _ = writeln!(
            self.svg,
            r#"<text x="{x}" y="{0}" text-anchor="middle" transform="rotate(-90 {x} {0})">{1}</text>"#,
            at(y),
            escape(title)
        );
    }

    /// The lines at the left and the bottom.
    pub(super) fn axes(&mut self) {
        let (left, right, top, bottom) = (at(self.left), at(self.right), at(self.top), at(self.bottom));
        let _ = writeln!(self.svg, r#"<path class="axis" fill="none" d="M{left} {top}V{bottom}H{right}"/>"#);
    }

    pub(super) fn text(&mut self, x: f64, y: f64, anchor: &str, class: &str, text: &str) {
        let class = if class.is_empty() { String::new() } else { format!(" class=\"{class}\"") };
        let (x, y, text) = (at(x), at(y), escape(text));
        let _ = writeln!(self.svg, r#"<text x="{x}" y="{y}" text-anchor="{anchor}"{class}>{text}</text>"#);
    }

    /// A rectangle with a tooltip.
    pub(super) fn rect(&mut self, class: &str, (x, y): (f64, f64), (w, h): (f64, f64), title: &str) {
        let _ = writeln!(
            self.svg,
            r#"<rect class="{class}" x="{}" y="{}" width="{}" height="{}"><title>{}</title></rect>"#,
            at(x),
            at(y),
            at(w.max(0.1)),
            at(h.max(0.1)),
            escape(title)
        );
    }

    /// Entries with their colours, from the top of the reserved room at the right.
    pub(super) fn legend(&mut self, entries: &[(&str, String)]) {
        let x = self.right + 12.0;
        for (place, (class, name)) in entries.iter().enumerate() {
            let y = self.top + place as f64 * 18.0;
            self.rect(class, (x, y), (12.0, 12.0), name);
            self.text(x + 18.0, y + 10.5, "start", "", name);
        }
    }

    /// The SVG. `title` describes the figure for readers who cannot see it.
    pub(super) fn finish(self, title: &str) -> String {
        format!(
            "<svg viewBox=\"0 0 {} {}\" role=\"img\" aria-label=\"{}\">\n{}</svg>\n",
            at(self.width),
            at(self.height),
            escape(title),
            self.svg
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round_and_inside() {
        assert_eq!(
            Scale::exact(0.0, 1.0).ticks().iter().map(|t| tick(*t)).collect::<Vec<_>>(),
            ["0", "0.2", "0.4", "0.6", "0.8", "1"]
        );
        assert_eq!(Scale::exact(3.0, 47.0).ticks(), [10.0, 20.0, 30.0, 40.0]);
        assert_eq!(Scale::log([90.0].into_iter()).ticks(), [1.0, 2.0, 5.0, 10.0, 20.0, 50.0]);
        assert_eq!(Scale::log([9000.0].into_iter()).ticks(), [1.0, 10.0, 100.0, 1000.0]);
    }

    #[test]
    fn scales_meet_their_edges() {
        let frame = Frame::new(100.0, 100.0, Scale::log([10.0 / 1.1].into_iter()), Scale::exact(0.0, 4.0));
        assert_eq!((frame.x(1.0), frame.x(10.0)), (62.0, 86.0));
        assert!((frame.x(libm::sqrt(10.0)) - 74.0).abs() < 1e-9);
        assert_eq!((frame.y(0.0), frame.y(4.0), frame.y(99.0)), (56.0, 14.0, 14.0));
        assert_eq!((at(3.04), at(2.0), at(-0.25)), ("3".to_owned(), "2".to_owned(), "-0.2".to_owned()));
    }
}

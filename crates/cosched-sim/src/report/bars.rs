//! Stacked bars: wait + execution of each strategy, and the use of CPU time.

use super::frame::{Frame, Scale, WIDTH};
use super::page::{percent, short};

/// A bar: its name, and its parts from the bottom up.
#[derive(Clone, Debug, PartialEq)]
pub struct Bar {
    /// The text beside it.
    pub name: String,
    /// Its parts.
    pub parts: Vec<f64>,
    /// Half the width of the interval of the total.
    pub ci95: Option<f64>,
}

/// A bar this many times higher than the median is cut off, as in the paper.
const CUT: f64 = 6.0;

/// Vertical bars. `parts` are the names of the parts and the classes of their colours.
pub(super) fn standing(bars: &[Bar], parts: &[(&str, &str)], y_title: &str, title: &str) -> String {
    let whole = |bar: &Bar| bar.parts.iter().sum::<f64>();
    let mut wholes: Vec<f64> = bars.iter().map(whole).collect();
    wholes.sort_by(f64::total_cmp);
    let limit = wholes.get((wholes.len().max(1) - 1) / 2).map_or(f64::MAX, |median| median * CUT);
    let visible = wholes.iter().copied().filter(|value| *value <= limit).fold(0.0, f64::max);
    let y = Scale::from_zero(std::iter::once(visible * 1.08));
    let mut frame = Frame::new(WIDTH, 340.0, Scale::exact(0.0, bars.len() as f64), y).keep_right(120.0);
    frame.grid_y(y_title);
    let (_, _, top, bottom) = frame.edges();
    for (place, bar) in bars.iter().enumerate() {
        let (from, to) = (frame.x(place as f64 + 0.15), frame.x(place as f64 + 0.85));
        let mut sum = 0.0;
        for (value, (name, class)) in bar.parts.iter().zip(parts) {
            let (low, high) = (frame.y(sum), frame.y(sum + value));
            sum += value;
            if low > high {
                frame.rect(
                    class,
                    (from, high),
                    (to - from, low - high),
                    &format!("{} {name}: {}", bar.name, short(*value)),
                );
            }
        }
        let is_cut = sum > limit;
        let label = if is_cut { format!("↑ {}", short(sum)) } else { short(sum) };
        let above = if is_cut { top } else { frame.y(sum + bar.ci95.unwrap_or(0.0)) } - 5.0;
        frame.text((from + to) / 2.0, above, "middle", if is_cut { "" } else { "soft" }, &label);
        if let Some(half) = bar.ci95.filter(|_| !is_cut) {
            let (x, low, high) = ((from + to) / 2.0, frame.y(sum - half), frame.y(sum + half));
            frame.svg.push_str(&format!("<path class=\"whisker ink\" d=\"M{x:.1} {low:.1}V{high:.1}\"/>\n"));
        }
        frame.text((from + to) / 2.0, bottom + 16.0, "middle", "", &bar.name);
    }
    frame.axes();
    legend(&mut frame, parts);
    frame.finish(title)
}

/// Horizontal bars of fractions whose sum is 1. `parts` are the names of the parts and the classes of their colours.
pub fn lying(bars: &[Bar], parts: &[(&str, &str)], x_title: &str, title: &str) -> String {
    // If there are few bars, they are thicker: the legend beside them has six entries.
    let each = (116.0 / bars.len().max(1) as f64).clamp(26.0, 58.0);
    let height = (58.0 + bars.len() as f64 * each).max(174.0);
    let mut frame = Frame::new(WIDTH, height, Scale::exact(0.0, 100.0), Scale::exact(0.0, 1.0)).keep_right(120.0);
    frame.grid_x(x_title);
    let (left, _, top, _) = frame.edges();
    for (place, bar) in bars.iter().enumerate() {
        let y = top + place as f64 * each + 3.0;
        frame.text(left - 6.0, y + each / 2.0 + 1.0, "end", "", &bar.name);
        let mut sum = 0.0;
        for (value, (name, class)) in bar.parts.iter().zip(parts) {
            let (from, to) = (frame.x(sum * 100.0), frame.x((sum + value) * 100.0));
            sum += value;
            if to > from {
                frame.rect(
                    class,
                    (from, y),
                    (to - from, each - 6.0),
                    &format!("{} {name}: {} %", bar.name, percent(*value)),
                );
            }
        }
    }
    frame.axes();
    legend(&mut frame, parts);
    frame.finish(title)
}

fn legend(frame: &mut Frame, parts: &[(&str, &str)]) {
    let entries: Vec<(&str, String)> = parts.iter().map(|(name, class)| (*class, (*name).to_owned())).collect();
    frame.legend(&entries);
}

//! Plots as SVG, for pages that are opened from a disk.

use std::fmt::Write;

const WIDTH: f64 = 640.0;
const HEIGHT: f64 = 260.0;
const LEFT: f64 = 56.0;
const BOTTOM: f64 = 34.0;
const TOP: f64 = 10.0;
const RIGHT: f64 = 26.0;

/// A curve.
pub(super) struct Curve {
    pub(super) name: String,
    /// The CSS class that colours it.
    pub(super) class: &'static str,
    pub(super) points: Vec<(f64, f64)>,
}

/// Escapes text for SVG and HTML.
pub(super) fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

fn frame(title: &str) -> String {
    let title = escape(title);
    format!("<svg viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" aria-label=\"{title}\"><title>{title}</title>")
}

fn text(svg: &mut String, x: f64, y: f64, anchor: &str, text: &str) {
    let _ = write!(svg, "<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\">{}</text>", escape(text));
}

/// Bars from 0; at most 12 of the labels are shown.
pub(super) fn bars(title: &str, values: &[(String, f64)]) -> String {
    let mut svg = frame(title);
    let largest = values.iter().map(|(_, value)| *value).fold(0.0, f64::max).max(f64::MIN_POSITIVE);
    let (plot_width, plot_height) = (WIDTH - LEFT - RIGHT, HEIGHT - TOP - BOTTOM);
    let step = plot_width / values.len().max(1) as f64;
    let every = values.len().div_ceil(12).max(1);
    for (place, (label, value)) in values.iter().enumerate() {
        let x = LEFT + step * place as f64;
        let height = plot_height * value / largest;
        let y = TOP + plot_height - height;
        let _ = write!(
            svg,
            "<rect class=\"a\" x=\"{:.1}\" y=\"{y:.1}\" width=\"{:.1}\" height=\"{height:.1}\"><title>{}: {value}</title></rect>",
            x + step * 0.1,
            step * 0.8,
            escape(label),
        );
        if place % every == 0 {
            text(&mut svg, x + step / 2.0, HEIGHT - BOTTOM + 16.0, "middle", label);
        }
    }
    for part in [0.0, 0.5, 1.0] {
        text(
            &mut svg,
            LEFT - 6.0,
            TOP + plot_height * (1.0 - part) + 4.0,
            "end",
            &crate::format::short(largest * part),
        );
    }
    svg + "</svg>"
}

/// Distribution functions over a logarithmic axis of seconds.
pub(super) fn curves(title: &str, curves: &[Curve]) -> String {
    let mut svg = frame(title);
    let xs = || curves.iter().flat_map(|curve| curve.points.iter().map(|(x, _)| *x)).filter(|x| *x > 0.0);
    let low = xs().fold(f64::INFINITY, f64::min).log10().floor();
    let high = xs().fold(0.0, f64::max).log10().ceil();
    if !(low.is_finite() && high.is_finite()) {
        return svg + "</svg>";
    }
    let high = high.max(low + 1.0);
    let x_of = |x: f64| LEFT + (WIDTH - LEFT - RIGHT) * (x.log10() - low) / (high - low);
    let y_of = |y: f64| TOP + (HEIGHT - TOP - BOTTOM) * (1.0 - y);
    for decade in low as i32..=high as i32 {
        let x = x_of(10_f64.powi(decade));
        let _ = write!(svg, "<path class=\"grid\" d=\"M{x:.1} {:.1}V{:.1}\"/>", y_of(1.0), y_of(0.0));
        text(&mut svg, x, HEIGHT - BOTTOM + 16.0, "middle", &decade_label(decade));
    }
    for part in [0.0, 0.25, 0.5, 0.75, 1.0] {
        let y = y_of(part);
        let _ = write!(svg, "<path class=\"grid\" d=\"M{LEFT} {y:.1}H{:.1}\"/>", WIDTH - RIGHT);
        text(&mut svg, LEFT - 6.0, y + 4.0, "end", &format!("{part}"));
    }
    for curve in curves {
        let mut path = String::new();
        for (x, y) in curve.points.iter().filter(|(x, _)| *x > 0.0) {
            let _ = write!(path, "{}{:.1} {:.1}", if path.is_empty() { "M" } else { "L" }, x_of(*x), y_of(*y));
        }
        let _ =
            write!(svg, "<path class=\"{}\" d=\"{path}\"><title>{}</title></path>", curve.class, escape(&curve.name));
    }
    for (place, curve) in curves.iter().enumerate() {
        let y = TOP + 16.0 + 16.0 * place as f64;
        let _ = write!(svg, "<path class=\"{}\" d=\"M{} {:.1}h18\"/>", curve.class, LEFT + 10.0, y - 4.0);
        text(&mut svg, LEFT + 34.0, y, "start", &curve.name);
    }
    svg + "</svg>"
}

fn decade_label(decade: i32) -> String {
    match decade {
        ..=-4 => format!("1e{decade} s"),
        -3..=-1 => format!("{} s", 10_f64.powi(decade)),
        0..=3 => format!("{} s", 10_u32.pow(decade as u32)),
        _ => format!("1e{decade} s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plots_are_well_formed() {
        let svg = bars("a < b", &[("x\"".into(), 1.0), ("y".into(), 0.0)]);
        assert!(svg.contains("a &lt; b") && svg.matches("<rect").count() == 2 && svg.ends_with("</svg>"), "{svg}");
        let curve = Curve { name: "c".into(), class: "a", points: vec![(0.0, 0.1), (1.0, 0.5), (100.0, 1.0)] };
        let svg = curves("t", &[curve]);
        assert!(svg.contains("M56.0") && !svg.contains("NaN") && !svg.contains("inf"), "{svg}");
        for empty in [bars("t", &[]), curves("t", &[])] {
            assert!(empty.ends_with("</svg>") && !empty.contains("NaN"), "{empty}");
        }
    }
}

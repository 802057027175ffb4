//! Bar charts for terminals.

/// One bar per row: label, value, and the text after the bar.
pub(super) fn bars(rows: &[(String, f64, String)], width: usize) -> String {
    let largest = rows.iter().map(|(_, value, _)| *value).fold(0.0, f64::max);
    let label_width = rows.iter().map(|(label, ..)| label.chars().count()).max().unwrap_or(0);
    let mut text = String::new();
    for (label, value, note) in rows {
        let bar = bar(if largest > 0.0 { value / largest } else { 0.0 }, width);
        text.push_str(format!("  {label:>label_width$} {bar} {note}").trim_end());
        text.push('\n');
    }
    text
}

/// A bar for a fraction of the width, to an eighth of a character.
fn bar(part: f64, width: usize) -> String {
    let eighths = (part.clamp(0.0, 1.0) * width as f64 * 8.0).round() as usize;
    let rest = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"][eighths % 8];
    let bar = "█".repeat(eighths / 8) + rest;
    // Values above 0 are always visible.
    if bar.is_empty() && part > 0.0 { "▏".into() } else { bar }
}

/// A line of columns, scaled from 0 to the largest value.
pub(super) fn sparkline(values: &[u64]) -> String {
    let largest = values.iter().copied().max().unwrap_or(0).max(1);
    let column = |value: &u64| ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'][(value * 7 / largest) as usize];
    values.iter().map(column).collect()
}

/// The number of values in each class of run times, from one second up in steps of 1, 3, 10, 30, …; empty classes at
/// the ends are left out.
pub(super) fn time_classes(values: impl Iterator<Item = f64>) -> Vec<(String, u64)> {
    const ENDS: [(f64, &str); 14] = [
        (1.0, "< 1 s"),
        (3.0, "1 s"),
        (10.0, "3 s"),
        (30.0, "10 s"),
        (100.0, "30 s"),
        (300.0, "100 s"),
        (1_000.0, "5 min"),
        (3_600.0, "17 min"),
        (10_800.0, "1 h"),
        (36_000.0, "3 h"),
        (86_400.0, "10 h"),
        (259_200.0, "1 d"),
        (864_000.0, "3 d"),
        (f64::INFINITY, "10 d"),
    ];
    let mut counts = [0; ENDS.len()];
    for value in values {
        counts[ENDS.iter().position(|(end, _)| value < *end).unwrap_or(ENDS.len() - 1)] += 1;
    }
    let used = |count: &u64| *count > 0;
    let (Some(first), Some(last)) = (counts.iter().position(used), counts.iter().rposition(used)) else {
        return Vec::new();
    };
    (first..=last).map(|place| (ENDS[place].1.to_string(), counts[place])).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_are_in_proportion() {
        let rows =
            [("a".to_string(), 4.0, "4".to_string()), ("bb".into(), 1.0, "1".into()), ("c".into(), 0.0, "".into())];
        assert_eq!(bars(&rows, 4), "   a ████ 4\n  bb █ 1\n   c\n");
        assert_eq!((bar(0.1, 2), bar(1e-9, 2)), ("▎".into(), "▏".into()));
    }

    #[test]
    fn sparklines_reach_from_nothing_to_all() {
        assert_eq!(sparkline(&[0, 7, 14]), "▁▄█");
        assert_eq!(sparkline(&[0, 0]), "▁▁");
    }

    #[test]
    fn times_are_counted_in_classes() {
        let classes = time_classes([0.5, 20.0, 29.9, 1e9].into_iter());
        assert_eq!((classes[0].clone(), classes.len()), (("< 1 s".into(), 1), 14));
        assert_eq!(time_classes([15.0].into_iter()), [("10 s".to_string(), 1)]);
        assert!(time_classes(std::iter::empty()).is_empty());
    }
}

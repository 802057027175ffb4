//! The machine files that come with cosched.

use super::Machine;

/// Name and text of each, as in `experiments/machines/`.
pub const SHIPPED: [(&str, &str); 2] = [
    ("bunyip", include_str!("../../../../experiments/machines/bunyip.toml")),
    ("bunyip-faster", include_str!("../../../../experiments/machines/bunyip-faster.toml")),
];

/// A shipped machine by its name.
pub fn shipped(name: &str) -> Option<Machine> {
    let (name, text) = SHIPPED.iter().find(|(known, _)| *known == name)?;
    Machine::parse(text, name).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_are_valid_and_have_their_own_name() {
        for (name, text) in SHIPPED {
            let machine = Machine::parse(text, name).unwrap_or_else(|error| panic!("{error}"));
            assert_eq!(machine.name, name);
        }
        assert_eq!(shipped("nowhere"), None);
    }

    #[test]
    fn the_faster_one_is_the_papers_scaling() {
        // Section 5.3: communication volume by 10, all else by 4. β_CPU is CPU time: by 4 (docs/model.md).
        let (slow, fast) = (shipped("bunyip").unwrap(), shipped("bunyip-faster").unwrap());
        let near = |a: f64, b: f64| assert!((a - b).abs() < 1e-9, "{a} {b}");
        near(fast.context_switch_us, slow.context_switch_us / 4.0);
        near(fast.compute.flop_ns_level3, slow.compute.flop_ns_level3 / 4.0);
        near(fast.compute.level2_ns(), slow.compute.level2_ns() / 4.0);
        for (fast, slow) in [(fast.network, slow.network), (*fast.within_node(), *slow.within_node())] {
            near(fast.alpha_us, slow.alpha_us / 4.0);
            near(fast.alpha_cpu_us, slow.alpha_cpu_us / 4.0);
            near(fast.beta_us_per_word, slow.beta_us_per_word / 10.0);
        }
        near(fast.network.beta_cpu_us_per_word, slow.network.beta_cpu_us_per_word / 4.0);
        let costs = |machine: &Machine| (machine.programs.matmul.unwrap(), machine.programs.lu.unwrap());
        let ((fast_matmul, fast_lu), (slow_matmul, slow_lu)) = (costs(&fast), costs(&slow));
        near(fast_matmul.beta_vertical_us_per_word, slow_matmul.beta_vertical_us_per_word / 10.0);
        near(fast_matmul.beta_horizontal_us_per_word, slow_matmul.beta_horizontal_us_per_word / 10.0);
        near(fast_lu.beta_vertical_us_per_word, slow_lu.beta_vertical_us_per_word / 10.0);
        near(fast_lu.beta_horizontal_us_per_word, slow_lu.beta_horizontal_us_per_word / 10.0);
    }
}

use super::*;
use crate::machine::SHIPPED;

const WHOLE: &str = "name = \"m\"\ncpus_per_node = 2\ncontext_switch_us = 2\n[compute]\nflop_ns_level3 = 1.5\n\
    [network]\nalpha_us = 80\nbeta_us_per_word = 0.85\nalpha_cpu_us = 28.0\nbeta_cpu_us_per_word = 0.14\n";

/// The error for the text with one line replaced.
fn refusal(line: &str, replacement: &str) -> MachineError {
    let text = WHOLE.replace(line, replacement);
    assert_ne!(text, WHOLE, "{line}");
    machine(&text, "m.toml").expect_err(&text)
}

#[test]
fn reads_whole_numbers_and_leaves_out_what_may_be() {
    let machine = machine(WHOLE, "m.toml").unwrap();
    assert_eq!((machine.network.alpha_us, machine.context_switch_us, machine.shared_memory), (80.0, 2.0, None));
    assert_eq!(machine.within_node(), &machine.network);
    assert_eq!(machine.compute.level2_ns(), 1.5);
    assert_eq!(machine.links_of(32, machine.programs.lu).1.vertical_us, 0.85);
}

#[test]
fn a_spinning_link_needs_no_cpu_parts_but_the_network_does() {
    let text = format!("{WHOLE}[shared_memory]\nalpha_us = 42.0\nbeta_us_per_word = 0.1\n");
    let link = machine(&text, "m.toml").unwrap().shared_memory.unwrap();
    assert_eq!((link.alpha_cpu_us, link.beta_cpu_us_per_word), (42.0, 0.1));
    assert_eq!(refusal("alpha_cpu_us = 28.0\n", "").why, "network.alpha_cpu_us is missing");
}

#[test]
fn every_missing_constant_is_named() {
    for (line, key) in [
        ("name = \"m\"\n", "name"),
        ("cpus_per_node = 2\n", "cpus_per_node"),
        ("context_switch_us = 2\n", "context_switch_us"),
        ("flop_ns_level3 = 1.5\n", "compute.flop_ns_level3"),
        ("[compute]\nflop_ns_level3 = 1.5\n", "compute.flop_ns_level3"),
        ("\nalpha_us = 80\n", "network.alpha_us"),
        ("beta_us_per_word = 0.85\n", "network.beta_us_per_word"),
        ("beta_cpu_us_per_word = 0.14\n", "network.beta_cpu_us_per_word"),
    ] {
        let error = refusal(line, "\n");
        assert_eq!((error.key.as_deref(), error.line), (Some(key), None), "{error}");
        assert!(error.why.contains("missing") && !error.hint.is_empty(), "{error}");
    }
}

#[test]
fn every_bad_value_is_named_with_its_line() {
    for (line, replacement, says) in [
        ("alpha_us = 80", "alpha_us = -1", "m.toml:7: network.alpha_us = -1 must not be negative"),
        ("alpha_us = 80", "alpha_us = nan", "m.toml:7: network.alpha_us = nan must be a finite number"),
        (
            "context_switch_us = 2",
            "context_switch_us = inf",
            "m.toml:3: context_switch_us = inf must be a finite number",
        ),
        ("beta_us_per_word = 0.85", "beta_us_per_word = -0.5", "m.toml:8: network.beta_us_per_word = -0.5 must not"),
        ("flop_ns_level3 = 1.5", "flop_ns_level3 = 0", "m.toml:5: compute.flop_ns_level3 = 0 must be above 0"),
        (
            "flop_ns_level3 = 1.5",
            "flop_ns_level3 = 1\nflop_ns_level2 = 0.0",
            "m.toml:6: compute.flop_ns_level2 = 0.0 must",
        ),
        ("cpus_per_node = 2", "cpus_per_node = 0", "m.toml:2: cpus_per_node = 0 must be a whole number from 1"),
        (
            "alpha_cpu_us = 28.0",
            "alpha_cpu_us = 81",
            "m.toml:9: network.alpha_cpu_us = 81 must be at most alpha_us = 80",
        ),
        (
            "cpu_us_per_word = 0.14",
            "cpu_us_per_word = 0.9",
            "m.toml:10: network.beta_cpu_us_per_word = 0.9 must be at most",
        ),
        ("alpha_us = 80", "alpha_us = \"80\"", "m.toml:7: "),
        ("alpha_us = 80", "alfa_us = 80", "unknown field `alfa_us`"),
        ("alpha_us = 80", "alpha_us = 80 80", "m.toml:7: "),
        ("[compute]", "[cache]\nsize_bytes = 0\n[compute]", "m.toml:5: cache.size_bytes = 0 must be above 0"),
        ("[compute]", "[cache]\nsize_bytes = 9\n[compute]", "cache.refill_us_per_kib is missing"),
        (
            "[compute]",
            "[programs.lu]\nbeta_vertical_us_per_word = 1\n[compute]",
            "programs.lu.beta_horizontal_us_per_word is",
        ),
        ("[compute]", "[programs.fft]\n[compute]", "unknown field `fft`"),
    ] {
        let error = refusal(line, replacement);
        assert!(error.to_string().contains(says), "{replacement}: {error}");
        assert!(!error.hint.is_empty());
    }
}

#[test]
fn no_text_makes_it_panic() {
    for (_, text) in SHIPPED {
        for cut in (0..text.len()).filter(|&cut| text.is_char_boundary(cut)).step_by(7) {
            let _ = machine(&text[..cut], "cut");
        }
    }
    assert!(machine("", "empty").unwrap_err().why.contains("name is missing"));
}

#[test]
fn a_job_within_a_node_uses_shared_memory_and_a_larger_one_the_programs_betas() {
    let text = format!(
        "{WHOLE}[shared_memory]\nalpha_us = 42\nbeta_us_per_word = 0.1\n[programs.lu]\n\
         beta_vertical_us_per_word = 1.2\nbeta_horizontal_us_per_word = 1.1\n"
    );
    let machine = machine(&text, "m.toml").unwrap();
    let (link, betas) = machine.links_of(2, machine.programs.lu);
    assert_eq!((link.alpha_us, betas.vertical_us, betas.cpu_us), (42.0, 0.1, 0.1));
    let (link, betas) = machine.links_of(3, machine.programs.lu);
    assert_eq!((link.alpha_us, betas.vertical_us, betas.horizontal_us, betas.cpu_us), (80.0, 1.2, 1.1, 0.14));
}

//! The machine file: constants, with comments on their origin.

use super::Calibrate;
use super::cache::{self, Refill};
use super::measure::{Messages, Samples, Tools};
use crate::sim::memory::shown;
use cosched_model::machine::Cache;
use cosched_study::live;

/// The median, the smallest and the largest value.
fn spread(values: &[f64]) -> (f64, f64, f64) {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let Some((first, last)) = sorted.first().zip(sorted.last()) else { return (0.0, 0.0, 0.0) };
    let (low, high) = (sorted[(sorted.len() - 1) / 2], sorted[sorted.len() / 2]);
    ((low + high) / 2.0, *first, *last)
}

/// `key = median  # smallest to largest`, where the median is at least 0 and at most `most`.
fn constant(key: &str, values: &[f64], most: f64) -> String {
    let (median, min, max) = spread(values);
    let value = rounded(median.clamp(0.0, most));
    let note = if median < 0.0 {
        "; negative values are noise, 0 is written"
    } else if median > most {
        "; measured separately from the total, and limited to it"
    } else {
        ""
    };
    format!("{:<40}# {} to {}{note}\n", format!("{key} = {value:?}"), rounded(min), rounded(max))
}

/// Four digits: no measurement is more precise.
fn rounded(value: f64) -> f64 {
    format!("{value:.3e}").parse().unwrap_or(value)
}

fn link(title: &str, messages: &Messages) -> String {
    let most = |values: &[f64]| rounded(spread(values).0.max(0.0));
    [
        format!("\n[{title}]\n"),
        constant("alpha_us", &messages.alpha_us, f64::MAX),
        constant("beta_us_per_word", &messages.beta_us, f64::MAX),
        // Noise may make the part larger than the whole.
        constant("alpha_cpu_us", &messages.alpha_cpu_us, most(&messages.alpha_us)),
        constant("beta_cpu_us_per_word", &messages.beta_cpu_us, most(&messages.beta_us)),
    ]
    .concat()
}

/// The cache, also as an option of the simulator.
fn refill(samples: &[Refill]) -> String {
    let far: Vec<f64> = samples.iter().map(|of| of.far_us_per_kib).collect();
    let near: Vec<f64> = samples.iter().map(|of| of.near_us_per_kib).collect();
    let cache = Cache { size_bytes: cache::size_bytes(), refill_us_per_kib: rounded(spread(&far).0) };
    let option =
        live::cache(&cache).map_or_else(String::new, |cache| format!("# In `cosched sim run`: {}\n", shown(&cache)));
    format!(
        "\n# A CPU's own cache, read again from memory; after only as much other data as it holds {} us per KiB.\n\
         {option}[cache]\nsize_bytes = {}\n{}",
        rounded(spread(&near).0.max(0.0)),
        cache.size_bytes,
        constant("refill_us_per_kib", &far, f64::MAX)
    )
}

/// A fact about the kernel, as it reports it.
fn kernel(what: &str) -> String {
    let text = std::fs::read_to_string(format!("/proc/sys/kernel/{what}"));
    text.map_or_else(|_| "unknown".to_owned(), |text| text.trim().to_owned())
}

/// The text of the whole file.
pub(super) fn text(options: &Calibrate, tools: &Tools, samples: &Samples) -> String {
    let (host, release) = (kernel("hostname"), kernel("osrelease"));
    let cpus = std::thread::available_parallelism().map_or(1, usize::from);
    let now = jiff::Timestamp::now().strftime("%Y-%m-%d %H:%M UTC");
    let quoted = |text: &str| serde_json::Value::from(text).to_string();
    let name = quoted(options.name.as_deref().unwrap_or(&host));
    let description = quoted(&format!("{host}, {cpus} CPUs, Linux {}", release));
    let source = quoted(&format!("cosched model calibrate, {now}"));
    let mut all = format!(
        "# Measured by `cosched model calibrate` on {host}, {now}.\n\
         # {}.\n# Medians of {} repetitions; beside each the smallest and the largest.\n\
         name = {name}\ndescription = {description}\nsource = {source}\ncpus_per_node = {cpus}\n",
        tools.description(),
        options.repeat
    );
    all.push_str(&constant("context_switch_us", &samples.switch_us, f64::MAX));
    all.push_str(&format!("\n# matmul --n {} on one process.\n[compute]\n", options.matmul_n));
    all.push_str(&constant("flop_ns_level3", &samples.flop_ns, f64::MAX));
    all.push_str("\n# TCP over the loopback device, which stands for a network: a real one is slower.");
    all.push_str(&link("network", &samples.network));
    all.push_str(&link("shared_memory", &samples.shared));
    if !samples.refill.is_empty() {
        all.push_str(&refill(&samples.refill));
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cache_is_an_option_of_the_simulator_too() {
        let of = |far_us_per_kib| Refill { far_us_per_kib, near_us_per_kib: -0.1 };
        let text = refill(&[of(0.064), of(0.032), of(0.128)]);
        let size = cache::size_bytes();
        assert!(text.contains(&format!("# In `cosched sim run`: --cache {size}B,16000MB/s\n[cache]\n")), "{text}");
        assert!(text.contains("other data as it holds 0 us"), "{text}");
        assert!(text.contains("refill_us_per_kib = 0.064"), "{text}");
    }

    #[test]
    fn medians_and_spread() {
        assert_eq!(spread(&[3.0, 1.0, 2.0]), (2.0, 1.0, 3.0));
        assert_eq!(spread(&[4.0, 1.0]), (2.5, 1.0, 4.0));
        assert_eq!(
            constant("alpha_us", &[1.5, 2.0, 1.0], f64::MAX).trim_end(),
            "alpha_us = 1.5                          # 1 to 2"
        );
        assert!(constant("alpha_c", &[-0.2], f64::MAX).starts_with("alpha_c = 0.0 "));
        assert!(constant("cpu", &[3.0], 2.0).starts_with("cpu = 2.0 "), "a part is no larger than the whole");
    }
}

//! Reports on runs and sweeps; how they look is cosched-report's.

mod place;
mod run;
mod sweep;
#[cfg(test)]
mod tests;

pub use run::run_report;
pub use sweep::sweep_report;

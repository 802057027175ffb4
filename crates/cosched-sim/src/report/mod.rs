//! Reports: one HTML file with figures as inline SVG, which opens from disk without a network and without a script.
//!
//! Every figure has its numbers in a table below it. Colours can be told apart by colour-blind people (after Okabe and
//! Ito), lines also by marks and dashes; the page follows the reader's choice of light or dark.

mod against;
mod bars;
mod frame;
mod lines;
mod page;
mod place;
mod run;
mod sweep;
#[cfg(test)]
mod tests;

pub use against::{Pair, against};
pub use bars::{Bar, lying};
pub use lines::{Line, lines, steps};
pub use page::{Page, Title, percent, short};
pub use run::run_report;
pub use sweep::sweep_report;

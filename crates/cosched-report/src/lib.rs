//! Reports: what a report says, as data, and the single HTML file that shows it (decision 0074).
//!
//! The file needs no server and no network: style, script and chart library are in it, made from `web/src/report`. Which
//! charts look how is decided there; here is what they say.

mod chart;
mod number;
mod page;

pub use chart::{Axis, Chart, IDLE, Point, Series, Shape, axis, middle, shares};
pub use number::{percent, short};
pub use page::{Page, Title};

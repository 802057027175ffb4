//! Models of workloads. Each generates jobs sorted by arrival; lengths and load are then set by [`super::scale`]. For
//! the same seed a longer list begins with the shorter one, before the load is set.

mod classes;
mod lublin;
mod paper;

pub use classes::{ClassModel, ClassShape, FitMethod, ModelError, ctc_1996_refit};
pub use lublin::{Lublin, lublin};
pub use paper::paper;

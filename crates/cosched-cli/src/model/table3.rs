//! `cosched model table3`: this model beside the paper's own model.

use super::machines;
use crate::context::Context;
use crate::out::{Failure, terminal_width};
use crate::table::Listing;
use cosched_model::table3::{Figure, LU, MATMUL, Published, figures};
use serde::Serialize;

#[derive(Serialize)]
struct Row<'a> {
    #[serde(flatten)]
    figure: &'a Figure,
    difference: f64,
}

#[derive(Serialize)]
struct Report<'a> {
    figures: Vec<Row<'a>>,
    published: [&'a Published; 2],
}

pub(crate) fn table3(context: &Context) -> Result<u8, Failure> {
    let all = figures(&machines::find("bunyip")?, &machines::find("bunyip-faster")?);
    let rows = all.iter().map(|figure| Row { figure, difference: figure.difference() }).collect();
    context.give(&Report { figures: rows, published: [&MATMUL, &LU] }, || {
        let table = Listing::of(&all)
            .words("FIGURE", 0, |figure| figure.name.as_str())
            .numbers("PAPER", 0, |figure| shown(figure, figure.paper))
            .numbers("MODEL", 0, |figure| shown(figure, figure.model))
            .numbers("DIFFERENCE", 0, |figure| format!("{:+.1} %", figure.difference() * 100.0))
            .render(terminal_width());
        table + "\nThe extrapolation's CPU utilisation has three readings; docs/model.md, chapter 4, discusses them.\n"
    })
}

/// Rounded to one more decimal place than the paper prints.
fn shown(figure: &Figure, value: f64) -> String {
    let places = if figure.name.contains("t_1") { 2 } else { 3 };
    format!("{value:.places$}")
}

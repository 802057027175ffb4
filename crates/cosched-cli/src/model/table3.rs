//! `cosched model table3`: this model beside the paper's own model.

use super::machines;
use crate::context::Context;
use crate::out::{Failure, print, print_json, terminal_width};
use crate::table::{Cell, Column, numbers, render, words};
use cosched_model::table3::{Figure, LU, MATMUL, Published, figures};
use serde::Serialize;

const COLUMNS: [Column; 4] = [words("FIGURE", 0), numbers("PAPER", 0), numbers("MODEL", 0), numbers("DIFFERENCE", 0)];

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
    if context.json {
        let rows = all.iter().map(|figure| Row { figure, difference: figure.difference() }).collect();
        print_json(&Report { figures: rows, published: [&MATMUL, &LU] })?;
        return Ok(0);
    }
    let rows: Vec<Vec<Cell>> = all
        .iter()
        .map(|figure| {
            vec![
                figure.name.as_str().into(),
                shown(figure, figure.paper).into(),
                shown(figure, figure.model).into(),
                format!("{:+.1} %", figure.difference() * 100.0).into(),
            ]
        })
        .collect();
    print(&render(&COLUMNS, &rows, terminal_width()))?;
    print("\nThe extrapolation's CPU utilisation has three readings; docs/model.md, chapter 4, discusses them.\n")?;
    Ok(0)
}

/// Rounded to one more decimal place than the paper prints.
fn shown(figure: &Figure, value: f64) -> String {
    let places = if figure.name.contains("t_1") { 2 } else { 3 };
    format!("{value:.places$}")
}
